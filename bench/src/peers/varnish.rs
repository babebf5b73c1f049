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
    let programs = program("varnishd").zip(program("varnishstat"));
    let Some((program, _)) = programs else {
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

/// Number of requests that have been put to sleep so far because another request fetches their object.
pub fn slept_ever(varnish: &Peer) -> usize {
    let output = Command::new(program("varnishstat").unwrap())
        .arg("-n")
        .arg(varnish.folder().join("work"))
        .args(["-1", "-f", "MAIN.busy_sleep"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = text
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok());
    value.unwrap_or_else(|| panic!("varnishstat says {output:?}"))
}
