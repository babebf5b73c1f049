// SPDX-License-Identifier: Apache-2.0
//! The timer: renews leases, looks for lost messages, and releases the followers of stalled leaders.

use super::{Coalescer, NextStep, Turn};
use crate::coalescing::flight::{LONGEST_TICK_MILLIS, Leader, LocalFlight, Role, Rush};
use crate::metrics::Metric;
use crate::workers::{KeyHash, Millis};

/// Time between the batches of followers that leave a stalled leader.
const RUSH_MILLIS: Millis = 100;

impl Coalescer {
    /// Period after which the next [`Coalescer::tick`] is due; `None` while this worker has no flight and no resting
    /// fill.
    pub fn tick_period(&self) -> Option<Millis> {
        if !self.flights.is_empty() {
            Some(self.period)
        } else if !self.resting.is_empty() {
            Some(LONGEST_TICK_MILLIS)
        } else {
            None
        }
    }

    /// Shortens the timer period to the need of the flight of `key`.
    pub(super) fn hasten(&mut self, key: KeyHash) {
        let needed = self.flights.get(&key).map(LocalFlight::tick_period);
        self.period = needed.map_or(self.period, |needed| needed.min(self.period));
    }

    /// Renews leases, looks for lost messages, and releases followers of stalled leaders.
    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        let keys: Vec<KeyHash> = self.flights.keys().copied().collect();
        for key in keys {
            let Some(flight) = self.flights.get(&key) else {
                continue;
            };
            match flight.role {
                Role::Leading(leader) => {
                    self.renew(key, leader, turn);
                    self.pass_on_expired(key, turn);
                    self.give_up_abort(key, turn);
                }
                Role::Following { checked, .. } => {
                    if checked + flight.policy.rescan() <= turn.now {
                        self.rescan(key, turn);
                    }
                }
            }
            self.leave_stalled(key, turn);
        }
        self.end_resting(turn);
        let needed = self.flights.values().map(LocalFlight::tick_period);
        self.period = needed.min().unwrap_or(LONGEST_TICK_MILLIS);
    }

    /// Reads the board for every key that another worker leads, for example after a queue was lost.
    pub fn rescan_all(&mut self, turn: &mut Turn<'_>) {
        let follows = |(key, flight): (&KeyHash, &LocalFlight)| (!flight.leads()).then_some(*key);
        let keys: Vec<KeyHash> = self.flights.iter().filter_map(follows).collect();
        for key in keys {
            self.rescan(key, turn);
        }
    }

    fn renew(&mut self, key: KeyHash, leader: Leader, turn: &mut Turn<'_>) {
        let now = turn.now;
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        let lease = flight.policy.lease;
        if leader.renewed + flight.policy.renewal() > now {
            return;
        }
        if let Some(current) = flight.leader_mut() {
            current.renewed = now;
        }
        let board_key = flight.key;
        turn.board(|board| board.renew(board_key, leader.id, now + lease, leader.progress));
    }

    /// Releases the next batch of followers of a leader that has stalled.
    fn leave_stalled(&mut self, key: KeyHash, turn: &mut Turn<'_>) {
        let now = turn.now;
        let Some(flight) = self.flights.get_mut(&key) else {
            return;
        };
        if !flight.is_stalled(now) {
            flight.rush = Rush::FIRST;
        }
        if !flight.is_stalled(now) || flight.rush.due > now {
            return;
        }
        let batch = flight.rush.batch;
        let mut leaving = Vec::new();
        let mut clients = 0;
        while clients < batch
            && let Some(waiter) = flight.waiters.take_first()
        {
            clients += usize::from(!waiter.for_others);
            leaving.push(waiter);
        }
        if leaving.is_empty() {
            return;
        }
        flight.rush = Rush {
            batch: batch.saturating_mul(2),
            due: now + RUSH_MILLIS,
        };
        for waiter in leaving {
            let next_step = match waiter.for_others {
                true => NextStep::Unneeded,
                false => {
                    turn.count(Metric::WaitTimeouts);
                    NextStep::WaitTimeout
                }
            };
            self.release_as(waiter, next_step, turn);
        }
        self.forget_if_over(key);
    }
}
