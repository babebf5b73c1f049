// SPDX-License-Identifier: Apache-2.0
//! A background fill, which goes on without a client, brings back no object that was purged meanwhile.

use serde_json::{Value, json};
use sluice_tests::client::crowd::stampede;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::purger::Purger;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use sluice_tests::server::requests::State;

const SIZE: usize = 40_000;

fn object(tag: &str) -> Reply {
    Reply::ok(SIZE).max_age(3_600).etag(tag)
}

fn purge_of(soft: bool) -> Value {
    json!({"url": "http://edge.test/a", "soft": soft})
}

/// Has a range asked for by a client that leaves, so that the whole comes in the background, and is held at `gate`.
async fn begin_fill(edge: &Edge, gate: &Gate) {
    let mut client = Client::connect(edge.address()).await;
    let range = [("range", "bytes=0-9")];
    let part = client.exchange(request("GET", "/a", &range)).await;
    assert_eq!(
        (part.status, part.header("etag")),
        (206, "\"old\""),
        "{part}"
    );
    client.reset();
    // The range itself leads, and a fill takes its place.
    gate.wait_reached(2).await;
}

/// The fill goes on to its end.
async fn end_fill(origin: &Origin, gate: &Gate) {
    gate.open();
    let over = |state| state == State::Done || state == State::Abandoned;
    let ended = |request: &sluice_tests::server::requests::Request| over(request.state);
    origin
        .requests()
        .wait_until("the fill has ended", |all| all.iter().all(ended))
        .await;
}

/// Whoever asks, for the whole or for a part of it, gets the new object.
async fn assert_new(edge: &Edge) {
    for response in stampede(edge.address(), 30, "/a").await.all(200) {
        assert_eq!(response.header("etag"), "\"new\"", "{response}");
        let _ = response.stamp("/a");
    }
    for range in ["bytes=0-9", "bytes=-9"] {
        let part = edge.send("GET", "/a", &[("range", range)]).await;
        assert_eq!(part.header("etag"), "\"new\"", "{part}");
    }
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    assert_eq!(edge.get("/a").await.header("etag"), "\"new\"");
}

#[tokio::test]
async fn a_hard_purge_hides_the_object_of_a_running_fill_for_good() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object("old").hold_after(10_000, &gate));
    let purger = Purger::new();
    let edge = purger.open(Edge::http(&origin)).workers(2).start().await;
    begin_fill(&edge, &gate).await;
    purger.purge(purge_of(false)).await;
    origin.on("/a", object("new"));
    assert_new(&edge).await;
    end_fill(&origin, &gate).await;
    assert_new(&edge).await;
}

#[tokio::test]
async fn an_object_softly_purged_amid_its_fill_is_revalidated() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object("old").hold_after(10_000, &gate));
    let purger = Purger::new();
    let edge = purger.open(Edge::http(&origin)).workers(2).start().await;
    begin_fill(&edge, &gate).await;
    purger.purge(purge_of(true)).await;
    origin.on("/a", object("new"));
    end_fill(&origin, &gate).await;
    eventually("the new object", async || {
        edge.get("/a").await.header("etag") == "\"new\""
    })
    .await;
    assert_new(&edge).await;
}

#[tokio::test]
async fn a_fill_that_outlives_its_policy_is_purged_like_others() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object("old").hold_after(10_000, &gate));
    let purger = Purger::new();
    let updatable = Direct {
        listener_file: true,
        ..Direct::default()
    };
    let edge = purger.open(Edge::http(&origin));
    let edge = edge.direct(updatable).start().await;
    begin_fill(&edge, &gate).await;
    edge.update_policy(&|policy| policy["cache"]["hit_for_miss"] = "77s".into());
    let modified = "listener_manager.listener_modified";
    edge.wait_for_counter(modified, 1).await;
    edge.wait_for_value("listener_manager.total_listeners_warming", 0)
        .await;
    purger.purge(purge_of(false)).await;
    origin.on("/a", object("new"));
    assert_new(&edge).await;
    end_fill(&origin, &gate).await;
    assert_new(&edge).await;
}
