// SPDX-License-Identifier: Apache-2.0
//! A conditional request for a cold object is answered with 304 as soon as the object's headers arrive. Its client
//! may leave then: the fill goes on without it.

use serde_json::json;
use sluice_tests::client::crowd::{Crowd, Flight};
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, request, until_hit};
use sluice_tests::edge::purger::Purger;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use test_case::test_case;

const SIZE: usize = 400_000;
const HELD_AFTER: usize = 100_000;
const SAME: [(&str, &str); 1] = [("if-none-match", "\"v1\"")];
const OTHER: [(&str, &str); 1] = [("if-none-match", "\"v0\"")];
const UNMATCHED: [(&str, &str); 1] = [("if-match", "\"v0\"")];
const POLICY: &str = "origin: {kind: http}\ncoalesce: {lease: 600s, max_wait: 600s}\n";

fn object() -> Reply {
    Reply::ok(SIZE).max_age(600).etag("v1")
}

/// An origin that holds the body of its first response, and an edge in front of it.
struct Scene {
    origin: Origin,
    gate: Gate,
    edge: Edge,
}

impl Scene {
    async fn new(workers: usize) -> Self {
        Self::with(workers, |edge| edge.policy(POLICY)).await
    }

    /// Starts a scene with other settings.
    async fn with(workers: usize, set: impl FnOnce(Builder) -> Builder) -> Self {
        let origin = Origin::start().ready().await;
        let gate = Gate::new();
        origin.on_each("/a", [object().hold_after(HELD_AFTER, &gate), object()]);
        let edge = set(Edge::http(&origin)).workers(workers).start().await;
        Self { origin, gate, edge }
    }

    /// Status that a leader gets, which leaves when it has the head of the response and `followers` wait.
    async fn leave_with_head(&self, headers: &[(&str, &str)], followers: usize) -> (u16, Flight) {
        let mut leader = Client::connect(self.edge.address()).await;
        leader.send(request("GET", "/a", headers)).await.unwrap();
        let (_, head) = leader.head().await.unwrap();
        let crowd = self.crowd(followers).await;
        self.edge.wait_for_written(HELD_AFTER).await;
        leader.reset();
        (head.status, crowd)
    }

    /// Starts followers, and waits until they wait for the object.
    async fn crowd(&self, followers: usize) -> Flight {
        let crowd = Crowd::connect(self.edge.address(), followers).await;
        let crowd = crowd.fire("/a");
        self.gate.wait_reached(1).await;
        self.edge
            .wait_for_value("sluice_parked_now", followers as u64)
            .await;
        crowd
    }

    /// Checks that the object is stored, and that it has cost `requests` requests.
    async fn assert_stored(&self, requests: usize) {
        let whole = until_hit(self.edge.address(), "/a").await;
        let _ = whole.stamp("/a");
        assert_eq!(self.origin.count("/a"), requests);
        for gauge in ["sluice_parked_now", "sluice_flights_now"] {
            self.edge.wait_for_value(gauge, 0).await;
        }
    }

    /// Checks that `fills` fills have ended with their clients, and that as many followers have become leaders.
    async fn assert_ended(&self, fills: usize) {
        for counter in ["sluice_handovers", "sluice_fills_aborted"] {
            let count = self.edge.counter(counter).await;
            assert_eq!(count, fills as u64, "{counter}");
        }
    }
}

