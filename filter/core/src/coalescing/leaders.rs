// SPDX-License-Identifier: Apache-2.0
//! Leaders: how far each has come, and how its flight ends.

use std::rc::Rc;

use super::{Coalescer, Effect, Probed, Turn};
use crate::coalescing::flight::{AwaitedEntry, Commit, Leader, LocalFlight, PROBE_MILLIS, Phase};
use crate::freshness::UncacheableReason;
use crate::metrics::Metric;
use crate::workers::message::{Doubt, Event, FlightMessage, FlightOutcome};
use crate::workers::{KeyHash, Millis, StreamId};

/// The status of followers whose leader's response broke off.
const BAD_GATEWAY: u16 = 502;
/// Probes of the store that follow each other at once.
const EAGER_PROBES: u32 = 4;
/// How long probes may find the entry from before a soft purge. The store replaces it a moment after the end of a fill;
/// after this time the store has dropped the fill.
const OUTDATED_MILLIS: Millis = 1_000;
/// How long the first probe waits where no follower does and the fill cannot be left unconfirmed. As a rule the store
/// takes less to make an entry readable.
const COMMIT_MILLIS: Millis = 50;
/// How long the store may be busy with a fill that was aborted. It writes one part of the body at a time.
const ABORT_MILLIS: Millis = 1_000;

impl Coalescer {
    /// ORIGIN has seen that the response to `stream` goes into the store.
    pub fn fill_begins(&mut self, stream: StreamId, now: Millis) {
        if let Some((_, leader)) = self.leader_of(stream) {
            leader.progress = now;
            leader.answered = Some(now);
            leader.begin_to_fill();
        }
    }

    /// EDGE has seen that the response to `stream` goes into the store, which will serve it unasked until then;
    /// `None` if each use validates it.
    pub fn store_fills(&mut self, stream: StreamId, until: Option<Millis>, now: Millis) {
        if let Some((_, leader)) = self.leader_of(stream) {
            leader.progress = now;
            leader.fresh_until = until;
            leader.begin_to_fill();
        }
    }

    /// Ends the flight that `stream` leads, if it leads one.
    pub fn end_flight(&mut self, stream: StreamId, outcome: FlightOutcome, turn: &mut Turn<'_>) {
        if let Some(key) = self.led_by(stream) {
            self.finish(key, outcome, turn);
        }
    }

    /// The response to `stream` is an error that the request itself may have caused: another request leads.
    pub fn request_failed(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        if let Some(key) = self.led_by(stream) {
            self.pass_over(key, turn);
        }
    }

    /// The origin has failed `stream`, which is its own failure ([`Coalescer::is_own_failure`]): another request leads.
    pub fn own_failure(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        if let Some(key) = self.led_by(stream) {
            self.pass_on(key, Doubt::Failed, turn);
        }
    }

    /// The origin cannot be reached for `stream`, or did not answer in time: its client gets that status.
    pub fn origin_failed(&mut self, stream: StreamId, status: u16, turn: &mut Turn<'_>) {
        if let Some(key) = self.led_by(stream) {
            self.failed(key, status, turn);
        }
    }

    /// The response to `stream` should have been stored and was not.
    pub fn store_refused(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        if let Some(key) = self.led_by(stream) {
            self.not_stored(key, turn);
        }
    }

    /// More of the body of the fill has come from the origin.
    pub fn fill_progress(&mut self, stream: StreamId, now: Millis) {
        if let Some((_, leader)) = self.leader_of(stream) {
            leader.progress = now;
        }
    }

    /// The response of the fill has come to its end.
    pub fn fill_ended(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        let Some((key, leader)) = self.leader_of(stream) else {
            return;
        };
        leader.progress = turn.now;
        self.commit(key, turn);
    }

