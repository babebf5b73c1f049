// SPDX-License-Identifier: Apache-2.0
//! A failing origin gets one request: followers share their leader's response.

use sluice_tests::bare::Bare;
use sluice_tests::client::Response;
use sluice_tests::client::crowd::{Crowd, Outcomes, stampede};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Store;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use test_case::test_case;

const CLIENTS: usize = 40;

/// Checks that each client gets a complete response which reports that the origin has failed.
fn assert_all_are_told(outcomes: &Outcomes) {
    let tally = outcomes.tally();
    let is_told = |response: &&Response| (502..=504).contains(&response.status);
    let told = outcomes.responses().filter(is_told).count();
    assert_eq!(told, CLIENTS, "{tally:?}");
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn followers_share_a_server_error(workers: usize) {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(workers).start().await;
    for status in [500, 502, 503, 504] {
        let path = format!("/{status}");
        let gate = Gate::new();
        origin.on(&path, Reply::status(status).hold(&gate));
        let flight = Crowd::connect(edge.address(), CLIENTS).await.fire(&path);
        gate.wait_reached(1).await;
        edge.wait_for_value("sluice_parked_now", CLIENTS as u64 - 1)
            .await;
        gate.open();
        flight.land().await.all(status);
        assert_eq!(origin.count(&path), 1, "{status}");
        // The next followers are counted from zero.
        edge.wait_for_value("sluice_parked_now", 0).await;
    }
}

/// A reply within a callback would be sent inside the previous reply, and the VM traps when the stack is full.
#[tokio::test]
async fn a_thousand_followers_share_a_server_error_of_one_leader() {
    const FOLLOWERS: usize = 1_000;
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(1).start().await;
    let gate = Gate::new();
    origin.on("/a", Reply::status(503).hold(&gate));
    let crowd = Crowd::connect(edge.address(), 1 + FOLLOWERS).await;
    let flight = crowd.fire("/a");
    gate.wait_reached(1).await;
    edge.wait_for_value("sluice_parked_now", FOLLOWERS as u64)
        .await;
    gate.open();
    flight.land().await.all(503);
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn followers_share_a_status_that_envoys_store_does_not_keep() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(2).start().await;
    for status in [302, 303, 307] {
        let path = format!("/{status}");
        let gate = Gate::new();
        origin.on(
            &path,
            Reply::status(status)
                .header("location", "/elsewhere")
                .max_age(60)
                .hold(&gate),
        );
        let flight = Crowd::connect(edge.address(), CLIENTS).await.fire(&path);
        gate.wait_reached(1).await;
        edge.wait_for_counter("sluice_parked_now", CLIENTS as u64 - 1)
            .await;
        gate.open();
        for response in flight.land().await.all(status) {
            assert_eq!(response.header("location"), "/elsewhere");
            assert!(!response.headers.any_with_prefix("x-sluice-"), "{response}");
        }
        assert_eq!(origin.count(&path), 1, "{status}");
    }
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn followers_share_a_reset_before_headers(workers: usize) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(1000).hold(&gate).reset());
    let edge = Edge::http(&origin).workers(workers).start().await;
    let flight = Crowd::connect(edge.address(), CLIENTS).await.fire("/a");
    edge.wait_for_counter("sluice_parked_now", CLIENTS as u64 - 1)
        .await;
    gate.open();
    let outcomes = flight.land().await;
    assert_all_are_told(&outcomes);
    // Envoy repeats the leader's request once.
    assert_eq!(origin.count("/a"), 2);
}

#[tokio::test]
async fn a_body_cut_by_the_origin_is_never_served_as_whole() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(2).start().await;
    let cuts = [
        ("/reset", Reply::ok(200_000).reset_after(50_000)),
        ("/closed", Reply::ok(200_000).close_after(50_000)),
        ("/chunked", Reply::ok(200_000).chunked().reset_after(50_000)),
    ];
    for (path, cut) in cuts {
        let gate = Gate::new();
        origin.on_each(path, [cut.hold(&gate), Reply::ok(200_000)]);
        let flight = Crowd::connect(edge.address(), 20).await.fire(path);
        gate.wait_reached(1).await;
        edge.wait_for_counter("sluice_parked_now", 19).await;
        gate.open();
        // A response may be cut, an error, or a complete later response, but never a 200 that ends in order and is
        // incomplete.
        for response in flight
            .land()
            .await
            .responses()
            .filter(|response| response.status == 200)
        {
            let _ = response.stamp(path);
        }
        assert_eq!(edge.get(path).await.stamp(path).size, 200_000);
        assert!(
            origin.count(path) <= 4,
            "{path}: {} requests",
            origin.count(path)
        );
    }
}

#[tokio::test]
async fn an_origin_that_refuses_connections_is_answered_for_and_comes_back() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000));
    let edge = Edge::http(&origin).workers(2).start().await;
    origin.refuse().await;
    let outcomes = stampede(edge.address(), CLIENTS, "/a").await;
    assert_all_are_told(&outcomes);
    origin.listen().await;
    eventually("the object", async || edge.get("/a").await.status == 200).await;
    edge.wait_for_counter_until("none waits", "sluice_parked_now", |parked| parked == 0)
        .await;
}

#[tokio::test]
async fn an_error_does_not_outlive_those_who_wait_for_it() {
    let origin = Origin::start().ready().await;
    origin.on_each("/a", [Reply::status(503), Reply::ok(1000)]);
    let edge = Edge::http(&origin).workers(2).start().await;
    let error = edge.get("/a").await;
    assert_eq!(error.status, 503);
    assert!(!error.cache_status().contains("ttl"), "{error}");
    assert_eq!(edge.get("/a").await.status, 200);
}

#[tokio::test]
async fn an_error_that_may_live_does_not_outlive_its_second() {
    let origin = Origin::start().ready().await;
    let error = Reply::status(503).max_age(600);
    origin.on_each("/a", [error, Reply::ok(1000)]);
    let edge = Edge::http(&origin).workers(2).start().await;
    let error = edge.get("/a").await;
    assert_eq!(error.status, 503);
    assert!(error.cache_status().ends_with("; ttl=1"), "{error}");
    eventually("the object", async || edge.get("/a").await.status == 200).await;
}

#[test_case(1, 431; "with one worker")]
#[test_case(2, 431; "with two workers")]
#[test_case(2, 429; "too many requests of a client")]
#[tokio::test]
async fn nobody_shares_an_error_that_a_request_may_have_caused(workers: usize, status: u16) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let error = Reply::status(status).max_age(600).hold(&gate);
    origin.on_each("/a", [error, Reply::ok(1000).max_age(600)]);
    let edge = Edge::http(&origin).workers(workers).start().await;
    let flight = Crowd::connect(edge.address(), CLIENTS).await.fire("/a");
    gate.wait_reached(1).await;
    edge.wait_for_counter("sluice_parked_now", CLIENTS as u64 - 1)
        .await;
    gate.open();
    let outcomes = flight.land().await;
    let of = |status| move |response: &&Response| response.status == status;
    assert_eq!(outcomes.responses().filter(of(status)).count(), 1);
    assert_eq!(outcomes.responses().filter(of(200)).count(), CLIENTS - 1);
    // The followers may have a copy before the store has the object.
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    assert_eq!(origin.count("/a"), 2);
}

#[tokio::test]
async fn control_bare_envoy_shares_no_error() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::status(503));
    let bare = Bare::start(&origin, Store::V1_DISK, 2).await;
    stampede(bare.address(), CLIENTS, "/a").await.all(503);
    assert_eq!(origin.count("/a"), CLIENTS);
}
