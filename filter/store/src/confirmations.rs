// SPDX-License-Identifier: Apache-2.0
//! Confirmations: the time when the store has a response that has ended.
//!
//! Envoy's cache makes an entry readable some time after the response has ended, and does not notify filters. So
//! probes ask the store while requests wait: at once, and then again. A probe that finds nothing is sent all the way
//! to ORIGIN and costs as much as a fill. If no request waits, the first probe is delayed a moment.
//!
//! Envoy's cache drops a response while it is busy with an older fill of the key, also without a notification. So
//! each wait has an end, which is earlier after an aborted fill. The wait is shortest for an object that is missing
//! although the store served it a moment ago. The store is usually rewriting such an object.

use std::rc::Rc;

use sluice_core::coalescing::{AwaitedFill, Store, StoreNews};
use sluice_core::key::CanonicalTarget;
use sluice_core::workers::recent_keys::RecentKeys;
use sluice_core::workers::{KeyHash, Millis, NumberMap, StreamId};

/// Timer period while a confirmation is awaited.
const TICK_MILLIS: Millis = 50;
/// Time between probes that find nothing, after the first few.
const PROBE_MILLIS: Millis = 10;
/// Number of probes that follow each other at once.
const EAGER_PROBES: u32 = 4;
/// Delay of the first probe if no follower waits. The store usually needs less time to make an entry readable.
const COMMIT_MILLIS: Millis = 50;
/// How long the store may take to rewrite an object. It usually takes some milliseconds. On a busy machine it may take
/// longer; then one request of each worker fetches the object. The wait is not longer, because the object may also be
/// evicted, and then its clients wait in vain.
const REWRITE_MILLIS: Millis = 250;
/// How long the store may take with the response after an aborted one. The store drops this response if it is still
/// writing the last bytes of the aborted one.
const AFTER_ABORT_MILLIS: Millis = 500;
/// How long probes may find the entry from before a soft purge. The store replaces this entry a moment after the end
/// of a fill. If it has not done so by then, it has dropped the fill.
const OUTDATED_MILLIS: Millis = 1_000;
/// How long the store may be busy with an aborted fill. It writes one part of the body at a time.
const ABORT_MILLIS: Millis = 1_000;
/// Greatest number of aborted fills that are remembered. The followers of a forgotten one wait longer.
const MOST_ABORTS: usize = 4_096;

/// Response that the store is to make readable.
#[derive(Debug)]
struct AwaitedEntry {
    fill: AwaitedFill,
    /// Start of the wait.
    since: Millis,
    /// Number of probes sent.
    probes: u32,
    /// Time of the next probe; `None` while a probe is under way.
    next_probe: Option<Millis>,
    /// How long the store may take to make the response readable.
    patience: Millis,
}

impl AwaitedEntry {
    /// Returns the news about a response that the store has not made readable in time.
    fn given_up(&self) -> StoreNews {
        // In two cases the result says nothing about the next response: the store was busy with an aborted fill, or
        // it has lost the object that it seemed to be rewriting.
        match self.fill.is_returning || self.patience < self.fill.patience {
            true => StoreNews::Lost,
            false => StoreNews::Missing,
        }
    }
}

/// Responses that the store of one worker is to make readable.
#[derive(Debug)]
pub struct Confirmations {
    awaited: NumberMap<KeyHash, AwaitedEntry>,
    /// News about the responses that probes have found, or will not find.
    news: Vec<(KeyHash, StoreNews)>,
    /// Times until which the store may be busy with an aborted fill.
    aborts: RecentKeys<Millis>,
}

impl Default for Confirmations {
    fn default() -> Self {
        Self {
            awaited: NumberMap::default(),
            news: Vec::new(),
            aborts: RecentKeys::new(MOST_ABORTS),
        }
    }
}

impl Confirmations {
    /// Returns how long the store may take to make this response readable.
    fn patience(&mut self, key: KeyHash, fill: &AwaitedFill) -> Millis {
        if fill.is_returning {
            return REWRITE_MILLIS;
        }
        let busy = self.aborts.peek(key).copied().unwrap_or_default();
        self.aborts.remove(key);
        match fill.answered.is_some_and(|answered| answered < busy) {
            true => fill.patience.min(AFTER_ABORT_MILLIS),
            false => fill.patience,
        }
    }

