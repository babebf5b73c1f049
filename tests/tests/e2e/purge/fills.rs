// SPDX-License-Identifier: Apache-2.0
//! A background fill, which continues without a client, does not bring back an object that was purged meanwhile.

use serde_json::json;
use sluice_tests::client::crowd::stampede;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::purger::Purger;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use sluice_tests::server::requests::{Request, State};

const SIZE: usize = 40_000;

fn object(tag: &str) -> Reply {
    Reply::ok(SIZE).max_age(3_600).etag(tag)
}

/// An edge with a background fill that the origin holds. The fill began with a range, whose client has left.
struct Scene {
    origin: Origin,
    gate: Gate,
    purger: Purger,
    edge: Edge,
}

impl Scene {
    async fn begin(set: impl FnOnce(Builder) -> Builder) -> Self {
        let origin = Origin::start().ready().await;
        let gate = Gate::new();
        origin.on("/a", object("old").hold_after(10_000, &gate));
        let purger = Purger::new();
        let edge = purger.open(Edge::http(&origin)).workers(2);
        let edge = set(edge).start().await;
        let mut client = Client::connect(edge.address()).await;
        let range = [("range", "bytes=0-9")];
        let part = client.exchange(request("GET", "/a", &range)).await;
        let told = (part.status, part.header("etag"));
        assert_eq!(told, (206, "\"old\""), "{part}");
        edge.wait_for_written(10_000).await;
        client.reset();
        // The request for the range leads first. A fill then replaces it.
        gate.wait_reached(2).await;
        Self {
            origin,
            gate,
            purger,
            edge,
        }
    }

    /// Purges the object. From now on, the origin has a new object.
    async fn purge(&self, soft: bool) {
        let order = json!({"url": "http://edge.test/a", "soft": soft});
        self.purger.purge(order).await;
        self.origin.on("/a", object("new"));
    }

    /// Lets the fill continue to its end.
    async fn end_fill(&self) {
        self.gate.open();
        let over = |request: &Request| request.state != State::Open;
        let requests = self.origin.requests();
        requests
            .wait_until("the fill has ended", |all| all.iter().all(over))
            .await;
    }

    /// Asserts that all clients get the new object, for the whole of it and for a part.
    async fn assert_new(&self) {
        let edge = &self.edge;
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
}

#[tokio::test]
async fn a_hard_purge_hides_the_object_of_a_running_fill_for_good() {
    let scene = Scene::begin(|edge| edge).await;
    scene.purge(false).await;
    scene.assert_new().await;
    scene.end_fill().await;
    scene.assert_new().await;
}

#[tokio::test]
async fn an_object_softly_purged_amid_its_fill_is_revalidated() {
    let scene = Scene::begin(|edge| edge).await;
    scene.purge(true).await;
    scene.end_fill().await;
    eventually("the new object", async || {
        scene.edge.get("/a").await.header("etag") == "\"new\""
    })
    .await;
    scene.assert_new().await;
}

#[tokio::test]
async fn a_fill_that_outlives_its_policy_is_purged_like_others() {
    let updatable = Direct {
        listener_file: true,
        ..Direct::default()
    };
    let scene = Scene::begin(|edge| edge.direct(updatable)).await;
    let edge = &scene.edge;
    edge.update_policy(&|policy| policy["cache"]["hit_for_miss"] = "77s".into());
    let modified = "listener_manager.listener_modified";
    edge.wait_for_counter(modified, 1).await;
    edge.wait_for_value("listener_manager.total_listeners_warming", 0)
        .await;
    scene.purge(false).await;
    scene.assert_new().await;
    scene.end_fill().await;
    scene.assert_new().await;
}
