// SPDX-License-Identifier: Apache-2.0
//! What one worker remembers of keys, so that a hit needs no look at the board.
//!
//! A hint is only ever about speed. A wrong "fresh" costs an uncoalesced request, a wrong
//! "hit-for-miss" an uncached one; neither can serve a wrong object.

use std::collections::HashMap;

use crate::board::{KeyHash, Millis};

/// For how long an origin that has failed is taken for failing without being asked again.
const FAILING_MILLIS: Millis = 60_000;

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The store has it and serves it as it is: fresh, or within a window of staleness.
    Fresh,
    /// Its responses cannot be stored: waiting for one another would serve nobody.
    HitForMiss,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    hint: Hint,
    until: Millis,
    /// When this worker next thinks of a refresh, once what the store has is stale.
    refresh: Millis,
    /// Whether the origin failed when it was last asked for it.
    failing: bool,
}

/// A bounded table in two generations: when the young one is full the old one is forgotten. What is
/// asked for moves to the young one, so hot keys stay.
#[derive(Debug)]
pub struct Hints {
    young: HashMap<KeyHash, Remembered>,
    old: HashMap<KeyHash, Remembered>,
    capacity: usize,
}

impl Hints {
    /// A table for at most `capacity` keys, and never fewer than two.
    pub fn new(capacity: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            capacity: capacity.max(2),
        }
    }

    /// Changes the bound; what is over it goes as new keys come.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(2);
    }

    /// What is known of `key` at `now`.
    pub fn get(&mut self, key: KeyHash, now: Millis) -> Option<Hint> {
        let found = match self.young.get(&key) {
            Some(found) => *found,
            None => {
                let found = self.old.remove(&key)?;
                if found.until > now {
                    self.insert(key, found);
                }
                found
            }
        };
        (found.until > now).then_some(found.hint)
    }

    /// Remembers `hint` for `key` until then.
    pub fn set(&mut self, key: KeyHash, hint: Hint, until: Millis) {
        let known = self.remembered(key);
        let remembered = Remembered {
            hint,
            until,
            refresh: known.map_or(0, |known| known.refresh),
            failing: known.is_some_and(|known| known.failing),
        };
        self.insert(key, remembered);
    }

    /// When this worker next thinks of a refresh of `key`; 0 where nothing is known.
    pub fn refresh(&self, key: KeyHash) -> Millis {
        self.remembered(key).map_or(0, |known| known.refresh)
    }

    /// Remembers when to think of a refresh of `key`, if anything is known of it.
    pub fn set_refresh(&mut self, key: KeyHash, refresh: Millis) {
        for table in [&mut self.young, &mut self.old] {
            if let Some(known) = table.get_mut(&key) {
                known.refresh = refresh;
            }
        }
    }

    /// Remembers whether the origin has failed when it was asked for `key`, if anything is known of it.
    pub fn set_failing(&mut self, key: KeyHash, failing: bool) {
        for table in [&mut self.young, &mut self.old] {
            if let Some(known) = table.get_mut(&key) {
                known.failing = failing;
            }
        }
    }

    /// Whether the origin failed when it was last asked for `key`, not long ago.
    pub fn is_failing(&self, key: KeyHash, now: Millis) -> bool {
        self.remembered(key).is_some_and(|known| {
            known.failing && now < known.refresh.saturating_add(FAILING_MILLIS)
        })
    }

    fn remembered(&self, key: KeyHash) -> Option<&Remembered> {
        self.young.get(&key).or_else(|| self.old.get(&key))
    }

    /// Forgets `key`.
    pub fn forget(&mut self, key: KeyHash) {
        self.young.remove(&key);
        self.old.remove(&key);
    }

    /// Number of remembered keys, outdated ones included.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn insert(&mut self, key: KeyHash, remembered: Remembered) {
        if self.young.len() >= self.capacity / 2 && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, remembered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_ends_at_its_time() {
        let mut hints = Hints::new(10);
        hints.set(KeyHash(1), Hint::Fresh, 100);
        assert_eq!(hints.get(KeyHash(1), 99), Some(Hint::Fresh));
        assert_eq!(hints.get(KeyHash(1), 100), None);
    }

    #[test]
    fn table_is_bounded_and_keeps_what_is_asked_for() {
        let mut hints = Hints::new(100);
        hints.set(KeyHash(u64::MAX), Hint::HitForMiss, 1_000);
        for key in 0..10_000 {
            hints.set(KeyHash(key), Hint::Fresh, 1_000);
            assert_eq!(hints.get(KeyHash(u64::MAX), 0), Some(Hint::HitForMiss));
            assert!(hints.len() <= 100);
        }
        assert_eq!(hints.get(KeyHash(0), 0), None);
    }

    #[test]
    fn the_time_of_the_next_refresh_outlasts_further_hits() {
        let mut hints = Hints::new(2);
        hints.set(KeyHash(1), Hint::Fresh, 100);
        hints.set_refresh(KeyHash(1), 70);
        hints.set(KeyHash(2), Hint::Fresh, 100);
        assert_eq!(hints.refresh(KeyHash(1)), 70, "also in the old generation");
        hints.set(KeyHash(1), Hint::Fresh, 200);
        assert_eq!(hints.refresh(KeyHash(1)), 70);
        assert_eq!(hints.refresh(KeyHash(3)), 0);
    }

    #[test]
    fn an_origin_that_has_failed_is_not_taken_for_failing_for_ever() {
        let mut hints = Hints::new(10);
        hints.set_failing(KeyHash(1), true);
        assert!(!hints.is_failing(KeyHash(1), 0), "of what is not known");
        hints.set(KeyHash(1), Hint::Fresh, 1_000_000);
        hints.set_refresh(KeyHash(1), 2_000);
        hints.set_failing(KeyHash(1), true);
        hints.set(KeyHash(1), Hint::Fresh, 2_000_000);
        assert!(hints.is_failing(KeyHash(1), 2_000 + FAILING_MILLIS - 1));
        assert!(!hints.is_failing(KeyHash(1), 2_000 + FAILING_MILLIS));
        hints.set_failing(KeyHash(1), false);
        assert!(!hints.is_failing(KeyHash(1), 0));
    }

    #[test]
    fn forgotten_key_is_unknown() {
        let mut hints = Hints::new(10);
        hints.set(KeyHash(1), Hint::Fresh, 100);
        hints.forget(KeyHash(1));
        assert_eq!(hints.get(KeyHash(1), 0), None);
    }
}
