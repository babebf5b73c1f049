// SPDX-License-Identifier: Apache-2.0
//! Time: leases are renewed, lost news is looked for, stalled leaders are left.

use super::{Coalescer, Effect, NextStep, Turn};
use crate::coalescing::flight::{LONGEST_TICK_MILLIS, Leader, LocalFlight, Role, Rush};
use crate::metrics::Metric;
use crate::workers::{KeyHash, Millis};

/// Time between the batches that leave a stalled leader.
const RUSH_MILLIS: Millis = 100;

impl Coalescer {
    /// When the next [`Coalescer::tick`] is wanted; `None` while nothing waits, leads or is unconfirmed.
    pub fn tick_period(&self) -> Option<Millis> {
        if !self.flights.is_empty() {
            Some(self.period)
        } else if !self.unconfirmed.is_empty() {
            Some(LONGEST_TICK_MILLIS)
        } else {
            None
        }
    }

    /// Takes note that the flight of `key` needs the timer, maybe more often than before.
    pub(super) fn hasten(&mut self, key: KeyHash) {
        let needed = self.flights.get(&key).map(LocalFlight::tick_period);
        self.period = needed.map_or(self.period, |needed| needed.min(self.period));
    }

    /// Time has passed: leases are renewed, lost news is looked for, stalled leaders are left.
    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        let keys: Vec<KeyHash> = self.flights.keys().copied().collect();
        for key in keys {
            let Some(flight) = self.flights.get(&key) else {
                continue;
            };
            match flight.role {
                Role::Leading(leader) => {
                    self.renew(key, leader, turn);
                    self.probe_if_due(key, turn);
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
        self.end_unconfirmed(turn);
        let needed = self.flights.values().map(LocalFlight::tick_period);
        self.period = needed.min().unwrap_or(LONGEST_TICK_MILLIS);
    }

    /// Looks at the board for every key that another worker leads, and asks the store anew, as after
    /// the loss of a queue and of the answers under way.
    pub fn rescan_all(&mut self, turn: &mut Turn<'_>) {
        let keys: Vec<KeyHash> = self.flights.keys().copied().collect();
        for key in keys {
            let Some(flight) = self.flights.get_mut(&key) else {
                continue;
            };
            if !flight.leads() {
                self.rescan(key, turn);
            } else if let Some(commit) = flight.commit() {
                commit.next_probe = Some(turn.now);
                self.probe_if_due(key, turn);
            }
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
        if let Some(current) = flight.leader() {
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
        if flight.waiting == 0 || !flight.is_stalled(now) || flight.rush.due > now {
            return;
        }
        let mut left = flight.rush.batch;
        flight.rush = Rush {
            batch: left.saturating_mul(2),
            due: now + RUSH_MILLIS,
        };
        while left > 0
            && let Some(waiter) = flight.waiters.pop_front()
        {
            if self.streams.remove(&waiter.stream).is_none() {
                continue;
            }
            flight.waiting -= 1;
            self.parked -= 1;
            let next_step = if waiter.for_others {
                NextStep::Unneeded
            } else {
                left -= 1;
                turn.count(Metric::WaitTimeouts);
                NextStep::WaitTimeout
            };
            turn.push(Effect::Resume {
                stream: waiter.stream,
                next_step,
                waited: now.saturating_sub(waiter.since),
            });
        }
        if flight.waiting == 0 && !flight.leads() {
            self.flights.remove(&key);
        }
    }
}
