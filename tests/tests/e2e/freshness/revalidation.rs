// SPDX-License-Identifier: Apache-2.0
//! A stale object is revalidated by one conditional request for all waiting clients, and a 304 updates its headers.

use super::validation::{CLIENTS, conditional, share, tagged};
use sluice_tests::bare::Bare;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Store;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

/// An object that is fresh for `seconds` seconds.
fn object(seconds: u32, version: &str) -> Reply {
    tagged(1_000, version).max_age(seconds)
}

/// Makes the origin answer with other headers from now on, once the gate is open.
fn change(origin: &Origin, gate: &Gate) {
    origin.on("/a", object(600, "2").hold(gate));
}

/// Waits until the object stored at `/a` has exceeded its lifetime of one second.
async fn expired() {
    tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
}

#[tokio::test]
async fn a_304_freshens_the_object_and_its_headers_for_all_followers() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object(1, "1"));
    let edge = Edge::http(&origin).workers(2).start().await;
    let first = edge.get("/a").await;
    assert_eq!(first.header("x-version"), "1", "{first}");
    let first = first.stamp("/a");
    expired().await;
    change(&origin, &gate);
    share(&edge, &gate).await;
    assert_eq!((origin.count("/a"), conditional(&origin)), (2, 1));
    // The store needs a moment to apply the headers of the 304.
    eventually("a hit with the new headers", async || {
        let response = edge.get("/a").await;
        assert_eq!(response.stamp("/a"), first);
        response.is_hit() && response.header("x-version") == "2"
    })
    .await;
    let response = edge.get("/a").await;
    let mut parts = response.cache_status().split("; ");
    let left = parts.find_map(|part| part.strip_prefix("ttl=")?.parse().ok());
    let left: u32 = left.unwrap_or(0);
    assert!((500..=600).contains(&left), "{response}");
    assert_eq!(response.header("cache-control"), "max-age=600");
    assert_eq!(origin.count("/a"), 2);
}

#[tokio::test]
async fn control_bare_envoy_has_each_client_revalidate() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object(1, "1"));
    let bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    let _ = bare.get("/a").await.stamp("/a");
    eventually("it is stored", async || {
        bare.get("/a").await.headers.get("age").is_some()
    })
    .await;
    expired().await;
    change(&origin, &gate);
    let before = conditional(&origin);
    let crowd = Crowd::connect(bare.address(), CLIENTS).await.fire("/a");
    gate.wait_reached(CLIENTS).await;
    gate.open();
    crowd.land().await.same_object("/a");
    assert_eq!(conditional(&origin) - before, CLIENTS);
}
