// SPDX-License-Identifier: Apache-2.0
//! The directory of a listing, and the request to the bucket for a page of it.

use super::selection::Selection;
use crate::http::url::escaping::{escape_key, unescaped};
use crate::key::CanonicalTarget;
use crate::policy::sections::listing::ListingPolicy;
use crate::policy::{BucketOrigin, Origin, Policy};

/// A character behind all others. S3 lists the objects of a directory behind the name of the directory, and they are
/// in front of the directory's name with this character.
const LAST_CHARACTER: char = '\u{10FFFF}';

/// A directory that has a listing.
#[derive(Clone, Copy, Debug)]
pub struct ListedDirectory<'a> {
    /// The policy of its site.
    pub policy: &'a Policy,
    /// The policy of its listing.
    pub listing: &'a ListingPolicy,
    /// The bucket.
    pub bucket: &'a BucketOrigin,
    /// Its canonical path towards the bucket. Ends in a slash.
    path: &'a str,
}

impl<'a> ListedDirectory<'a> {
    /// The directory with the index document at a canonical path towards the bucket, which may have a query and
    /// qualifiers. `None` if it has no listing.
    pub fn of_index(policy: &'a Policy, path: &'a str) -> Option<Self> {
        let Origin::Bucket(bucket) = &policy.origin else {
            return None;
        };
        let listing = policy.website.listing.as_ref()?;
        let path = path.split(['?', '#']).next()?;
        let index = escape_key(policy.key.index_document.as_deref()?);
        let path = path.strip_suffix(&index)?;
        let directory = Self {
            policy,
            listing,
            bucket,
            path,
        };
        let shown = path.strip_prefix(&bucket.path_prefix)?;
        let prefix = listing.prefix_of(shown)?;
        let mut below = shown.get(prefix.len()..)?.split('/');
        let is_hidden = below.any(|name| !name.is_empty() && listing.hides(&decoded(name)));
        (path.ends_with('/') && !is_hidden).then_some(directory)
    }

    /// The directory's path for clients, behind the bucket's prefix. Ends in a slash.
    pub fn client_path(&self) -> &'a str {
        self.policy.client_path(self.path)
    }

    /// Whether the directory is one of the listed prefixes, above which no directory is listed.
    pub fn is_top(&self) -> bool {
        let mut prefixes = self.listing.prefixes.iter();
        prefixes.any(|prefix| prefix.prefix() == self.client_path())
    }

    /// The beginning of the keys of its objects. Empty, or ends in a slash.
    pub fn key_prefix(&self) -> String {
        key_of(self.bucket, self.path)
    }

    /// The path and the query of the request to the bucket for the selected page. The parameters are in alphabetical
    /// order, as they are signed.
    pub fn question(&self, selection: &Selection) -> String {
        let prefix = self.key_prefix();
        let mut path = format!(
            "{}/?delimiter=%2F&list-type=2&max-keys={}&prefix={}",
            self.bucket.root,
            self.listing.page,
            escape_value(&prefix),
        );
        let after = selection.after.as_str();
        if !after.is_empty() {
            let last = if after.ends_with('/') {
                LAST_CHARACTER.to_string()
            } else {
                String::new()
            };
            path.push_str("&start-after=");
            path.push_str(&escape_value(&[&prefix, after, &last].concat()));
        }
        path
    }
}

/// The target of the selected page, for the target of a directory's index document.
pub fn listing_target(
    policy: &Policy,
    index: &CanonicalTarget,
    selection: &Selection,
) -> Option<CanonicalTarget> {
    ListedDirectory::of_index(policy, index.origin_path())?;
    let path = index.origin_path().split('?').next()?;
    let mut target = index.sibling(path);
    selection.qualify(&mut target);
    Some(target)
}

/// The paths towards the bucket of the index documents whose directories list an object with this path, or a directory
/// above it.
pub fn listed_urls(policy: &Policy, path: &str) -> Vec<String> {
    let Some(index) = policy.key.index_document.as_deref().map(escape_key) else {
        return Vec::new();
    };
    // The name of an empty directory ends in a slash.
    let slashes = path.match_indices('/').map(|(at, _)| at);
    let directories = slashes.filter_map(|at| path.get(..=at));
    let indexes = directories.map(|directory| [directory, &index].concat());
    indexes
        .filter(|index| ListedDirectory::of_index(policy, index).is_some())
        .collect()
}

/// The beginnings of the keys that are listed, each empty or with a slash at its end.
pub fn listed_keys(bucket: &BucketOrigin, listing: &ListingPolicy) -> Vec<String> {
    let prefixes = listing.prefixes.iter();
    let paths = prefixes.map(|prefix| [&bucket.path_prefix, prefix.prefix()].concat());
    paths.map(|path| key_of(bucket, &path)).collect()
}

/// The key that a canonical path towards the bucket stands for.
fn key_of(bucket: &BucketOrigin, path: &str) -> String {
    let key = path.strip_prefix(&bucket.root).unwrap_or(path);
    decoded(key.strip_prefix('/').unwrap_or(key))
}

/// The text that an escaped part of a canonical path stands for.
fn decoded(escaped: &str) -> String {
    String::from_utf8_lossy(&unescaped(escaped.as_bytes()).collect::<Vec<_>>()).into_owned()
}

/// Escapes the value of a parameter of the request to the bucket.
pub fn escape_value(value: &str) -> String {
    escape_key(value).replace('/', "%2F")
}
