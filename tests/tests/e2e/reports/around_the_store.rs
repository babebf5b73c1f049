// SPDX-License-Identifier: Apache-2.0
//! A response to a request that is sent around the store is never stored, whatever the headers of the request.

use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::request;
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Medium;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use test_case::test_case;

/// Headers of requests that are sent around the store: none, because their key is hit-for-miss; credentials; a range.
const WAYS: [&[(&str, &str)]; 3] = [
    &[],
    &[("authorization", "Basic x")],
    &[("range", "bytes=0-9")],
];

/// An origin whose first response for each URL is for its client alone, and whose later ones any cache would store.
async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    for way in 0..WAYS.len() {
        let private = Reply::ok(1_000).header("cache-control", "private");
        let public = Reply::ok(1_000).header("cache-control", "public, max-age=60");
        origin.on_each(&format!("/{way}"), [private, public]);
    }
    origin
}

/// A request with an empty `If-Range`, as an attacker sent it to the native edge: the response was stored for all
/// clients.
#[test_case(Medium::Memory; "in memory")]
#[test_case(Medium::Disk; "on disk")]
#[tokio::test]
async fn an_empty_if_range_leads_nothing_into_the_store(medium: Medium) {
    let origin = origin().await;
    let edge = Edge::http(&origin).medium(medium).workers(1).start().await;
    for (way, headers) in WAYS.iter().enumerate() {
        let path = format!("/{way}");
        assert_eq!(edge.get(&path).await.status, 200);
        let headers = [
            *headers,
            &[("x-forwarded-host", "evil.test"), ("if-range", "")],
        ]
        .concat();
        let attack = edge.send("GET", &path, &headers).await;
        assert_eq!(
            attack.header("cache-control"),
            "public, max-age=60",
            "{attack}"
        );
        assert!(!attack.headers.any_with_prefix("x-sluice-"), "{attack}");
        let asked = origin.count(&path);
        let victim = edge.get(&path).await;
        assert!(!victim.is_hit(), "{headers:?}: {victim}");
        assert_eq!(origin.count(&path), asked + 1, "{headers:?}");
        let sent = origin.requests().all();
        assert!(
            sent.iter()
                .all(|request| request.headers.get("if-range").is_none())
        );
    }
    assert_eq!(edge.counter("sluice_host_errors").await, 0);
}

/// Eight such requests, whose clients left during the response, ended Envoy.
#[test_case(Medium::Memory; "in memory")]
#[test_case(Medium::Disk; "on disk")]
#[tokio::test]
async fn clients_that_leave_after_an_empty_if_range_do_no_harm(medium: Medium) {
    const CLIENTS: usize = 8;
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let private = Reply::ok(1_000).header("cache-control", "private");
    let slow = Reply::ok(500_000).max_age(60).hold_after(100_000, &gate);
    origin.on_each("/a", [private, slow]);
    let mut edge = Edge::http(&origin).medium(medium).workers(1).start().await;
    assert_eq!(edge.get("/a").await.status, 200);
    let crowd = Crowd::connect(edge.address(), CLIENTS).await;
    let flight = crowd.fire_each(|_| request("GET", "/a", &[("if-range", "")]));
    gate.wait_reached(CLIENTS).await;
    drop(flight);
    // The worker learns of the closed connections before it answers the next requests.
    for _ in 0..3 {
        assert_eq!(edge.get("/b").await.status, 404);
    }
    gate.open();
    let after = edge.get("/a").await;
    assert_eq!((after.status, after.is_hit()), (200, false), "{after}");
    edge.check();
}
