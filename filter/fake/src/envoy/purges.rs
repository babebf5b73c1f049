// SPDX-License-Identifier: Apache-2.0
//! Purges, which arrive through a separate listener.

use sluice_host::Action;

use super::FakeEnvoy;
use crate::HeaderMap;
use crate::exchange::Side;
use crate::records::{Client, Kind, Stage};

/// Token of all purges. The document has its SHA-256.
const TOKEN: &str = "correct horse battery";

/// Purges and notifications.
impl FakeEnvoy {
    /// Returns the SHA-256 of the token of all purges, for the policy document.
    pub fn token_hash() -> String {
        sluice_core::policy::purge::TokenHash::of(TOKEN.as_bytes()).to_hex()
    }

    /// Sends a purge with this JSON document.
    pub fn purge(&mut self, seat: usize, order: &str) -> Client {
        self.purge_with(seat, TOKEN, order)
    }

    /// Sends a purge with this token and this JSON document.
    pub fn purge_with(&mut self, seat: usize, token: &str, order: &str) -> Client {
        self.call_listener(seat, "/purge", token, order)
    }

    /// Sends a notification of a bucket.
    pub fn notify(&mut self, seat: usize, event: &str) -> Client {
        self.call_listener(seat, "/s3", TOKEN, event)
    }

    fn call_listener(&mut self, seat: usize, path: &str, token: &str, order: &str) -> Client {
        let purge_root = self.vms[seat].as_ref().map(|vm| vm.root("purge").is_some());
        if purge_root == Some(false) {
            self.configure(seat, "purge");
            self.run();
        }
        let authorization = format!("Bearer {token}");
        let headers = HeaderMap::of(&[
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "purge.test"),
            (":path", path),
            ("authorization", &authorization),
        ]);
        let client = self.enlist(seat, Kind::Purge, &headers, None);
        if !self.open_context(client, "purge", headers) {
            return client;
        }
        let mut action = self.act(client, Side::Edge, |stream, host, worker| {
            stream.on_request_headers(host, worker, false)
        });
        if !self.is_replied(client) {
            let size = order.len();
            self.with_messages(client, Side::Edge, |messages| messages.body = order.into());
            action = self.act(client, Side::Edge, |stream, host, worker| {
                stream.on_request_body(host, worker, size, true)
            });
        }
        assert_eq!(action, Action::Pause, "a purge goes nowhere");
        self.set_stage(client, Stage::Parked);
        self.run();
        client
    }
}
