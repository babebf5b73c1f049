// SPDX-License-Identifier: Apache-2.0
//! Lengths of stored bodies that no header tells: the origin has not announced them, or a compressor has made
//! them. A worker that sees the end of such a body knows its length.

use sluice_core::workers::recent_keys::RecentKeys;
use sluice_core::workers::{BodyId, KeyHash};

/// A bounded table of keys.
#[derive(Debug)]
pub struct BodyLengths {
    keys: RecentKeys<(BodyId, u64)>,
}

impl BodyLengths {
    /// A table for at most `capacity` keys, and never fewer than two.
    pub fn new(capacity: usize) -> Self {
        Self {
            keys: RecentKeys::new(capacity),
        }
    }

    /// Changes the bound; what is over it goes as new keys come.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.keys.set_capacity(capacity);
    }

    /// The body under `key` is that one, and has so many bytes.
    pub fn note(&mut self, key: KeyHash, body: BodyId, bytes: u64) {
        self.keys.insert(key, (body, bytes));
    }

    /// The number of bytes of that very body under `key`, if it is known.
    pub fn get(&mut self, key: KeyHash, body: BodyId) -> Option<u64> {
        let (known, bytes) = *self.keys.get(key)?;
        (known == body).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_that_of_one_body_only() {
        let mut lengths = BodyLengths::new(10);
        lengths.note(KeyHash(1), BodyId(7), 100);
        assert_eq!(lengths.get(KeyHash(1), BodyId(7)), Some(100));
        assert_eq!(lengths.get(KeyHash(1), BodyId(8)), None);
        assert_eq!(lengths.get(KeyHash(2), BodyId(7)), None);
        lengths.note(KeyHash(1), BodyId(8), 200);
        assert_eq!(lengths.get(KeyHash(1), BodyId(7)), None);
        assert_eq!(lengths.get(KeyHash(1), BodyId(8)), Some(200));
    }
}
