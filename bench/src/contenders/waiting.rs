// SPDX-License-Identifier: Apache-2.0
//! How many requests wait in a server for the one that fetches what they want.

use crate::contenders::{Contender, Kind, Server};
use crate::peers::{nginx, varnish};
use sluice_tests::eventually;
use sluice_tests::origin::Origin;

const PARKED: &str = "sluice_parked_now";

impl Contender {
    /// Waits until nothing waits in it; gives what [`Contender::wait_parked`] counts from.
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

    /// Waits until `count` requests wait in it for the one that fetches `target`; `before` is what it was quiet with.
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
            // NB: of one that coalesces this would not come true; it is not among those that are asked this.
            _ => origin.wait_for_requests(target, leader + count).await,
        }
    }
}
