// SPDX-License-Identifier: Apache-2.0
//! The kinds of servers, and how each is started.

use crate::contenders::Contender;
use crate::origins::archive::Archive;
use crate::peers::nginx::Caching;
use crate::peers::{WORKERS, direct, haproxy, nginx, trafficserver, varnish};
use sluice::settings::Runtime;
use sluice_tests::bare::Bare;
use sluice_tests::bucket::Bucket;
use sluice_tests::bucket::proxy::Proxy;
use sluice_tests::edge::store::{Medium, Store, Version};
use sluice_tests::edge::tls::Certificate;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::origin::Origin;
use std::fmt;
use std::net::SocketAddr;

/// Serves stale like nginx's `proxy_cache_background_update`.
const STALE: &str =
    "origin: {kind: http}\ncache: {stale_while_revalidate: 60s, retry_interval: 1s}\n";

/// A server with its way of caching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The origin itself, without a server in front of it.
    Origin,
    /// Envoy's `direct_response`, which is not a cache, and the limit for any cache in Envoy.
    Direct,
    /// nginx, by its way of caching.
    Nginx(Caching),
    /// Varnish with its defaults.
    Varnish,
    /// HAProxy with its cache for small objects, which does not coalesce.
    Haproxy,
    /// Traffic Server, which coalesces as its documentation describes.
    TrafficServer,
    /// Traffic Server with its slice plugin, in slices of 1 MiB.
    TrafficServerSlices,
    /// Envoy's cache filter with its files, without Sluice's filter.
    Bare,
    /// Envoy's cache filter with its unbounded store in memory, without Sluice's filter.
    BareMemory,
    /// Sluice with default settings and its files on a disk.
    Sluice,
    /// Sluice with its files on a tmpfs.
    SluiceMemory,
    /// Sluice with default settings, in Envoy's own process in place of Wasm VMs.
    SluiceNative,
    /// Sluice that stores objects of up to 128 MiB whole.
    SluiceWhole,
    /// Sluice that serves expired objects while one request revalidates them.
    SluiceStale,
    /// Sluice without copies of hot objects: each hit is a hit of Envoy's cache.
    SluiceCold,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Origin => "no cache",
            Self::Direct => "Envoy direct_response",
            Self::Nginx(Caching::Lock) => "nginx, lock",
            Self::Nginx(Caching::NoLock) => "nginx, no lock",
            Self::Nginx(Caching::LockTimeout) => "nginx, lock 400 ms",
            Self::Nginx(Caching::Slices) => "nginx, slice 1m",
            Self::Nginx(Caching::BackgroundUpdate) => "nginx, background update",
            Self::Nginx(Caching::Gateway) => "nginx-s3-gateway's settings",
            Self::TrafficServer => "Traffic Server",
            Self::TrafficServerSlices => "Traffic Server, slice",
            Self::Varnish => "Varnish",
            Self::Haproxy => "HAProxy",
            Self::Bare => "bare Envoy",
            Self::BareMemory => "bare Envoy, memory",
            Self::Sluice => "Sluice",
            Self::SluiceMemory => "Sluice, CACHE=memory",
            Self::SluiceNative => "Sluice, RUNTIME=native",
            Self::SluiceWhole => "Sluice, whole objects",
            Self::SluiceStale => "Sluice, stale while revalidating",
            Self::SluiceCold => "Sluice, HOT_BYTES=0",
        })
    }
}

/// A server at a constant rate.
#[derive(Clone, Copy)]
pub struct Rated {
    /// The server.
    pub kind: Kind,
    /// Requests a second.
    pub rate: u32,
}

impl fmt::Display for Rated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} a second", self.kind, self.rate)
    }
}

/// The origin or bucket behind a server.
#[derive(Clone, Copy)]
pub enum Before<'a> {
    /// An origin.
    Origin(&'a Origin),
    /// An origin; the servers in front of it speak TLS 1.3 with this certificate.
    OriginWithTls(&'a Origin, &'a Certificate),
    /// A distant server of large objects.
    Archive(&'a Archive),
    /// A public bucket, behind a proxy that counts and delays requests to it. Sluice signs its requests nevertheless.
    Bucket(&'a Bucket, &'a Proxy),
}

impl<'a> Before<'a> {
    fn address(self) -> SocketAddr {
        match self {
            Self::Origin(origin) | Self::OriginWithTls(origin, _) => origin.address(),
            Self::Archive(archive) => archive.address(),
            Self::Bucket(_, proxy) => proxy.address(),
        }
    }

    const fn certificate(self) -> Option<&'a Certificate> {
        match self {
            Self::OriginWithTls(_, certificate) => Some(certificate),
            Self::Origin(_) | Self::Archive(_) | Self::Bucket(..) => None,
        }
    }
}

