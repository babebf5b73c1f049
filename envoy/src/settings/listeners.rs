// SPDX-License-Identifier: Apache-2.0
//! The TLS listener, limits on clients' requests, the health path, and the rule that no two listeners share a port.

use std::path::PathBuf;

use super::environment::Environment;
use crate::sites::Sites;
use sluice_core::size;

/// The TLS listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsListener {
    /// The listener's port.
    pub port: u16,
    /// The certificate chain, a PEM file.
    pub cert: PathBuf,
    /// The private key, a PEM file.
    pub key: PathBuf,
}

impl TlsListener {
    /// Reads `SLUICE_EDGE_TLS_PORT` and `SLUICE_TLS_…`. `None`: no certificate is set, or there is a problem.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let wants_port = env.set("SLUICE_EDGE_TLS_PORT").is_some();
        let port = env.port("SLUICE_EDGE_TLS_PORT");
        env.pair("SLUICE_TLS_CERT", "SLUICE_TLS_KEY");
        if wants_port
            && env
                .set("SLUICE_TLS_CERT")
                .or(env.set("SLUICE_TLS_KEY"))
                .is_none()
        {
            env.refuse(
                "SLUICE_EDGE_TLS_PORT",
                None,
                "needs SLUICE_TLS_CERT and SLUICE_TLS_KEY",
            );
        }
        let (cert, key) = (env.file("SLUICE_TLS_CERT"), env.file("SLUICE_TLS_KEY"));
        Some(Self {
            port: port?,
            cert: cert?,
            key: key?,
        })
    }
}

/// Reads `SLUICE_EDGE_TLS_PORT` for sites that have certificates. `None`: no site has one, or there is a problem.
pub fn read_tls_port(env: &mut Environment<'_>, sites: &Sites) -> Option<u16> {
    let is_set = env.set("SLUICE_EDGE_TLS_PORT").is_some();
    let port = env.port("SLUICE_EDGE_TLS_PORT");
    let certified = sites.sites.iter().any(|site| site.certificate.is_some());
    if is_set && !certified {
        env.refuse(
            "SLUICE_EDGE_TLS_PORT",
            None,
            "needs tls in a site of SLUICE_SITES",
        );
    }
    port.filter(|_| certified)
}

/// The trust in clients' addresses, and limits on clients' requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// Number of proxies in front of the edge that are trusted to append to `X-Forwarded-For`.
    pub trusted_hops: u32,
    /// Bound on the requests of one address in a second; 0: no bound.
    pub rate_limit: u32,
    /// Bound on the headers of one request, in KiB.
    pub header_kib: u32,
}

impl Clients {
    /// Reads `SLUICE_TRUSTED_HOPS`, `SLUICE_RATE_LIMIT_PER_ADDRESS` and `SLUICE_REQUEST_HEADER_BYTES`.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let trusted_hops = env.number("SLUICE_TRUSTED_HOPS", 0..=16, "a number of proxies");
        let rate_limit = env.number("SLUICE_RATE_LIMIT_PER_ADDRESS", 0..=1_000_000, "a number");
        let accepted = "a size from 16KiB to 256KiB in whole KiB";
        let header_kib = env.parse("SLUICE_REQUEST_HEADER_BYTES", accepted, |text| {
            let bytes = size::parse(text).filter(|bytes| bytes % 1024 == 0)?;
            let kib = u32::try_from(bytes / 1024).ok()?;
            (16..=256).contains(&kib).then_some(kib)
        });
        Some(Self {
            trusted_hops: trusted_hops?,
            rate_limit: rate_limit?,
            header_kib: header_kib?,
        })
    }
}

/// Reads the path on which a worker answers whether it is ready.
pub fn read_health_path(env: &mut Environment<'_>) -> Option<String> {
    env.parse("SLUICE_HEALTH_PATH", "a path such as /healthz", |text| {
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
        (text.len() > 1 && text.starts_with('/') && text.bytes().all(safe)).then(|| text.to_owned())
    })
}

/// The settings with a port, in the order in which [`check_ports`] takes the ports.
const PORTS: [&str; 5] = [
    "SLUICE_EDGE_PORT",
    "SLUICE_EDGE_TLS_PORT",
    "SLUICE_PURGE_PORT",
    "SLUICE_METRICS_PORT",
    "SLUICE_PEER_PORT",
];

/// Refuses a port that an earlier listener uses. `None` is a listener that does not exist.
pub fn check_ports(env: &mut Environment<'_>, ports: [Option<u16>; PORTS.len()]) {
    let named = || PORTS.into_iter().zip(ports);
    for (index, (name, port)) in named().enumerate() {
        let twin = named().take(index).find(|(_, other)| *other == port);
        if let (Some((other, _)), Some(port)) = (twin, port) {
            let accepted = format!("another port than {other}'s");
            env.refuse(name, Some(port.to_string()), accepted);
        }
    }
}
