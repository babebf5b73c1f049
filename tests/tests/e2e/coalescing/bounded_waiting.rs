// SPDX-License-Identifier: Apache-2.0
//! No follower waits longer than `max_wait` for a leader that makes no progress. Each piece of a large body counts as
//! progress.

use sluice_tests::client::crowd::{Crowd, stampede};
use sluice_tests::edge::Edge;
use sluice_tests::machine::standstill::unless_the_machine_stands_still;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::cell::Cell;
use std::time::{Duration, Instant};
use test_case::test_case;

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn followers_go_upstream_after_max_wait(workers: usize) {
    let origin = Origin::start().ready().await;
    let (stuck, others) = (Gate::new(), Gate::new());
    origin.on_each(
        "/a",
        [Reply::ok(1000).hold(&stuck), Reply::ok(1000).hold(&others)],
    );
    let policy = "origin: {kind: http}\ncoalesce: {max_wait: 400ms}\n";
    let edge = Edge::http(&origin)
        .workers(workers)
        .policy(policy)
        .start()
        .await;
    let fired = Instant::now();
    let flight = Crowd::connect(edge.address(), 30).await.fire("/a");
    others.wait_reached(1).await;
    assert!(
        fired.elapsed() >= Duration::from_millis(350),
        "after {:?}",
        fired.elapsed()
    );
    others.wait_reached(29).await;
    others.open();
    stuck.open();
    flight.land().await.all(200);
    assert!(edge.counter("sluice_wait_timeouts").await >= 1);
    edge.wait_for_value("sluice_parked_now", 0).await;
}

#[tokio::test]
async fn followers_whose_wait_ends_go_upstream_in_growing_batches() {
    let origin = Origin::start().ready().await;
    let stuck = Gate::new();
    origin.on("/a", Reply::ok(1000).hold(&stuck));
    let policy = "origin: {kind: http}\ncoalesce: {max_wait: 400ms}\n";
    let edge = Edge::http(&origin).workers(1).policy(policy).start().await;
    let flight = Crowd::connect(edge.address(), 200).await.fire("/a");
    // The batches are 1, 2, 4, … followers, each 100 ms after the last.
    let first = Cell::new(0);
    edge.wait_for_counter_until("one leaves", "sluice_wait_timeouts", |left| {
        first.set(left);
        left > 0
    })
    .await;
    let first = first.get();
    assert!(first < 100, "{first} of 199 followers leave at once");
    origin.wait_for_requests("/a", 200).await;
    stuck.open();
    flight.land().await.all(200);
}

#[tokio::test]
async fn followers_share_the_late_answer_of_the_first_that_gave_up_waiting() {
    let origin = Origin::start().ready().await;
    let stuck = Gate::new();
    // Only the leader's request hangs.
    origin.on_each("/a", [Reply::ok(1000).hold(&stuck), Reply::ok(1000)]);
    let policy = "origin: {kind: http}\ncoalesce: {max_wait: 400ms}\n";
    let edge = Edge::http(&origin).policy(policy).start().await;
    let leader = Crowd::connect(edge.address(), 1).await.fire("/a");
    stuck.wait_reached(1).await;
    Crowd::connect(edge.address(), 20)
        .await
        .fire("/a")
        .land()
        .await
        .all(200);
    stuck.open();
    leader.land().await.all(200);
}

#[tokio::test]
async fn a_slow_large_fill_is_no_reason_to_storm_the_origin() {
    // 30 pieces, one each 150 ms. Together they take longer than `max_wait`, but no pause is as long.
    let slack = Duration::from_secs(2);
    unless_the_machine_stands_still(slack, async || {
        let origin = Origin::start().ready().await;
        let slow = Reply::ok(300_000).pace(10_000, Duration::from_millis(150));
        origin.on("/a", slow);
        let policy = "origin: {kind: http}\ncoalesce: {max_wait: 3s}\n";
        let edge = Edge::http(&origin).workers(2).policy(policy).start().await;
        let outcomes = stampede(edge.address(), 30, "/a").await;
        outcomes.same_object("/a");
        assert_eq!(origin.count("/a"), 1);
        assert_eq!(edge.counter("sluice_wait_timeouts").await, 0);
    })
    .await;
}

#[tokio::test]
async fn waiters_above_the_limit_pass_and_are_counted() {
    let origin = Origin::start().ready().await;
    let (first, others) = (Gate::new(), Gate::new());
    let private = || Reply::ok(1000).header("cache-control", "private");
    origin.on_each("/a", [private().hold(&first), private().hold(&others)]);
    let policy = "origin: {kind: http}\nlimits: {waiters_per_key: 5}\n";
    let edge = Edge::http(&origin).workers(1).policy(policy).start().await;
    let flight = Crowd::connect(edge.address(), 20).await.fire("/a");
    others.wait_reached(14).await;
    edge.wait_for_value("sluice_parked_now", 5).await;
    edge.wait_for_value("sluice_limits_reached", 14).await;
    first.open();
    others.open();
    flight.land().await.all(200);
}

#[tokio::test]
async fn keys_above_the_limit_pass_and_are_counted() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/k*", Reply::ok(1000).hold(&gate));
    let policy = "origin: {kind: http}\nlimits: {keys_in_flight: 4}\n";
    let edge = Edge::http(&origin).workers(1).policy(policy).start().await;
    let crowd = Crowd::connect(edge.address(), 20).await;
    let flight = crowd.fire_each(|n| sluice_tests::client::request("GET", &format!("/k{n}"), &[]));
    gate.wait_reached(20).await;
    edge.wait_for_value("sluice_limits_reached", 16).await;
    edge.wait_for_value("sluice_flights_now", 4).await;
    gate.open();
    flight.land().await.all(200);
}
