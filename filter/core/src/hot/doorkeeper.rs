// SPDX-License-Identifier: Apache-2.0
//! Lets in what is asked for twice.

use crate::workers::KeyHash;
use crate::workers::recent_keys::RecentKeys;

/// The keys that were asked for lately. (The doorkeeper of TinyLFU: Einziger, Friedman, Manes, "TinyLFU: A Highly
/// Efficient Cache Option<Onward> Policy", 2017.)
#[derive(Debug)]
pub struct Doorkeeper {
    seen: RecentKeys<()>,
}

impl Doorkeeper {
    /// One that remembers at most `capacity` keys.
    pub fn new(capacity: usize) -> Self {
        Self {
            seen: RecentKeys::new(capacity),
        }
    }

    /// Whether `key` was asked for before. It has been, from now on.
    pub fn knows(&mut self, key: KeyHash) -> bool {
        let known = self.seen.peek(key).is_some();
        if !known {
            self.seen.insert(key, ());
        }
        known
    }
}
