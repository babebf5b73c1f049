// SPDX-License-Identifier: Apache-2.0
//! What bare Envoy does, so that what the filter adds is seen: the controls of several behaviours.

use sluice_tests::bare::Bare;
use sluice_tests::crowd::{Crowd, stampede};
use sluice_tests::gate::Gate;
use sluice_tests::matrix::{Cell, Store};
use sluice_tests::origin::{Origin, Reply};

#[tokio::test]
async fn bare_edge_serves_a_second_request_from_every_store() {
    for store in Store::ALL {
        let origin = Origin::start().ready().await;
        origin.on("/a", Reply::ok(20_000).max_age(60));
        let bare = Bare::start(&origin, Cell { store, workers: 1 }).await;
        let first = bare.get("/a").await.stamp("/a");
        sluice_tests::eventually("a hit", async || bare.get("/a").await.stamp("/a") == first).await;
        let seen = origin.count("/a");
        assert_eq!(bare.get("/a").await.stamp("/a"), first, "{store}");
        assert_eq!(origin.count("/a"), seen, "{store}");
    }
}

#[tokio::test]
async fn bare_v1_sends_a_whole_stampede_to_the_origin() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(20_000).max_age(60).hold(&gate));
    let bare = Bare::start(
        &origin,
        Cell {
            store: Store::V1_DISK,
            workers: 2,
        },
    )
    .await;
    let flight = Crowd::connect(bare.address(), 50).await.fire("/a");
    origin.wait_for_requests("/a", 50).await;
    gate.open();
    flight.land().await.all(200);
}

#[tokio::test]
async fn bare_v2_sends_an_uncacheable_stampede_on_after_a_wait_and_shares_no_error() {
    let origin = Origin::start().ready().await;
    origin.on(
        "/private",
        Reply::ok(1000).header("cache-control", "private"),
    );
    origin.on("/down", Reply::status(503));
    let bare = Bare::start(
        &origin,
        Cell {
            store: Store::V2_DISK,
            workers: 2,
        },
    )
    .await;
    stampede(bare.address(), 50, "/private").await.all(200);
    assert_eq!(origin.count("/private"), 50);
    stampede(bare.address(), 50, "/down").await.all(503);
    assert_eq!(origin.count("/down"), 50);
}
