// SPDX-License-Identifier: Apache-2.0
//! The control listener, which the entry point asks.

use sluice_host::Action;

use super::FakeEnvoy;
use crate::HeaderMap;
use crate::exchange::Side;
use crate::records::{Client, Kind, Stage};

/// Requests to the control listener.
impl FakeEnvoy {
    /// Sends a GET to the control listener. `path` has the query, and `headers` come in addition to the usual ones.
    pub fn inspect(&mut self, seat: usize, path: &str, headers: &[(&str, &str)]) -> Client {
        self.control(seat, "GET", path, headers, None)
    }

    /// Sends a request to the control listener.
    pub fn control(
        &mut self,
        seat: usize,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Client {
        let root = self.vms[seat]
            .as_ref()
            .map(|vm| vm.root("control").is_some());
        if root == Some(false) {
            self.configure(seat, "control");
            self.run();
        }
        let mut lines = vec![
            (":method", method),
            (":scheme", "http"),
            (":authority", "control"),
            (":path", path),
        ];
        lines.extend(headers);
        let headers = HeaderMap::of(&lines);
        let client = self.enlist(seat, Kind::Control, &headers, None);
        if !self.open_context(client, "control", headers) {
            return client;
        }
        let ends = body.is_none();
        let mut action = self.act(client, Side::Edge, |stream, host, worker| {
            stream.on_request_headers(host, worker, ends)
        });
        if let Some(body) = body.filter(|_| !self.is_replied(client)) {
            let size = body.len();
            self.with_messages(client, Side::Edge, |messages| messages.body = body.into());
            action = self.act(client, Side::Edge, |stream, host, worker| {
                stream.on_request_body(host, worker, size, true)
            });
        }
        assert_eq!(action, Action::Pause, "a control request goes nowhere");
        self.set_stage(client, Stage::Parked);
        self.run();
        client
    }
}
