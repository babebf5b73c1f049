// SPDX-License-Identifier: Apache-2.0
//! What one worker remembers of keys, so that a hit needs no look at the board.
//!
//! A hint is about speed only. A wrong "fresh" costs one uncoalesced request, a wrong "hit-for-miss" one uncached
//! request; neither can serve a wrong object.

use crate::freshness::UncacheableReason;
use crate::workers::recent_keys::RecentKeys;
use crate::workers::{KeyHash, Millis};

/// How long an origin counts as failing after its last failure, unless it is asked again.
const FAILING_MILLIS: Millis = 60_000;
/// How long after the store was known to have an object it is not thought to have lost it. It writes an object anew within
/// milliseconds, also on a busy machine.
const MOMENT_MILLIS: Millis = 1_000;

/// How long the first hit-for-miss mark of a key lasts. Each that follows lasts twice as long, up to a bound.
const FIRST_MARK_MILLIS: Millis = 1_000;
/// How often one request for a marked key may lead, to see whether its responses are still not stored.
const CHECK_MILLIS: Millis = 1_000;

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The store has it and serves it as it is: fresh, or within a window of staleness.
    Fresh,
    /// Its responses cannot be stored, for this reason: waiting for one another would serve nobody.
    HitForMiss(UncacheableReason),
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    hint: Hint,
    until: Millis,
    /// When this worker may next begin a refresh, once the stored response is stale.
    refresh: Millis,
    /// Whether the origin failed when it was last asked for it.
    failing: bool,
    /// When the store was last known to have it, where it is small enough for a call to bring it.
    readable: Option<Millis>,
    /// How long the last hit-for-miss mark lasts or has lasted; 0 if there was none since a response was stored.
    mark: Millis,
    /// When the next request for a marked key may lead.
    check: Millis,
}

/// A bounded table of keys.
#[derive(Debug)]
pub struct Hints {
    keys: RecentKeys<Remembered>,
}

impl Hints {
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

    /// What is known of `key` at `now`.
    pub fn get(&mut self, key: KeyHash, now: Millis) -> Option<Hint> {
        let found = self.keys.get(key)?;
        (found.until > now).then_some(found.hint)
    }

    /// For how long what is known of `key` holds from `now` on; 0 where nothing is known.
    pub fn left(&self, key: KeyHash, now: Millis) -> Millis {
        let known = self.keys.peek(key);
        known.map_or(0, |known| known.until.saturating_sub(now))
    }

    /// Remembers `hint` for `key` until then.
    pub fn set(&mut self, key: KeyHash, hint: Hint, until: Millis) {
        self.insert(key, hint, until, 0, Millis::MAX);
    }

    /// Marks `key` as hit-for-miss, twice as long as the last time and for at most `most` milliseconds. The end of that
    /// time.
    pub fn mark(
        &mut self,
        key: KeyHash,
        reason: UncacheableReason,
        most: Millis,
        now: Millis,
    ) -> Millis {
        let before = self.keys.peek(key).map_or(0, |known| known.mark);
        let length = before.saturating_mul(2).max(FIRST_MARK_MILLIS).min(most);
        let until = now.saturating_add(length);
        self.adopt_mark(key, reason, until, now);
        until
    }

    /// Marks `key` as another worker has marked it.
    pub fn adopt_mark(
        &mut self,
        key: KeyHash,
        reason: UncacheableReason,
        until: Millis,
        now: Millis,
    ) {
        let (length, check) = (until.saturating_sub(now), now.saturating_add(CHECK_MILLIS));
        self.insert(key, Hint::HitForMiss(reason), until, length, check);
    }

    /// Whether a request for `key`, which is marked, may lead. One may in each second.
    pub fn take_check(&mut self, key: KeyHash, now: Millis) -> bool {
        let known = self.keys.peek_mut(key);
        let Some(known) = known.filter(|known| known.check <= now) else {
            return false;
        };
        known.check = now.saturating_add(CHECK_MILLIS);
        true
    }

    /// A response for `key` is stored: it is hit-for-miss no longer.
    pub fn end_mark(&mut self, key: KeyHash) {
        let known = self.keys.peek(key);
        if known.is_some_and(|known| matches!(known.hint, Hint::HitForMiss(_))) {
            self.keys.remove(key);
        }
    }

    fn insert(&mut self, key: KeyHash, hint: Hint, until: Millis, mark: Millis, check: Millis) {
        let known = self.keys.peek(key);
        let remembered = Remembered {
            hint,
            until,
            refresh: known.map_or(0, |known| known.refresh),
            failing: known.is_some_and(|known| known.failing),
            readable: known.and_then(|known| known.readable),
            mark,
            check,
        };
        self.keys.insert(key, remembered);
    }

    /// When this worker may next begin a refresh of `key`; 0 where nothing is known.
    pub fn refresh(&self, key: KeyHash) -> Millis {
        self.keys.peek(key).map_or(0, |known| known.refresh)
    }

    /// Remembers when the next refresh of `key` may begin, if anything is known of the key.
    pub fn set_refresh(&mut self, key: KeyHash, refresh: Millis) {
        if let Some(known) = self.keys.peek_mut(key) {
            known.refresh = refresh;
        }
    }

