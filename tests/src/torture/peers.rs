// SPDX-License-Identifier: Apache-2.0
//! The names of edges that are one cache, and the times at which an edge does not reach all of them.

use super::clock::Moment;
use super::ledger::Wrong;
use super::world::World;
use crate::client::{Client, request};
use crate::edge::{Builder, Edge};
use crate::eventually;
use crate::machine::names::NameServer;
use crate::machine::ports::free_port;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::UnixStream;

/// The secret of the peers.
const SECRET: &str = "peers-secret-of-the-torture";

/// The number of peers that an edge reaches, among Envoy's statistics.
const REACHED: &str = "cluster.peers.membership_healthy";
/// Time between two looks at it.
const PERIOD: Moment = Moment::from_millis(200);
/// Longest time for which a peer that has come back gets nothing. The others check it each second, and the machine is
/// busy.
pub const NOTICED: Moment = Moment::from_secs(6);

/// The names and ports of the edges, and their name server.
pub struct Peers {
    names: NameServer,
    list: Vec<(String, u16)>,
}

impl Peers {
    /// Names so many edges, all on this machine.
    pub async fn new(size: usize) -> Self {
        let names = NameServer::start().await;
        let list: Vec<_> = (0..size)
            .map(|number| (format!("edge-{number}.test"), free_port()))
            .collect();
        for (name, _) in &list {
            names.set(name, &[Ipv4Addr::LOCALHOST]);
        }
        Self { names, list }
    }

    /// Makes an edge the one of this number, if there are others.
    pub fn join(&self, number: usize, edge: Builder) -> Builder {
        if self.list.len() < 2 {
            return edge;
        }
        let peers = self
            .list
            .iter()
            .map(|(name, port)| format!("{name}.:{port}"));
        edge.env("SLUICE_PEERS", peers.collect::<Vec<_>>().join(","))
            .env("SLUICE_PEER_SECRET", SECRET)
            .env("SLUICE_PEER_PORT", self.list[number].1.to_string())
            .more_configuration(self.names.configuration())
    }

    /// Waits until an edge has found all of them.
    pub async fn wait_for(&self, edge: &Edge) {
        let size = self.list.len() as u64;
        if size > 1 {
            let is_reached = async || edge.counter(REACHED).await == size;
            eventually("all peers", is_reached).await;
        }
    }
}

/// Watches how many peers an edge with this socket of the admin interface reaches, until the run is over. It reaches
/// all of them, unless one was down or stood still lately.
pub async fn watch(world: Arc<World>, edge: usize, admin: PathBuf) {
    let (clock, size) = (world.shelf.clock, world.fleet.size());
    let mut apart = None;
    while !world.is_over() {
        tokio::time::sleep(PERIOD).await;
        let reached = reached(&admin).await;
        let now = clock.now();
        if reached.is_none_or(|reached| reached == size) {
            apart = None;
            continue;
        }
        let lately = now.saturating_sub(NOTICED);
        let has_reason = world.outages.touch(lately, now) || world.stalls.touch(lately, now);
        if apart.is_none() && !has_reason {
            let told = format!("edge {edge} reaches {reached:?} peers, although all of them run");
            world.ledger.complain(Wrong::Peers, now, &told);
        }
        apart.get_or_insert_with(|| world.apart.hold(clock));
    }
}

/// The number of peers that an edge reaches; `None` if it does not say.
async fn reached(admin: &PathBuf) -> Option<usize> {
    let mut client = Client::on(UnixStream::connect(admin).await.ok()?);
    let target = format!("/stats?filter=^{REACHED}$");
    let page = client
        .try_exchange(request("GET", &target, &[]))
        .await
        .ok()?;
    let text = String::from_utf8_lossy(&page.body).into_owned();
    text.trim().rsplit_once(": ")?.1.parse().ok()
}
