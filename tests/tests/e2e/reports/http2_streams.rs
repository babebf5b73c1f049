// SPDX-License-Identifier: Apache-2.0
//! The effect of one HTTP/2 stream on the others, and on the edge's memory: `envoy#20575`, `open-liberty#9455`.

use sluice_tests::client::frames::{
    END_HEADERS, END_STREAM, Frame, Frames, NEWEST, get, indexed, kind, literal,
};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Medium;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use sluice_tests::server::requests::Request;
use test_case::test_case;

/// A malformed request (RFC 9113, 8.1.1) ends its own stream, and not that of another request (8.1.1, 5.4.2).
#[test_case(&[get("/b"), literal("te", "gzip")].concat(); "te")]
#[test_case(&get("/b b"); "a space in the path")]
#[test_case(&[get("/b"), literal("connection", "keep-alive")].concat(); "a field of the connection")]
#[test_case(&[get("/b"), literal("X-Upper", "1")].concat(); "a name in upper case")]
#[test_case(&literal(":method", "GET"); "no path")]
#[test_case(&[get("/b"), literal("content-length", "5")].concat(); "a length without a body")]
#[tokio::test]
async fn a_malformed_request_ends_its_stream_and_no_other(headers: &[u8]) {
    let (origin, gate) = (Origin::start().ready().await, Gate::new());
    origin.on("/a", Reply::text("good").hold(&gate));
    origin.on("/b", Reply::text("b"));
    let edge = Edge::http(&origin).start().await;
    let mut frames = Frames::connect(edge.address(), &[]).await;
    assert!(frames.request(1, &get("/a")).await);
    origin.wait_for_requests("/a", 1).await;
    assert!(frames.request(3, headers).await);
    let is_over = |frame: &Frame| {
        let ends = frame.flags & END_STREAM != 0 && frame.kind != kind::SETTINGS;
        frame.stream == 3 && (frame.kind == kind::RST_STREAM || ends)
    };
    let seen = frames.until(is_over).await;
    assert!(seen.last().is_some_and(is_over), "{seen:?}");
    gate.open();
    let of_first = |frame: &Frame| frame.stream == 1 && frame.kind == kind::DATA;
    let seen = frames.until(of_first).await;
    let data = seen.last().filter(|frame| of_first(frame));
    assert_eq!(data.map(|frame| &frame.payload[..]), Some(&b"good"[..]));
}

/// Envoy's bounds on empty frames and on resets end a connection also with the override of stream errors.
#[test_case(&|stream: u32| vec![
    Frame::new(kind::HEADERS, END_HEADERS, stream, get("/a")),
    Frame::new(kind::DATA, 0, stream, []),
    Frame::new(kind::DATA, 0, stream, []),
    Frame::new(kind::DATA, 0, stream, []),
]; "empty frames")]
#[test_case(&|stream: u32| vec![
    Frame::new(kind::HEADERS, END_HEADERS | END_STREAM, stream, get("/a")),
    Frame::new(kind::RST_STREAM, 0, stream, [0, 0, 0, 8]),
]; "resets")]
#[test_case(&|_: u32| vec![Frame::new(kind::PING, 0, 0, [0; 8]); 20]; "pings that nobody reads the answers of")]
#[tokio::test]
async fn a_flood_of_frames_ends_its_connection(flood: &dyn Fn(u32) -> Vec<Frame>) {
    let origin = Origin::start().ready().await;
    origin.on(
        "/a",
        Reply::ok(100).delay(std::time::Duration::from_millis(200)),
    );
    let mut edge = Edge::http(&origin).start().await;
    let mut frames = Frames::connect(edge.address(), &[]).await;
    let mut ended = false;
    for stream in (1..200_000).step_by(2) {
        for frame in flood(stream) {
            ended |= !frames.send(&frame).await;
        }
        if ended {
            break;
        }
    }
    assert!(ended, "the connection takes all");
    assert_eq!(edge.get("/b").await.status, 404);
    assert!(edge.alive());
}

/// Number of connections, each with as many streams as it may have.
const CONNECTIONS: usize = 5;
const STREAMS: u32 = 100;
/// Bound on the bytes of memory for each byte that was sent.
const MOST: u64 = 50;

/// Sends a field of 500 bytes once, and repeats it as one byte about 60 times in each request.
async fn repeat_a_field(edge: &Edge, path: &str, window: &[u8]) -> (Vec<Frames>, u64) {
    let mut all = Vec::new();
    for connection in 0..CONNECTIONS {
        let mut frames = Frames::connect(edge.address(), window).await;
        for number in 0..STREAMS {
            let path = path.replace('*', &format!("{connection}-{number}"));
            let field = match number {
                0 => indexed("x-a", &"v".repeat(500)),
                _ => vec![NEWEST],
            };
            let headers = [get(&path), field, vec![NEWEST; 57]].concat();
            assert!(frames.request(1 + 2 * number, &headers).await);
        }
        all.push(frames);
    }
    let sent = all.iter().map(|frames| frames.sent as u64).sum();
    (all, sent)
}

#[test_case("/slow/*", &[]; "at a slow origin")]
#[test_case("/stored", &[0, 4, 0, 0, 0, 0]; "for a stored object, with a window of 0")]
#[tokio::test]
async fn streams_that_repeat_a_field_cost_little_memory(path: &str, window: &[u8]) {
    let (origin, gate) = (Origin::start().ready().await, Gate::new());
    origin.on("/slow/*", Reply::ok(100).hold(&gate));
    origin.on("/stored", Reply::ok(1_000).max_age(600));
    let edge = Edge::http(&origin)
        .medium(Medium::Memory)
        .workers(1)
        .start()
        .await;
    let _ = edge.get("/stored").await;
    // The first round grows the memory of the connections to its size.
    drop(repeat_a_field(&edge, path, window).await);
    let active = "http.edge.downstream_rq_active";
    edge.wait_for_value(active, 0).await;
    let before = edge.counter("server.memory_allocated").await;
    let refused = edge.counter("sluice_requests_rejected").await;
    let (connections, sent) = repeat_a_field(&edge, path, window).await;
    let all = refused + CONNECTIONS as u64 * u64::from(STREAMS);
    eventually("all requests are refused", async || {
        edge.counter("sluice_requests_rejected").await >= all
    })
    .await;
    let after = edge.counter("server.memory_allocated").await;
    let more = after.saturating_sub(before);
    println!("{sent} bytes were sent, {more} bytes more are allocated");
    assert!(more <= MOST * sent, "{more} bytes for {sent}");
    let slow = |request: &Request| request.target.starts_with("/slow");
    assert_eq!(origin.requests().matching(slow), 0);
    drop(connections);
}