    /// Remembers whether the origin has failed when it was asked for `key`, if anything is known of it.
    pub fn set_failing(&mut self, key: KeyHash, failing: bool) {
        if let Some(known) = self.keys.peek_mut(key) {
            known.failing = failing;
        }
    }

    /// Whether the origin failed when it was last asked for `key`, not long ago.
    pub fn is_failing(&self, key: KeyHash, now: Millis) -> bool {
        self.keys.peek(key).is_some_and(|known| {
            known.failing && now < known.refresh.saturating_add(FAILING_MILLIS)
        })
    }

    /// Remembers that the store has `key` at `now`, if anything is known of it. Only a `small` object counts, because a call
    /// can bring it.
    pub fn note_readable(&mut self, key: KeyHash, small: bool, now: Millis) {
        if let Some(known) = self.keys.peek_mut(key) {
            known.readable = small.then_some(now);
        }
    }

    /// Whether the store had `key` a moment ago, and a call can bring it: a miss now passes.
    pub fn was_just_readable(&self, key: KeyHash, now: Millis) -> bool {
        let readable = self.keys.peek(key).and_then(|known| known.readable);
        readable.is_some_and(|at| now < at.saturating_add(MOMENT_MILLIS))
    }

    /// Whether `key` is remembered, though what was known of it may be outdated: the origin has answered well before.
    pub fn remembers(&self, key: KeyHash) -> bool {
        self.keys.peek(key).is_some()
    }

    /// Lets nothing be known of `key` but what other requests that are under way may want to know.
    pub fn expire(&mut self, key: KeyHash) {
        if let Some(known) = self.keys.peek_mut(key) {
            known.until = 0;
        }
    }

    /// Forgets `key`.
    pub fn forget(&mut self, key: KeyHash) {
        self.keys.remove(key);
    }

    /// Number of remembered keys, outdated ones included.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use crate::coalescing::learnt::hints::*;

    #[test]
    fn hint_ends_at_its_time() {
        let mut hints = Hints::new(10);
        hints.set(KeyHash(1), Hint::Fresh, 100);
        assert_eq!(hints.get(KeyHash(1), 99), Some(Hint::Fresh));
        assert_eq!(hints.get(KeyHash(1), 100), None);
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
    fn a_small_object_was_just_readable_for_a_moment() {
        let mut hints = Hints::new(10);
        hints.note_readable(KeyHash(1), true, 50);
        assert!(!hints.was_just_readable(KeyHash(1), 50), "nothing is known");
        hints.set(KeyHash(1), Hint::Fresh, 10_000);
        hints.note_readable(KeyHash(1), true, 50);
        hints.set(KeyHash(1), Hint::Fresh, 20_000);
        assert!(hints.was_just_readable(KeyHash(1), 49 + MOMENT_MILLIS));
        assert!(!hints.was_just_readable(KeyHash(1), 50 + MOMENT_MILLIS));
        hints.expire(KeyHash(1));
        assert_eq!(hints.get(KeyHash(1), 60), None);
        assert!(
            hints.was_just_readable(KeyHash(1), 60),
            "by all who miss it"
        );
        hints.note_readable(KeyHash(1), false, 60);
        assert!(!hints.was_just_readable(KeyHash(1), 60));
    }

    #[test]
    fn a_mark_begins_at_a_second_and_doubles_up_to_its_bound() {
        let (key, reason, most) = (KeyHash(1), UncacheableReason::Private, 5_000);
        let mut hints = Hints::new(10);
        let mut now = 0;
        for length in [1_000, 2_000, 4_000, 5_000, 5_000] {
            assert_eq!(hints.mark(key, reason, most, now), now + length);
            assert_eq!(
                hints.get(key, now + length - 1),
                Some(Hint::HitForMiss(reason))
            );
            assert_eq!(hints.get(key, now + length), None);
            now += length;
        }
        hints.end_mark(key);
        assert_eq!(
            hints.mark(key, reason, most, now),
            now + 1_000,
            "stored since"
        );
        assert_eq!(
            Hints::new(10).mark(key, reason, 300, 0),
            300,
            "a short bound"
        );
    }

    #[test]
    fn one_request_in_a_second_checks_a_marked_key() {
        let (key, reason) = (KeyHash(1), UncacheableReason::Private);
        let mut hints = Hints::new(10);
        hints.adopt_mark(key, reason, 60_000, 0);
        let checks = (0..10_000).filter(|now| hints.take_check(key, *now));
        assert_eq!(checks.count(), 9);
        hints.set(key, Hint::HitForMiss(reason), 60_000);
        assert!(!hints.take_check(key, 50_000), "without checks");
        hints.set(key, Hint::Fresh, 60_000);
        hints.end_mark(key);
        assert_eq!(hints.get(key, 1), Some(Hint::Fresh));
    }

    #[test]
    fn forgotten_key_is_unknown() {
        let mut hints = Hints::new(10);
        hints.set(KeyHash(1), Hint::Fresh, 100);
        hints.forget(KeyHash(1));
        assert_eq!(hints.get(KeyHash(1), 0), None);
    }
}
