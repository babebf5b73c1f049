// SPDX-License-Identifier: Apache-2.0
//! A background fill that waits for a leader takes over when the leader is lost. For no other reason is it sent to
//! the origin.

use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

const SIZE: usize = 400_000;
const POLICY: &str = "origin: {kind: http}\ncoalesce: {max_wait: 2s}\n";

/// A GET that leads and is held in front of its response, a GET that waits for it, and a background fill that waits
/// too.
struct Scene {
    origin: Origin,
    gate: Gate,
    edge: Edge,
    leader: Client,
    follower: Client,
}

impl Scene {
    /// The background fill is to replace a range that leads and leaves, but the first of the two waiting GETs is
    /// faster.
    async fn new(reply: Reply) -> Self {
        let origin = Origin::start().ready().await;
        let (body, gate) = (Gate::new(), Gate::new());
        let object = Reply::ok(SIZE).max_age(600).etag("a");
        origin.on("/a", object.hold_after(SIZE / 2, &body));
        let edge = Edge::http(&origin).workers(1).policy(POLICY).start().await;
        let mut range = Client::connect(edge.address()).await;
        let part = range.exchange(request("GET", "/a", &[("range", "bytes=0-9")]));
        assert_eq!(part.await.status, 206);
        let leader = begin(&edge).await;
        edge.wait_for_value("sluice_parked_now", 1).await;
        let follower = begin(&edge).await;
        edge.wait_for_value("sluice_parked_now", 2).await;
        origin.on("/a", reply.hold(&gate));
        edge.wait_for_written(SIZE / 2).await;
        range.reset();
        gate.wait_reached(1).await;
        edge.wait_for_counter("sluice_followers_parked", 3).await;
        Self {
            origin,
            gate,
            edge,
            leader,
            follower,
        }
    }

    /// Checks that all clients get a response, and that the origin got `gets` GETs, with that of the range.
    async fn assert_asked(mut self, gets: usize) {
        self.gate.open();
        for client in [&mut self.leader, &mut self.follower] {
            assert_eq!(client.response().await.unwrap().status, 200);
        }
        self.edge.wait_for_value("sluice_parked_now", 0).await;
        // A request of the follower, if there is one, has reached the origin before this request.
        self.origin.on("/b", Reply::ok(100));
        assert_eq!(self.edge.get("/b").await.status, 200);
        let asked = self.origin.requests().of("/a");
        let asked = asked.iter().filter(|request| request.method == "GET");
        assert_eq!(asked.count(), gets);
    }
}

async fn begin(edge: &Edge) -> Client {
    let mut client = Client::connect(edge.address()).await;
    client.send(request("GET", "/a", &[])).await.unwrap();
    client
}

#[tokio::test]
async fn a_background_fill_fetches_nothing_uncacheable_but_a_waiting_client_does() {
    let private = Reply::ok(SIZE).header("cache-control", "private");
    let scene = Scene::new(private).await;
    scene.gate.open();
    scene
        .edge
        .wait_for_counter("sluice_followers_resumed", 3)
        .await;
    scene.assert_asked(3).await;
}

#[tokio::test]
async fn a_background_fill_that_times_out_fetches_nothing_but_a_waiting_client_does() {
    let scene = Scene::new(Reply::ok(SIZE).max_age(600)).await;
    scene
        .edge
        .wait_for_counter("sluice_followers_resumed", 3)
        .await;
    assert_eq!(scene.edge.counter("sluice_wait_timeouts").await, 1);
    scene.assert_asked(3).await;
}
