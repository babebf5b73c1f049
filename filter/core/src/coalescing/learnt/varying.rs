// SPDX-License-Identifier: Apache-2.0
//! The `Vary` headers that one worker has learned per URL.
//!
//! The table only affects speed. Even if it is wrong, each stored entry identifies its variant.

use crate::key::vary::VaryNames;
use crate::workers::recent_keys::RecentKeys;
use crate::workers::{KeyHash, Millis};

/// Time for which a lesson is valid after the last response that taught it. A URL whose `Vary` has become shorter has
/// keys with too many headers until then.
const LESSON_MILLIS: Millis = 3_600_000;

/// How a URL varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lesson {
    /// The request headers that select among its responses.
    pub names: VaryNames,
    /// The hash of the variant that the store has under the plain key.
    pub plain_variant: Option<KeyHash>,
}

/// A bounded table of URLs, by the hashes of their plain keys.
#[derive(Debug)]
pub struct Varying {
    lessons: RecentKeys<(Lesson, Millis)>,
}

impl Varying {
    /// A table for at most `capacity` URLs, and never fewer than two.
    pub fn new(capacity: usize) -> Self {
        Self {
            lessons: RecentKeys::new(capacity),
        }
    }

    /// Changes the limit. URLs beyond it are forgotten as new ones arrive.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.lessons.set_capacity(capacity);
    }

    /// Whether no URL is known to vary, so that a lookup is unnecessary.
    pub fn is_empty(&self) -> bool {
        self.lessons.is_empty()
    }

    /// The lesson for `url` that is valid at `now`.
    pub fn get(&mut self, url: KeyHash, now: Millis) -> Option<Lesson> {
        let (lesson, until) = self.lessons.get(url)?;
        (*until > now).then(|| lesson.clone())
    }

    /// Sets the lesson for `url`. Returns false if it was known at `now`.
    pub fn learn(&mut self, url: KeyHash, lesson: Lesson, now: Millis) -> bool {
        let is_new = self.get(url, now).as_ref() != Some(&lesson);
        let until = now.saturating_add(LESSON_MILLIS);
        self.lessons.insert(url, (lesson, until));
        is_new
    }

    /// Extends the lesson for `url`, because a response has just confirmed it.
    pub fn renew(&mut self, url: KeyHash, now: Millis) {
        if let Some(lesson) = self.get(url, now) {
            self.learn(url, lesson, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::coalescing::learnt::varying::*;

    #[test]
    fn a_lesson_is_known_until_its_time_is_over() {
        let mut varying = Varying::new(10);
        assert!(varying.is_empty());
        let lesson = lesson(7);
        assert!(varying.learn(KeyHash(1), lesson.clone(), 5));
        assert!(!varying.is_empty());
        assert_eq!(varying.get(KeyHash(1), 5), Some(lesson));
        assert_eq!(varying.get(KeyHash(1), 5 + LESSON_MILLIS), None);
        assert_eq!(varying.get(KeyHash(2), 5), None);
    }

    #[test]
    fn a_lesson_is_new_once_and_lasts_from_when_it_was_taught_last() {
        let mut varying = Varying::new(10);
        assert!(varying.learn(KeyHash(1), lesson(7), 0));
        assert!(!varying.learn(KeyHash(1), lesson(7), 1));
        assert!(
            varying.learn(KeyHash(1), lesson(8), 2),
            "another plain variant"
        );
        varying.renew(KeyHash(1), 10);
        assert!(varying.get(KeyHash(1), 9 + LESSON_MILLIS).is_some());
        varying.renew(KeyHash(1), 10 + LESSON_MILLIS);
        assert_eq!(varying.get(KeyHash(1), 10 + LESSON_MILLIS), None);
    }

    fn lesson(plain_variant: u64) -> Lesson {
        Lesson {
            names: VaryNames::parse("accept"),
            plain_variant: Some(KeyHash(plain_variant)),
        }
    }
}
