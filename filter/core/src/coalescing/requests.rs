// SPDX-License-Identifier: Apache-2.0
//! Requests: their admission, and their end.

use std::rc::Rc;

use super::waiting_list::Waiter;
use super::{Coalescer, Effect, FlightPart, NextStep, Request, StoreRequest, Turn};
use crate::coalescing::flight::{AwaitedEntry, Leader, LocalFlight, Phase, Role};
use crate::coalescing::learnt::hints::Hint;
use crate::coalescing::shared::board::Acquired;
use crate::metrics::Metric;
use crate::workers::message::FlightOutcome;
use crate::workers::{FlightId, KeyHash, Millis, StreamId};

impl Coalescer {
    /// Returns the next step of a request whose key has a hint. Returns `None` for a key without a hint, whose
    /// request must be a leader or a follower.
    pub fn remembered(&mut self, key: KeyHash, now: Millis) -> Option<NextStep> {
        // An earlier hit may still be on its way to its client, and may have set a hint.
        let flight = self.flights.get(&key);
        if flight.is_some_and(|flight| flight.awaits == AwaitedEntry::Returning) {
            return None;
        }
        Some(match self.hints.get(key, now)? {
            Hint::Fresh => NextStep::Send(StoreRequest::Fresh),
            Hint::HitForMiss(reason) => NextStep::HitForMiss(reason),
        })
    }

    /// Whether a request for `key` needs no lookup: the key has a hint, or is in flight on this worker.
    pub fn knows(&mut self, key: KeyHash, now: Millis) -> bool {
        let in_flight = self.flights.contains_key(&key) || self.resting.contains(key);
        in_flight || self.hints.get(key, now).is_some()
    }

    /// Admits a new request. Returns its next step, or `None` if it waits.
    pub fn request(&mut self, request: &Request<'_>, turn: &mut Turn<'_>) -> Option<NextStep> {
        if let Some(remembered) = self.remembered(request.key.key, turn.now) {
            return Some(self.check_mark(request, remembered, turn));
        }
        self.take_back(request.key.key, turn);
        if self.flights.contains_key(&request.key.key) {
            return self.park(request, turn);
        }
        if self.flights.len() >= request.policy.keys_in_flight {
            turn.count(Metric::LimitsReached);
            return Some(NextStep::Send(StoreRequest::Alone));
        }
        let acquired = if request.may_lead {
            self.acquire(request, turn)
        } else {
            let (worker, now) = (self.worker, turn.now);
            turn.board(|board| board.follow(request.key, worker, now))
                .flatten()
        };
        match acquired {
            Some(Acquired::Lead) => {
                self.lead(request, turn);
                Some(NextStep::Send(StoreRequest::Lead))
            }
            Some(Acquired::Follow {
                key,
                leader,
                progress,
            }) => {
                let role = Role::Following {
                    leader,
                    progress,
                    checked: turn.now,
                };
                self.insert_flight(request, role);
                self.add_successor(key, leader, request.key.key);
                turn.tell_leader(key, leader);
                self.park(request, turn)
            }
            Some(Acquired::Full) => {
                turn.count(Metric::LimitsReached);
                Some(NextStep::Send(StoreRequest::Alone))
            }
            None => Some(NextStep::Send(StoreRequest::Alone)),
        }
    }

    /// Makes a request for a hit-for-miss key a leader now and then, without followers. Otherwise returns
    /// `remembered`.
    fn check_mark(
        &mut self,
        request: &Request<'_>,
        remembered: NextStep,
        turn: &mut Turn<'_>,
    ) -> NextStep {
        let key = request.key.key;
        let free = self.flights.len() < request.policy.keys_in_flight
            && !self.flights.contains_key(&key)
            && !self.resting.contains(key);
        if matches!(remembered, NextStep::HitForMiss(_))
            && request.may_lead
            && free
            && self.hints.take_check(key, turn.now)
            && let Some(Acquired::Lead) = self.acquire(request, turn)
        {
            self.lead(request, turn);
            return NextStep::Send(StoreRequest::Lead);
        }
        remembered
    }

    /// Notes that a request for a key with the hint "fresh" has reached the origin. The hint was wrong, so the
    /// requests that arrive from now on should wait for this one.
    pub fn unexpected_miss(&mut self, request: &Request<'_>, turn: &mut Turn<'_>) {
        turn.count(Metric::UnexpectedMisses);
        self.hints.forget(request.key.key);
        let room = self.flights.len() < request.policy.keys_in_flight;
        let in_flight = self.knows(request.key.key, turn.now);
        if !request.may_lead || !room || in_flight {
            return;
        }
        if let Some(Acquired::Lead) = self.acquire(request, turn) {
            self.lead(request, turn);
        }
    }

    /// Has new requests wait for an object that the store served a moment ago, does not have now, and is about to
    /// serve again.
    pub fn await_return(&mut self, request: &Request<'_>, turn: &mut Turn<'_>) {
        let key = request.key.key;
        self.hints.expire(key);
        let room = self.flights.len() < request.policy.keys_in_flight;
        if self.knows(key, turn.now) || !room {
            return;
        }
        if let Some(Acquired::Lead) = self.acquire(request, turn) {
            self.lead(request, turn);
            if let Some(flight) = self.flights.get_mut(&key) {
                flight.await_return();
                turn.await_store(key, flight, false);
            }
            self.hasten(key);
        }
    }

