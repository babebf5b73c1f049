// SPDX-License-Identifier: Apache-2.0
//! The worker's hints about keys, so that a hit does not have to read the board.
//!
//! Hints only affect speed. A wrong "fresh" costs one uncoalesced request, and a wrong "hit-for-miss" one uncached
//! request. Neither can serve a wrong object.

use crate::freshness::UncacheableReason;
use crate::workers::recent_keys::RecentKeys;
use crate::workers::{KeyHash, Millis};

/// Time for which an origin counts as failing after its last failure, unless it is asked again.
const FAILING_MILLIS: Millis = 60_000;
/// A miss within this time after a hit means that the store is replacing the response, not that the object is gone.
/// It replaces a response within milliseconds, also on a busy machine.
const MOMENT_MILLIS: Millis = 1_000;

/// Length of the first hit-for-miss mark of a key. Each further mark lasts twice as long, up to a limit.
const FIRST_MARK_MILLIS: Millis = 1_000;
/// Interval in which one request for a marked key may be a leader, to check whether its responses are still not
/// stored.
const CHECK_MILLIS: Millis = 1_000;

/// A worker's hint about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The store has the object and serves it without asking the origin: it is fresh, or within a window of
    /// staleness.
    Fresh,
    /// Its responses cannot be stored, for this reason, so no request could use another's response.
    HitForMiss(UncacheableReason),
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    hint: Hint,
    until: Millis,
    /// Time from which this worker may begin a refresh, once the stored response is stale.
    refresh: Millis,
    /// Whether the origin failed when it was last asked for the object.
    failing: bool,
    /// Time at which the store was last known to have the object, if it is small enough to be fetched by a call.
    readable: Option<Millis>,
    /// Length of the last hit-for-miss mark; 0 if there was none since a response was stored.
    mark: Millis,
    /// Time from which the next request for a marked key may be a leader.
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

    /// Changes the limit. Keys beyond it are forgotten as new keys arrive.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.keys.set_capacity(capacity);
    }

    /// The hint for `key` that is valid at `now`.
    pub fn get(&mut self, key: KeyHash, now: Millis) -> Option<Hint> {
        let found = self.keys.get(key)?;
        (found.until > now).then_some(found.hint)
    }

    /// The hint for `key` that is valid at `now`, without the effect of a use.
    pub fn peek(&self, key: KeyHash, now: Millis) -> Option<Hint> {
        let found = self.keys.peek(key)?;
        (found.until > now).then_some(found.hint)
    }

    /// Time for which the hint for `key` is still valid at `now`; 0 if there is none.
    pub fn left(&self, key: KeyHash, now: Millis) -> Millis {
        let known = self.keys.peek(key);
        known.map_or(0, |known| known.until.saturating_sub(now))
    }

    /// Sets the hint for `key` until `until`.
    pub fn set(&mut self, key: KeyHash, hint: Hint, until: Millis) {
        self.insert(key, hint, until, 0, Millis::MAX);
    }

    /// Marks `key` as hit-for-miss, for twice the length of its last mark, and for at most `most` milliseconds.
    /// Returns the end of the mark.
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

    /// Marks `key` as hit-for-miss until `until`, the end of another worker's mark.
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

    /// Whether a request for the marked `key` may be a leader. One request per second may.
    pub fn take_check(&mut self, key: KeyHash, now: Millis) -> bool {
        let known = self.keys.peek_mut(key);
        let Some(known) = known.filter(|known| known.check <= now) else {
            return false;
        };
        known.check = now.saturating_add(CHECK_MILLIS);
        true
    }

    /// Ends the hit-for-miss mark of `key`, because a response for it is being stored.
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

    /// Time from which this worker may begin a refresh of `key`; 0 if the key has no hint.
    pub fn refresh(&self, key: KeyHash) -> Millis {
        self.keys.peek(key).map_or(0, |known| known.refresh)
    }

    /// Sets the time from which the next refresh of `key` may begin, if there is a hint for it.
    pub fn set_refresh(&mut self, key: KeyHash, refresh: Millis) {
        if let Some(known) = self.keys.peek_mut(key) {
            known.refresh = refresh;
        }
    }

    /// Sets whether the origin failed when it was asked for `key`, if there is a hint for it.
    pub fn set_failing(&mut self, key: KeyHash, failing: bool) {
        if let Some(known) = self.keys.peek_mut(key) {
            known.failing = failing;
        }
    }

    /// Whether the origin failed a short time ago when it was last asked for `key`.
    pub fn is_failing(&self, key: KeyHash, now: Millis) -> bool {
        self.keys.peek(key).is_some_and(|known| {
            known.failing && now < known.refresh.saturating_add(FAILING_MILLIS)
        })
    }

    /// Notes that the store has `key` at `now`, if there is a hint for it. Only a `small` object counts, because a
    /// call can fetch it.
    pub fn note_readable(&mut self, key: KeyHash, small: bool, now: Millis) {
        if let Some(known) = self.keys.peek_mut(key) {
            known.readable = small.then_some(now);
        }
    }

    /// Whether the store had `key` a moment ago, and a call can fetch it. A miss is then only temporary.
    pub fn was_just_readable(&self, key: KeyHash, now: Millis) -> bool {
        let readable = self.keys.peek(key).and_then(|known| known.readable);
        readable.is_some_and(|at| now < at.saturating_add(MOMENT_MILLIS))
    }

    /// Whether there is a hint for `key`, even an expired one. It means that the origin has answered well before.
    pub fn remembers(&self, key: KeyHash) -> bool {
        self.keys.peek(key).is_some()
    }

    /// Expires the hint for `key`, but keeps its record, which requests under way still read.
    pub fn expire(&mut self, key: KeyHash) {
        if let Some(known) = self.keys.peek_mut(key) {
            known.until = 0;
        }
    }

    /// Forgets `key`.
    pub fn forget(&mut self, key: KeyHash) {
        self.keys.remove(key);
    }

    /// Number of hints, expired ones included.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no hints.
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
