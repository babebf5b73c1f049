// SPDX-License-Identifier: Apache-2.0
//! Fills that have ended while nobody waited for them: the store is not asked for them until somebody does.
//!
//! Most objects are not asked for twice within seconds, and a probe of the store costs about as much as a hit. So such a
//! fill keeps its lease on the board, and its worker remembers it here. The first request for the key, on whichever
//! worker, is the first that waits: then the store is asked as for any other fill. When the lease ends the store has had
//! the time that it may take, and is believed to have the response.

use std::collections::VecDeque;

use super::flight::{AwaitedEntry, LocalFlight, Phase};
use super::{Coalescer, Effect, Turn};
use crate::coalescing::hints::Hint;
use crate::workers::{FlightId, KeyHash, Millis, NumberMap};

/// A fill that has ended.
#[derive(Debug)]
struct EndedFill {
    flight: LocalFlight,
    /// When its lease ends.
    end: Millis,
}

/// The unconfirmed fills of one worker.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    fills: NumberMap<KeyHash, EndedFill>,
    /// When the lease of each ends, in the order in which they came. Those that were taken back stay here until then.
    ends: VecDeque<(Millis, KeyHash)>,
}

impl Unconfirmed {
    /// Number of fills.
    pub fn len(&self) -> usize {
        self.fills.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.fills.is_empty()
    }

    /// Whether that of `key` is among them.
    pub fn contains(&self, key: KeyHash) -> bool {
        self.fills.contains_key(&key)
    }

    /// That of `key`.
    pub fn get_mut(&mut self, key: KeyHash) -> Option<&mut LocalFlight> {
        self.fills.get_mut(&key).map(|fill| &mut fill.flight)
    }

    /// Whether flight `id` of `key` is among them.
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

    /// Takes the next whose lease has ended.
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
    /// Ended fills of this worker for which the store has not been asked.
    pub fn unconfirmed(&self) -> usize {
        self.unconfirmed.len()
    }

    /// Leaves a fill that has ended unconfirmed, for which nobody waits. False if the store is to be asked: the lease does
    /// not last for as long as the store may take, or something else is remembered of the key.
    pub(super) fn leave_unconfirmed(&mut self, key: KeyHash, turn: &mut Turn<'_>) -> bool {
        let now = turn.now;
        let (fills, remembered) = (self.unconfirmed.len(), self.hints.get(key, now));
        let Some(flight) = self.flights.get_mut(&key) else {
            return false;
        };
        let (board_key, policy) = (flight.key, flight.policy);
        let may_rest = policy.lease >= policy.longest_commit()
            && fills < policy.keys_in_flight
            && remembered.is_none();
        let Some(leader) = flight.leader().filter(|_| may_rest) else {
            return false;
        };
        let (id, needed) = (leader.id, now + policy.longest_commit());
        let mut end = leader.renewed + policy.lease;
        // A lease that is much longer would have others wait for a worker that has died.
        if end < needed || end > needed + policy.longest_commit() {
            let renewed = turn.board(|board| board.renew(board_key, id, needed, now));
            if renewed != Some(true) {
                return false;
            }
            leader.renewed = needed.saturating_sub(policy.lease);
            end = needed;
        }
        if let Some(flight) = self.flights.remove(&key) {
            self.unconfirmed.insert(key, flight, end);
        }
        true
    }

    /// Takes the fill of `key` back among the flights, if it is unconfirmed: a request has come that waits for it. If the
    /// response has expired meanwhile, that request leads.
    pub(super) fn take_back(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        self.restore(key, turn.now);
        self.pass_on_expired(key, turn);
    }

    /// Puts the fill of `key` among the flights, if it is unconfirmed, as if its response had just ended: the store is
    /// asked from now on.
    pub(super) fn restore(&mut self, key: KeyHash, now: Millis) {
        let Some(mut flight) = self.unconfirmed.remove(key) else {
            return;
        };
        flight.awaits = AwaitedEntry::EarlierFill;
        if let Some(leader) = flight.leader() {
            leader.progress = now;
            if let Phase::Committing(commit) = &mut leader.phase {
                commit.since = now;
            }
        }
        self.flights.insert(key, flight);
        self.hasten(key);
    }

    /// Believes the fills to be stored for which nobody has come while their leases lasted.
    pub(super) fn end_unconfirmed(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now;
        while let Some((key, mut flight)) = self.unconfirmed.next_ended(now) {
            let Some(leader) = flight.leader() else {
                continue;
            };
            let until = leader.fresh_until;
            self.streams.remove(&leader.stream);
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
