// SPDX-License-Identifier: Apache-2.0
//! `sluice healthcheck`, which the container image's health check runs.

use sluice_tests::client::crowd::Crowd;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

#[tokio::test]
async fn the_health_check_fails_when_nobody_answers_or_the_edge_drains() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(1000).hold(&gate));
    let mut edge = Edge::http(&origin).start().await;
    assert_eq!(edge.healthcheck(), Some(0));
    let flight = Crowd::connect(edge.address(), 1).await.fire("/a");
    gate.wait_reached(1).await;
    edge.signal(libc::SIGTERM);
    eventually("it drains", async || {
        edge.get("/healthz").await.status == 503
    })
    .await;
    assert_eq!(edge.healthcheck(), Some(1));
    gate.open();
    flight.land().await.same_object("/a");
    let check = edge.healthcheck_command();
    assert_eq!(edge.ended().await.0, Some(0));
    assert_eq!({ check }.status().unwrap().code(), Some(1));
}
