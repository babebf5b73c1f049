// SPDX-License-Identifier: Apache-2.0
//! nginx with its cache, see `peers/nginx.conf` and `peers/nginx-lua.conf`.

use crate::peers::peer::fill;
use crate::peers::{Peer, WORKERS, missing, program};
use sluice_tests::client;
use sluice_tests::edge::tls::Certificate;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

const TEMPLATE: &str = include_str!("../../peers/nginx.conf");
const WITH_METRICS: &str = include_str!("../../peers/nginx-lua.conf");
const LADDER: &str = include_str!("../../peers/slow-origin/nginx.conf");
const OF_WORKERS: &str = include_str!("../../peers/nginx-workers.conf");
/// Where Debian has the modules.
const MODULES: &str = "/usr/lib/nginx/modules";

/// How it treats a second request for what is being fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// It waits for the first, and looks every 500 ms.
    On,
    /// It goes to the origin.
    Off,
    /// It waits for 400 ms, and then goes to the origin.
    Timeout,
}

impl Lock {
    const fn directives(self) -> &'static str {
        match self {
            Self::On => "proxy_cache_lock on;",
            Self::Off => "proxy_cache_lock off;",
            Self::Timeout => "proxy_cache_lock on; proxy_cache_lock_timeout 400ms;",
        }
    }
}

/// Starts it before `origin`. At its second address it speaks HTTP/2 in cleartext, or TLS 1.3 with a certificate.
/// Connections to there do not end after 1000 requests, which h2load counts as failed. Nothing where it is not installed.
pub async fn start(
    origin: SocketAddr,
    lock: Lock,
    certificate: Option<&Certificate>,
) -> Option<Peer> {
    let listen = certificate.map_or_else(
        || "http2 backlog=4096;".to_owned(),
        |certificate| {
            let (cert, key) = (certificate.cert(), certificate.key());
            let (cert, key) = (cert.display(), key.display());
            format!("ssl backlog=4096; ssl_protocols TLSv1.3; ssl_certificate {cert}; ssl_certificate_key {key};")
        },
    );
    let values = [
        ("LOCK", lock.directives().to_owned()),
        ("LISTEN", format!("{listen} keepalive_requests 100000000;")),
    ];
    launch(TEMPLATE, origin, &values).await
}

/// Starts it with so many series to be scraped at `/stats/prometheus`; nothing where it or its module for Lua is not
/// installed.
pub async fn start_with_metrics(origin: SocketAddr, series: u32) -> Option<Peer> {
    if !Path::new(MODULES).join("ngx_http_lua_module.so").is_file() {
        missing("libnginx-mod-http-lua");
        return None;
    }
    let values = [
        ("MODULES", MODULES.to_owned()),
        ("SERIES", series.to_string()),
    ];
    launch(WITH_METRICS, origin, &values).await
}

/// Starts it with these lines for its only location; nothing where it is not installed.
pub async fn start_ladder(origin: SocketAddr, location: &str) -> Option<Peer> {
    launch(LADDER, origin, &[("RUNG", location.to_owned())]).await
}

/// Starts it with compression and with the worker in each answer, whose workers have accept queues of their own or one
/// for all; nothing where it is not installed.
pub async fn start_workers(origin: SocketAddr, own_queues: bool) -> Option<Peer> {
    let reuseport = if own_queues { "reuseport" } else { "" };
    let reuseport = ("REUSEPORT", reuseport.to_owned());
    launch(OF_WORKERS, origin, &[reuseport]).await
}

async fn launch(template: &str, origin: SocketAddr, more: &[(&str, String)]) -> Option<Peer> {
    let Some(program) = program("nginx") else {
        missing("nginx-light");
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
        // Started by root its workers would be another user, who cannot enter the folder.
        if std::fs::metadata(folder).unwrap().uid() == 0 {
            command.args(["-g", "user root;"]);
        }
        command
    };
    Some(Peer::start("nginx", command).await)
}

/// How many requests it works on or holds, this question not counted.
pub async fn requests_now(nginx: &Peer) -> usize {
    let status = client::get(nginx.address, "/nginx_status").await;
    let text = String::from_utf8_lossy(&status.body).into_owned();
    let mut words = text.split_whitespace();
    words.find(|word| *word == "Writing:");
    let writing: Option<usize> = words.next().and_then(|word| word.parse().ok());
    writing.unwrap_or_else(|| panic!("nginx's stub_status says {text:?}")) - 1
}
