// SPDX-License-Identifier: Apache-2.0
//! A leader that leaves hands over at once: no follower waits for the end of the lease, and only one follower sends a
//! request to the origin.

use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::net::SocketAddr;
use test_case::test_case;

/// Both times are far longer than a test, so that their end cannot be the reason for its success.
const POLICY: &str = "origin: {kind: http}\ncoalesce: {lease: 600s, max_wait: 600s}\n";

/// Makes `followers` wait for a leader whose response is held. `lead` starts the leader and returns the function that
/// ends it.
///
/// The fill ends with its client, and one follower fetches the object again.
async fn leader_leaves_before_headers<Leave>(
    workers: usize,
    followers: usize,
    lead: impl AsyncFnOnce(SocketAddr) -> Leave,
) where
    Leave: AsyncFnOnce(),
{
    let origin = Origin::start().ready().await;
    let (first, second) = (Gate::new(), Gate::new());
    let held = [&first, &second].map(|gate| Reply::ok(20_000).hold(gate));
    origin.on_each("/a", held);
    let edge = Edge::http(&origin)
        .workers(workers)
        .policy(POLICY)
        .start()
        .await;
    let leave = lead(edge.address()).await;
    first.wait_reached(1).await;
    let flight = Crowd::connect(edge.address(), followers).await.fire("/a");
    edge.wait_for_counter("sluice_parked_now", followers as u64)
        .await;
    leave().await;
    edge.wait_for_counter("sluice_handovers", 1).await;
    second.wait_reached(1).await;
    first.open();
    second.open();
    flight.land().await.same_object("/a");
    assert_eq!(origin.count("/a"), 2);
    assert_eq!(edge.counter("sluice_handovers").await, 1);
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn leader_reset_before_headers_elects_one_follower(workers: usize) {
    leader_leaves_before_headers(workers, 30, async |address| {
        let mut leader = Client::connect(address).await;
        leader.send(request("GET", "/a", &[])).await.unwrap();
        async move || leader.reset()
    })
    .await;
}

#[tokio::test]
async fn leader_that_closes_in_order_before_headers_elects_one_follower() {
    leader_leaves_before_headers(2, 10, async |address| {
        let mut leader = Client::connect(address).await;
        leader.send(request("GET", "/a", &[])).await.unwrap();
        async move || leader.finish().await
    })
    .await;
}

#[tokio::test]
async fn http2_leader_stream_reset_before_headers_elects_one_follower() {
    leader_leaves_before_headers(2, 10, async |address| {
        let connection = Http2::connect(address).await;
        // The crowd's requests have the same host as the HTTP/2 client's.
        let leader = connection.start("GET", "/a", &[]).await.unwrap();
        async move || {
            leader.reset(h2::Reason::CANCEL);
            // The reset is written only while the connection exists.
            tokio::task::yield_now().await;
            drop(connection);
        }
    })
    .await;
}

#[tokio::test]
async fn each_vanished_leader_is_followed_by_one_other() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(20_000).hold(&gate));
    let edge = Edge::http(&origin).workers(2).policy(POLICY).start().await;
    // Each of these clients leads in turn, because fewer clients wait each time.
    let mut clients = Vec::new();
    for n in 0..6 {
        let mut client = Client::connect(edge.address()).await;
        client.send(request("GET", "/a", &[])).await.unwrap();
        clients.push(client);
        if n == 0 {
            gate.wait_reached(1).await;
        } else {
            edge.wait_for_counter("sluice_followers_parked", n).await;
        }
    }
    let last = clients.pop().unwrap();
    for client in clients {
        client.reset();
    }
    // In whichever order the followers are elected, the last one gets its response.
    edge.wait_for_counter_until("none waits", "sluice_parked_now", |parked| parked == 0)
        .await;
    gate.open();
    let mut last = last;
    let _ = last.response().await.unwrap().stamp("/a");
    assert!(origin.count("/a") <= 6, "{}", origin.count("/a"));
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn leader_reset_mid_body_costs_at_most_one_more_request(workers: usize) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on_each(
        "/a",
        [
            Reply::ok(400_000).hold_after(100_000, &gate),
            Reply::ok(400_000),
        ],
    );
    let edge = Edge::http(&origin)
        .workers(workers)
        .policy(POLICY)
        .start()
        .await;
    let mut leader = Client::connect(edge.address()).await;
    leader.send(request("GET", "/a", &[])).await.unwrap();
    leader.head().await.unwrap();
    let flight = Crowd::connect(edge.address(), 20).await.fire("/a");
    gate.wait_reached(1).await;
    edge.wait_for_counter("sluice_parked_now", 20).await;
    edge.wait_for_written(100_000).await;
    leader.reset();
    flight.land().await.same_object("/a");
    // The fill ends with its client, and one follower fetches the object again.
    assert_eq!(origin.count("/a"), 2);
}

#[tokio::test]
async fn followers_that_leave_are_forgotten() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(20_000).hold(&gate));
    let edge = Edge::http(&origin).workers(2).policy(POLICY).start().await;
    let leader = Crowd::connect(edge.address(), 1).await.fire("/a");
    gate.wait_reached(1).await;
    let mut followers = Vec::new();
    for _ in 0..10 {
        let mut follower = Client::connect(edge.address()).await;
        follower.send(request("GET", "/a", &[])).await.unwrap();
        followers.push(follower);
    }
    edge.wait_for_counter("sluice_parked_now", 10).await;
    followers.into_iter().for_each(Client::reset);
    edge.wait_for_counter_until("none waits", "sluice_parked_now", |parked| parked == 0)
        .await;
    gate.open();
    leader.land().await.same_object("/a");
    assert_eq!(origin.count("/a"), 1);
}