impl Kind {
    /// Whether it is Sluice.
    pub const fn is_sluice(self) -> bool {
        matches!(
            self,
            Self::Sluice
                | Self::SluiceMemory
                | Self::SluiceNative
                | Self::SluiceWhole
                | Self::SluiceStale
                | Self::SluiceCold
        )
    }

    /// Whether its second address takes HTTP/2 in cleartext. Traffic Server takes HTTP/2 over TLS only.
    pub const fn takes_http2(self) -> bool {
        !matches!(
            self,
            Self::Origin | Self::TrafficServer | Self::TrafficServerSlices
        )
    }

    /// Starts the server; `None` if it is not installed.
    pub async fn start(self, before: Before<'_>) -> Option<Contender> {
        self.start_with(before, &[]).await
    }

    /// Starts the server, with these settings if it is Sluice; `None` if it is not installed.
    pub async fn start_with(
        self,
        before: Before<'_>,
        settings: &[(&str, &str)],
    ) -> Option<Contender> {
        let (origin, certificate) = (before.address(), before.certificate());
        let peer = match self {
            Self::Origin => return Some(Contender::of(self, origin, Vec::new(), None)),
            Self::Bare | Self::BareMemory => return Some(self.bare(before).await),
            Self::Direct => direct::start(certificate).await,
            Self::Nginx(lock) => nginx::start(origin, lock, certificate).await?,
            Self::Varnish => varnish::DEFAULTS.start(origin).await?,
            Self::TrafficServer => trafficserver::COALESCING.start(origin).await?,
            Self::TrafficServerSlices => trafficserver::start_slices(origin).await?,
            Self::Haproxy => haproxy::start(origin, certificate).await?,
            _ => return Some(self.sluice(before, settings).await),
        };
        let started = Contender::peer(self, peer);
        let two = certificate.is_some() || matches!(self, Self::Nginx(_));
        let second = if two { started.second } else { started.address };
        Some(Contender { second, ..started })
    }

    async fn bare(self, before: Before<'_>) -> Contender {
        let second = loopback(free_port());
        let bare = match before {
            Before::Bucket(..) | Before::Archive(_) => {
                let url = format!("http://{}", before.address());
                Bare::before(&url, Store::V1_DISK, WORKERS).await
            }
            Before::Origin(origin) if self == Self::BareMemory => {
                Bare::without_files(origin, Version::V1, WORKERS).await
            }
            Before::Origin(origin) => Bare::start(origin, Store::V1_DISK, WORKERS).await,
            Before::OriginWithTls(origin, certificate) => {
                let bare =
                    Bare::with_tls(origin, Store::V1_DISK, WORKERS, certificate, second.port())
                        .await;
                return Contender {
                    second,
                    ..Contender::bare(self, bare)
                };
            }
        };
        Contender::bare(self, bare)
    }

    async fn sluice(self, before: Before<'_>, settings: &[(&str, &str)]) -> Contender {
        let second = loopback(free_port());
        let edge: Builder = match before {
            Before::Origin(origin) => Edge::http(origin),
            Before::OriginWithTls(origin, certificate) => Edge::http(origin)
                .env("SLUICE_TLS_CERT", certificate.cert().display().to_string())
                .env("SLUICE_TLS_KEY", certificate.key().display().to_string())
                .env("SLUICE_EDGE_TLS_PORT", second.port().to_string()),
            Before::Archive(archive) => {
                Builder::new().env("SLUICE_ORIGIN", format!("http://{}", archive.address()))
            }
            Before::Bucket(bucket, proxy) => Edge::bucket(bucket)
                .env("SLUICE_S3_ENDPOINT", format!("http://{}", proxy.address())),
        };
        let edge = match self {
            Self::SluiceMemory => edge.medium(Medium::Memory),
            Self::SluiceNative => edge.medium(Medium::Disk).runtime(Runtime::Native),
            Self::SluiceWhole => edge
                .medium(Medium::Disk)
                .env("SLUICE_CACHE_MAX_OBJECT_BYTES", "128MiB"),
            Self::SluiceStale => edge.medium(Medium::Disk).policy(STALE),
            Self::SluiceCold => edge.medium(Medium::Disk).env("SLUICE_HOT_BYTES", "0"),
            _ => edge.medium(Medium::Disk),
        };
        let add = |edge: Builder, (name, value): &(&str, &str)| edge.env(name, *value);
        let edge = settings.iter().fold(edge, add);
        let started = Contender::sluice(self, edge).await;
        match before.certificate() {
            Some(_) => Contender { second, ..started },
            None => started,
        }
    }
}
