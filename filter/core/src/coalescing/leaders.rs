// SPDX-License-Identifier: Apache-2.0
//! Leaders: their progress, and the end of their flights.

use super::{Coalescer, Effect, Turn};
use crate::coalescing::flight::{Leader, LocalFlight, Phase};
use crate::workers::message::{Doubt, Event, FlightMessage, FlightOutcome};
use crate::workers::{KeyHash, Millis, StreamId};

/// Status for followers of a leader whose response broke off.
const BAD_GATEWAY: u16 = 502;

impl Coalescer {
    /// Notes that the response to `stream` is being stored, as ORIGIN has seen.
    pub fn fill_begins(&mut self, stream: StreamId, now: Millis) {
        if let Some((_, leader)) = self.leader_of(stream) {
            leader.progress = now;
            leader.answered = Some(now);
            leader.begin_to_fill();
        }
    }

    /// Notes that the response to `stream` is being stored, as EDGE has seen. The store will serve it without asking
    /// the origin until `until`; `None` means that each use validates it.
    pub fn store_fills(&mut self, stream: StreamId, until: Option<Millis>, now: Millis) {
        if let Some((_, leader)) = self.leader_of(stream) {
            leader.progress = now;
            leader.fresh_until = until;
            leader.begin_to_fill();
        }
    }

    /// Ends the flight of the leader `stream`, if it is one.
    pub fn end_flight(&mut self, stream: StreamId, outcome: FlightOutcome, turn: &mut Turn<'_>) {
        if let Some(key) = self.led_by(stream) {
            self.finish(key, outcome, turn);
        }
    }

    /// Makes another request the leader, because the response to `stream` is an error that the request itself may
    /// have caused.
    pub fn request_failed(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        if let Some(key) = self.led_by(stream) {
            self.pass_over(key, turn);
        }
    }

    /// Makes another request the leader, because the failure of the origin for `stream` is the request's own
    /// ([`Coalescer::meet_failure`]).
    pub fn own_failure(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        if let Some(key) = self.led_by(stream) {
            self.pass_on(key, Doubt::Failed, turn);
        }
    }

    /// Ends the flight of `stream` with `status`, because the origin cannot be reached or did not answer in time.
    pub fn origin_failed(&mut self, stream: StreamId, status: u16, turn: &mut Turn<'_>) {
        if let Some(key) = self.led_by(stream) {
            self.failed(key, status, turn);
        }
    }

    /// Notes that the response to `stream` should have been stored and was not.
    pub fn store_refused(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        if let Some(key) = self.led_by(stream) {
            self.not_taken(key, turn);
        }
    }

    /// Notes that more of the fill's body has arrived from the origin.
    pub fn fill_progress(&mut self, stream: StreamId, now: Millis) {
        if let Some((_, leader)) = self.leader_of(stream) {
            leader.progress = now;
        }
    }

    /// Notes that the origin's side of the fill has ended too early.
    pub fn fill_broken(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        let Some((key, leader)) = self.leader_of(stream) else {
            return;
        };
        match leader.phase {
            // In `Fetching`, EDGE sees the error that Envoy sends. In `Storing`, the store has the whole response.
            Phase::Fetching | Phase::Storing { .. } => {}
            Phase::Filling => {
                self.hints.forget(key);
                self.failed(key, BAD_GATEWAY, turn);
            }
            Phase::Aborting { .. } => {
                self.hints.forget(key);
                self.finish(key, FlightOutcome::NothingShared, turn);
            }
        }
    }

    /// The key of the flight whose leader is `stream`, if there is one.
    pub(super) fn led_by(&mut self, stream: StreamId) -> Option<KeyHash> {
        self.leader_of(stream).map(|(key, _)| key)
    }

    pub(super) fn leader_of(&mut self, stream: StreamId) -> Option<(KeyHash, &mut Leader)> {
        let key = self
            .parts
            .get(&stream)
            .filter(|part| part.place.is_none())?
            .key;
        let flight = match self.flights.get_mut(&key) {
            Some(flight) => flight,
            None => self.resting.get_mut(key)?,
        };
        let leader = flight.leader_mut()?;
        (leader.stream == stream).then_some((key, leader))
    }

    /// Hands over when the end of an aborted fill is not reported within `max_wait`. Otherwise the key would be
    /// blocked forever.
    pub(super) fn give_up_abort(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let over = |flight: &LocalFlight| match flight.leader()?.phase {
            Phase::Aborting { since } => Some(since.saturating_add(flight.policy.max_wait)),
            _ => None,
        };
        let over = self.flights.get(&key).and_then(over);
        if over.is_some_and(|over| over <= turn.now) {
            self.finish(key, FlightOutcome::NothingShared, turn);
        }
    }

    /// Makes another request the leader, because the response is for its leader only. From the second such response
    /// on, more and more followers are released to continue alone.
    fn pass_over(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let leaving = std::iter::from_fn(|| flight.waiters.take_first());
        let leaving: Vec<_> = leaving.take(flight.leaving).collect();
        flight.leaving = flight.leaving.saturating_mul(2).saturating_add(1);
        for waiter in leaving {
            self.release(waiter, &FlightOutcome::NothingShared, turn);
        }
        self.finish(key, FlightOutcome::NothingShared, turn);
    }

    /// Ends a flight that this worker leads: notifies the other workers, and releases the followers on this worker.
    pub(super) fn finish(&mut self, key: KeyHash, outcome: FlightOutcome, turn: &mut Turn<'_>) {
        self.restore(key, turn.now);
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let Some(leader) = flight.leader().copied() else {
            return;
        };
        let board_key = flight.key;
        self.parts.remove(&leader.stream);
        match leader.phase {
            Phase::Aborting { .. } => turn.push(Effect::Aborted { key }),
            Phase::Storing { .. } => turn.push(Effect::AwaitNoMore { key }),
            Phase::Fetching | Phase::Filling => {}
        }
        if outcome.needs_heir() && self.promote(key, true, turn) {
            return;
        }
        let waiting = turn.board(|board| board.finish(board_key, leader.id));
        // This worker is among them if another key of the entry waits for the end of this flight.
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
