// SPDX-License-Identifier: Apache-2.0
//! Asks a worker whether the edge is ready.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ureq::Agent;

use crate::net::http;
use crate::settings::Settings;

/// Asks one edge on this machine whether it is ready.
pub struct HealthCheck {
    client: Agent,
    uri: String,
}

impl HealthCheck {
    /// A check of the edge with these settings.
    pub fn new(settings: &Settings) -> Self {
        let address = local_address(settings.bind, settings.edge_port);
        Self {
            client: http::client(),
            uri: format!("http://{address}{}", settings.health_path),
        }
    }

    /// Whether a worker answers and says that it is ready.
    pub fn passes(&self) -> bool {
        let response = self.client.get(&self.uri).call();
        response.is_ok_and(|response| response.status() == 200)
    }
}

/// The address at which a listener is reached from its own machine.
pub fn local_address(bind: IpAddr, port: u16) -> SocketAddr {
    let ip = match bind {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, port)
}
