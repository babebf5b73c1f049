// SPDX-License-Identifier: Apache-2.0
//! Requests whose URL proves to vary.

use sluice_core::workers::KeyHash;

use super::FakeHost;
use crate::mirror::records::{Client, ClientRecord, Kind};

/// Variants.
impl FakeHost {
    /// A request whose URL proves to vary comes again, under the key of its variant.
    pub(super) fn readmit(&mut self, client: Client) {
        let ClientRecord { seat, key, .. } = self.clients[client.0];
        self.seats[seat].varying.insert(key);
        self.clients[client.0].key = variant(key, client);
        self.clients[client.0].release = None;
        if let Kind::Conditional { led_for } = &mut self.clients[client.0].kind {
            *led_for = false;
        }
        self.admit(client);
    }
}

/// Every other request is for the other of two variants.
pub(super) fn variant(key: KeyHash, client: Client) -> KeyHash {
    KeyHash(key.0 + 1_000 * (1 + client.0 as u64 % 2))
}
