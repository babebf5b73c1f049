// SPDX-License-Identifier: Apache-2.0
//! Envoy's `direct_response`, which is not a cache, and the limit for any cache in Envoy, see
//! `peers/envoy-direct.yaml`.

use crate::peers::peer::fill;
use crate::peers::{Peer, WORKERS};
use serde_json::Value;
use sluice_tests::edge::tls::Certificate;
use sluice_tests::machine::tool;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const TEMPLATE: &str = include_str!("../../peers/envoy-direct.yaml");
/// Sizes of the bodies, whose paths are `/oSIZE.bin`.
const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Starts Envoy; with a certificate it speaks TLS 1.3 at its second address.
pub async fn start(certificate: Option<&Certificate>) -> Peer {
    let command = |folder: &Path, address: SocketAddr, second: SocketAddr| {
        let route = |size: usize| {
            let body = folder.join(size.to_string());
            std::fs::write(&body, vec![b'x'; size]).unwrap();
            format!(
                "{{match: {{path: /o{size}.bin}}, direct_response: {{status: 200, body: {{filename: {}}}}}}}",
                body.display()
            )
        };
        let values = [
            ("PORT", address.port().to_string()),
            ("ROUTES", format!("[{}]", SIZES.map(route).join(", "))),
        ];
        let mut document: Value = serde_saphyr::from_str(&fill(TEMPLATE, &values)).unwrap();
        if let Some(certificate) = certificate {
            certificate.add_listener(&mut document, second.port());
        }
        let config = folder.join("envoy.json");
        std::fs::write(&config, document.to_string()).unwrap();
        let mut command = Command::new(tool::envoy());
        command.args(["--disable-hot-restart", "--log-level", "warning"]);
        command.args(["--concurrency", &WORKERS.to_string(), "-c"]);
        command.arg(config);
        command
    };
    Peer::start("envoy", command).await
}