    /// Has the store asked whether what has ended can be read, unless nobody waits for it.
    fn commit(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let answered = self.leader(key).and_then(|leader| leader.answered);
        let follows_abort = answered.is_some_and(|answered| self.aborts.take(key, answered));
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let patience = match follows_abort {
            true => flight.policy.commit_after_abort(),
            false => flight.policy.longest_commit(),
        };
        if let Some(leader) = flight.leader() {
            leader.phase = Phase::Committing(Commit {
                since: turn.now,
                probes: 0,
                next_probe: Some(turn.now + COMMIT_MILLIS),
                patience,
            });
        }
        if flight.is_awaited() {
            Self::begin_to_probe(key, flight, turn);
        } else if self.leave_unconfirmed(key, turn) {
            return;
        }
        self.hasten(key);
    }

    /// A follower waits for a leader of this worker: sends the first probe, if the response has ended.
    pub(super) fn begin_to_probe(key: KeyHash, flight: &mut LocalFlight, turn: &mut Turn<'_>) {
        let target = Rc::clone(&flight.target);
        if let Some(commit) = flight.commit().filter(|commit| commit.probes == 0) {
            turn.probe(key, commit, target);
        }
    }

    /// The origin's side of the fill has gone before its end.
    pub fn fill_broken(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        let Some((key, leader)) = self.leader_of(stream) else {
            return;
        };
        let phase = leader.phase;
        // EDGE sees the error that Envoy makes of a fetch; a commit has all that it needs.
        if matches!(phase, Phase::Fetching | Phase::Committing(_)) {
            return;
        }
        self.hints.forget(key);
        if phase == Phase::Filling {
            self.failed(key, BAD_GATEWAY, turn);
        } else {
            self.finish(key, FlightOutcome::NothingShared, turn);
        }
    }

    /// A probe of the store has been answered.
    pub fn probed(&mut self, key: KeyHash, probed: Probed, turn: &mut Turn<'_>) {
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let is_hit = flight.awaits != AwaitedEntry::Fill;
        let Some(commit) = flight.commit() else {
            return;
        };
        let eager = commit.probes < EAGER_PROBES;
        match probed {
            Probed::Readable { until, small } if is_hit => {
                self.finish(key, FlightOutcome::Found { until, small }, turn);
            }
            Probed::Readable { until, small } => {
                self.finish(key, FlightOutcome::Stored { until, small }, turn);
            }
            Probed::Validated => {
                let answered = flight.leader().and_then(|leader| leader.answered);
                let at = answered.unwrap_or_default();
                self.finish(key, FlightOutcome::Validated { at }, turn);
            }
            Probed::Outdated if commit.since.saturating_add(OUTDATED_MILLIS) <= turn.now => {
                self.not_stored(key, turn);
            }
            Probed::NoRoom => {
                turn.count(Metric::Unshared);
                self.finish(key, FlightOutcome::NothingShared, turn);
            }
            Probed::Outdated | Probed::Missing => {
                let pause = if eager { 0 } else { PROBE_MILLIS };
                commit.next_probe = Some(turn.now + pause);
                self.probe_if_due(key, turn);
                self.hasten(key);
            }
        }
    }

    /// The key of the flight that `stream` leads, if it leads one.
    pub(super) fn led_by(&mut self, stream: StreamId) -> Option<KeyHash> {
        self.leader_of(stream).map(|(key, _)| key)
    }

    pub(super) fn leader_of(&mut self, stream: StreamId) -> Option<(KeyHash, &mut Leader)> {
        let key = *self.streams.get(&stream)?;
        let flight = match self.flights.get_mut(&key) {
            Some(flight) => flight,
            None => self.unconfirmed.get_mut(key)?,
        };
        let leader = flight.leader()?;
        (leader.stream == stream).then_some((key, leader))
    }

    /// Has another request lead if what the store was to make readable has expired: no probe finds that.
    pub(super) fn pass_on_expired(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let flight = self.flights.get(&key);
        if flight.is_some_and(|flight| flight.has_expired(turn.now)) {
            self.finish(key, FlightOutcome::NothingShared, turn);
        }
    }

