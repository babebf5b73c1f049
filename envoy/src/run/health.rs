// SPDX-License-Identifier: Apache-2.0
//! The health check: asks a worker whether the edge is ready.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context as _, ensure};

use crate::net::http;
use crate::net::unix_client::{self, Call};
use crate::settings::Settings;

/// Returns a function that asks the edge with these settings, on this machine, whether a worker is ready. It asks
/// the listener for metrics if there is one, because clients cannot use up the connections of that listener. With the
/// PROXY protocol it asks on a socket of the edge, because the listeners for clients are closed to this machine.
pub fn health_check(settings: &Settings) -> impl Fn() -> bool + use<> {
    let edge = || local_address(settings.bind, settings.edge_port);
    let metrics = |address: SocketAddr| local_address(address.ip(), address.port());
    let address = settings.metrics.map_or_else(edge, metrics);
    let uri = format!("http://{address}{}", settings.health_path);
    let client = http::client();
    let is_closed = settings.proxy_protocol.is_some() && settings.metrics.is_none();
    let (socket, path) = (settings.health_socket(), settings.health_path.clone());
    move || {
        if is_closed {
            let reply = unix_client::call(&socket, &Call::get(&path));
            return reply.is_ok_and(|reply| reply.status == 200);
        }
        let response = client.get(&uri).call();
        response.is_ok_and(|response| response.status() == 200)
    }
}

/// Asks the edge at `url` whether a worker is ready.
///
/// # Errors
/// The edge does not answer with 200, or the URL is wrong.
pub fn check_health_at(url: &str) -> anyhow::Result<()> {
    let response = http::client().get(url).call();
    let status = response.with_context(|| url.to_owned())?.status();
    ensure!(status == 200, "{url}: status {status}: expected 200");
    Ok(())
}

/// The address at which a listener can be reached from its own machine.
pub fn local_address(bind: IpAddr, port: u16) -> SocketAddr {
    let ip = match bind {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, port)
}
