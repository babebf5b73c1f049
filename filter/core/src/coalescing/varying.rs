// SPDX-License-Identifier: Apache-2.0
//! What one worker has learnt of URLs that vary.
//!
//! The table is about speed only: whatever it says, a response is stored under keys that have all that it depends on.

use crate::key::vary::VaryNames;
use crate::workers::recent_keys::RecentKeys;
use crate::workers::{KeyHash, Millis};

/// For how long a lesson counts. A URL that has come to depend on less is keyed by too much until
/// then.
const LESSON_MILLIS: Millis = 3_600_000;

/// A bounded table of URLs.
#[derive(Debug)]
pub struct Varying {
    lessons: RecentKeys<Lesson>,
}

#[derive(Debug)]
struct Lesson {
    names: VaryNames,
    until: Millis,
}

impl Varying {
    /// A table for at most `capacity` URLs, and never fewer than two.
    pub fn new(capacity: usize) -> Self {
        Self {
            lessons: RecentKeys::new(capacity),
        }
    }

    /// Changes the bound; what is over it goes as new URLs come.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.lessons.set_capacity(capacity);
    }

    /// Whether no URL is known to vary, so that there is nothing to ask for.
    pub fn is_empty(&self) -> bool {
        self.lessons.is_empty()
    }

    /// With which headers the URL varies, as far as is known at `now`.
    pub fn get(&mut self, url: KeyHash, now: Millis) -> Option<VaryNames> {
        let lesson = self.lessons.get(url)?;
        (lesson.until > now).then(|| lesson.names.clone())
    }

    /// The URL varies with `names`.
    pub fn learn(&mut self, url: KeyHash, names: VaryNames, now: Millis) {
        let until = now.saturating_add(LESSON_MILLIS);
        self.lessons.insert(url, Lesson { names, until });
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
}
