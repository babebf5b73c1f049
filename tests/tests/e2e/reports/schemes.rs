// SPDX-License-Identifier: Apache-2.0
//! Whether a request has arrived by HTTPS depends on the connection, and not on a header of the client.

use sluice_tests::client::http2::Http2;
use sluice_tests::edge::Builder;
use sluice_tests::origin::{Origin, Reply};
use tempfile::TempDir;

/// `:scheme: https` on cleartext HTTP/2 bypassed `redirect_to_https`.
#[tokio::test]
async fn a_scheme_that_a_client_makes_up_is_redirected_to_https() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100));
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("sites.yaml");
    let site = "redirect_to_https: true\n  hsts: 365d\n";
    let sites = format!("sites:\n- name: a\n  origin: {}\n  {site}", origin.url());
    std::fs::write(&file, sites).unwrap();
    // A proxy in front of the edge may terminate TLS, and its `X-Forwarded-Proto` counts.
    let edge = Builder::new()
        .workers(1)
        .env("SLUICE_SITES", file.display().to_string());
    let edge = edge.env("SLUICE_TRUSTED_HOPS", "1").start().await;
    let connection = Http2::connect(edge.address()).await;
    for (proto, status) in [(None, 301), (Some("http"), 301), (Some("https"), 200)] {
        for scheme in ["http", "https"] {
            let target = format!("{scheme}://edge.test/a");
            let headers = proto.map(|proto| ("x-forwarded-proto", proto));
            let answer = connection.send("GET", &target, headers.as_slice()).await;
            let (told, fields, _) = answer.unwrap();
            assert_eq!(told, status, "{scheme}, {proto:?}: {fields:?}");
            let hsts = fields.get("strict-transport-security");
            assert_eq!(hsts.is_some(), status == 200, "{fields:?}");
        }
    }
}
