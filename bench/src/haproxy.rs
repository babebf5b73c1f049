// SPDX-License-Identifier: Apache-2.0
//! HAProxy with its cache, see `peers/haproxy.cfg`.

use crate::peer::{self, Peer};
use std::net::SocketAddr;
use std::process::Command;

const TEMPLATE: &str = include_str!("../peers/haproxy.cfg");

/// Starts it before `origin`; nothing where it is not installed.
pub async fn start(origin: SocketAddr, workers: usize) -> Option<Peer> {
    let Some(program) = peer::program("haproxy") else {
        peer::missing("haproxy");
        return None;
    };
    let command = |folder: &std::path::Path, address: SocketAddr| {
        let values = [
            ("WORKERS", workers.to_string()),
            ("ORIGIN", origin.to_string()),
            ("ADDRESS", address.to_string()),
        ];
        let file = folder.join("haproxy.cfg");
        std::fs::write(&file, peer::fill(TEMPLATE, &values)).unwrap();
        let mut command = Command::new(&program);
        command.args(["-db", "-f"]).arg(file);
        command
    };
    Some(Peer::start("haproxy", command).await)
}
