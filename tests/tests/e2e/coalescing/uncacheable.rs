// SPDX-License-Identifier: Apache-2.0
//! Followers of a response that is not stored continue in parallel, and the key is remembered as uncacheable
//! (hit-for-miss).

use sluice_tests::client::crowd::Crowd;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use test_case::test_case;

const CLIENTS: usize = 40;

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn uncacheable_headers_send_all_followers_on_in_parallel(workers: usize) {
    let origin = Origin::start().ready().await;
    let (first, others) = (Gate::new(), Gate::new());
    let private = || Reply::ok(1000).header("cache-control", "private");
    // The leader's body is held: its headers alone must be enough.
    let last = Gate::new();
    origin.on_each(
        "/a",
        [
            private().hold(&first).hold_after(100, &last),
            private().hold(&others),
        ],
    );
    let edge = Edge::http(&origin).workers(workers).start().await;
    let flight = Crowd::connect(edge.address(), CLIENTS).await.fire("/a");
    edge.wait_for_counter("sluice_parked_now", CLIENTS as u64 - 1)
        .await;
    origin.wait_for_requests("/a", 1).await;
    assert_eq!(origin.count("/a"), 1);
    first.open();
    // All requests are at the origin at the same time: none waits for another.
    others.wait_reached(CLIENTS - 1).await;
    others.open();
    last.open();
    let outcomes = flight.land().await;
    let stamps: std::collections::BTreeSet<_> =
        outcomes.all(200).iter().map(|r| r.stamp("/a")).collect();
    assert_eq!(stamps.len(), CLIENTS, "private answers were shared");
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_key_found_uncacheable_is_never_serialised_again(workers: usize) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let private = || Reply::ok(1000).header("cache-control", "no-store");
    origin.on_each("/a", [private(), private().hold(&gate)]);
    // The mark belongs to one worker or to all, so each worker may learn it once.
    let edge = Edge::http(&origin).workers(workers).start().await;
    let _ = edge.get("/a").await.stamp("/a");
    let flight = Crowd::connect(edge.address(), CLIENTS).await.fire("/a");
    if workers == 1 {
        gate.wait_reached(CLIENTS).await;
        assert_eq!(edge.counter("sluice_followers_parked").await, 0);
        assert!(edge.counter("sluice_requests_hit_for_miss").await >= CLIENTS as u64);
    } else {
        gate.wait_reached(1).await;
    }
    gate.open();
    flight.land().await.all(200);
    assert_eq!(origin.count("/a"), CLIENTS + 1);
}

#[tokio::test]
async fn every_reason_not_to_store_frees_the_followers() {
    let reasons: [(&str, Reply); 8] = [
        (
            "private",
            Reply::ok(1000).header("cache-control", "private"),
        ),
        (
            "no-store",
            Reply::ok(1000).header("cache-control", "no-store"),
        ),
        ("a cookie", Reply::ok(1000).header("set-cookie", "id=1")),
        ("a length above the bound", Reply::ok(40_000)),
        ("Vary: *", Reply::ok(1000).header("vary", "*")),
        (
            "a Vary that matters",
            Reply::ok(1000).header("vary", "user-agent"),
        ),
        ("a status with no TTL", Reply::new(410, 1000)),
        (
            "max-age=0",
            Reply::ok(1000).header("cache-control", "max-age=0"),
        ),
    ];
    let origin = Origin::start().ready().await;
    let policy = "origin: {kind: http}\ncache: {ttl: {\"200\": 1h, \"410\": 0s}}\n";
    let edge = Edge::http(&origin)
        .env("SLUICE_CACHE_MAX_OBJECT_BYTES", "20000")
        .policy(policy);
    let edge = edge.start().await;
    for (n, (reason, reply)) in reasons.iter().enumerate() {
        let path = format!("/{n}");
        let (first, others) = (Gate::new(), Gate::new());
        origin.on_each(
            &path,
            [reply.clone().hold(&first), reply.clone().hold(&others)],
        );
        let flight = Crowd::connect(edge.address(), 10).await.fire(&path);
        first.wait_reached(1).await;
        edge.wait_for_counter("sluice_parked_now", 9).await;
        first.open();
        others.wait_reached(9).await;
        others.open();
        let stamps: std::collections::BTreeSet<_> = flight
            .land()
            .await
            .responses()
            .map(|response| response.stamp(&path))
            .collect();
        assert_eq!(stamps.len(), 10, "{reason} was shared");
    }
}

#[tokio::test]
async fn hit_for_miss_ends_after_its_time() {
    let origin = Origin::start().ready().await;
    origin.on_each(
        "/a",
        [
            Reply::ok(1000).header("cache-control", "no-store"),
            Reply::ok(1000).max_age(60),
        ],
    );
    let policy = "origin: {kind: http}\ncache: {hit_for_miss: 500ms}\n";
    let edge = Edge::http(&origin).policy(policy).start().await;
    let _ = edge.get("/a").await.stamp("/a");
    eventually("the key is cached", async || edge.get("/a").await.is_hit()).await;
}

#[tokio::test]
async fn control_without_coalescing_nobody_waits_for_an_uncacheable_answer() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on(
        "/a",
        Reply::ok(1000)
            .header("cache-control", "private")
            .hold(&gate),
    );
    let policy = "origin: {kind: http}\ncoalesce: {enabled: false}\n";
    let edge = Edge::http(&origin).policy(policy).start().await;
    let flight = Crowd::connect(edge.address(), CLIENTS).await.fire("/a");
    gate.wait_reached(CLIENTS).await;
    assert_eq!(edge.counter("sluice_followers_parked").await, 0);
    gate.open();
    flight.land().await.all(200);
}
