// SPDX-License-Identifier: Apache-2.0
//! The lengths of stored bodies without a `Content-Length`, because the origin has not announced the length or a
//! compressor has changed it. A worker that sees the end of such a body knows its length.

use sluice_core::workers::recent_keys::RecentKeys;
use sluice_core::workers::{BodyId, KeyHash};

/// Bounded table of keys.
#[derive(Debug)]
pub struct BodyLengths {
    keys: RecentKeys<(BodyId, u64)>,
}

impl BodyLengths {
    /// Creates a table for at most `capacity` keys, and at least two.
    pub fn new(capacity: usize) -> Self {
        Self {
            keys: RecentKeys::new(capacity),
        }
    }

    /// Changes the bound. If the table is too large, keys are dropped when new ones are added.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.keys.set_capacity(capacity);
    }

    /// Records that the body under `key` is `body`, with this number of bytes.
    pub fn note(&mut self, key: KeyHash, body: BodyId, bytes: u64) {
        self.keys.insert(key, (body, bytes));
    }

    /// Returns the number of bytes of `body` under `key`, if it is known.
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
