// SPDX-License-Identifier: Apache-2.0
//! The section `website.listing`: lists of the objects of a directory.

use std::time::Duration;

use serde_json::Value;

use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{AtLeast, Form, Kind, Whole, read_text};
use crate::policy::forms::glob::Glob;
use crate::policy::forms::names::text;
use crate::policy::forms::section::section;
use crate::policy::sections::rules::CanonicalGlob;

/// The most names that one page of a listing may have, which is the most that a bucket sends in one response.
pub const MAX_PAGE: u64 = 1_000;

section! {
    /// Listings of directories: paths that end in a slash and have no index document.
    pub struct ListingPolicy {
        /// The paths that are listed, behind a bucket's prefix, such as /pub/*. Each begins with a slash, and ends in a
        /// slash and a *.
        prefixes: Vec<Glob> as Vec<ListedPrefix>,
        /// The names that no listing shows, with * for any characters. A directory with such a name has no listing.
        hide: Vec<Glob> as Vec<HiddenName> = vec![Glob::new(".*")],
        /// The most names that one page shows.
        page: u16 as Whole<2, MAX_PAGE> = 1_000,
        /// How long a listing is fresh at most, for clients as well. Notifications of the bucket remove it earlier.
        ttl: Duration as AtLeast<1_000> = Duration::from_secs(10),
    }
}

/// The pattern of a listed prefix.
pub(in crate::policy) struct ListedPrefix;

impl Form<Glob> for ListedPrefix {
    fn read(value: &Value, kind: Kind) -> Result<Glob, PolicyError> {
        let glob: Option<Glob> = CanonicalGlob::read(value, kind).ok();
        let is_directory = |glob: &Glob| {
            let prefix = glob.prefix();
            let segments = prefix
                .strip_prefix('/')
                .and_then(|rest| rest.strip_suffix('/'));
            let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
            let fits = prefix == "/" || segments.is_some_and(|all| all.split('/').all(is_segment));
            fits && glob.as_str() == [prefix, "*"].concat()
        };
        glob.filter(is_directory).ok_or_else(|| {
            let expected = "a path that begins with a slash and ends in /*, such as /pub/*";
            PolicyError::unexpected(value, expected)
        })
    }
}

text!(
    /// A pattern of names.
    HiddenName => Glob,
    "a name without a slash, with * for any characters, such as .* or *.bak",
    "^[^/\\x00-\\x1F\\x7F]+$",
    |text| {
        let fits = !text.is_empty() && !text.contains('/') && !text.contains(char::is_control);
        fits.then(|| Glob::new(text))
    }
);

impl ListingPolicy {
    /// Refuses a section without an effect.
    pub(in crate::policy) fn check(&self) -> Result<(), PolicyError> {
        if self.prefixes.is_empty() {
            let message = "an empty list: expected a path such as /pub/*";
            return Err(PolicyError::new("prefixes", message));
        }
        Ok(())
    }

    /// The listed prefix that has the canonical `path` of a client, without its `*`.
    pub fn prefix_of(&self, path: &str) -> Option<&str> {
        let prefixes = self.prefixes.iter();
        prefixes
            .map(Glob::prefix)
            .find(|prefix| path.starts_with(prefix))
    }

    /// Whether listings do not show a `name`.
    pub fn hides(&self, name: &str) -> bool {
        self.hide.iter().any(|pattern| pattern.matches(name))
    }
}
