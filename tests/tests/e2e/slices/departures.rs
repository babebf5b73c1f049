// SPDX-License-Identifier: Apache-2.0
//! A client that leaves in the middle costs at most the slices that are under way, and they are stored.

use super::world::{Asked, KNOWN, assert_whole, edge, object, origin, settle};
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::origin::Origin;
use sluice_tests::server::gate::Gate;
use sluice_tests::server::requests::State;
use std::time::Duration;
use test_case::test_case;

/// Number of slices that are requested ahead of a client.
const AHEAD: usize = 3;

/// An edge whose workers have carriers for requests for slices.
async fn start_edge(origin: &Origin) -> Edge {
    let edge = edge(origin).workers(2).start().await;
    let carriers = "http.sluice_slice_carriers.downstream_rq_active";
    edge.wait_for_value(carriers, 2).await;
    edge
}

/// An origin that takes half a second for each slice.
async fn start() -> (Origin, Edge) {
    let slow = object(1).pace(64 << 10, Duration::from_millis(30));
    let origin = origin(&slow).await;
    let edge = start_edge(&origin).await;
    (origin, edge)
}

/// Checks that few slices were requested, that all of them arrive, and that the next client gets them from the store.
async fn assert_few_slices(origin: &Origin, edge: &Edge) {
    edge.wait_for_value("sluice_flights_now", 0).await;
    settle(origin).await;
    let requests = origin.requests();
    let before = Asked::of(requests, KNOWN);
    assert!((1..=1 + AHEAD).contains(&before.slices.len()), "{before:?}");
    let all = requests.of(KNOWN);
    let abandoned = all.iter().filter(|it| it.state == State::Abandoned).count();
    assert_eq!(abandoned, 0, "{before:?}");
    origin.on(KNOWN, object(1));
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    let after = Asked::of(requests, KNOWN);
    assert_eq!((after.heads, after.wholes), (1, 0));
    after.assert_each_slice_once();
}

#[test_case(true; "with a reset")]
#[test_case(false; "in order")]
#[tokio::test]
async fn a_client_that_leaves_costs_few_slices(resets: bool) {
    let (origin, edge) = start().await;
    let mut client = Client::connect(edge.address()).await;
    client.send(request("GET", KNOWN, &[])).await.unwrap();
    client.head().await.unwrap();
    if resets {
        client.reset();
    } else {
        client.finish().await;
    }
    assert_few_slices(&origin, &edge).await;
}

#[tokio::test]
async fn a_client_that_leaves_before_the_origin_answers_costs_few_slices() {
    let origin = origin(&object(1)).await;
    let edge = start_edge(&origin).await;
    edge.send("HEAD", KNOWN, &[]).await;
    let gate = Gate::new();
    origin.on(KNOWN, object(1).hold(&gate));
    let mut client = Client::connect(edge.address()).await;
    client.send(request("GET", KNOWN, &[])).await.unwrap();
    gate.wait_reached(1).await;
    client.reset();
    edge.wait_for_value("http.sluice_slices.downstream_rq_active", 0)
        .await;
    gate.open();
    assert_few_slices(&origin, &edge).await;
}

#[tokio::test]
async fn an_http2_stream_that_is_reset_costs_few_slices() {
    let (origin, edge) = start().await;
    let connection = Http2::connect(edge.address()).await;
    let mut stream = connection.start("GET", KNOWN, &[]).await.unwrap();
    assert_eq!(stream.head().await.unwrap().0, 200);
    stream.reset(h2::Reason::CANCEL);
    assert_few_slices(&origin, &edge).await;
}

#[tokio::test]
async fn a_follower_goes_on_when_the_leader_leaves() {
    let (origin, edge) = start().await;
    let mut leader = Client::connect(edge.address()).await;
    leader.send(request("GET", KNOWN, &[])).await.unwrap();
    leader.head().await.unwrap();
    let mut follower = Client::connect(edge.address()).await;
    follower.send(request("GET", KNOWN, &[])).await.unwrap();
    let (head, response) = follower.head().await.unwrap();
    leader.reset();
    origin.on(KNOWN, object(1));
    assert_whole(&follower.rest(&head, response).await.unwrap(), KNOWN, 1);
    Asked::of(origin.requests(), KNOWN).assert_each_slice_once();
}
