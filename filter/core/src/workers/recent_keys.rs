// SPDX-License-Identifier: Apache-2.0
//! The bounded table in which a worker remembers keys.

use crate::workers::{KeyHash, NumberMap};

/// A bounded table in two generations: when the young one is full, the old one is dropped. A lookup moves an entry to
/// the young one, so hot keys stay.
#[derive(Debug)]
pub struct RecentKeys<V> {
    young: NumberMap<KeyHash, V>,
    old: NumberMap<KeyHash, V>,
    capacity: usize,
    /// Number of keys that were dropped since [`RecentKeys::take_dropped`].
    dropped: usize,
}

impl<V> Default for RecentKeys<V> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<V> RecentKeys<V> {
    /// A table for at most `capacity` keys, and never fewer than two.
    pub fn new(capacity: usize) -> Self {
        Self {
            young: NumberMap::default(),
            old: NumberMap::default(),
            capacity: capacity.max(2),
            dropped: 0,
        }
    }

    /// Changes the limit. Entries beyond it are dropped as new keys arrive.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(2);
    }

    /// The value of `key`. The lookup protects it from being dropped soon.
    pub fn get(&mut self, key: KeyHash) -> Option<&V> {
        if let Some(value) = self.old.remove(&key) {
            self.insert(key, value);
        }
        self.young.get(&key)
    }

    /// The value of `key`. The lookup does not protect it.
    pub fn peek(&self, key: KeyHash) -> Option<&V> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    /// The value of `key`, to be changed. The lookup does not protect it.
    pub fn peek_mut(&mut self, key: KeyHash) -> Option<&mut V> {
        let found = self.young.get_mut(&key);
        found.or_else(|| self.old.get_mut(&key))
    }

    /// Sets the value of `key`.
    pub fn insert(&mut self, key: KeyHash, value: V) {
        if self.young.len() >= self.capacity / 2 && !self.young.contains_key(&key) {
            let dropped = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.dropped += dropped.len() - usize::from(dropped.contains_key(&key));
        }
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    /// Removes `key`.
    pub fn remove(&mut self, key: KeyHash) {
        self.young.remove(&key);
        self.old.remove(&key);
    }

    /// The number of keys that were dropped to make room since the last call.
    pub fn take_dropped(&mut self) -> usize {
        std::mem::take(&mut self.dropped)
    }

    /// Number of remembered keys.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_bounded_and_keeps_what_is_asked_for() {
        let mut table = RecentKeys::new(100);
        table.insert(KeyHash(u64::MAX), u64::MAX);
        for key in 0..10_000 {
            table.insert(KeyHash(key), key);
            assert_eq!(table.get(KeyHash(u64::MAX)), Some(&u64::MAX), "{key}");
            assert!(table.len() <= 100, "{key}");
        }
        assert_eq!(table.get(KeyHash(0)), None);
    }

    #[test]
    fn a_key_has_the_value_that_it_was_given_last_in_whichever_generation() {
        let mut table = RecentKeys::new(2);
        table.insert(KeyHash(1), 10);
        table.insert(KeyHash(2), 20);
        table.insert(KeyHash(1), 11);
        assert_eq!(table.peek(KeyHash(1)), Some(&11));
        table.insert(KeyHash(2), 21);
        if let Some(value) = table.peek_mut(KeyHash(1)) {
            *value = 12;
        }
        assert_eq!(table.get(KeyHash(1)), Some(&12));
    }

    #[test]
    fn each_key_that_makes_room_for_another_is_counted() {
        let mut table = RecentKeys::new(100);
        for key in 0..1_000 {
            table.insert(KeyHash(key), key);
            table.get(KeyHash(0));
        }
        assert_eq!(table.take_dropped(), 1_000 - table.len());
        table.remove(KeyHash(999));
        assert_eq!(table.take_dropped(), 0);
    }

    #[test]
    fn what_is_removed_is_gone() {
        let mut table = RecentKeys::new(4);
        table.insert(KeyHash(1), 10);
        table.remove(KeyHash(1));
        assert!(table.is_empty());
        assert_eq!(table.get(KeyHash(1)), None);
    }
}
