// SPDX-License-Identifier: Apache-2.0
//! HAProxy with its cache, see `peers/haproxy.cfg`.

use crate::peers::peer::{self, Peer};
use sluice_tests::ports::{free_port, loopback};
use sluice_tests::tls::Certificate;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const TEMPLATE: &str = include_str!("../../peers/haproxy.cfg");

/// Starts it before `origin`; nothing where it is not installed.
pub async fn start(origin: SocketAddr, workers: usize) -> Option<Peer> {
    launch(origin, workers, |_| String::new()).await
}

/// Starts it with a second listener, whose address is given too, for TLS 1.3.
pub async fn start_with_tls(
    origin: SocketAddr,
    workers: usize,
    certificate: &Certificate,
) -> Option<(Peer, SocketAddr)> {
    let second = loopback(free_port());
    let bind = |folder: &Path| {
        // It wants both in one file.
        let parts = [certificate.cert(), certificate.key()];
        let parts = parts.map(|part| std::fs::read_to_string(part).unwrap());
        let file = folder.join("certificate.pem");
        std::fs::write(&file, parts.concat()).unwrap();
        let file = file.display();
        format!("bind {second} backlog 4096 ssl crt {file} ssl-min-ver TLSv1.3")
    };
    let peer = launch(origin, workers, bind).await?;
    Some((peer, second))
}

async fn launch(
    origin: SocketAddr,
    workers: usize,
    bind: impl Fn(&Path) -> String,
) -> Option<Peer> {
    let Some(program) = peer::program("haproxy") else {
        peer::missing("haproxy");
        return None;
    };
    let command = |folder: &Path, address: SocketAddr| {
        let values = [
            ("WORKERS", workers.to_string()),
            ("ORIGIN", origin.to_string()),
            ("ADDRESS", address.to_string()),
            ("BIND", bind(folder)),
        ];
        let file = folder.join("haproxy.cfg");
        std::fs::write(&file, peer::fill(TEMPLATE, &values)).unwrap();
        let mut command = Command::new(&program);
        command.args(["-db", "-f"]).arg(file);
        command
    };
    Some(Peer::start("haproxy", command).await)
}