    /// Sends the next probe, or gives the store up. The answer to a probe may be lost with the root context that sent it.
    pub(super) fn probe_if_due(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        self.pass_on_expired(key, turn);
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let target = Rc::clone(&flight.target);
        let Some(commit) = flight.commit() else {
            return;
        };
        // The store drops a response silently while it is busy with an older fill of the key, for example an aborted one.
        // The followers have to wait for another response then.
        if commit.since.saturating_add(commit.patience) <= turn.now {
            self.give_up_store(key, turn);
        } else if commit.next_probe.is_some_and(|due| due <= turn.now) {
            turn.probe(key, commit, target);
        }
    }

    /// The store has not made readable what is waited for: another request leads.
    fn give_up_store(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let longest = flight.policy.longest_commit();
        if flight.awaits == AwaitedEntry::Rewrite {
            // It was not writing the object anew, but has lost it.
            flight.awaits = AwaitedEntry::Fill;
            self.finish(key, FlightOutcome::NothingShared, turn);
        } else if flight
            .commit()
            .is_some_and(|commit| commit.patience < longest)
        {
            // The store was busy with an aborted fill: that says nothing about the next response.
            turn.count(Metric::Unshared);
            self.finish(key, FlightOutcome::NothingShared, turn);
        } else {
            self.not_stored(key, turn);
        }
    }

    /// Hands over though ORIGIN has not told of the end of an aborted fill, which must not keep the key
    /// for ever.
    pub(super) fn give_up_abort(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let max_wait = flight.policy.max_wait;
        let Some(Leader {
            phase: Phase::Aborting { since },
            ..
        }) = flight.leader()
        else {
            return;
        };
        if since.saturating_add(max_wait) <= turn.now {
            self.finish(key, FlightOutcome::NothingShared, turn);
        }
    }

    /// The response is its leader's alone: another request leads. From the second time on, ever more requests go on by
    /// themselves.
    fn pass_over(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let mut leaving = Vec::new();
        while leaving.len() < flight.leaving
            && let Some(waiter) = flight.waiters.pop_front()
        {
            if self.streams.contains_key(&waiter.stream) {
                flight.waiting -= 1;
                leaving.push(waiter);
            }
        }
        flight.leaving = flight.leaving.saturating_mul(2).saturating_add(1);
        for waiter in leaving {
            self.release(waiter, &FlightOutcome::NothingShared, turn);
        }
        self.finish(key, FlightOutcome::NothingShared, turn);
    }

    /// The store has not taken a response that it should have taken: another request tries once more. After the second
    /// time the key is hit-for-miss.
    fn not_stored(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
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

    /// Remembers that a fill of `key` was aborted, with whose last bytes the store may be busy.
    pub(super) fn note_abort(&mut self, key: KeyHash, now: Millis) {
        let _ = self.aborts.note(key, now, now.saturating_add(ABORT_MILLIS));
    }

    /// Ends the flight that this worker leads: tells the other workers, and releases the followers of this one.
    pub(super) fn finish(&mut self, key: KeyHash, outcome: FlightOutcome, turn: &mut Turn<'_>) {
        self.restore(key, turn.now);
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let Some(leader) = flight.leader().copied() else {
            return;
        };
        let board_key = flight.key;
        self.streams.remove(&leader.stream);
        if matches!(leader.phase, Phase::Aborting { .. }) {
            self.note_abort(key, turn.now);
        }
        if outcome.needs_heir() && self.promote(key, true, turn) {
            return;
        }
        let waiting = turn.board(|board| board.finish(board_key, leader.id));
        // This worker is among them where another key of the entry waits for the end of this flight.
        for worker in waiting.flatten().unwrap_or_default() {
            let message = FlightMessage {
                key,
                flight: leader.id,
                event: Event::Ended(outcome.clone()),
            };
            turn.push(Effect::Notify { worker, message });
        }
        self.settle(key, outcome, turn);
    }
}
