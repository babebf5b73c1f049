// SPDX-License-Identifier: Apache-2.0
//! What one worker has learnt of URLs that vary.
//!
//! It is only ever about speed: a response is stored under keys that have all that it depends on,
//! whatever the table says.

use std::collections::HashMap;

use crate::board::{KeyHash, Millis};
use crate::vary::VaryNames;

/// For how long a lesson counts. A URL that has come to depend on less is keyed by too much until
/// then.
const LESSON_MILLIS: Millis = 3_600_000;

/// A bounded table in two generations, as [`crate::hints::Hints`] is.
#[derive(Debug)]
pub struct Varying {
    young: HashMap<KeyHash, Lesson>,
    old: HashMap<KeyHash, Lesson>,
    capacity: usize,
}

#[derive(Clone, Debug)]
struct Lesson {
    names: VaryNames,
    until: Millis,
}

impl Varying {
    /// A table for at most `capacity` URLs, and never fewer than two.
    pub fn new(capacity: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            capacity: capacity.max(2),
        }
    }

    /// Changes the bound; what is over it goes as new URLs come.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(2);
    }

    /// Whether no URL is known to vary, so that there is nothing to ask for.
    pub fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }

    /// With which headers the URL varies, as far as is known at `now`.
    pub fn get(&mut self, url: KeyHash, now: Millis) -> Option<VaryNames> {
        if let Some(lesson) = self.young.get(&url) {
            return (lesson.until > now).then(|| lesson.names.clone());
        }
        let lesson = self.old.remove(&url).filter(|lesson| lesson.until > now)?;
        let names = lesson.names.clone();
        self.insert(url, lesson);
        Some(names)
    }

    /// The URL varies with `names`.
    pub fn learn(&mut self, url: KeyHash, names: VaryNames, now: Millis) {
        let until = now.saturating_add(LESSON_MILLIS);
        self.insert(url, Lesson { names, until });
    }

    fn insert(&mut self, url: KeyHash, lesson: Lesson) {
        if self.young.len() >= self.capacity / 2 && !self.young.contains_key(&url) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(url, lesson);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lesson_is_known_until_its_time_is_over() {
        let mut varying = Varying::new(10);
        assert!(varying.is_empty());
        let names = VaryNames::parse("accept");
        varying.learn(KeyHash(1), names.clone(), 5);
        assert!(!varying.is_empty());
        assert_eq!(varying.get(KeyHash(1), 5), Some(names));
        assert_eq!(varying.get(KeyHash(1), 5 + LESSON_MILLIS), None);
        assert_eq!(varying.get(KeyHash(2), 5), None);
    }

    #[test]
    fn the_table_is_bounded_and_keeps_what_is_asked_for() {
        let mut varying = Varying::new(100);
        let names = VaryNames::parse("accept");
        varying.learn(KeyHash(u64::MAX), names.clone(), 0);
        for url in 0..10_000 {
            varying.learn(KeyHash(url), names.clone(), 0);
            assert_eq!(varying.get(KeyHash(u64::MAX), 0), Some(names.clone()));
            assert!(varying.young.len() + varying.old.len() <= 100);
        }
        assert_eq!(varying.get(KeyHash(0), 0), None);
    }
}
