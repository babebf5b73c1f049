// SPDX-License-Identifier: Apache-2.0
//! Followers: the effect of a message about a flight on the requests that wait for it.

use super::{Coalescer, Effect, NextStep, StoreRequest, Turn};
use crate::coalescing::flight::Role;
use crate::coalescing::learnt::hints::Hint;
use crate::coalescing::shared::board::Acquired;
use crate::coalescing::waiting_list::Waiter;
use crate::workers::message::{Event, FlightMessage, FlightOutcome};
use crate::workers::{FlightId, KeyHash, Millis};

impl Coalescer {
    /// Handles a message from another worker.
    pub fn message(&mut self, message: FlightMessage, turn: &mut Turn<'_>) {
        let FlightMessage { key, flight, event } = message;
        match event {
            Event::Ended(outcome) => {
                self.flight_ended(key, flight, outcome, turn);
                self.lead_after(flight, turn);
            }
            Event::Awaited => self.flight_awaited(key, flight, turn),
        }
    }

    /// Notes that requests of another worker wait for a leader of this worker.
    fn flight_awaited(&mut self, key: KeyHash, id: FlightId, turn: &mut Turn<'_>) {
        if self.resting.is_led_as(key, id) {
            self.take_back(key, turn);
        }
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        if flight.leads_as(id) {
            flight.awaited = true;
            turn.urge_store(key, flight);
            self.hasten(key);
        }
    }

    fn flight_ended(
        &mut self,
        key: KeyHash,
        flight: FlightId,
        outcome: FlightOutcome,
        turn: &mut Turn<'_>,
    ) {
        if outcome == FlightOutcome::NothingShared {
            turn.push(Effect::Aborted { key });
        }
        match self.flights.get(&key).map(|flight| flight.role) {
            // This worker's lease ran out, so there are two leaders. Each of them notifies its own followers.
            Some(Role::Leading(_)) => {}
            // The message is late. The followers of this worker already wait for another flight, or another worker
            // has taken the flight over.
            Some(Role::Following { leader, .. }) if leader != flight => self.rescan(key, turn),
            Some(_) if outcome.needs_heir() => {
                if let FlightOutcome::Own { doubt, own_headers } = outcome
                    && let Some(flight) = self.flights.get_mut(&key)
                {
                    flight.set_doubted(doubt, own_headers);
                }
                if !self.promote(key, true, turn) {
                    self.settle(key, outcome, turn);
                }
            }
            Some(_) => {
                let stored = matches!(
                    outcome,
                    FlightOutcome::Stored { .. } | FlightOutcome::Found { .. }
                );
                if !(stored && self.follow_next(key, turn)) {
                    self.settle(key, outcome, turn);
                }
            }
            None => self.remember(key, &outcome, turn.now),
        }
    }

    /// Continues with the other keys of the entry that have waited for the end of this flight.
    fn lead_after(&mut self, ended: FlightId, turn: &mut Turn<'_>) {
        let successors = std::mem::take(&mut self.successors);
        let (next, others) = successors
            .into_iter()
            .partition(|(flight, _)| *flight == ended);
        self.successors = others;
        for (_, key) in next {
            if self
                .flights
                .get(&key)
                .is_some_and(|flight| flight.follows(ended))
            {
                self.rescan(key, turn);
            }
        }
    }

    fn remember(&mut self, key: KeyHash, outcome: &FlightOutcome, now: Millis) {
        match outcome {
            FlightOutcome::Stored { until, small } | FlightOutcome::Found { until, small } => {
                self.hints.set(key, Hint::Fresh, *until);
                self.hints.note_readable(key, *small, now);
            }
            FlightOutcome::HitForMiss { until, reason } => {
                self.hints.adopt_mark(key, *reason, *until, now);
            }
            FlightOutcome::Kept { until } => {
                self.hints.set(key, Hint::Fresh, *until);
                // The claim of the worker that has asked the origin decides when to ask again.
                self.hints.set_refresh(key, now);
                self.hints.set_failing(key, true);
            }
            FlightOutcome::Varies { .. }
            | FlightOutcome::Validated { .. }
            | FlightOutcome::Sliced => self.hints.forget(key),
            FlightOutcome::Failed { .. }
            | FlightOutcome::Own { .. }
            | FlightOutcome::NothingShared
            | FlightOutcome::NoRoom => {}
        }
    }

