// SPDX-License-Identifier: Apache-2.0
//! Fills that have ended while no request waited for them. The store is not asked for them until a request waits.
//!
//! Most objects are not requested twice within seconds, and asking the store costs about as much as a hit. So such a
//! fill keeps its lease on the board, and its worker remembers it here. The first request for the key, on any worker,
//! is the first follower. Then the store is asked, as for any other fill. When the lease ends, the store has had its
//! allowed time, and is believed to have the response.

use std::collections::VecDeque;

use super::flight::{AwaitedEntry, LocalFlight};
use super::{Coalescer, Effect, Turn};
use crate::coalescing::learnt::hints::Hint;
use crate::workers::{FlightId, KeyHash, Millis, NumberMap};

/// A fill that has ended.
#[derive(Debug)]
struct EndedFill {
    flight: LocalFlight,
    /// Time at which its lease ends.
    end: Millis,
}

/// The resting fills of one worker.
#[derive(Debug, Default)]
pub(super) struct RestingFills {
    fills: NumberMap<KeyHash, EndedFill>,
    /// The end of each lease, in the order of arrival. Fills that were taken back stay here until then.
    ends: VecDeque<(Millis, KeyHash)>,
}

impl RestingFills {
    /// Number of fills.
    pub fn len(&self) -> usize {
        self.fills.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.fills.is_empty()
    }

    /// Whether the fill of `key` rests.
    pub fn contains(&self, key: KeyHash) -> bool {
        self.fills.contains_key(&key)
    }

    /// The flight of the resting fill of `key`.
    pub fn get_mut(&mut self, key: KeyHash) -> Option<&mut LocalFlight> {
        self.fills.get_mut(&key).map(|fill| &mut fill.flight)
    }

    /// Whether flight `id` of `key` rests.
    pub fn is_led_as(&self, key: KeyHash, id: FlightId) -> bool {
        let fill = self.fills.get(&key);
        fill.is_some_and(|fill| fill.flight.leads_as(id))
    }

    fn insert(&mut self, key: KeyHash, flight: LocalFlight, end: Millis) {
        self.ends.push_back((end, key));
        self.fills.insert(key, EndedFill { flight, end });
    }

    fn remove(&mut self, key: KeyHash) -> Option<LocalFlight> {
        self.fills.remove(&key).map(|fill| fill.flight)
    }

    /// Removes the next fill whose lease has ended.
    fn next_ended(&mut self, now: Millis) -> Option<(KeyHash, LocalFlight)> {
        while let Some((end, key)) = self.ends.front().copied()
            && end <= now
        {
            self.ends.pop_front();
            if self.fills.get(&key).is_some_and(|fill| fill.end == end) {
                return self.remove(key).map(|flight| (key, flight));
            }
        }
        None
    }
}

impl Coalescer {
    /// Number of ended fills of this worker for which the store has not been asked.
    pub fn resting(&self) -> usize {
        self.resting.len()
    }

    /// Lets an ended fill rest for which no request waits. Returns false if the store has to be asked, because the
    /// lease is shorter than the store's allowed time, or because the key has a hint.
    pub(super) fn rest(&mut self, key: KeyHash, turn: &mut Turn<'_>) -> bool {
        let now = turn.now;
        let (fills, remembered) = (self.resting.len(), self.hints.get(key, now));
        let Some(flight) = self.flights.get_mut(&key) else {
            return false;
        };
        let (board_key, policy) = (flight.key, flight.policy);
        let may_rest = policy.lease >= policy.patience()
            && fills < policy.keys_in_flight
            && remembered.is_none();
        let Some(leader) = flight.leader_mut().filter(|_| may_rest) else {
            return false;
        };
        let (id, needed) = (leader.id, now + policy.patience());
        let mut end = leader.renewed + policy.lease;
        // With a much longer lease, other workers would wait for a worker that has died.
        if end < needed || end > needed + policy.patience() {
            let renewed = turn.board(|board| board.renew(board_key, id, needed, now));
            if renewed != Some(true) {
                return false;
            }
            leader.renewed = needed.saturating_sub(policy.lease);
            end = needed;
        }
        if let Some(flight) = self.flights.remove(&key) {
            self.resting.insert(key, flight, end);
        }
        true
    }

    /// Takes the fill of `key` back among the flights, if it rests, because a new request waits for it. If the
    /// response has expired meanwhile, that request becomes the leader.
    pub(super) fn take_back(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        self.restore(key, turn.now);
        self.pass_on_expired(key, turn);
    }

    /// Puts the fill of `key` among the flights, if it rests, as if its response had just ended.
    pub(super) fn restore(&mut self, key: KeyHash, now: Millis) {
        let Some(mut flight) = self.resting.remove(key) else {
            return;
        };
        flight.awaits = AwaitedEntry::EarlierFill;
        if let Some(leader) = flight.leader_mut() {
            leader.progress = now;
        }
        self.flights.insert(key, flight);
        self.hasten(key);
    }

    /// Sets the hint "fresh" for fills whose leases have ended without a request: they are believed to be stored.
    pub(super) fn end_resting(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now;
        while let Some((key, flight)) = self.resting.next_ended(now) {
            let Some(leader) = flight.leader() else {
                continue;
            };
            let until = leader.fresh_until;
            self.parts.remove(&leader.stream);
            if let Some(until) = until.filter(|until| *until > now)
                && self.hints.get(key, now).is_none()
            {
                self.hints.set(key, Hint::Fresh, until);
            }
            if !flight.key.is_sole() {
                let target = flight.target;
                turn.push(Effect::Confirm { key, target });
            }
        }
    }
}
