// SPDX-License-Identifier: Apache-2.0
//! The servers under test, all in front of the same origin or bucket.

mod kind;
pub mod variants;
mod waiting;

pub use crate::peers::WORKERS;
pub use kind::{Before, Kind};

use crate::peers::Peer;
use sluice_tests::bare::Bare;
use sluice_tests::edge::{Builder, Edge};
use std::net::SocketAddr;

/// A running server.
pub struct Contender {
    /// Its kind.
    pub kind: Kind,
    /// Its address for HTTP/1.1 in cleartext.
    pub address: SocketAddr,
    /// Its address for HTTP/2 in cleartext, or for TLS if it has a certificate.
    pub second: SocketAddr,
    /// Its processes, without their children. The origin itself is not measured.
    pub pids: Vec<u32>,
    /// Ends with the contender.
    server: Server,
}

enum Server {
    /// The clients ask the origin itself, so the rest is the cost of the bench.
    Origin,
    Peer(Peer),
    /// Its admin interface is not used.
    Bare {
        _bare: Bare,
    },
    Edge(Box<Edge>),
}

/// Starts the servers of these kinds that are installed.
pub async fn start_all(kinds: &[Kind], before: Before<'_>) -> Vec<Contender> {
    let mut contenders = Vec::new();
    for &kind in kinds {
        contenders.extend(kind.start(before).await);
    }
    contenders
}

impl Contender {
    fn origin(address: SocketAddr) -> Self {
        Self {
            kind: Kind::Origin,
            address,
            second: address,
            pids: Vec::new(),
            server: Server::Origin,
        }
    }

    /// Makes a contender of another project's server.
    pub fn peer(kind: Kind, peer: Peer) -> Self {
        Self {
            kind,
            address: peer.address,
            second: peer.second,
            pids: vec![peer.pid()],
            server: Server::Peer(peer),
        }
    }

    fn bare(kind: Kind, bare: Bare) -> Self {
        Self {
            kind,
            address: bare.address(),
            second: bare.address(),
            pids: vec![bare.pid()],
            server: Server::Bare { _bare: bare },
        }
    }

    /// Starts Sluice as `builder` says, with as many workers as the others have, and without an access log, because
    /// the others have none.
    pub async fn sluice(kind: Kind, builder: Builder) -> Self {
        let edge = builder.workers(WORKERS).env("ACCESS_LOG", "off");
        let edge = edge.start().await;
        Self {
            kind,
            address: edge.address(),
            second: edge.address(),
            pids: vec![edge.envoy_pid()],
            server: Server::Edge(Box::new(edge)),
        }
    }

    /// The edge, if it is Sluice.
    pub fn edge(&self) -> Option<&Edge> {
        match &self.server {
            Server::Edge(edge) => Some(edge),
            _ => None,
        }
    }
}
