// SPDX-License-Identifier: Apache-2.0
//! The servers that are compared, all before one origin.

use crate::peers::haproxy;
use crate::peers::nginx;
use crate::peers::nginx::Lock;
use crate::peers::peer::Peer;
use crate::peers::varnish;
use sluice_tests::bare::Bare;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::matrix::{Cell, Medium, Store};
use sluice_tests::origin::Origin;
use std::any::Any;
use std::net::SocketAddr;

const WORKERS: usize = 2;
const PARKED: &str = "sluice_parked_now";

/// A server that is measured.
pub struct Contender {
    /// As in the tables.
    pub name: String,
    /// Where clients connect to.
    pub address: SocketAddr,
    server: Server,
}

enum Server {
    /// The clients ask the origin itself: what is left is the cost of the bench.
    Origin,
    Nginx(Peer),
    Varnish {
        peer: Peer,
        /// How many requests had slept before.
        slept: usize,
    },
    Sluice(Box<Edge>),
    /// One that is not asked who waits in it.
    Other {
        pid: u32,
        _running: Box<dyn Any>,
    },
}

impl Contender {
    fn new(name: impl Into<String>, address: SocketAddr, server: Server) -> Self {
        Self {
            name: name.into(),
            address,
            server,
        }
    }

    /// The origin itself, the peers that coalesce, and Sluice with its store on each of these.
    pub async fn coalescing(origin: &Origin, media: &[Medium]) -> Vec<Self> {
        let mut all = vec![Self::new("no cache", origin.address(), Server::Origin)];
        if let Some(peer) = nginx::start(origin.address(), WORKERS, Lock::On).await {
            all.push(Self::new("nginx", peer.address, Server::Nginx(peer)));
        }
        if let Some(peer) = varnish::start(origin.address()).await {
            let (address, slept) = (peer.address, 0);
            all.push(Self::new(
                "varnish",
                address,
                Server::Varnish { peer, slept },
            ));
        }
        for &medium in media {
            let edge = Edge::http(origin).medium(medium).workers(WORKERS);
            // As that of all others.
            let edge = Box::new(edge.env("ACCESS_LOG", "off").start().await);
            let name = format!("sluice {medium}");
            all.push(Self::new(name, edge.address(), Server::Sluice(edge)));
        }
        all
    }

    /// These, HAProxy, which does not coalesce, and Envoy's cache filters on a disk without Sluice's.
    pub async fn everyone(origin: &Origin) -> Vec<Self> {
        let mut everyone = Self::coalescing(origin, &[Medium::Disk, Medium::Memory]).await;
        if let Some(peer) = haproxy::start(origin.address(), WORKERS).await {
            let (address, pid) = (peer.address, peer.pid());
            let _running = Box::new(peer);
            everyone.push(Self::new(
                "haproxy",
                address,
                Server::Other { pid, _running },
            ));
        }
        for store in [Store::V1_DISK, Store::V2_DISK] {
            everyone.push(Self::bare(origin, store).await);
        }
        everyone
    }

    /// The origin itself, the peers that coalesce, and Envoy's cache on a disk with Sluice's filter and without.
    pub async fn foremost(origin: &Origin) -> Vec<Self> {
        let mut foremost = Self::coalescing(origin, &[Medium::Disk]).await;
        foremost.push(Self::bare(origin, Store::V1_DISK).await);
        foremost
    }

    async fn bare(origin: &Origin, store: Store) -> Self {
        let cell = Cell {
            store,
            workers: WORKERS,
        };
        let bare = Bare::start(origin, cell).await;
        let (name, address) = (format!("bare Envoy {store}"), bare.address());
        let pid = bare.pid();
        let _running = Box::new(bare);
        Self::new(name, address, Server::Other { pid, _running })
    }

    /// Whether it is ours.
    pub const fn is_sluice(&self) -> bool {
        matches!(self.server, Server::Sluice(_))
    }

    /// Its processes, without those below them; the origin itself has none of its own.
    pub fn pids(&self) -> Vec<u32> {
        match &self.server {
            Server::Origin => vec![],
            Server::Nginx(peer) | Server::Varnish { peer, .. } => vec![peer.pid()],
            Server::Sluice(edge) => vec![edge.envoy_pid()],
            Server::Other { pid, .. } => vec![*pid],
        }
    }

    /// Waits until nothing waits in it; [`Contender::wait_parked`] counts from here.
    pub async fn quiet(&mut self) {
        match &mut self.server {
            Server::Origin | Server::Other { .. } => {}
            Server::Nginx(peer) => {
                eventually("a quiet nginx", async || {
                    nginx::requests_now(peer).await == 0
                })
                .await;
            }
            Server::Varnish { peer, slept } => *slept = varnish::slept_ever(peer),
            Server::Sluice(edge) => edge.wait_for_value(PARKED, 0).await,
        }
    }

    /// Waits until `count` requests wait in it for the one that fetches `target`.
    pub async fn wait_parked(&self, origin: &Origin, target: &str, count: usize) {
        let leader = 1;
        match &self.server {
            // NB: of one that coalesces this would not come true; it is not among those that are asked this.
            Server::Origin | Server::Other { .. } => {
                origin.wait_for_requests(target, leader + count).await;
            }
            Server::Nginx(peer) => {
                eventually("requests that nginx holds", async || {
                    nginx::requests_now(peer).await >= leader + count
                })
                .await;
            }
            Server::Varnish { peer, slept } => {
                eventually("requests that sleep in Varnish", async || {
                    varnish::slept_ever(peer) >= slept + count
                })
                .await;
            }
            Server::Sluice(edge) => edge.wait_for_value(PARKED, count as u64).await,
        }
    }
}
