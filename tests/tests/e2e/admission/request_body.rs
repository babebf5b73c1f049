// SPDX-License-Identifier: Apache-2.0
//! Requests whose headers do not end the request: an empty body counts as no body, and no body is sent under the
//! edge's signature.

use sluice_tests::bare::Bare;
use sluice_tests::client::http2::{Http2, Stream};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Store;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::{Duration, Instant};
use test_case::test_case;

const CLIENTS: usize = 40;

/// How a client ends a request after its headers.
#[derive(Clone, Copy)]
enum End {
    Frame,
    Trailers,
}

impl End {
    fn send(self, stream: &mut Stream) {
        match self {
            Self::Frame => stream.send_body(b"", true),
            Self::Trailers => stream.send_trailers(),
        }
        .unwrap();
    }
}

/// [`CLIENTS`] GETs with this end.
async fn get_all(client: &Http2, target: &str, end: End) -> Vec<Stream> {
    let mut streams = Vec::new();
    for _ in 0..CLIENTS {
        let mut stream = client.begin("GET", target, &[], false).await.unwrap();
        end.send(&mut stream);
        streams.push(stream);
    }
    streams
}

async fn status_and_body(mut stream: Stream) -> (u16, usize) {
    let (status, headers) = stream.head().await.unwrap();
    assert!(!headers.any_with_prefix("x-sluice-"), "{headers:?}");
    (status, stream.read(usize::MAX).await.unwrap().len())
}

#[test_case(End::Frame; "an empty frame")]
#[test_case(End::Trailers; "trailers")]
#[tokio::test]
async fn requests_to_a_bucket_that_end_with_an_empty_body_are_coalesced(end: End) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/site/a", Reply::ok(1000).hold(&gate));
    let edge = Edge::scripted_bucket(&origin).start().await;
    let client = Http2::connect(edge.address()).await;
    // The responses together are smaller than the connection's window.
    let streams = get_all(&client, "/b/../%61", end).await;
    eventually("all wait", async || {
        edge.counter("sluice_followers_parked").await == CLIENTS as u64 - 1
    })
    .await;
    gate.open();
    for stream in streams {
        assert_eq!(status_and_body(stream).await, (200, 1000));
    }
    let asked = origin.requests().all();
    assert_eq!(asked.len(), 1, "{}", origin.requests().summary());
    assert!(asked[0].headers.get("authorization").is_some());
    assert_eq!(asked[0].headers.get("transfer-encoding"), None);
    assert_eq!(edge.counter("sluice_bodies_awaited").await, CLIENTS as u64);
    assert_eq!(edge.counter("sluice_bodies_overdue").await, 0);
    let mut head = client.begin("HEAD", "/a", &[], false).await.unwrap();
    end.send(&mut head);
    assert_eq!(status_and_body(head).await, (200, 0));
    assert_eq!(origin.requests().total(), 1);
}

/// Without the filter, Envoy's cache ignores such requests.
#[tokio::test]
async fn without_the_filter_requests_that_end_with_an_empty_frame_all_reach_the_origin() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(60));
    let envoy = Bare::start(&origin, Store::V1_MEMORY, 1).await;
    envoy.get("/a").await;
    let client = Http2::connect(envoy.address()).await;
    for stream in get_all(&client, "/a", End::Frame).await {
        assert_eq!(status_and_body(stream).await, (200, 1000));
    }
    assert_eq!(origin.count("/a"), CLIENTS + 1);
}

#[tokio::test]
async fn an_empty_body_before_an_http_origin_is_coalesced_and_any_other_passes() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(60));
    let edge = Edge::http(&origin).workers(1).start().await;
    let client = Http2::connect(edge.address()).await;
    for stream in get_all(&client, "/a", End::Frame).await {
        assert_eq!(status_and_body(stream).await, (200, 1000));
    }
    let chunked = [("transfer-encoding", "chunked")];
    let mut bytes = request("GET", "/a", &chunked);
    bytes.extend_from_slice(b"0\r\n\r\n");
    let response = Client::connect(edge.address()).await.exchange(bytes).await;
    assert_eq!(response.status, 200);
    assert_eq!(origin.count("/a"), 1);
    assert_eq!(edge.counter("sluice_requests_passed").await, 0);
    let mut late = client.begin("GET", "/a", &[], false).await.unwrap();
    eventually("the end of the wait", async || {
        edge.counter("sluice_bodies_overdue").await == 1
    })
    .await;
    late.send_body(b"late", true).unwrap();
    assert_eq!(status_and_body(late).await, (200, 1000));
    let mut early = client.begin("GET", "/a", &[], false).await.unwrap();
    early.send_body(b"ear", false).unwrap();
    early.send_body(b"ly", true).unwrap();
    assert_eq!(status_and_body(early).await, (200, 1000));
    let bodies: Vec<_> = origin
        .requests()
        .all()
        .into_iter()
        .map(|it| it.body)
        .collect();
    assert_eq!(bodies, [&b""[..], b"late", b"early"]);
    assert_eq!(edge.counter("sluice_requests_passed").await, 2);
}

/// The edge's internal hosts receive requests whose empty body has ended. A client cannot use them.
#[test_case("next-turn", 200; "a host like another")]
#[test_case("next+turn", 400; "a host of the edge's own")]
#[tokio::test]
async fn no_host_leads_a_request_with_an_empty_body_astray(host: &str, status: u16) {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(60));
    let edge = Edge::http(&origin).workers(1).start().await;
    let fields = [("host", host), ("transfer-encoding", "chunked")];
    let mut bytes = request("GET", "/a", &fields);
    bytes.extend_from_slice(b"0\r\n\r\n");
    let response = Client::connect(edge.address()).await.exchange(bytes).await;
    assert_eq!(response.status, status, "{response}");
}

#[test_case("GET"; "get")]
#[test_case("HEAD"; "head")]
#[tokio::test]
async fn no_body_goes_out_behind_the_edges_signature(method: &str) {
    let origin = Origin::start().ready().await;
    origin.on("/site/*", Reply::ok(1000));
    let edge = Edge::scripted_bucket(&origin).workers(1).start().await;
    let client = Http2::connect(edge.address()).await;
    let mut stream = client.begin(method, "/a", &[], false).await.unwrap();
    stream.send_body(b"a body", false).unwrap();
    assert_eq!(stream.head().await.unwrap().0, 400);
    let chunked = [("transfer-encoding", "chunked")];
    let mut bytes = request(method, "/a", &chunked);
    bytes.extend_from_slice(b"2\r\nhi\r\n0\r\n\r\n");
    let response = Client::connect(edge.address()).await.exchange(bytes).await;
    assert_eq!(response.status, 400, "{response}");
    let begun = Instant::now();
    let mut silent = client.begin(method, "/a", &[], false).await.unwrap();
    assert_eq!(silent.head().await.unwrap().0, 408);
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(edge.counter("sluice_bodies_overdue").await, 1);
    assert_eq!(edge.counter("sluice_requests_rejected").await, 2);
    assert_eq!(origin.requests().total(), 0);
}
