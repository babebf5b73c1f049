// SPDX-License-Identifier: Apache-2.0
//! A range far into a cold object does not wait for all bytes in front of it.

use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::http::body;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::Duration;
use test_case::test_case;

const SIZE: usize = 12 << 20;
/// The fill stops at this size until a test lets it continue.
const HELD: usize = 1 << 20;
const FIRST: usize = SIZE / 10 * 9;
const LAST: usize = FIRST + 99_999;
const AHEAD: &str = "sluice; fwd=uri-miss; fwd-status=206; detail=range-ahead";

/// An origin whose objects stop in the middle.
struct Scene {
    origin: Origin,
    gate: Gate,
}

impl Scene {
    async fn new() -> Self {
        let origin = Origin::start().ready().await;
        let gate = Gate::new();
        let object = Reply::ok(SIZE).max_age(600).etag("v1").ranges();
        origin.on("/a*", object.hold_after(HELD, &gate));
        Self { origin, gate }
    }

    /// An edge with this policy for ranges.
    fn edge(&self, coalesce: &str) -> Builder {
        Edge::http(&self.origin).policy(&format!("origin: {{kind: http}}\ncoalesce: {coalesce}\n"))
    }

    /// Number of requests for a range, and number of requests for the whole object, that the origin got.
    fn asked(&self, path: &str) -> (usize, usize) {
        let mut asked = self.origin.requests().of(path);
        asked.retain(|request| request.method == "GET");
        let parts = asked
            .iter()
            .filter(|get| get.headers.get("range").is_some());
        let parts = parts.count();
        (parts, asked.len() - parts)
    }
}

fn far(path: &str) -> Vec<u8> {
    let range = format!("bytes={FIRST}-{LAST}");
    request("GET", path, &[("range", &range)])
}

fn assert_far(path: &str, response: &Response) {
    assert_eq!(response.status, 206, "{response}");
    let sequence = response.headers.number("x-origin-sequence").unwrap() as u64;
    assert!(response.body == body::make(path, sequence, SIZE)[FIRST..=LAST]);
    let range = format!("bytes {FIRST}-{LAST}/{SIZE}");
    assert_eq!(response.header("content-range"), range);
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_range_far_ahead_of_the_fill_comes_at_once_and_the_fill_goes_on(workers: usize) {
    let scene = Scene::new().await;
    let edge = scene.edge("{}").workers(workers).start().await;
    // There are several clients, so that each worker has one.
    let mut clients = Vec::new();
    for n in 0..6 {
        let mut client = Client::connect(edge.address()).await;
        let response = client.exchange(far("/a")).await;
        assert_far("/a", &response);
        assert_eq!(response.header("cache-status"), AHEAD, "{n}: {response}");
        clients.push(client);
    }
    assert_eq!(edge.counter("sluice_ranges_ahead").await, 6);
    let asked = scene.origin.requests().of("/a");
    let parts = asked
        .iter()
        .filter(|get| get.headers.get("range").is_some());
    for part in parts {
        assert_eq!(part.headers.get("if-range"), Some("\"v1\""));
    }
    scene.gate.open();
    // The same connections are used again, once the store has the object.
    for client in &mut clients {
        let whole = client.get("/a").await;
        let _ = whole.stamp("/a");
        let response = client.exchange(far("/a")).await;
        assert_far("/a", &response);
        assert!(response.is_hit(), "{response}");
    }
    assert_eq!(scene.asked("/a"), (6, 1));
}

#[tokio::test]
async fn a_range_far_ahead_of_a_clients_own_fill_comes_at_once() {
    let scene = Scene::new().await;
    let edge = scene.edge("{}").workers(1).start().await;
    let mut leader = Client::connect(edge.address()).await;
    leader.send(request("GET", "/a", &[])).await.unwrap();
    scene.gate.wait_reached(1).await;
    let mut client = Client::connect(edge.address()).await;
    let response = client.exchange(far("/a")).await;
    assert_far("/a", &response);
    assert_eq!(response.header("cache-status"), AHEAD);
    scene.gate.open();
    let _ = leader.response().await.unwrap().stamp("/a");
    assert_eq!(scene.asked("/a"), (1, 1));
}

#[tokio::test]
async fn equal_ranges_far_ahead_are_one_request() {
    let scene = Scene::new().await;
    let edge = scene.edge("{}").workers(1).start().await;
    let crowd = Crowd::connect(edge.address(), 20).await;
    let outcomes = crowd.fire_each(|_| far("/a")).land().await;
    assert_eq!(outcomes.responses().count(), 20, "{:?}", outcomes.tally());
    for response in outcomes.responses() {
        assert_far("/a", response);
        let status = response.header("cache-status");
        assert!(status.ends_with("detail=range-ahead"), "{response}");
    }
    assert_eq!(scene.asked("/a"), (1, 1));
    scene.gate.open();
}

#[tokio::test]
async fn control_without_range_ahead_a_range_waits_until_the_fill_has_come_so_far() {
    let scene = Scene::new().await;
    let edge = scene.edge("{range_ahead: 0}").workers(1).start().await;
    let mut client = Client::connect(edge.address()).await;
    client.send(far("/a")).await.unwrap();
    let (head, response) = client.head().await.unwrap();
    assert_eq!(response.status, 206);
    scene.gate.wait_reached(1).await;
    let byte = tokio::time::timeout(Duration::from_millis(500), client.some(1)).await;
    assert!(byte.is_err(), "the fill has not come so far");
    scene.gate.open();
    let response = client.rest(&head, response).await.unwrap();
    assert_far("/a", &response);
    assert_eq!(scene.asked("/a"), (0, 1));
}
