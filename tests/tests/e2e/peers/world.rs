// SPDX-License-Identifier: Apache-2.0
//! Three edges, their names, and their ports for peers.

use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::machine::names::NameServer;
use sluice_tests::machine::ports::free_port;
use std::net::{Ipv4Addr, SocketAddr};

/// The secret of the peers.
pub const SECRET: &str = "peers-secret-of-the-tests";
/// The names of the three edges, and one of an edge that does not exist.
pub const NAMES: [&str; 4] = ["edge-0.test", "edge-1.test", "edge-2.test", "edge-3.test"];

/// The ports and the name servers of three edges that are to be started.
pub struct World {
    /// The names as the first two edges see them.
    pub names: NameServer,
    /// The names as the third edge sees them.
    pub others_names: NameServer,
    ports: [u16; 4],
}

impl World {
    /// All names lead to this machine.
    pub async fn new() -> Self {
        let (names, others_names) = (NameServer::start().await, NameServer::start().await);
        for name in &NAMES[..3] {
            names.set(name, &[Ipv4Addr::LOCALHOST]);
            others_names.set(name, &[Ipv4Addr::LOCALHOST]);
        }
        Self {
            names,
            others_names,
            ports: NAMES.map(|_| free_port()),
        }
    }

    /// The value of `SLUICE_PEERS`. Every other name ends in a dot, as names without a search domain do.
    pub fn peers(&self) -> String {
        let pairs = NAMES.iter().zip(self.ports).enumerate();
        let peers = pairs.map(|(number, (name, port))| {
            let dot = if number % 2 == 0 { "." } else { "" };
            format!("{name}{dot}:{port}")
        });
        peers.collect::<Vec<_>>().join(",")
    }

    /// Makes an edge the one of this number.
    pub fn member(&self, number: usize, edge: Builder) -> Builder {
        let names = match number {
            2 => &self.others_names,
            _ => &self.names,
        };
        edge.env("SLUICE_PEERS", self.peers())
            .env("SLUICE_PEER_SECRET", SECRET)
            .env("SLUICE_PEER_PORT", self.ports[number].to_string())
            .more_configuration(names.configuration())
    }

    /// Starts three edges, and waits until each has found the names of all.
    pub async fn start(&self, edge: impl Fn() -> Builder) -> [Edge; 3] {
        let [a, b, c] = [0, 1, 2].map(|number| self.member(number, edge()).start());
        let (a, b, c) = tokio::join!(a, b, c);
        let edges = [a, b, c];
        for edge in &edges {
            wait_for_members(edge, 3).await;
        }
        edges
    }

    /// The address of the port for peers of an edge.
    pub fn port_of(&self, number: usize) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.ports[number]).into()
    }
}

/// Waits until an edge has found this many peers that can be reached.
pub async fn wait_for_members(edge: &Edge, count: u64) {
    let name = "cluster.peers.membership_healthy";
    eventually(&format!("{count} peers"), async || {
        edge.counter(name).await == count
    })
    .await;
}
