// SPDX-License-Identifier: Apache-2.0
//! The servers under test, all in front of the same origin or bucket.

mod kind;
mod settings;
pub mod variants;

pub use crate::peers::WORKERS;
pub use kind::{Before, Kind, Rated};
pub use settings::settings;

use crate::peers::Peer;
use sluice_tests::bare::Bare;
use sluice_tests::edge::{Builder, Edge};
use std::any::Any;
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
    /// The edge, if it is Sluice.
    edge: Option<Box<Edge>>,
    /// Another server, which ends with the contender.
    _server: Option<Box<dyn Any>>,
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
    fn of(kind: Kind, address: SocketAddr, pids: Vec<u32>, server: Option<Box<dyn Any>>) -> Self {
        Self {
            kind,
            address,
            second: address,
            pids,
            edge: None,
            _server: server,
        }
    }

    /// Makes a contender of another project's server.
    pub fn peer(kind: Kind, peer: Peer) -> Self {
        let second = peer.second;
        let pids = vec![peer.pid()];
        Self {
            second,
            ..Self::of(kind, peer.address, pids, Some(Box::new(peer)))
        }
    }

    fn bare(kind: Kind, bare: Bare) -> Self {
        Self::of(kind, bare.address(), vec![bare.pid()], Some(Box::new(bare)))
    }

    /// Starts Sluice as `builder` and `SETTINGS` say, with as many workers as the others have, and without an access
    /// log, because the others have none.
    pub async fn sluice(kind: Kind, builder: Builder) -> Self {
        let edge = builder.workers(WORKERS).env("SLUICE_ACCESS_LOG", "off");
        let add = |edge: Builder, (name, value): (String, String)| edge.env(&name, value);
        let edge = settings().into_iter().fold(edge, add).start().await;
        let contender = Self::of(kind, edge.address(), vec![edge.envoy_pid()], None);
        Self {
            edge: Some(Box::new(edge)),
            ..contender
        }
    }

    /// The edge, if it is Sluice.
    pub fn edge(&self) -> Option<&Edge> {
        self.edge.as_deref()
    }
}