    /// Returns the request whose response is awaited for `key`, and the time of the origin's answer.
    pub fn awaited(&self, key: KeyHash) -> Option<(StreamId, Option<Millis>)> {
        let fill = &self.awaited.get(&key)?.fill;
        Some((fill.stream, fill.answered))
    }

    /// Takes the answer to a probe.
    pub fn take_lookup(&mut self, key: KeyHash, probed: StoreNews, now: Millis) {
        let Some(entry) = self.awaited.get_mut(&key) else {
            return;
        };
        let news = match probed {
            StoreNews::Outdated if entry.since.saturating_add(OUTDATED_MILLIS) <= now => {
                StoreNews::Missing
            }
            StoreNews::Outdated | StoreNews::Missing => {
                let eager = entry.probes < EAGER_PROBES;
                let pause = if eager { 0 } else { PROBE_MILLIS };
                entry.next_probe = Some(now.saturating_add(pause));
                return;
            }
            news => news,
        };
        self.awaited.remove(&key);
        self.news.push((key, news));
    }

    /// Makes all probes due again, because the answers to the probes under way are lost.
    pub fn ask_anew(&mut self, now: Millis) {
        for entry in self.awaited.values_mut() {
            entry.next_probe = Some(now);
        }
    }

    /// Takes the probes that are due, each with its key and its target.
    pub fn take_due(&mut self, now: Millis) -> Vec<(KeyHash, Rc<CanonicalTarget>)> {
        let mut due = Vec::new();
        for (key, entry) in &mut self.awaited {
            let urgent = entry.fill.urgent && entry.probes == 0;
            if entry.next_probe.is_some_and(|next| urgent || next <= now) {
                entry.next_probe = None;
                entry.probes += 1;
                due.push((*key, Rc::clone(&entry.fill.target)));
            }
        }
        due
    }
}

impl Store for Confirmations {
    fn await_fill(&mut self, key: KeyHash, fill: AwaitedFill, now: Millis) {
        if let Some(entry) = self.awaited.get_mut(&key) {
            entry.fill.urgent |= fill.urgent;
            return;
        }
        let patience = self.patience(key, &fill);
        let pause = if fill.is_returning { 0 } else { COMMIT_MILLIS };
        let entry = AwaitedEntry {
            since: now,
            probes: 0,
            next_probe: Some(now.saturating_add(pause)),
            patience,
            fill,
        };
        self.awaited.insert(key, entry);
    }

    fn await_no_more(&mut self, key: KeyHash) {
        self.awaited.remove(&key);
    }

    fn note_abort(&mut self, key: KeyHash, now: Millis) {
        self.aborts.insert(key, now.saturating_add(ABORT_MILLIS));
    }

    fn take_news(&mut self, now: Millis) -> Vec<(KeyHash, StoreNews)> {
        let overdue = |_: &KeyHash, entry: &mut AwaitedEntry| {
            entry.since.saturating_add(entry.patience) <= now
        };
        let overdue = self.awaited.extract_if(overdue);
        let given_up = overdue.map(|(key, entry)| (key, entry.given_up()));
        self.news.extend(given_up);
        std::mem::take(&mut self.news)
    }

