// SPDX-License-Identifier: Apache-2.0
//! Clients outside of the allowed networks get nothing, whatever the edge has.

use serde_json::json;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::Purger;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

use super::world::{INSIDE, OUTSIDE, Rules, assert_refused, origin, send};

const RULES: &str = "allow: [10.0.0.0/8]\nexcept: ['/public/*']\n";

/// Spellings of `/private/x`, and of other ways to it.
const SPELLINGS: [&str; 8] = [
    "/private/x",
    "/./private/x",
    "/a/../private/x",
    "/%70rivate/x",
    "/public/../private/x",
    "/public/%2e%2e/private/x",
    "/public/..%2fprivate/x",
    "/private/x?/public/",
];

/// Checks that a client outside gets no byte in any spelling, by any method, with any header.
async fn assert_closed(edge: &Edge, when: &str) {
    for path in SPELLINGS {
        for method in ["GET", "HEAD", "POST", "OPTIONS", "DELETE"] {
            let response = send(edge, OUTSIDE, method, path).await;
            let what = format!("{when}: {method} {path}");
            if response.status != 400 {
                assert_refused(&response, &what);
            }
        }
    }
    for (name, value) in [
        ("range", "bytes=0-9"),
        ("if-none-match", "*"),
        ("cache-control", "only-if-cached"),
        ("authorization", "Bearer x"),
        ("x-sluice-link", "f0"),
        ("x-envoy-original-path", "/public/x"),
        ("x-real-ip", INSIDE),
        ("forwarded", "for=10.1.2.3"),
        ("upgrade", "websocket"),
    ] {
        let headers = [("x-forwarded-for", OUTSIDE), (name, value)];
        let response = edge.send("GET", "/private/x", &headers).await;
        assert_refused(&response, &format!("{when}: {name}"));
    }
    // The trusted proxy has appended the last address, and a client may send all in front of it.
    let forged = [("x-forwarded-for", "10.1.2.3, 198.51.100.7")];
    let response = edge.send("GET", "/private/x", &forged).await;
    assert_refused(&response, &format!("{when}: a forged address"));
}

#[tokio::test]
async fn nobody_outside_gets_a_byte_whether_it_is_cold_stored_hot_or_purged() {
    let (origin, rules, purger) = (origin().await, Rules::new(RULES), Purger::new());
    let edge = purger.open(rules.edge(&origin)).workers(2).start().await;
    assert_closed(&edge, "cold").await;
    assert_eq!(origin.requests().total(), 0);
    let first = send(&edge, INSIDE, "GET", "/private/x").await;
    assert_eq!(first.status, 200, "{first}");
    assert!(
        first.header("cache-control").starts_with("private, "),
        "{first}"
    );
    assert_closed(&edge, "stored").await;
    let mut connection = Client::connect(edge.address()).await;
    let inside = [("x-forwarded-for", INSIDE)];
    let hot = connection.heat("/private/x", &inside).await;
    assert!(
        hot.header("cache-control").starts_with("private, "),
        "{hot}"
    );
    for _ in 0..4 {
        assert_closed(&edge, "hot").await;
    }
    purger.purge(json!({"everything": true})).await;
    assert_closed(&edge, "purged").await;
    assert_eq!(
        origin.requests().total(),
        1,
        "{}",
        origin.requests().summary()
    );
    let open = send(&edge, OUTSIDE, "GET", "/public/x").await;
    assert_eq!(open.status, 200, "{open}");
    let refused = edge.counter("sluice_access_refused_by_allow").await;
    assert!(refused > 200, "{refused}");
}

#[tokio::test]
async fn nobody_outside_shares_the_flight_of_somebody_inside() {
    let (origin, rules) = (Origin::start().ready().await, Rules::new(RULES));
    let gate = Gate::new();
    origin.on("*", Reply::ok(5_000).max_age(600).hold(&gate));
    let edge = rules.edge(&origin).workers(2).start().await;
    let inside = request("GET", "/private/x", &[("x-forwarded-for", INSIDE)]);
    let mut leader = Client::connect(edge.address()).await;
    leader.send(&inside).await.unwrap();
    gate.wait_reached(1).await;
    for _ in 0..4 {
        let outside = send(&edge, OUTSIDE, "GET", "/private/x").await;
        assert_refused(&outside, "beside a flight");
    }
    gate.open();
    assert_eq!(leader.response().await.unwrap().status, 200);
    assert_eq!(origin.requests().total(), 1);
}

#[tokio::test]
async fn the_edges_own_requests_reach_a_protected_object() {
    let (origin, rules) = (Origin::start().ready().await, Rules::new(RULES));
    let stale = "max-age=1, stale-while-revalidate=600";
    origin.on(
        "/private/x",
        Reply::ok(1_000).header("cache-control", stale),
    );
    origin.on("/large.iso", Reply::ok(3 << 20).max_age(600).version(1));
    let edge = rules.edge(&origin).origin_decides();
    let edge = edge
        .env("SLUICE_SLICE_BYTES", "1MiB")
        .env("SLUICE_CACHE_MAX_OBJECT_BYTES", "2MiB")
        .start()
        .await;
    send(&edge, INSIDE, "GET", "/private/x").await;
    eventually("a refresh in the background", async || {
        send(&edge, INSIDE, "GET", "/private/x").await;
        origin.count("/private/x") >= 2
    })
    .await;
    let large = send(&edge, INSIDE, "GET", "/large.iso").await;
    assert_eq!((large.status, large.body.len()), (200, 3 << 20), "{large}");
    assert!(
        large.header("cache-control").starts_with("private, "),
        "{large}"
    );
    assert_refused(
        &send(&edge, OUTSIDE, "GET", "/large.iso").await,
        "a sliced object",
    );
}
