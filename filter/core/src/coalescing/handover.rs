// SPDX-License-Identifier: Apache-2.0
//! Handover: the choice of the next leader.

use super::{Coalescer, Effect, FlightPart, NextStep, StoreRequest, Turn};
use crate::coalescing::flight::{AwaitedEntry, Leader, Role, Rush};
use crate::coalescing::shared::board::Acquired;
use crate::coalescing::waiting_list::WaitingPlace;
use crate::metrics::Metric;
use crate::workers::{FlightId, KeyHash};

impl Coalescer {
    /// Continues to wait if another worker has the leader; otherwise makes the heir on this worker the leader.
    /// Returns false if neither is possible. `leader_lost` means that the former leader is known to be gone, not only
    /// silent.
    pub(super) fn promote(&mut self, key: KeyHash, leader_lost: bool, turn: &mut Turn<'_>) -> bool {
        let Some(flight) = self.flights.get_mut(&key) else {
            return false;
        };
        if flight.waiters.is_empty() {
            return false;
        }
        let heir = flight.heir();
        let (role, lease, now) = (flight.role, flight.policy.lease, turn.now);
        let board_key = flight.key;
        // Other workers know this worker's flight by its number, so the next leader keeps the number.
        let id = match role {
            Role::Leading(leader) => leader.id,
            Role::Following { .. } => self.next_flight(),
        };
        let acquired = turn.board(|board| match heir {
            Some(_) => board.acquire(board_key, id, now, lease).map(Some),
            None => board.follow(board_key, id.worker, now),
        });
        let Some(flight) = self.flights.get_mut(&key) else {
            return false;
        };
        match (acquired, &mut flight.role) {
            (
                Some(Some(Acquired::Follow {
                    key: followed,
                    leader,
                    progress,
                })),
                _,
            ) => {
                let known = flight.follows(leader);
                turn.follow(followed, flight, leader, progress);
                if !known {
                    self.add_successor(followed, leader, key);
                }
                return true;
            }
            (Some(Some(Acquired::Lead | Acquired::Full) | None), _) => {}
            // The board cannot be used. This worker's flight is still on it, and can be renewed and ended.
            (None, Role::Leading(_)) => {}
            // No other worker learns of this flight, but it serves this one.
            (None, Role::Following { .. }) if leader_lost => {}
            // Another worker may have the leader. There is time until the next read of the board, within `max_wait`.
            (None, Role::Following { checked, .. }) => {
                *checked = now;
                return true;
            }
        }
        heir.is_some_and(|heir| self.appoint(key, id, heir, turn))
    }

    /// Makes the request at place `heir` of the waiting list the leader of flight `id`.
    fn appoint(
        &mut self,
        key: KeyHash,
        id: FlightId,
        heir: WaitingPlace,
        turn: &mut Turn<'_>,
    ) -> bool {
        let now = turn.now;
        let Some(flight) = self.flights.get_mut(&key) else {
            return false;
        };
        let Some(waiter) = flight.waiters.take(heir) else {
            return false;
        };
        self.parts
            .insert(waiter.stream, FlightPart { key, place: None });
        flight.rush = Rush::FIRST;
        // This worker does not know which workers wait for a flight that it has taken over.
        flight.awaited |= !flight.leads();
        flight.awaits = AwaitedEntry::Fill;
        let leader = Leader::new(id, waiter.stream, waiter.own_headers, now);
        flight.role = Role::Leading(leader);
        turn.count(Metric::Handovers);
        turn.count(Metric::FlightsLed);
        turn.push(Effect::Resume {
            stream: waiter.stream,
            next_step: NextStep::Send(StoreRequest::Lead),
            waited: now.saturating_sub(waiter.since),
        });
        true
    }
}
