// SPDX-License-Identifier: Apache-2.0
//! The servers that are asked for what they have, all at the same time before one origin.

use crate::peers::haproxy;
use crate::peers::nginx;
use crate::peers::peer::{self, Peer};
use crate::peers::varnish;
use serde_json::Value;
use sluice_tests::bare::{self, Bare};
use sluice_tests::edge::Edge;
use sluice_tests::matrix::{Cell, Medium, Store, Version};
use sluice_tests::origin::Origin;
use sluice_tests::tls::Certificate;
use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// The workers of each.
pub const WORKERS: usize = 2;

const DIRECT: &str = include_str!("../../peers/envoy-direct.yaml");

/// A server with its way of caching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Envoy's `direct_response`, which is no cache, and the limit for any in Envoy.
    Direct,
    /// nginx.
    Nginx,
    /// Varnish.
    Varnish,
    /// HAProxy with its cache for small objects.
    Haproxy,
    /// Envoy's cache filter with its own, unbounded store in memory, without Sluice's.
    BareMemory(Version),
    /// Envoy's cache filter with its files, without Sluice's.
    Bare(Store),
    /// Sluice.
    Sluice(Medium),
    /// Sluice without copies of hot objects: each hit is one of Envoy's cache.
    Cold(Medium),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str("Envoy direct_response"),
            Self::Nginx => f.write_str("nginx"),
            Self::Varnish => f.write_str("Varnish"),
            Self::Haproxy => f.write_str("HAProxy"),
            Self::BareMemory(Version::V1) => f.write_str("bare Envoy simple-v1"),
            Self::BareMemory(Version::V2) => f.write_str("bare Envoy simple-v2"),
            Self::Bare(store) => write!(f, "bare Envoy {store}"),
            Self::Sluice(medium) => write!(f, "Sluice {medium}"),
            Self::Cold(medium) => write!(f, "Sluice {medium}, HOT_BYTES=0"),
        }
    }
}

/// One that runs.
pub struct Cache {
    /// Where it speaks HTTP/1.1 in cleartext.
    pub address: SocketAddr,
    /// Where it speaks HTTP/2 in cleartext, or TLS if it has a certificate.
    pub second: SocketAddr,
    /// Its process, with those below it.
    pub pid: u32,
    // Ends with it.
    _running: Box<dyn Any>,
}

impl Cache {
    fn new(address: SocketAddr, second: SocketAddr, pid: u32, running: impl Any) -> Self {
        Self {
            address,
            second,
            pid,
            _running: Box::new(running),
        }
    }

    fn of_peer(peer: Peer, second: Option<SocketAddr>) -> Self {
        let second = second.unwrap_or(peer.address);
        Self::new(peer.address, second, peer.pid(), peer)
    }

    /// Sluice as `builder` says.
    pub async fn sluice(builder: sluice_tests::edge::Builder) -> Self {
        let builder = builder.workers(WORKERS).env("ACCESS_LOG", "off");
        let edge = builder.start().await;
        let (address, pid) = (edge.address(), edge.envoy_pid());
        Self::new(address, address, pid, edge)
    }
}

impl Kind {
    /// Starts it before `origin`, whose paths are `/oSIZE.bin` with as many bytes; `None` where it is not installed.
    pub async fn start(self, origin: &Origin, sizes: &[usize]) -> Option<Cache> {
        let bare = |store| Cell {
            store,
            workers: WORKERS,
        };
        let bare = match self {
            Self::Direct => {
                let peer = direct(sizes, &|_| {}).await;
                return Some(Cache::of_peer(peer, None));
            }
            Self::Nginx => {
                let (peer, second) =
                    nginx::start_listening(origin.address(), WORKERS, None).await?;
                return Some(Cache::of_peer(peer, Some(second)));
            }
            Self::Varnish => {
                return Some(Cache::of_peer(
                    varnish::start(origin.address()).await?,
                    None,
                ));
            }
            Self::Haproxy => {
                let peer = haproxy::start(origin.address(), WORKERS).await?;
                return Some(Cache::of_peer(peer, None));
            }
            Self::Sluice(medium) => {
                return Some(Cache::sluice(Edge::http(origin).medium(medium)).await);
            }
            Self::Cold(medium) => {
                let edge = Edge::http(origin).medium(medium).env("HOT_BYTES", "0");
                return Some(Cache::sluice(edge).await);
            }
            Self::BareMemory(version) => Bare::without_files(origin, version, WORKERS).await,
            Self::Bare(store) => Bare::start(origin, bare(store)).await,
        };
        Some(Cache::new(bare.address(), bare.address(), bare.pid(), bare))
    }

    /// Starts it with this certificate and a path `/oSIZE.bin`; `None` where it is not installed.
    ///
    /// # Panics
    /// When it is none of those that are measured over TLS.
    pub async fn start_with_tls(
        self,
        origin: &Origin,
        certificate: &Certificate,
        size: usize,
    ) -> Option<Cache> {
        let second = sluice_tests::ports::loopback(sluice_tests::ports::free_port());
        match self {
            Self::Direct => {
                let add = |config: &mut Value| certificate.add_listener(config, second.port());
                let peer = direct(&[size], &add).await;
                Some(Cache::of_peer(peer, Some(second)))
            }
            Self::Bare(store) => {
                let cell = Cell {
                    store,
                    workers: WORKERS,
                };
                let bare = Bare::with_tls(origin, cell, certificate, second.port()).await;
                Some(Cache::new(bare.address(), second, bare.pid(), bare))
            }
            Self::Nginx => {
                let started = nginx::start_listening(origin.address(), WORKERS, Some(certificate));
                let (peer, second) = started.await?;
                Some(Cache::of_peer(peer, Some(second)))
            }
            Self::Haproxy => {
                let started = haproxy::start_with_tls(origin.address(), WORKERS, certificate);
                let (peer, second) = started.await?;
                Some(Cache::of_peer(peer, Some(second)))
            }
            Self::Sluice(medium) => {
                let edge = Edge::http(origin).medium(medium);
                let edge = edge
                    .env("TLS_CERT", certificate.cert().display().to_string())
                    .env("TLS_KEY", certificate.key().display().to_string())
                    .env("EDGE_TLS_PORT", second.port().to_string());
                let cache = Cache::sluice(edge).await;
                Some(Cache { second, ..cache })
            }
            _ => panic!("{self} is not measured over TLS"),
        }
    }
}

async fn direct(sizes: &[usize], change: &dyn Fn(&mut Value)) -> Peer {
    let command = |folder: &Path, address: SocketAddr| {
        let route = |size: &usize| {
            let body = folder.join(size.to_string());
            std::fs::write(&body, vec![b'x'; *size]).unwrap();
            format!(
                "{{match: {{path: /o{size}.bin}}, direct_response: {{status: 200, body: {{filename: {}}}}}}}",
                body.display()
            )
        };
        let routes: Vec<_> = sizes.iter().map(route).collect();
        let values = [
            ("PORT", address.port().to_string()),
            ("ROUTES", format!("[{}]", routes.join(", "))),
        ];
        let text = peer::fill(DIRECT, &values);
        let mut document: Value = serde_yaml_ng::from_str(&text).unwrap();
        change(&mut document);
        let config = folder.join("envoy.json");
        std::fs::write(&config, document.to_string()).unwrap();
        let mut command = Command::new(bare::envoy());
        command.args(["--disable-hot-restart", "--log-level", "warning"]);
        command.args(["--concurrency", &WORKERS.to_string(), "-c"]);
        command.arg(config);
        command
    };
    Peer::start("envoy", command).await
}