    fn tick_period(&self) -> Option<Millis> {
        let again = |entry: &AwaitedEntry| entry.probes > 0 && entry.next_probe.is_some();
        match self.awaited.values().any(again) {
            true => Some(PROBE_MILLIS),
            false => (!self.awaited.is_empty()).then_some(TICK_MILLIS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::key::{Target, canonicalize};
    use sluice_core::policy::Policy;

    const KEY: KeyHash = KeyHash(7);
    const PATIENCE: Millis = 2_500;
    const FOUND: StoreNews = StoreNews::Readable {
        until: 9_000,
        small: true,
    };

    /// Returns the fill of a response that the origin answered with at the time `answered`.
    fn fill(answered: Millis, urgent: bool) -> AwaitedFill {
        let policy = Policy::parse(br#"{"origin": {"kind": "http"}}"#).unwrap();
        let target = Target {
            scheme: Some("http"),
            authority: b"edge.test",
            path: b"/object",
        };
        AwaitedFill {
            target: Rc::new(canonicalize(&policy, &target).unwrap()),
            stream: StreamId(1),
            answered: Some(answered),
            is_returning: false,
            urgent,
            patience: PATIENCE,
        }
    }

    /// Returns the time when the wait for a store without the entry ends, and the news at that time.
    fn given_up(confirmations: &mut Confirmations, now: Millis) -> Option<(Millis, StoreNews)> {
        (now..now + 10_000).find_map(|now| {
            confirmations.take_due(now);
            confirmations.take_lookup(KEY, StoreNews::Missing, now);
            let news = confirmations.take_news(now);
            news.first().map(|(_, news)| (now, *news))
        })
    }

    #[test]
    fn store_that_is_busy_with_an_aborted_fill_is_not_waited_for_as_if_it_were_slow() {
        for (answered, expected) in [
            (2, (500, StoreNews::Lost)),
            (2_000, (PATIENCE, StoreNews::Missing)),
        ] {
            let mut confirmations = Confirmations::default();
            confirmations.note_abort(KEY, 2);
            confirmations.await_fill(KEY, fill(answered, true), answered);
            let (at, news) = given_up(&mut confirmations, answered).unwrap();
            assert_eq!((at - answered, news), expected);
        }
    }

    #[test]
    fn an_object_that_was_served_a_moment_ago_is_lost_if_it_does_not_return() {
        let mut confirmations = Confirmations::default();
        let returning = AwaitedFill {
            is_returning: true,
            ..fill(0, false)
        };
        confirmations.await_fill(KEY, returning, 0);
        assert_eq!(confirmations.take_due(0).len(), 1, "probed at once");
        let given_up = given_up(&mut confirmations, 0);
        assert_eq!(given_up, Some((REWRITE_MILLIS, StoreNews::Lost)));
    }

    #[test]
    fn probes_follow_each_other_at_once_and_then_after_a_pause() {
        let mut confirmations = Confirmations::default();
        confirmations.await_fill(KEY, fill(0, true), 0);
        for _ in 0..EAGER_PROBES {
            assert_eq!(confirmations.take_due(0).len(), 1);
            assert!(confirmations.take_due(0).is_empty(), "one is under way");
            confirmations.take_lookup(KEY, StoreNews::Missing, 0);
            assert!(confirmations.take_news(0).is_empty());
        }
        assert!(confirmations.take_due(PROBE_MILLIS - 1).is_empty());
        assert_eq!(confirmations.tick_period(), Some(PROBE_MILLIS));
        assert_eq!(confirmations.take_due(PROBE_MILLIS).len(), 1);
        confirmations.take_lookup(KEY, FOUND, PROBE_MILLIS);
        assert_eq!(confirmations.take_news(PROBE_MILLIS), [(KEY, FOUND)]);
        assert_eq!(confirmations.tick_period(), None);
    }

    #[test]
    fn where_no_request_waits_the_first_probe_does() {
        let mut confirmations = Confirmations::default();
        confirmations.await_fill(KEY, fill(0, false), 0);
        assert!(confirmations.take_due(COMMIT_MILLIS - 1).is_empty());
        confirmations.await_fill(KEY, fill(0, true), 10);
        assert_eq!(confirmations.take_due(10).len(), 1, "a request has come");
    }

    #[test]
    fn an_entry_from_before_a_purge_is_not_waited_out_for_longer_than_a_second() {
        let mut confirmations = Confirmations::default();
        confirmations.await_fill(KEY, fill(0, true), 0);
        confirmations.take_lookup(KEY, StoreNews::Outdated, OUTDATED_MILLIS - 1);
        assert!(confirmations.take_news(OUTDATED_MILLIS - 1).is_empty());
        confirmations.take_lookup(KEY, StoreNews::Outdated, OUTDATED_MILLIS);
        let news = confirmations.take_news(OUTDATED_MILLIS);
        assert_eq!(news, [(KEY, StoreNews::Missing)]);
    }

    #[test]
    fn a_probe_without_an_answer_keeps_no_request_for_ever() {
        let mut confirmations = Confirmations::default();
        confirmations.await_fill(KEY, fill(0, true), 0);
        confirmations.take_due(0);
        let overdue = confirmations.take_news(PATIENCE);
        assert_eq!(overdue, [(KEY, StoreNews::Missing)]);
    }
}
