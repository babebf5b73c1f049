// SPDX-License-Identifier: Apache-2.0
//! How long stored bodies are, as far as one worker remembers.
//!
//! A range may be left to the v2 store only where the length of the whole is known: for another, the
//! store answers 416 without any of the entry's headers.

use std::collections::HashMap;

use crate::board::KeyHash;

/// A bounded table in two generations, as [`crate::hints::Hints`] is.
#[derive(Debug)]
pub struct Lengths {
    young: HashMap<KeyHash, u64>,
    old: HashMap<KeyHash, u64>,
    capacity: usize,
}

impl Lengths {
    /// A table for at most `capacity` keys, and never fewer than two.
    pub fn new(capacity: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            capacity: capacity.max(2),
        }
    }

    /// Bytes in the body of `key`.
    pub fn get(&mut self, key: KeyHash) -> Option<u64> {
        if let Some(length) = self.young.get(&key) {
            return Some(*length);
        }
        let length = self.old.remove(&key)?;
        self.set(key, length);
        Some(length)
    }

    /// Remembers the length of `key`.
    pub fn set(&mut self, key: KeyHash, length: u64) {
        if self.young.len() >= self.capacity / 2 && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, length);
        self.old.remove(&key);
    }

    /// Forgets `key`.
    pub fn forget(&mut self, key: KeyHash) {
        self.young.remove(&key);
        self.old.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays() {
        let mut lengths = Lengths::new(4);
        for key in 0..100 {
            lengths.set(KeyHash(key), key);
            assert_eq!(lengths.get(KeyHash(0)), Some(0), "{key}");
            assert!(lengths.young.len() + lengths.old.len() <= 4);
        }
        assert_eq!(lengths.get(KeyHash(50)), None);
    }

    #[test]
    fn what_is_forgotten_is_gone() {
        let mut lengths = Lengths::new(4);
        lengths.set(KeyHash(1), 10);
        lengths.set(KeyHash(1), 20);
        assert_eq!(lengths.get(KeyHash(1)), Some(20));
        lengths.forget(KeyHash(1));
        assert_eq!(lengths.get(KeyHash(1)), None);
    }
}
