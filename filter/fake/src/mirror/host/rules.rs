// SPDX-License-Identifier: Apache-2.0
//! Rules that hold in every interleaving.

use sluice_core::coalescing::flight::{Leader, Phase, Role};
use sluice_core::workers::KeyHash;

use super::FakeHost;
use crate::mirror::records::{Client, ClientRecord, Stage};

/// Rules that hold always.
impl FakeHost {
    /// Nobody leads while another worker's lease on the key holds, unless the board is out of use.
    pub(super) fn check_lead(&self, client: Client) {
        let ClientRecord { seat, key, .. } = self.clients[client.0];
        let holder = self.leases_before.get(&key);
        let foreign = holder.filter(|holder| Some(holder.worker) != self.worker(seat));
        if let Some(holder) = foreign
            && !self.faulty_before
        {
            panic!("{client:?} leads {key:?} while {holder:?} holds a lease on it");
        }
    }

    /// What must hold between any two events.
    ///
    /// # Panics
    /// It does not hold.
    pub fn check(&self) {
        for (number, seat) in self.seats.iter().enumerate() {
            let Some(coalescer) = &seat.coalescer else {
                continue;
            };
            let of_seat = |client: &&ClientRecord| client.seat == number;
            let parked: Vec<_> = self
                .clients
                .iter()
                .filter(of_seat)
                .filter(|client| client.stage == Stage::Parked)
                .collect();
            assert_eq!(
                coalescer.parked(),
                parked.len(),
                "requests parked on worker {number}"
            );
            for client in &parked {
                let role = coalescer.role(client.key);
                assert!(role.is_some(), "{client:?} waits for nobody");
            }
            let mut keys: Vec<_> = self.clients.iter().filter(of_seat).map(|c| c.key).collect();
            keys.sort_unstable();
            keys.dedup();
            let mut flights = 0;
            for key in keys {
                let Some(role) = coalescer.role(key) else {
                    continue;
                };
                flights += 1;
                match role {
                    Role::Following { .. } => assert!(
                        parked.iter().any(|client| client.key == key),
                        "worker {number} follows {key:?} for nobody"
                    ),
                    Role::Leading(Leader {
                        phase: Phase::Committing(_) | Phase::Aborting { .. },
                        ..
                    }) => {}
                    Role::Leading(leader) => {
                        let client = Client(leader.stream.0 as usize);
                        let gone = matches!(self.stage(client), Stage::Over(_));
                        assert!(!gone, "worker {number} leads {key:?} for ever");
                    }
                }
            }
            assert_eq!(
                coalescer.flights(),
                flights,
                "flights of keys that nobody asked for"
            );
        }
    }

    /// Keys for which requests wait on a worker without anybody who leads: neither the worker itself,
    /// nor anyone with a lease.
    pub fn orphans(&self, seat: usize) -> Vec<KeyHash> {
        let Some(coalescer) = &self.seats[seat].coalescer else {
            return Vec::new();
        };
        let leases = self.leases();
        let parked = self
            .clients
            .iter()
            .filter(|client| client.seat == seat && client.stage == Stage::Parked);
        let mut keys: Vec<_> = parked.map(|client| client.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| {
            matches!(coalescer.role(*key), Some(Role::Following { .. }))
                && !leases.contains_key(key)
        });
        keys
    }
}
