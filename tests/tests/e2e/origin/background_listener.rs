// SPDX-License-Identifier: Apache-2.0
//! The listener for background requests trusts only requests with the secret of the filter's VM.

use sluice_tests::client;
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::origin::{Origin, Reply};

/// Header by which the filter's roles and listeners authenticate requests to each other.
const LINK: &str = "x-sluice-link";

/// An edge with one worker whose background listener accepts connections at `port`.
fn exposed(edge: Builder, port: u16) -> Builder {
    let exposed = Direct {
        background_port: Some(port),
        ..Direct::default()
    };
    edge.workers(1).direct(exposed)
}

#[tokio::test]
async fn a_request_with_a_forged_link_is_refused_without_an_origin_request() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000).max_age(60));
    let port = free_port();
    let edge = exposed(Edge::http(&origin), port);
    let edge = edge.start().await;
    for link in [
        "",
        "1",
        "p:1:1",
        "0000000000000000.r.1.1",
        "r 1 1 0123456789abcdef",
    ] {
        for path in ["/a", "/..%2fother/x"] {
            let headers = [
                (LINK, link),
                ("x-sluice-path", "/secret"),
                ("x-sluice-proof", "1"),
            ];
            let refused = client::send(loopback(port), "GET", path, &headers).await;
            assert_eq!(refused.status, 503, "{link:?}: {refused}");
            assert!(!refused.headers.any_with_prefix("x-sluice-"), "{refused}");
        }
    }
    assert_eq!(origin.requests().total(), 0);
    // The control: on the listener for clients the same fields have no effect.
    let headers = [(LINK, "1"), ("x-sluice-path", "/secret")];
    let served = edge.send("GET", "/a", &headers).await;
    assert_eq!(served.status, 200, "{served}");
    assert_eq!((origin.count("/a"), origin.requests().total()), (1, 1));
}

#[tokio::test]
async fn a_request_without_a_link_is_treated_as_a_clients() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000).max_age(60));
    let port = free_port();
    let edge = exposed(Edge::scripted_bucket(&origin), port);
    let _edge = edge.start().await;
    for (method, path, status) in [
        ("GET", "/..%2fother/x", 400),
        ("DELETE", "/a", 405),
        ("GET", "/a?acl", 200),
    ] {
        let headers = [("x-sluice-path", "/other/x"), ("x-sluice-proof", "1")];
        let response = client::send(loopback(port), method, path, &headers).await;
        assert_eq!(response.status, status, "{method} {path}: {response}");
    }
    let asked = origin.requests().all();
    let targets: Vec<_> = asked.iter().map(|asked| asked.target.as_str()).collect();
    assert_eq!(targets, ["/site/a"]);
}