    fn acquire(&mut self, request: &Request<'_>, turn: &mut Turn<'_>) -> Option<Acquired> {
        let (id, now) = (self.next_flight(), turn.now);
        turn.board(|board| board.acquire(request.key, id, now, request.policy.lease))
    }

    pub(super) fn next_flight(&mut self) -> FlightId {
        self.sequence = self.sequence.wrapping_add(1);
        self.current_flight()
    }

    fn current_flight(&self) -> FlightId {
        FlightId {
            worker: self.worker,
            sequence: self.sequence,
        }
    }

    fn lead(&mut self, request: &Request<'_>, turn: &mut Turn<'_>) {
        turn.count(Metric::FlightsLed);
        let Request {
            stream,
            own_headers,
            ..
        } = *request;
        let leader = Leader::new(self.current_flight(), stream, own_headers, turn.now);
        self.insert_flight(request, Role::Leading(leader));
        if request.for_others {
            self.inherit(request.key.key, turn.now);
        }
        let key = request.key.key;
        self.parts
            .insert(request.stream, FlightPart { key, place: None });
    }

    /// Notes that `next` gets its leader after a flight of `key`, if the keys differ.
    pub(super) fn add_successor(&mut self, key: KeyHash, flight: FlightId, next: KeyHash) {
        if key == next {
            return;
        }
        let flights = &self.flights;
        self.successors.retain(|(flight, key)| {
            let waiting = flights.get(key);
            waiting.is_some_and(|waiting| waiting.follows(*flight))
        });
        self.successors.push((flight, next));
    }

    fn insert_flight(&mut self, request: &Request<'_>, role: Role) {
        let target = Rc::clone(request.target);
        let flight = LocalFlight::new(target, request.key, request.policy, role);
        self.flights.insert(request.key.key, flight);
        self.hasten(request.key.key);
    }

    fn park(&mut self, request: &Request<'_>, turn: &mut Turn<'_>) -> Option<NextStep> {
        let Some(flight) = self.flights.get_mut(&request.key.key) else {
            return Some(NextStep::Send(StoreRequest::Alone));
        };
        if flight.waiters.len() >= request.policy.waiters_per_key {
            turn.count(Metric::LimitsReached);
            return Some(NextStep::Send(StoreRequest::Alone));
        }
        let key = request.key.key;
        let place = Some(flight.waiters.push(Waiter {
            stream: request.stream,
            since: turn.now,
            own_headers: request.own_headers,
            may_lead: request.may_lead,
            for_others: request.for_others,
        }));
        self.parts.insert(request.stream, FlightPart { key, place });
        turn.count(Metric::FollowersParked);
        turn.urge_store(key, flight);
        self.hasten(key);
        None
    }

    /// Whether a request is a leader or waits. [`Coalescer::closed`] has nothing to do for any other.
    pub fn takes_part(&self, stream: StreamId) -> bool {
        self.parts.contains_key(&stream)
    }

    /// Handles the end of `stream`: its client has disconnected, or its response has been sent.
    pub fn closed(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        let Some(&FlightPart { key, place }) = self.parts.get(&stream) else {
            return;
        };
        let Some(flight) = self.flights.get_mut(&key) else {
            // Its fill rests, and does not need a client.
            self.parts.remove(&stream);
            return;
        };
        if let Some(place) = place {
            flight.waiters.take(place);
            self.parts.remove(&stream);
            self.forget_if_over(key);
        } else if let Some(leader) = flight.leader_mut() {
            match leader.phase {
                Phase::Filling => {
                    leader.phase = Phase::Aborting { since: turn.now };
                    turn.push(Effect::Abort { stream });
                }
                Phase::Fetching => self.finish(key, FlightOutcome::NothingShared, turn),
                // The store has the whole response, or the end of the fill is still to be reported.
                Phase::Storing { .. } | Phase::Aborting { .. } => {}
            }
        }
    }

    /// Takes the requests of this worker off the waiting list for which `answer` returns an answer. Returns each with
    /// its waiting time in milliseconds and its answer.
    pub fn answer_waiting<T>(
        &mut self,
        key: KeyHash,
        now: Millis,
        mut answer: impl FnMut(StreamId) -> Option<T>,
    ) -> Vec<(StreamId, Millis, T)> {
        let Some(flight) = self.flights.get_mut(&key) else {
            return Vec::new();
        };
        let mut answered = Vec::new();
        for waiter in flight
            .waiters
            .take_if(|waiter| match answer(waiter.stream) {
                Some(answer) => {
                    answered.push((waiter.stream, now.saturating_sub(waiter.since), answer));
                    true
                }
                None => false,
            })
        {
            self.parts.remove(&waiter.stream);
        }
        self.forget_if_over(key);
        answered
    }
}
