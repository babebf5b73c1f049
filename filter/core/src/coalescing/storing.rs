// SPDX-License-Identifier: Apache-2.0
//! Responses that have ended, until the store reports that they can be read.

use std::rc::Rc;

use super::{Coalescer, Effect, Turn};
use crate::coalescing::flight::{AwaitedEntry, LocalFlight, Phase};
use crate::freshness::UncacheableReason;
use crate::key::CanonicalTarget;
use crate::metrics::Metric;
use crate::workers::message::FlightOutcome;
use crate::workers::{KeyHash, Millis, StreamId};

/// A response that the store is about to make readable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedFill {
    /// The target that was fetched.
    pub target: Rc<CanonicalTarget>,
    /// The request that caused the fill.
    pub stream: StreamId,
    /// Time at which the origin answered, if it has.
    pub answered: Option<Millis>,
    /// Whether the store served the object a moment ago, so that no request fetches it.
    pub is_returning: bool,
    /// Whether requests wait, so that the store has to be asked at once.
    pub urgent: bool,
    /// Time within which the store has to make it readable.
    pub patience: Millis,
}

/// Largest size of a small object. Only a small object can be fetched by a call of the filter.
pub const SMALL_BYTES: u64 = 1 << 20;

/// The store's report about a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreNews {
    /// The store serves the response of the flight, or a newer one.
    Readable {
        /// Time until which it is fresh.
        until: Millis,
        /// Whether a call can fetch it.
        small: bool,
    },
    /// The store has the response of the flight or a newer one, and each use validates it.
    Validated,
    /// The store has a response from before a soft purge. It may have dropped the response of the flight, because a
    /// fill from before the purge was under way.
    Outdated,
    /// The store does not have it. If no more time is left, the store has not taken it, although it should have.
    Missing,
    /// The store does not have it. This allows no conclusion about the next response.
    Lost,
}

/// A store, as the flights of one worker see it. It reports some time after the end of a response whether it has the
/// response.
pub trait Store {
    /// Has the store report about a response that has ended. If `fill` is urgent, the store is asked at once, also if
    /// it is awaited already.
    fn await_fill(&mut self, key: KeyHash, fill: AwaitedFill, now: Millis);

    /// Cancels the report for `key`.
    fn await_no_more(&mut self, key: KeyHash);

    /// Notes that a fill of `key` was aborted.
    fn note_abort(&mut self, key: KeyHash, now: Millis);

    /// Takes the reports that are available at `now`. Each of them ends the wait for its response.
    fn take_news(&mut self, now: Millis) -> Vec<(KeyHash, StoreNews)>;

    /// The timer period in which [`Store::take_news`] must be called, in milliseconds.
    fn tick_period(&self) -> Option<Millis>;
}

impl LocalFlight {
    /// Waits for the store to serve the object again, instead of a response from the origin.
    pub(super) fn await_return(&mut self) {
        self.awaits = AwaitedEntry::Returning;
        if let Some(leader) = self.leader_mut() {
            leader.phase = Phase::Storing { urged: false };
        }
    }

    /// The response with which the leader waits for the store.
    fn awaited_fill(&self, urgent: bool) -> Option<AwaitedFill> {
        let leader = self.leader()?;
        Some(AwaitedFill {
            target: Rc::clone(&self.target),
            stream: leader.stream,
            answered: leader.answered,
            is_returning: self.awaits == AwaitedEntry::Returning,
            urgent,
            patience: self.policy.patience(),
        })
    }
}

impl Turn<'_> {
    /// Has the store report when the response of the flight's leader can be read. The store is asked at once if
    /// requests wait.
    pub(super) fn await_store(&mut self, key: KeyHash, flight: &mut LocalFlight, urgent: bool) {
        let Some(fill) = flight.awaited_fill(urgent) else {
            return;
        };
        if let Some(leader) = flight.leader_mut() {
            leader.phase = Phase::Storing { urged: urgent };
        }
        self.push(Effect::Await { key, fill });
    }

    /// Has the store asked at once, because a request waits for a leader of this worker, if the response has ended.
    pub(super) fn urge_store(&mut self, key: KeyHash, flight: &mut LocalFlight) {
        let phase = flight.leader().map(|leader| leader.phase);
        if phase == Some(Phase::Storing { urged: false }) {
            self.await_store(key, flight, true);
        }
    }
}

impl Coalescer {
    /// Handles the end of the fill's response.
    pub fn fill_ended(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        let now = turn.now;
        let Some((key, leader)) = self.leader_of(stream) else {
            return;
        };
        leader.progress = now;
        leader.phase = Phase::Storing { urged: false };
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        if flight.is_awaited() {
            turn.await_store(key, flight, true);
        } else if self.rest(key, turn) {
            return;
        } else if let Some(flight) = self.flights.get_mut(&key) {
            turn.await_store(key, flight, false);
        }
        self.hasten(key);
    }

    /// Handles the store's report about the response for `key`.
    pub fn stored(&mut self, key: KeyHash, news: StoreNews, turn: &mut Turn<'_>) {
        let flight = self.flights.get_mut(&key);
        let Some(flight) = flight.filter(|flight| flight.is_storing()) else {
            return;
        };
        let outcome = match news {
            StoreNews::Readable { until, small } if flight.awaits == AwaitedEntry::Fill => {
                FlightOutcome::Stored { until, small }
            }
            StoreNews::Readable { until, small } => FlightOutcome::Found { until, small },
            StoreNews::Validated => {
                let answered = flight.leader().and_then(|leader| leader.answered);
                let at = answered.unwrap_or_default();
                FlightOutcome::Validated { at }
            }
            StoreNews::Lost => {
                if flight.awaits != AwaitedEntry::Returning {
                    turn.count(Metric::Unshared);
                }
                flight.awaits = AwaitedEntry::Fill;
                FlightOutcome::NothingShared
            }
            StoreNews::Outdated | StoreNews::Missing => return self.not_taken(key, turn),
        };
        self.finish(key, outcome, turn);
    }

    /// Makes another request the leader, because the store has not taken a response that it should have taken. After
    /// the second time the key is hit-for-miss.
    pub(super) fn not_taken(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        turn.count(Metric::Unshared);
        let most = flight.policy.hit_for_miss;
        let outcome = if std::mem::replace(&mut flight.unshared, true) {
            let reason = UncacheableReason::NotTaken;
            let until = self.hints.mark(key, reason, most, turn.now);
            FlightOutcome::HitForMiss { until, reason }
        } else {
            FlightOutcome::NothingShared
        };
        self.finish(key, outcome, turn);
    }

    /// Makes another request the leader if the response that the store was to make readable has expired, because the
    /// store will not report it.
    pub(super) fn pass_on_expired(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let flight = self.flights.get(&key);
        if flight.is_some_and(|flight| flight.has_expired(turn.now)) {
            self.finish(key, FlightOutcome::NothingShared, turn);
        }
    }

    /// Whether the whole response for `key` has arrived on this worker, and the store is still writing it.
    pub fn is_storing(&self, key: KeyHash) -> bool {
        let flight = self.flights.get(&key);
        flight.is_some_and(LocalFlight::is_storing) || self.resting.contains(key)
    }
}
