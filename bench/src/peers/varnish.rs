// SPDX-License-Identifier: Apache-2.0
//! Varnish with its defaults, see `peers/varnish.vcl`.

use crate::peers::Peer;
use crate::peers::packages::{missing, program};
use crate::peers::peer::fill;
use std::net::SocketAddr;
use std::process::Command;

const TEMPLATE: &str = include_str!("../../peers/varnish.vcl");

/// Starts Varnish in front of `origin`; `None` if the packages do not have it.
pub async fn start(origin: SocketAddr) -> Option<Peer> {
    let Some(program) = program("varnishd") else {
        missing("varnish");
        return None;
    };
    let command = |folder: &std::path::Path, address: SocketAddr, _: SocketAddr| {
        let values = [
            ("ORIGIN_HOST", origin.ip().to_string()),
            ("ORIGIN_PORT", origin.port().to_string()),
        ];
        let vcl = folder.join("varnish.vcl");
        std::fs::write(&vcl, fill(TEMPLATE, &values)).unwrap();
        let mut command = Command::new(&program);
        // Without a jail the process runs as the current user, so that it ends with the bench in any case.
        command
            .args(["-F", "-j", "none", "-n"])
            .arg(folder.join("work"));
        command.arg("-f").arg(vcl);
        command.args(["-a", &address.to_string(), "-s", "malloc,256m"]);
        command.args(["-p", "feature=+http2"]);
        command
    };
    Some(Peer::start("varnish", command).await)
}
