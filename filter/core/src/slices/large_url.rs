// SPDX-License-Identifier: Apache-2.0
//! The URL of an object that is stored in slices, as workers and the entry point remember it.

use crate::key::qualifiers::is_for_slice;
use crate::key::secret::StoreSecret;
use crate::policy::LargeUrl;

impl LargeUrl {
    /// The greatest number of URLs that outlive the edge.
    pub const MOST: usize = 10_000;

    /// Returns the hash of a URL in the form of [`CanonicalTarget::url`](crate::key::CanonicalTarget::url).
    pub fn of(url: &str, secret: &StoreSecret) -> Self {
        Self(secret.hash(url.as_bytes()))
    }

    /// Returns the hash of the URL of an entry of the store, if the entry is a slice. `authority` and `path` are those
    /// of the entry's key.
    pub fn of_slice(authority: &str, path: &str, secret: &StoreSecret) -> Option<Self> {
        let (url, _) = path.split_once('#')?;
        is_for_slice(path).then(|| Self::of(&[authority, url].concat(), secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: StoreSecret = StoreSecret::new([1, 2]);

    #[test]
    fn the_url_of_a_slice_is_that_of_its_object_whatever_the_purge() {
        let url = LargeUrl::of("site!a.example/b/film?c=d", &SECRET);
        for path in [
            "/b/film?c=d#0123456789abcdef;s=0.1f",
            "/b/film?c=d#0123456789abcdef;g=7;s=12.1f",
            "/b/film?c=d#0123456789abcdef;g=7;vary-accept=x;s=12.1f",
        ] {
            let found = LargeUrl::of_slice("site!a.example", path, &SECRET);
            assert_eq!(found, Some(url), "{path}");
        }
        for path in [
            "/b/film?c=d",
            "/b/film;s=1.1f",
            "/b/film?c=d#0123456789abcdef",
            "/b/film?c=d#0123456789abcdef;method=HEAD",
        ] {
            let found = LargeUrl::of_slice("site!a.example", path, &SECRET);
            assert_eq!(found, None, "{path}");
        }
    }
}
