// SPDX-License-Identifier: Apache-2.0
//! The public suite of tests for HTTP/2 servers, h2spec. `bench/CONFORMANCE.md` has each test that does not pass, and
//! why.

use sluice_tests::bare::Bare;
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Store;
use sluice_tests::edge::tls::Certificate;
use sluice_tests::h2spec::{Names, failing};
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::origin::{Origin, Reply};

/// The sections about valid requests. They take a second.
const MESSAGES: [&str; 3] = ["http2/8.1.2", "generic/4", "hpack"];

/// An edge and bare Envoy with cleartext and TLS in front of one origin, and their ports for TLS.
async fn both() -> (Origin, (Edge, u16), (Bare, u16), Certificate) {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100));
    let certificate = Certificate::new();
    let (port, bare_port) = (free_port(), free_port());
    let edge = Edge::http(&origin)
        .env("SLUICE_EDGE_TLS_PORT", port.to_string())
        .env("SLUICE_TLS_CERT", certificate.cert().display().to_string())
        .env("SLUICE_TLS_KEY", certificate.key().display().to_string())
        .start()
        .await;
    let bare = Bare::with_tls(&origin, Store::V1_DISK, 2, &certificate, bare_port).await;
    (origin, (edge, port), (bare, bare_port), certificate)
}

/// Returns the tests that fail in the edge, after a check that none of them passes in bare Envoy.
async fn compare(tls: bool, sections: &'static [&'static str]) -> Names {
    let (_origin, (edge, port), (bare, bare_port), _certificate) = both().await;
    let address = |plain, port| if tls { loopback(port) } else { plain };
    let of = [
        address(edge.address(), port),
        address(bare.address(), bare_port),
    ];
    let of = of.map(|address| tokio::task::spawn_blocking(move || failing(address, tls, sections)));
    let [edge, bare] = of;
    let (edge, bare) = (edge.await.unwrap(), bare.await.unwrap());
    println!("tls: {tls}\nthe edge: {edge:#?}\nbare Envoy: {bare:#?}");
    let own: Vec<_> = edge.difference(&bare).collect();
    assert!(own.is_empty(), "these pass in bare Envoy: {own:?}");
    edge
}

#[tokio::test]
async fn every_request_that_h2spec_finds_malformed_is_a_stream_error() {
    let failing = compare(false, &MESSAGES).await;
    assert!(failing.is_empty(), "{failing:?}");
}

/// Checks that the page lists each test that fails.
async fn fails_as_listed(tls: bool) {
    let failing = compare(tls, &[]).await;
    let page = include_str!("../../../../bench/CONFORMANCE.md");
    let is_listed = |name: &&String| page.contains(&format!("| `{name}` |"));
    let unlisted: Vec<_> = failing.iter().filter(|name| !is_listed(name)).collect();
    assert!(
        unlisted.is_empty(),
        "these do not pass, and bench/CONFORMANCE.md does not say why: {unlisted:#?}"
    );
}

#[tokio::test]
#[ignore = "long: make conformance"]
async fn what_h2spec_finds_is_what_the_page_says_in_cleartext() {
    fails_as_listed(false).await;
}

#[tokio::test]
#[ignore = "long: make conformance"]
async fn what_h2spec_finds_is_what_the_page_says_over_tls() {
    fails_as_listed(true).await;
}
