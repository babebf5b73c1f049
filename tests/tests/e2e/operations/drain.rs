// SPDX-License-Identifier: Apache-2.0
//! On SIGTERM running requests complete, or are cut when their time is over, and the process exits with code 0.

use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::{Client, Failure, request};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

#[tokio::test]
async fn requests_under_way_end_before_the_edge_does() {
    let origin = Origin::start().ready().await;
    let (cold, body, around) = (Gate::new(), Gate::new(), Gate::new());
    origin.on("/cold", Reply::ok(100_000).hold(&cold));
    origin.on("/body", Reply::ok(400_000).hold_after(100_000, &body));
    origin.on("/post", Reply::ok(100_000).hold_after(1_000, &around));
    // This time is longer than any wait of a test: an edge that waits for its end fails the test.
    let builder = Edge::http(&origin).env("SLUICE_DRAIN_SECONDS", "3600");
    let mut edge = builder.start().await;
    // The requests wait for headers with parked followers, in the body, and around the store.
    let parked = Crowd::connect(edge.address(), 20).await.fire("/cold");
    let filling = Crowd::connect(edge.address(), 1).await.fire("/body");
    let passing = Crowd::connect(edge.address(), 1).await;
    let passing = passing.fire_each(|_| request("POST", "/post", &[("content-length", "0")]));
    edge.wait_for_value("sluice_parked_now", 19).await;
    body.wait_reached(1).await;
    around.wait_reached(1).await;
    edge.signal(libc::SIGTERM);
    eventually("it says that it drains", async || {
        edge.get("/healthz").await.status == 503
    })
    .await;
    assert!(edge.alive());
    for gate in [cold, body, around] {
        gate.open();
    }
    parked.land().await.same_object("/cold");
    filling.land().await.same_object("/body");
    passing.land().await.same_object("/post");
    let (code, log) = edge.ended().await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(origin.count("/cold"), 1);
}

#[tokio::test]
async fn requests_that_do_not_end_are_cut_and_never_look_whole() {
    let origin = Origin::start().ready().await;
    let (cold, body) = (Gate::new(), Gate::new());
    origin.on("/cold", Reply::ok(100_000).hold(&cold));
    origin.on("/body", Reply::ok(400_000).hold_after(100_000, &body));
    let builder = Edge::http(&origin).env("SLUICE_DRAIN_SECONDS", "1");
    let mut edge = builder.start().await;
    let parked = Crowd::connect(edge.address(), 20).await.fire("/cold");
    let mut filling = Client::connect(edge.address()).await;
    filling.send(request("GET", "/body", &[])).await.unwrap();
    edge.wait_for_value("sluice_parked_now", 19).await;
    body.wait_reached(1).await;
    edge.signal(libc::SIGTERM);
    let (code, log) = edge.ended().await;
    assert_eq!(code, Some(0), "{log}");
    let cut = filling.response().await;
    assert!(
        matches!(cut, Err(Failure::Truncated(..) | Failure::Broken(_))),
        "{cut:?}"
    );
    let outcomes = parked.land().await;
    assert!(
        outcomes.responses().all(|response| response.status >= 500),
        "{:?}",
        outcomes.tally()
    );
}

#[tokio::test]
async fn a_second_signal_ends_the_wait() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(1000).hold(&gate));
    let builder = Edge::http(&origin).env("SLUICE_DRAIN_SECONDS", "3600");
    let mut edge = builder.start().await;
    let flight = Crowd::connect(edge.address(), 2).await.fire("/a");
    gate.wait_reached(1).await;
    edge.signal(libc::SIGINT);
    eventually("it says that it drains", async || {
        edge.get("/healthz").await.status == 503
    })
    .await;
    edge.signal(libc::SIGINT);
    assert_eq!(edge.ended().await.0, Some(0));
    flight.land().await;
}
