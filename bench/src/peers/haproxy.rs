// SPDX-License-Identifier: Apache-2.0
//! HAProxy with its cache, see `peers/haproxy.cfg`.

use crate::peers::packages::{missing, program};
use crate::peers::peer::fill;
use crate::peers::{Peer, WORKERS};
use sluice_tests::edge::tls::Certificate;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const TEMPLATE: &str = include_str!("../../peers/haproxy.cfg");

/// Starts HAProxy in front of `origin`; with a certificate it speaks TLS 1.3 at its second address. `None` if the
/// packages do not have it.
pub async fn start(origin: SocketAddr, certificate: Option<&Certificate>) -> Option<Peer> {
    let Some(program) = program("haproxy") else {
        missing("haproxy");
        return None;
    };
    let command = |folder: &Path, address: SocketAddr, second: SocketAddr| {
        let bind = certificate.map(|certificate| bind(folder, second, certificate));
        let values = [
            ("WORKERS", WORKERS.to_string()),
            ("ORIGIN", origin.to_string()),
            ("ADDRESS", address.to_string()),
            ("BIND", bind.unwrap_or_default()),
        ];
        let file = folder.join("haproxy.cfg");
        std::fs::write(&file, fill(TEMPLATE, &values)).unwrap();
        let mut command = Command::new(&program);
        command.args(["-db", "-f"]).arg(file);
        command
    };
    Some(Peer::start("haproxy", command).await)
}

/// A second listener, for TLS 1.3.
fn bind(folder: &Path, address: SocketAddr, certificate: &Certificate) -> String {
    // HAProxy expects both in one file.
    let parts = [certificate.cert(), certificate.key()];
    let parts = parts.map(|part| std::fs::read_to_string(part).unwrap());
    let file = folder.join("certificate.pem");
    std::fs::write(&file, parts.concat()).unwrap();
    let file = file.display();
    format!("bind {address} backlog 4096 ssl crt {file} ssl-min-ver TLSv1.3")
}
