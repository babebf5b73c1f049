// SPDX-License-Identifier: Apache-2.0
//! Number of requests that wait in a server for the request that fetches their object.

use crate::contenders::{Contender, Kind, Server};
use crate::peers::{nginx, varnish};
use sluice_tests::eventually;
use sluice_tests::origin::Origin;

const PARKED: &str = "sluice_parked_now";

impl Contender {
    /// Waits until no request waits in the server; returns the count from which [`Contender::wait_parked`] starts.
    pub async fn quiet(&self) -> usize {
        match (&self.server, self.kind) {
            (Server::Peer(peer), Kind::Nginx(_)) => {
                eventually("a quiet nginx", async || {
                    nginx::requests_now(peer).await == 0
                })
                .await;
            }
            (Server::Peer(peer), Kind::Varnish) => return varnish::slept_ever(peer),
            (Server::Edge(edge), _) => edge.wait_for_value(PARKED, 0).await,
            _ => {}
        }
        0
    }

    /// Waits until `count` requests wait in the server for the request that fetches `target`; `before` is the result
    /// of [`Contender::quiet`].
    pub async fn wait_parked(&self, origin: &Origin, target: &str, count: usize, before: usize) {
        let leader = 1;
        match (&self.server, self.kind) {
            (Server::Peer(peer), Kind::Nginx(_)) => {
                eventually("requests that nginx holds", async || {
                    nginx::requests_now(peer).await >= leader + count
                })
                .await;
            }
            (Server::Peer(peer), Kind::Varnish) => {
                eventually("requests that sleep in Varnish", async || {
                    varnish::slept_ever(peer) >= before + count
                })
                .await;
            }
            (Server::Edge(edge), _) => edge.wait_for_value(PARKED, count as u64).await,
            // NB: this would not come true for a server that coalesces; it is used only for servers that do not.
            _ => origin.wait_for_requests(target, leader + count).await,
        }
    }
}
