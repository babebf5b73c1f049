// SPDX-License-Identifier: Apache-2.0
//! Leaders: how far each has come, and how its flight ends.

use super::{Coalescer, Effect, Turn};
use crate::coalescing::flight::{Leader, LocalFlight, Phase};
use crate::workers::message::{Doubt, Event, FlightMessage, FlightOutcome};
use crate::workers::{KeyHash, Millis, StreamId};

/// The status of followers whose leader's response broke off.
const BAD_GATEWAY: u16 = 502;

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
            self.not_taken(key, turn);
        }
    }

    /// More of the body of the fill has come from the origin.
    pub fn fill_progress(&mut self, stream: StreamId, now: Millis) {
        if let Some((_, leader)) = self.leader_of(stream) {
            leader.progress = now;
        }
    }

    /// The origin's side of the fill has gone before its end.
    pub fn fill_broken(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        let Some((key, leader)) = self.leader_of(stream) else {
            return;
        };
        match leader.phase {
            // EDGE sees the error that Envoy makes of a fetch; the store has all that it needs of what has ended.
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

    /// The key of the flight that `stream` leads, if it leads one.
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

    /// Hands over though the end of an aborted fill has not been told, which must not keep the key for ever.
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

    /// The response is its leader's alone: another request leads. From the second time on, ever more requests go on by
    /// themselves.
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