    /// Continues to wait if a third worker is the leader by now. Returns false if there is none. A third leader means
    /// that the store has lost the response, and without it each follower would ask the origin.
    fn follow_next(&mut self, key: KeyHash, turn: &mut Turn<'_>) -> bool {
        let (worker, now) = (self.worker, turn.now);
        let Some(flight) = self.flights.get_mut(&key) else {
            return false;
        };
        let board_key = flight.key;
        let followed = turn.board(|board| board.follow(board_key, worker, now));
        let Some(Some(Acquired::Follow {
            leader, progress, ..
        })) = followed
        else {
            return false;
        };
        turn.follow(key, flight, leader, progress);
        true
    }

    /// Ends the flight on this worker and releases all its followers.
    pub(super) fn settle(&mut self, key: KeyHash, outcome: FlightOutcome, turn: &mut Turn<'_>) {
        self.remember(key, &outcome, turn.now);
        let Some(mut flight) = self.flights.remove(&key) else {
            return;
        };
        if !flight.waiters.is_empty() {
            self.note_heirless(key, &outcome, turn.now);
        }
        if let FlightOutcome::Varies { names } = &outcome {
            turn.push(Effect::Learn {
                target: flight.target,
                names: names.clone(),
            });
        }
        for waiter in flight.waiters.take_all() {
            self.release(waiter, &outcome, turn);
        }
    }

    pub(super) fn release(&mut self, waiter: Waiter, outcome: &FlightOutcome, turn: &mut Turn<'_>) {
        let next_step = match outcome {
            FlightOutcome::Varies { .. } => NextStep::Varies,
            _ if waiter.for_others => NextStep::Unneeded,
            // RFC 9111, 5.2.2.4: a later request has to be validated again. Within one millisecond the order is
            // unknown.
            FlightOutcome::Validated { at } if waiter.since >= *at => NextStep::Varies,
            FlightOutcome::Validated { .. } => NextStep::Send(StoreRequest::Validated),
            FlightOutcome::Stored { .. } | FlightOutcome::Kept { .. } => {
                NextStep::Send(StoreRequest::Collapsed)
            }
            FlightOutcome::Found { .. } => NextStep::Send(StoreRequest::Fresh),
            FlightOutcome::HitForMiss { reason, .. } => NextStep::HitForMiss(*reason),
            FlightOutcome::NoRoom => NextStep::NoRoom,
            FlightOutcome::Sliced => NextStep::Send(StoreRequest::Slice),
            FlightOutcome::NothingShared | FlightOutcome::Own { .. } => {
                NextStep::Send(StoreRequest::Alone)
            }
            FlightOutcome::Failed { status } => {
                let (stream, status) = (waiter.stream, *status);
                let waited = self.dismiss(waiter, turn.now);
                return turn.push(Effect::Fail {
                    stream,
                    status,
                    waited,
                });
            }
        };
        self.release_as(waiter, next_step, turn);
    }

    /// Releases this worker's followers of a flight whose response is one of several of its URL. Each continues under
    /// the key of its variant. The flight goes on.
    pub fn part_variants(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        for waiter in flight.waiters.take_all() {
            self.release_as(waiter, NextStep::Varies, turn);
        }
        self.forget_if_over(key);
    }

    pub(super) fn release_as(&mut self, waiter: Waiter, next_step: NextStep, turn: &mut Turn<'_>) {
        let (stream, waited) = (waiter.stream, self.dismiss(waiter, turn.now));
        turn.push(Effect::Resume {
            stream,
            next_step,
            waited,
        });
    }

    /// Continues to wait if another worker has the leader; otherwise one of the waiting requests becomes the leader.
    pub(super) fn rescan(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        if !self.promote(key, false, turn) {
            self.settle(key, FlightOutcome::NothingShared, turn);
        }
    }
}
