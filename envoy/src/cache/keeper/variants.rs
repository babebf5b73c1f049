// SPDX-License-Identifier: Apache-2.0
//! The variants of each URL among the files in use. If a URL has too many variants, the oldest one is removed.
//! Otherwise a header that `Vary` names, and whose value clients choose freely, would fill the cache with one URL.

use std::collections::{HashMap, VecDeque};

use crate::cache::entries::UrlId;

/// The files of each URL that has variants, by the numbers in their names.
#[derive(Debug, Default)]
pub struct Variants {
    /// The files of a URL, the one that was stored first in front.
    files: HashMap<UrlId, VecDeque<u64>>,
    urls: HashMap<u64, UrlId>,
}

impl Variants {
    /// Adds a file that has just been stored. Returns the file to remove if the URL now has more than `most`.
    pub fn add(&mut self, number: u64, url: UrlId, most: usize) -> Option<u64> {
        self.forget(number);
        self.urls.insert(number, url);
        let files = self.files.entry(url).or_default();
        files.push_back(number);
        (files.len() > most)
            .then(|| files.front().copied())
            .flatten()
    }

    /// Forgets a file that is gone.
    pub fn forget(&mut self, number: u64) {
        let Some(url) = self.urls.remove(&number) else {
            return;
        };
        if let Some(files) = self.files.get_mut(&url) {
            files.retain(|file| *file != number);
            if files.is_empty() {
                self.files.remove(&url);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> UrlId {
        UrlId::of(b"a", path.as_bytes())
    }

    #[test]
    fn the_variant_that_was_stored_first_goes() {
        let mut variants = Variants::default();
        let (one, other) = (url("/a"), url("/b"));
        assert_eq!(variants.add(1, one, 2), None);
        assert_eq!(variants.add(2, one, 2), None);
        assert_eq!(variants.add(3, other, 2), None);
        assert_eq!(variants.add(1, one, 2), None, "it is stored anew");
        assert_eq!(variants.add(4, one, 2), Some(2));
        variants.forget(2);
        assert_eq!(variants.add(5, one, 2), Some(1));
        for number in [1, 3, 4, 5] {
            variants.forget(number);
        }
        assert!(variants.files.is_empty() && variants.urls.is_empty());
    }
}
