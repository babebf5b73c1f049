// SPDX-License-Identifier: Apache-2.0
//! nginx with its cache, see `peers/nginx.conf` and the files beside it.

use crate::peers::packages::{self, missing, program};
use crate::peers::peer::fill;
use crate::peers::{Peer, WORKERS};
use sluice_tests::edge::tls::Certificate;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

const TEMPLATE: &str = include_str!("../../peers/nginx.conf");
const GATEWAY: &str = include_str!("../../peers/nginx-s3-gateway.conf");
const WITH_METRICS: &str = include_str!("../../peers/nginx-lua.conf");
const LADDER: &str = include_str!("../../peers/slow-origin/nginx.conf");
const OF_WORKERS: &str = include_str!("../../peers/nginx-workers.conf");

/// nginx's way of caching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// A second request for an object that is being fetched waits for the first, and looks every 500 ms.
    Lock,
    /// A second request is sent to the origin.
    NoLock,
    /// A second request waits for 400 ms, and is then sent to the origin.
    LockTimeout,
    /// With the lock, in slices of 1 MiB that are fetched and stored separately.
    Slices,
    /// With the lock; an expired object is served while one request fetches it again.
    BackgroundUpdate,
    /// The settings of nginx-s3-gateway, see `peers/nginx-s3-gateway.conf`.
    Gateway,
}

impl Caching {
    const fn template(self) -> &'static str {
        match self {
            Self::Gateway => GATEWAY,
            _ => TEMPLATE,
        }
    }

    const fn directives(self) -> &'static str {
        match self {
            Self::Lock => "proxy_cache_lock on;",
            Self::NoLock => "proxy_cache_lock off;",
            Self::LockTimeout => "proxy_cache_lock on; proxy_cache_lock_timeout 400ms;",
            // As on the module's page.
            Self::Slices => {
                "proxy_cache_lock on; slice 1m; proxy_cache_key $uri$is_args$args$slice_range; \
                 proxy_set_header Range $slice_range; proxy_cache_valid 200 206 1h;"
            }
            Self::BackgroundUpdate => {
                "proxy_cache_lock on; proxy_cache_revalidate on; proxy_cache_background_update on; \
                 proxy_cache_use_stale updating;"
            }
            Self::Gateway => "",
        }
    }
}

/// Starts nginx in front of `origin`. At its second address it speaks HTTP/2 in cleartext, or TLS 1.3 with a
/// certificate. Connections to that address do not end after 1000 requests, because h2load would count that as a
/// failure. `None` if the packages do not have it.
pub async fn start(
    origin: SocketAddr,
    caching: Caching,
    certificate: Option<&Certificate>,
) -> Option<Peer> {
    let listen = certificate.map_or_else(
        || "backlog=4096; http2 on;".to_owned(),
        |certificate| {
            let (cert, key) = (certificate.cert(), certificate.key());
            let (cert, key) = (cert.display(), key.display());
            format!("ssl backlog=4096; ssl_protocols TLSv1.3; ssl_certificate {cert}; ssl_certificate_key {key};")
        },
    );
    let values = [
        ("CACHING", caching.directives().to_owned()),
        ("LISTEN", format!("{listen} keepalive_requests 100000000;")),
    ];
    launch(caching.template(), origin, &values).await
}

/// Starts nginx with this many series to be scraped at `/stats/prometheus`; `None` if the packages do not have it.
pub async fn start_with_metrics(origin: SocketAddr, series: u32) -> Option<Peer> {
    let packages = packages::root(packages::RELEASE);
    let values = [
        ("PACKAGES", packages.display().to_string()),
        ("SERIES", series.to_string()),
    ];
    launch(WITH_METRICS, origin, &values).await
}

/// Starts nginx with these lines for its only location; `None` if the packages do not have it.
pub async fn start_ladder(origin: SocketAddr, location: &str) -> Option<Peer> {
    launch(LADDER, origin, &[("RUNG", location.to_owned())]).await
}

/// Starts nginx with compression and with the worker's name in each response. Its workers have separate accept
/// queues, or one for all. `None` if the packages do not have it.
pub async fn start_workers(origin: SocketAddr, own_queues: bool) -> Option<Peer> {
    let reuseport = if own_queues { "reuseport" } else { "" };
    let reuseport = ("REUSEPORT", reuseport.to_owned());
    launch(OF_WORKERS, origin, &[reuseport]).await
}

async fn launch(template: &str, origin: SocketAddr, more: &[(&str, String)]) -> Option<Peer> {
    let Some(program) = program("nginx") else {
        missing("nginx");
        return None;
    };
    let command = |folder: &Path, address: SocketAddr, second: SocketAddr| {
        let values = [
            ("WORKERS", WORKERS.to_string()),
            ("ORIGIN", origin.to_string()),
            ("ADDRESS", address.to_string()),
            ("SECOND", second.to_string()),
        ];
        let values = [&values, more].concat();
        std::fs::write(folder.join("nginx.conf"), fill(template, &values)).unwrap();
        let mut command = Command::new(&program);
        command.arg("-p").arg(folder).args(["-c", "nginx.conf"]);
        // If root started nginx, its workers would run as another user, who cannot enter the folder.
        if std::fs::metadata(folder).unwrap().uid() == 0 {
            command.args(["-g", "user root;"]);
        }
        command
    };
    Some(Peer::start("nginx", command).await)
}
