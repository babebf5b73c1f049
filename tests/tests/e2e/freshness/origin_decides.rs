// SPDX-License-Identifier: Apache-2.0
//! The responses that an edge in front of an HTTP origin stores unchanged, without a policy from the user.

use sluice_tests::client::crowd::Crowd;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::http::http_date;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::{Duration, SystemTime};

const CLIENTS: usize = 20;
const START_LINE: &str = "a response is cached only if the origin says so";

#[tokio::test]
async fn what_says_nothing_of_caching_is_shared_with_those_who_wait_and_is_not_kept() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin)
        .origin_decides()
        .workers(1)
        .start()
        .await;
    for fetches in 1..=2 {
        let gate = Gate::new();
        origin.on("/a", Reply::ok(5_000).hold(&gate));
        let flight = Crowd::connect(edge.address(), CLIENTS).await.fire("/a");
        edge.wait_for_counter("sluice_parked_now", CLIENTS as u64 - 1)
            .await;
        gate.open();
        let outcomes = flight.land().await;
        outcomes.same_object("/a");
        assert_eq!(outcomes.collapsed(), CLIENTS - 1);
        assert_eq!(origin.count("/a"), fetches);
    }
}

#[tokio::test]
async fn what_says_when_it_was_changed_is_kept_for_a_tenth_of_the_time_since() {
    let origin = Origin::start().ready().await;
    // On a busy machine the start may take longer than the second in which the lifetime is exact.
    let edge = Edge::http(&origin).origin_decides().start().await;
    let changed = |seconds| http_date(SystemTime::now() - Duration::from_secs(seconds));
    for (path, seconds) in [("/new", 1_000), ("/old", 1_000_000)] {
        let reply = Reply::ok(5_000).header("last-modified", &changed(seconds));
        origin.on(path, reply);
    }
    for (path, ttl) in [("/new", "ttl=100"), ("/old", "ttl=3600")] {
        let response = edge.get(path).await;
        let status = response.cache_status();
        assert!(status.ends_with(&format!("stored; {ttl}")), "{response}");
    }
    edge.wait_for_log(START_LINE).await;
}

#[tokio::test]
async fn control_an_edge_with_a_policy_of_its_user_does_not_explain_the_default() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).start().await;
    edge.wait_for_log("admin interface").await;
    assert!(edge.log_lines(START_LINE).is_empty());
}

#[tokio::test]
async fn while_the_origin_fails_what_it_has_said_something_of_is_served_stale() {
    let origin = Origin::start().ready().await;
    origin.on_each("/a", [Reply::ok(5_000).max_age(1), Reply::status(503)]);
    origin.on_each(
        "/strict",
        [
            Reply::ok(5_000).header("cache-control", "max-age=1, must-revalidate"),
            Reply::status(503),
        ],
    );
    let edge = Edge::http(&origin).origin_decides().start().await;
    let first = edge.get("/a").await.stamp("/a");
    edge.get("/strict").await;
    eventually("the response is stale", async || {
        let response = edge.get("/a").await;
        assert_eq!(response.stamp("/a"), first, "{response}");
        response
            .cache_status()
            .contains("fwd=stale; fwd-status=503")
    })
    .await;
    assert_eq!(edge.get("/strict").await.status, 503);
}

#[tokio::test]
async fn microcache_keeps_what_says_nothing_for_a_second_and_serves_it_while_it_is_renewed() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on_each("/a", [Reply::ok(5_000), Reply::ok(5_000).hold(&gate)]);
    let edge = Edge::http(&origin)
        .env("SLUICE_POLICY", "microcache")
        .start()
        .await;
    let first = edge.get("/a").await.stamp("/a");
    // The second request to the origin is held, and clients get the first response meanwhile.
    eventually("the response is renewed", async || {
        let response = edge.get("/a").await;
        assert_eq!(response.stamp("/a"), first, "{response}");
        origin.count("/a") == 2
    })
    .await;
    assert_eq!(edge.get("/a").await.stamp("/a"), first);
    gate.open();
    eventually("the new response is served", async || {
        edge.get("/a").await.stamp("/a") != first
    })
    .await;
}
