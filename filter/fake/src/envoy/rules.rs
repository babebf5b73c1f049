// SPDX-License-Identifier: Apache-2.0
//! The rules that hold in every interleaving.

use crate::HeaderTexts as _;
use std::collections::BTreeSet;

use sluice_core::coalescing::flight::{Leader, Phase, Role};
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::workers::KeyHash;

use super::FakeEnvoy;
use super::origin::{OBJECT_BYTES, VERSION};
use super::requests::RANGE_BYTES;
use crate::exchange::Side;
use crate::process::Before;
use crate::records::{Client, Kind, Stage};

/// Rules that always hold.
impl FakeEnvoy {
    /// Checks that a worker does not lead while another worker's lease on the key is valid, unless the board is out
    /// of use. If a worker does not know yet that the store has a variant under the plain key of its URL, it fills
    /// another entry.
    pub(super) fn check_lead(&self, client: Client, before: &Before) {
        let worker = self.worker(self.clients[client.0].seat);
        let (Some(key), Some(worker)) = (self.flight_key_of(client), worker) else {
            panic!("{client:?} leads, and its worker does not know it");
        };
        let mut leases = before.leases.iter();
        let foreign = leases.find(|(led, id, expires)| {
            *led == key && *expires > self.now() && id.worker != worker.identity.worker
        });
        if let Some(holder) = foreign
            && !before.faulty
        {
            panic!("{client:?} leads {key:?} while {holder:?} holds a lease on it");
        }
    }

    /// Returns the hash of the key for which a request waits or leads, if it is not over.
    pub(super) fn key_of(&self, client: Client) -> Option<KeyHash> {
        self.flight_key_of(client).map(|key| key.key)
    }

    fn flight_key_of(&self, client: Client) -> Option<FlightKey> {
        let worker = self.worker(self.clients[client.0].seat)?;
        let stream = worker.coalescing.requests.get(self.stream_id(client)?)?;
        Some(stream.key)
    }

    pub(super) fn note_key(&mut self, client: Client) {
        self.keys.extend(self.key_of(client));
    }

    /// Whether a request leads, although it may still be paused until its turn.
    fn leads(&self, client: Client, key: KeyHash) -> bool {
        let coalescer = self.coalescer(self.clients[client.0].seat);
        match coalescer.and_then(|coalescer| coalescer.role(key)) {
            Some(Role::Leading(leader)) => self.stream_id(client) == Some(leader.stream),
            _ => false,
        }
    }

    /// Returns the requests on a worker that wait for another leader, with their keys.
    fn waiting(&self, seat: usize) -> Vec<(Client, KeyHash)> {
        let coalescer = self.coalescer(seat);
        let parked = |client: &Client| {
            let record = &self.clients[client.0];
            record.seat == seat && record.stage == Stage::Parked
        };
        let takes_part = |client: &Client| {
            let stream = self.stream_id(*client);
            coalescer
                .zip(stream)
                .is_some_and(|(coalescer, stream)| coalescer.takes_part(stream))
        };
        (0..self.clients.len())
            .map(Client)
            .filter(|client| parked(client) && takes_part(client))
            .filter_map(|client| Some((client, self.key_of(client)?)))
            .filter(|(client, key)| !self.leads(*client, *key))
            .collect()
    }

    /// Checks that a client has received the object that it asked for, and all of it.
    pub(super) fn check_response(&self, client: Client) {
        let record = &self.clients[client.0];
        let size = record.body().len();
        let expected = match (record.kind, record.status()) {
            (Kind::Get | Kind::Conditional | Kind::Range, 200) => OBJECT_BYTES,
            (Kind::Range, 206) => RANGE_BYTES,
            (Kind::Head, 200) | (Kind::Conditional, 304) => 0,
            _ => return,
        };
        let Some(fetch) = record.brought_by() else {
            assert_eq!((size, expected), (0, 0), "{record:?} has no object");
            return;
        };
        let described = record
            .header(VERSION)
            .and_then(|number| number.parse().ok());
        assert_eq!(described, Some(fetch.0), "{client:?} got other headers");
        let key = self.fetches[fetch.0].key;
        let got = (key, size);
        assert_eq!(got, (record.key, expected), "{client:?} got another object");
    }

    /// Checks the rules that hold between any two events.
    ///
    /// # Panics
    /// A rule does not hold.
    pub fn check(&self) {
        self.check_variants();
        for seat in 0..self.workers() {
            let Some(coalescer) = self.coalescer(seat) else {
                continue;
            };
            let waiting = self.waiting(seat);
            assert_eq!(
                coalescer.parked(),
                waiting.len(),
                "requests that wait on worker {seat}"
            );
            for (client, key) in &waiting {
                assert!(
                    coalescer.role(*key).is_some(),
                    "{client:?} waits without a leader"
                );
            }
            let mut keys = self.keys.clone();
            // If a response has proved to vary, the key of a request changes while the request is still paused.
            let paused = self.open_clients().into_iter();
            keys.extend(paused.filter_map(|client| self.key_of(client)));
            let roles = keys
                .iter()
                .filter_map(|key| Some((*key, coalescer.role(*key)?)));
            let mut flights = 0;
            for (key, role) in roles {
                flights += 1;
                self.check_role(seat, key, role, &waiting);
            }
            assert_eq!(
                coalescer.flights(),
                flights,
                "flights of keys without a request"
            );
        }
    }

    /// Checks that each client has received the variant that it asked for.
    fn check_variants(&self) {
        for client in self.clients.iter().filter(|client| !client.kind.is_own()) {
            let Some(fetch) = client.brought_by().map(|fetch| &self.fetches[fetch.0]) else {
                continue;
            };
            let wanted = client.accept.as_deref() == fetch.headers.get("accept");
            assert!(
                wanted || !fetch.varies,
                "{client:?} got what {fetch:?} brought"
            );
        }
    }

    fn check_role(&self, seat: usize, key: KeyHash, role: Role, waiting: &[(Client, KeyHash)]) {
        match role {
            Role::Following { .. } => assert!(
                waiting.iter().any(|(_, of)| *of == key),
                "worker {seat} follows {key:?} without a waiting request"
            ),
            Role::Leading(Leader {
                phase: Phase::Storing { .. } | Phase::Aborting { .. },
                ..
            }) => {}
            Role::Leading(leader) => {
                let stream = self.stream_of(seat, leader.stream.0);
                let there = matches!(stream, Some((_, Side::Edge)));
                assert!(there, "worker {seat} leads {key:?} for ever");
            }
        }
    }

    /// Returns the keys for which requests wait on a worker without a leader: neither this worker nor a holder of a
    /// lease leads.
    pub fn orphans(&self, seat: usize) -> Vec<KeyHash> {
        let Some(coalescer) = self.coalescer(seat) else {
            return Vec::new();
        };
        let waiting = self.waiting(seat);
        if waiting.is_empty() {
            return Vec::new();
        }
        let leases = self.leases();
        let keys: BTreeSet<KeyHash> = waiting.into_iter().map(|(_, key)| key).collect();
        let orphaned = |key: &KeyHash| match coalescer.role(*key) {
            // After a soft purge, the leader may have another key of the same entry.
            Some(Role::Following { leader, .. }) => {
                let mut led = leases.iter();
                !led.any(|(of, id)| of == key || *id == leader)
            }
            _ => false,
        };
        keys.into_iter().filter(orphaned).collect()
    }
}