/// Checks that all clients of a crowd get the same object.
async fn assert_same(crowd: Flight, clients: usize) {
    let outcomes = crowd.land().await;
    if clients > 0 {
        outcomes.same_object("/a");
    }
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_304_for_a_cold_object_ends_before_its_fill(workers: usize) {
    let scene = Scene::new(workers).await;
    scene.origin.on("/next", object());
    let mut client = Client::connect(scene.edge.address()).await;
    let unchanged = client.exchange(request("GET", "/a", &SAME)).await;
    assert_eq!(unchanged.status, 304, "{unchanged}");
    assert_eq!(unchanged.header("etag"), "\"v1\"", "{unchanged}");
    // The connection is free for another request.
    let _ = client.get("/next").await.stamp("/next");
    scene.gate.open();
    scene.assert_stored(1).await;
}

#[tokio::test]
async fn a_304_over_http2_ends_before_its_fill() {
    let scene = Scene::new(1).await;
    let connection = Http2::connect(scene.edge.address()).await;
    let (status, headers, body) = connection.send("GET", "/a", &SAME).await.unwrap();
    assert_eq!((status, body.len()), (304, 0), "{headers:?}");
    scene.gate.open();
    scene.assert_stored(1).await;
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_client_that_leaves_with_its_304_ends_no_fill(workers: usize) {
    for followers in [0, 20] {
        let scene = Scene::new(workers).await;
        let (status, crowd) = scene.leave_with_head(&SAME, followers).await;
        assert_eq!(status, 304);
        scene.gate.open();
        assert_same(crowd, followers).await;
        scene.assert_stored(1).await;
        scene.assert_ended(0).await;
    }
}

#[tokio::test]
async fn control_a_client_that_leaves_with_part_of_the_object_ends_its_fill() {
    let scene = Scene::new(2).await;
    let (status, crowd) = scene.leave_with_head(&[], 20).await;
    assert_eq!(status, 200);
    scene.origin.wait_for_requests("/a", 2).await;
    scene.gate.open();
    crowd.land().await.same_object("/a");
    scene.assert_stored(2).await;
    scene.assert_ended(1).await;
}

#[tokio::test]
async fn many_clients_that_leave_with_a_304_cost_one_request_per_object() {
    let origin = Origin::start().ready().await;
    origin.on("/*", object());
    let edge = Edge::http(&origin).workers(2).start().await;
    let paths: Vec<_> = (0..20).map(|n| format!("/a{n}")).collect();
    for path in &paths {
        let mut client = Client::connect(edge.address()).await;
        let unchanged = client.exchange(request("GET", path, &SAME)).await;
        assert_eq!(unchanged.status, 304, "{unchanged}");
        client.reset();
    }
    for path in &paths {
        let _ = until_hit(edge.address(), path).await.stamp(path);
        assert_eq!(origin.count(path), 1, "{path}");
    }
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_client_with_another_copy_gets_the_object_of_the_one_request(workers: usize) {
    let scene = Scene::new(workers).await;
    let crowd = Crowd::connect(scene.edge.address(), 10).await;
    let crowd = crowd.fire_each(|n| request("GET", "/a", if n == 0 { &OTHER } else { &[] }));
    scene.gate.wait_reached(1).await;
    scene.gate.open();
    crowd.land().await.same_object("/a");
    scene.assert_stored(1).await;
}

/// A client whose condition is that the object is unchanged is as likely to get the object at once. So no background
/// fill leads for it.
#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_leader_that_leaves_with_its_412_is_followed_by_one_other(workers: usize) {
    for followers in [0, 20] {
        let scene = Scene::new(workers).await;
        let (status, crowd) = scene.leave_with_head(&UNMATCHED, followers).await;
        assert_eq!(status, 412);
        // The first response is still held.
        scene.origin.wait_for_requests("/a", 2).await;
        assert_same(crowd, followers).await;
        scene.assert_stored(2).await;
        scene.gate.open();
    }
}

/// Where no background fill leads, one replaces a fill that ends.
#[tokio::test]
async fn an_uncoalesced_client_that_leaves_with_its_304_costs_one_more_request() {
    const UNCOALESCED: &str = "origin: {kind: http}\ncoalesce: {enabled: false}\n";
    const OBEDIENT: &str = "origin: {kind: http}\nrequest: {cache_control: obey}\n";
    const PLAN: (&str, &str) = ("x-plan", "gold");
    const RELOAD: [(&str, &str); 3] = [SAME[0], PLAN, ("cache-control", "max-age=0")];
    for (policy, headers) in [(UNCOALESCED, &[SAME[0], PLAN][..]), (OBEDIENT, &RELOAD)] {
        let scene = Scene::with(2, |edge| edge.policy(policy)).await;
        let (status, _) = scene.leave_with_head(headers, 0).await;
        assert_eq!(status, 304);
        // Without coalescing, an earlier request would be sent to the origin.
        let entries = scene.edge.folder().join("cache/entries");
        eventually("a stored object", async || {
            std::fs::read_dir(&entries).unwrap().count() > 0
        })
        .await;
        scene.assert_stored(2).await;
        scene.gate.open();
        for asked in scene.origin.requests().of("/a") {
            assert_eq!(asked.headers.get(PLAN.0), Some(PLAN.1), "{policy}");
            assert_eq!(asked.headers.get("cache-control"), None, "{policy}");
        }
    }
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_conditional_follower_takes_over_from_a_leader_that_leaves(workers: usize) {
    let scene = Scene::new(workers).await;
    let mut leader = Client::connect(scene.edge.address()).await;
    leader.send(request("GET", "/a", &[])).await.unwrap();
    let _ = leader.head().await.unwrap();
    let crowd = Crowd::connect(scene.edge.address(), 10).await;
    let crowd = crowd.fire_each(|_| request("GET", "/a", &SAME));
    scene.edge.wait_for_value("sluice_parked_now", 10).await;
    scene.edge.wait_for_written(HELD_AFTER).await;
    leader.reset();
    scene.origin.wait_for_requests("/a", 2).await;
    crowd.land().await.all(304);
    scene.assert_stored(2).await;
    scene.gate.open();
}

#[tokio::test]
async fn a_follower_of_a_fill_that_a_soft_purge_overtakes_gets_the_object() {
    let purger = Purger::new();
    let scene = Scene::with(2, |edge| purger.open(edge)).await;
    let (status, crowd) = scene.leave_with_head(&SAME, 10).await;
    assert_eq!(status, 304);
    let purge = json!({"url": "http://edge.test/a", "soft": true});
    purger.purge(purge).await;
    scene.gate.open();
    for response in crowd.land().await.all(200) {
        let _ = response.stamp("/a");
    }
    assert_eq!(scene.origin.count("/a"), 2);
    assert_eq!(scene.edge.counter("sluice_handovers").await, 1);
}

#[tokio::test]
async fn conditions_on_an_uncacheable_object_cost_one_request_more_than_there_are_clients() {
    let origin = Origin::start().ready().await;
    origin.on(
        "/a",
        Reply::ok(SIZE)
            .etag("v1")
            .header("cache-control", "private"),
    );
    let edge = Edge::http(&origin).workers(1).start().await;
    for _ in 0..3 {
        let unchanged = edge.send("GET", "/a", &SAME).await;
        assert_eq!(unchanged.status, 304, "{unchanged}");
    }
    assert_eq!(origin.count("/a"), 4);
}
