// SPDX-License-Identifier: Apache-2.0
//! Whether the edge is ready, as a worker's listener says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ureq::Agent;

use crate::http;
use crate::settings::Settings;

/// Where the edge's own machine reaches `port`.
pub fn local_address(bind: IpAddr, port: u16) -> SocketAddr {
    let ip = match bind {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, port)
}

/// Whether a worker answers and says that it is ready.
pub fn is_ready(client: &Agent, settings: &Settings) -> bool {
    let address = local_address(settings.bind, settings.edge_port);
    http::status(client, format!("http://{address}{}", settings.health_path)) == Some(200)
}
