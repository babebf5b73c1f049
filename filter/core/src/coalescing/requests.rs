// SPDX-License-Identifier: Apache-2.0
//! Requests: how one is admitted, and what happens when it goes away.

use std::rc::Rc;

use super::{Coalescer, Effect, NextStep, Request, Turn};
use crate::coalescing::board::Acquired;
use crate::coalescing::flight::{AwaitedEntry, Leader, LocalFlight, Phase, Role, Waiter};
use crate::coalescing::hints::Hint;
use crate::metrics::Metric;
use crate::workers::message::FlightOutcome;
use crate::workers::{FlightId, KeyHash, Millis, StreamId};

/// Places that a waiting list may keep for requests that have gone away, beside one for each request that waits.
const GONE_WAITERS: usize = 32;

impl Coalescer {
    /// How a request goes on that neither leads nor waits; `None` if nothing is remembered of its key.
    pub fn remembered(&mut self, key: KeyHash, now: Millis) -> Option<NextStep> {
        // A hit from before may be on its way to its client still, and has made a hint.
        let flight = self.flights.get(&key);
        if flight.is_some_and(|flight| flight.awaits == AwaitedEntry::Rewrite) {
            return None;
        }
        Some(match self.hints.get(key, now)? {
            Hint::Fresh => NextStep::Fresh,
            Hint::HitForMiss(reason) => NextStep::HitForMiss(reason),
        })
    }

    /// Whether a request for `key` has nothing to look for: it is remembered, or in flight on this worker.
    pub fn knows(&mut self, key: KeyHash, now: Millis) -> bool {
        let in_flight = self.flights.contains_key(&key) || self.unconfirmed.contains(key);
        in_flight || self.hints.get(key, now).is_some()
    }

    /// Whether the response for `key` has come to this worker whole, and the store is busy with it.
    pub fn is_committing(&self, key: KeyHash) -> bool {
        let flight = self.flights.get(&key);
        flight.is_some_and(LocalFlight::is_committing) || self.unconfirmed.contains(key)
    }

    /// A request has come. How it goes on, or `None` if it waits.
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
            return Some(NextStep::Alone);
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
                Some(NextStep::Lead)
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
                Some(NextStep::Alone)
            }
            None => Some(NextStep::Alone),
        }
    }

    /// Lets a request for a key that is hit-for-miss lead now and then, for which nobody waits. Else it goes on as is
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
            && !self.unconfirmed.contains(key);
        if matches!(remembered, NextStep::HitForMiss(_))
            && request.may_lead
            && free
            && self.hints.take_check(key, turn.now)
            && let Some(Acquired::Lead) = self.acquire(request, turn)
        {
            self.lead(request, turn);
            return NextStep::Lead;
        }
        remembered
    }

    /// A request for a key that was believed fresh has reached the origin: the hint was wrong, and the requests that come
    /// now should wait for this one.
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

    /// A request has met a gap in the store: the object was served a moment ago, and is being written anew. The store is
    /// probed until it has the object again, and the requests that come now wait for that.
    pub fn met_gap(&mut self, request: &Request<'_>, turn: &mut Turn<'_>) {
        let key = request.key.key;
        self.hints.expire(key);
        let room = self.flights.len() < request.policy.keys_in_flight;
        if self.knows(key, turn.now) || !room {
            return;
        }
        if let Some(Acquired::Lead) = self.acquire(request, turn) {
            self.lead(request, turn);
            if let Some(flight) = self.flights.get_mut(&key) {
                flight.await_rewrite(turn.now);
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
        self.streams.insert(request.stream, request.key.key);
    }

    /// Notes that `next` is led after a flight of `key`, if that is another key.
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
            return Some(NextStep::Alone);
        };
        if flight.waiting >= request.policy.waiters_per_key {
            turn.count(Metric::LimitsReached);
            return Some(NextStep::Alone);
        }
        flight.waiters.push_back(Waiter {
            stream: request.stream,
            since: turn.now,
            own_headers: request.own_headers,
            may_lead: request.may_lead,
            for_others: request.for_others,
        });
        flight.waiting += 1;
        self.parked += 1;
        self.streams.insert(request.stream, request.key.key);
        turn.count(Metric::FollowersParked);
        Self::begin_to_probe(request.key.key, flight, turn);
        self.hasten(request.key.key);
        None
    }

    /// Whether a request leads or waits. [`Coalescer::closed`] has nothing to do for any other.
    pub fn takes_part(&self, stream: StreamId) -> bool {
        self.streams.contains_key(&stream)
    }

    /// The client of `stream` has gone, or its response has been sent.
    pub fn closed(&mut self, stream: StreamId, turn: &mut Turn<'_>) {
        let Some((&stream, &key)) = self.streams.get_key_value(&stream) else {
            return;
        };
        let Some(flight) = self.flights.get_mut(&key) else {
            // Its fill is unconfirmed, and needs nobody.
            self.streams.remove(&stream);
            return;
        };
        if let Some(leader) = flight.leader()
            && leader.stream == stream
        {
            match leader.phase {
                Phase::Filling => {
                    leader.phase = Phase::Aborting { since: turn.now };
                    turn.push(Effect::Abort { stream });
                }
                Phase::Fetching => self.finish(key, FlightOutcome::NothingShared, turn),
                // The store has all that it needs, or ORIGIN tells of the end of the fill.
                Phase::Committing(_) | Phase::Aborting { .. } => {}
            }
            return;
        }
        self.streams.remove(&stream);
        flight.waiting -= 1;
        self.parked -= 1;
        if flight.waiting == 0 {
            flight.waiters.clear();
            if !flight.leads() {
                self.flights.remove(&key);
            }
        } else if flight.waiters.len() > 2 * flight.waiting + GONE_WAITERS {
            let streams = &self.streams;
            flight
                .waiters
                .retain(|waiter| streams.contains_key(&waiter.stream));
        }
    }

    /// Takes those requests of this worker off the waiting list to which `answer` gives an answer: the headers of the
    /// response that they wait for are enough, or they need not wait for it. Each comes back with the milliseconds that
    /// it has waited and its answer.
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
        flight.waiters.retain(|waiter| {
            let stream = waiter.stream;
            if !self.streams.contains_key(&stream) {
                return false;
            }
            let Some(answer) = answer(stream) else {
                return true;
            };
            self.streams.remove(&stream);
            answered.push((stream, now.saturating_sub(waiter.since), answer));
            false
        });
        flight.waiting -= answered.len();
        self.parked -= answered.len();
        if flight.waiting == 0 && !flight.leads() {
            self.flights.remove(&key);
        }
        answered
    }
}
