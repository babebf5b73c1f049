// SPDX-License-Identifier: Apache-2.0
//! The names of edges that are one cache.

use crate::edge::{Builder, Edge};
use crate::eventually;
use crate::machine::names::NameServer;
use crate::machine::ports::free_port;
use std::net::Ipv4Addr;

/// The secret of the peers.
const SECRET: &str = "peers-secret-of-the-torture";

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
            let name = "cluster.peers.membership_healthy";
            eventually("all peers", async || edge.counter(name).await == size).await;
        }
    }
}
