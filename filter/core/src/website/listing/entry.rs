// SPDX-License-Identifier: Apache-2.0
//! An entry of a listing: an object, or a directory.

use super::bucket_list::ListedObject;
use super::question::ListedDirectory;
use crate::http::url::escaping::{Escaping, append_path, escape_key};
use crate::policy::is_for_edges;

/// An entry of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The name, without a slash.
    pub name: &'a str,
    /// The object; `None` for a directory.
    pub object: Option<&'a ListedObject>,
}

impl<'a> Entry<'a> {
    /// The entry for a key, or the beginning of the keys in a directory, behind the prefix of the listed directory.
    pub fn of(rest: &'a str, object: Option<&'a ListedObject>) -> Self {
        let name = match object {
            Some(_) => rest,
            None => rest.strip_suffix('/').unwrap_or(rest),
        };
        Self { name, object }
    }

    /// The name, with a slash if it is that of a directory.
    pub fn full_name(&self) -> String {
        let slash = if self.object.is_none() { "/" } else { "" };
        [self.name, slash].concat()
    }

    /// The reference from the directory to the entry.
    pub fn reference(&self) -> String {
        escape_key(&self.full_name())
    }

    /// Whether a URL of the edge names exactly this entry of `directory`.
    pub fn has_url(&self, directory: &ListedDirectory<'_>) -> bool {
        let key = &directory.policy.key;
        // A bucket replaces characters that XML cannot contain by U+FFFD.
        let is_odd = |character: char| character.is_control() || character == '\u{FFFD}';
        if self.name.is_empty() || self.name.contains('/') || self.name.contains(is_odd) {
            return false;
        }
        let index = match self.object {
            Some(_) => 0,
            None => key.index_document.as_ref().map_or(0, String::len),
        };
        let bytes = directory.key_prefix().len() + self.full_name().len() + index;
        let path = [directory.client_path(), &self.reference()].concat();
        let mut canonical = Vec::with_capacity(path.len());
        let spelling = append_path(
            &mut canonical,
            path.as_bytes(),
            Escaping::Strict,
            key.merge_slashes,
        );
        let is_kept = spelling.is_ok() && canonical == path.as_bytes();
        is_kept && bytes <= key.max_bytes && !is_for_edges(self.name.as_bytes())
    }
}
