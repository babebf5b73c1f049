// SPDX-License-Identifier: Apache-2.0
//! An edge with peers: its listener for clients, where FRONT runs, and its port for peers.

use super::FakeEnvoy;
use crate::HeaderMap;
use crate::exchange::{self, Side};
use crate::records::{Client, Kind};

/// Requests between peers.
impl FakeEnvoy {
    /// Sends a client's request with these headers to FRONT.
    pub fn at_front(
        &mut self,
        seat: usize,
        method: &str,
        key: u64,
        headers: &[(&str, &str)],
    ) -> Client {
        let headers = exchange::request(method, key, headers);
        let client = self.enlist(seat, Kind::Other, &headers, None);
        if self.open_context_of(client, "front", headers) {
            self.act(client, Side::Edge, |stream, host, worker| {
                stream.on_request_headers(host, worker, true)
            });
            self.run();
        }
        client
    }

    /// Returns the headers with which FRONT sends a request on; `None` if it has answered it.
    pub fn sent_on(&mut self, client: Client) -> Option<HeaderMap> {
        let sent = self.with_messages(client, Side::Edge, |messages| messages.request.clone());
        sent.flatten()
    }

    /// Passes a peer's response to FRONT.
    pub fn answer_front(&mut self, client: Client, status: u16, headers: &[(&str, &str)]) {
        let mut response = HeaderMap::of(&[(":status", &status.to_string())]);
        for (name, value) in headers {
            response.add(name, value);
        }
        self.deliver_headers(client, response, true);
        self.end_served(client);
        self.run();
    }

    /// Passes a request with these headers to the port for peers, where it gets the route of this name.
    pub fn at_peers_port(&mut self, seat: usize, route: &str, headers: HeaderMap) -> Client {
        let client = self.enlist(seat, Kind::Other, &headers, None);
        if self.open_context_of(client, "peer", headers) {
            self.with_messages(client, Side::Edge, |messages| {
                let name = "xds\0route_name".to_owned();
                messages.properties.insert(name, route.into());
            });
            self.receive(client, true);
            self.run();
        }
        client
    }

    /// Creates the request's context in a role that few tests need.
    fn open_context_of(&mut self, client: Client, root: &'static str, headers: HeaderMap) -> bool {
        let seat = self.clients[client.0].seat;
        let lacks_root = self.vms[seat]
            .as_ref()
            .is_some_and(|vm| vm.root(root).is_none());
        if lacks_root {
            self.configure(seat, root);
            self.run();
        }
        self.open_context(client, root, headers)
    }
}
