// SPDX-License-Identifier: Apache-2.0
//! A response with `no-cache` is stored and validated at each use, once for all waiting requests.

use super::validation::{CLIENTS, conditional, share, tagged};
use sluice_tests::client::crowd::Crowd;
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

const ROUNDS: usize = 8;

fn object(version: &str) -> Reply {
    tagged(10_000, version).header("cache-control", "no-cache, max-age=600")
}

#[tokio::test]
async fn those_who_wait_share_one_validation() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object("1"));
    let edge = Edge::http(&origin).workers(2).start().await;
    edge.get("/a").await;
    // The store needs a moment to commit the response. The next request waits meanwhile.
    edge.get("/a").await;
    let before = origin.count("/a");
    origin.on("/a", object("2").hold(&gate));
    for response in share(&edge, &gate).await.all(200) {
        assert_eq!(response.header("x-version"), "2", "{response}");
    }
    assert_eq!(origin.count("/a"), before + 1);
    assert_eq!(conditional(&origin), before);
}

#[tokio::test]
async fn each_use_asks_the_origin_and_brings_the_object_once() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object("1"));
    let edge = Edge::http(&origin).workers(2).start().await;
    let first = edge.get("/a").await.stamp("/a");
    for n in 2..10 {
        let response = edge.get("/a").await;
        assert_eq!(response.status, 200, "{response}");
        assert_eq!(response.stamp("/a"), first);
        assert_eq!(origin.count("/a"), n, "each use asks");
    }
    for _ in 0..ROUNDS {
        let crowd = Crowd::connect(edge.address(), CLIENTS).await.fire("/a");
        crowd.land().await.same_object("/a");
    }
    let whole = origin.count("/a") - conditional(&origin);
    assert_eq!(whole, 1, "the store had it each time");
}

#[tokio::test]
async fn what_must_be_validated_is_never_served_without_the_origin() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object("1"));
    let edge = Edge::http(&origin).workers(2).start().await;
    edge.get("/a").await;
    origin.on("/a", Reply::status(200).reset());
    let broken = edge.get("/a").await;
    assert_eq!(broken.status, 504, "{broken}");
    origin.on("/a", Reply::status(503));
    let failed = edge.get("/a").await;
    assert_eq!(failed.status, 503, "{failed}");
    origin.on("/a", object("1"));
    let back = edge.get("/a").await;
    assert_eq!(back.status, 200, "{back}");
}
