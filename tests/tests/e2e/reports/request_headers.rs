// SPDX-License-Identifier: Apache-2.0
//! Requests with very many header lines, very large ones, or very long URLs: `supabase/storage#152`, `suripu#594`.
//! Every part of the way accepts a request, or the first part refuses it with the edge's own response.

use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use test_case::test_case;

/// Number of lines of a client's request, with `Host`.
const LINES: usize = 100;
/// Number of bytes of its headers, with the URL: `SLUICE_REQUEST_HEADER_BYTES`.
const BYTES: usize = 32 << 10;
/// Number of bytes above the size of the lines that each request of these tests has.
const OWN_BYTES: usize = 300;

async fn edge(origin: &Origin) -> Edge {
    origin.on("*", Reply::ok(100).max_age(60));
    Edge::http(origin).start().await
}

/// Header lines with different names.
fn lines(number: usize) -> Vec<(String, String)> {
    let line = |line: usize| (format!("x-line-{line}"), "1".to_owned());
    (0..number).map(line).collect()
}

/// A line of `bytes` bytes.
fn large(bytes: usize) -> Vec<(String, String)> {
    vec![("x-large".to_owned(), "v".repeat(bytes))]
}

fn borrowed(lines: &[(String, String)]) -> Vec<(&str, &str)> {
    let lines = lines.iter();
    lines
        .map(|line| (line.0.as_str(), line.1.as_str()))
        .collect()
}

/// The requests are stored, or sent around the store, or return to EDGE because they end with an empty body.
#[tokio::test]
async fn requests_up_to_the_bounds_reach_the_origin_over_either_protocol() {
    let origin = Origin::start().ready().await;
    let mut edge = edge(&origin).await;
    let own_lines = 4;
    let sets = [60, 90, LINES - own_lines].map(lines);
    let larges = [8 << 10, 24 << 10, BYTES - OWN_BYTES].map(large);
    for (number, set) in sets.iter().chain(&larges).enumerate() {
        let headers = borrowed(set);
        for (kind, more) in [("stored", None), ("passes", Some(("cookie", "a=1")))] {
            let all: Vec<_> = headers.iter().copied().chain(more).collect();
            let path = format!("/{kind}/{number}");
            let response = edge
                .send("GET", &path, &all[..all.len().min(LINES - 1)])
                .await;
            assert_eq!(response.status, 200, "{path}: {response}");
            let http2 = Http2::connect(edge.address()).await;
            let all = &all[..all.len().min(LINES - own_lines)];
            let (status, ..) = http2.send("GET", &format!("{path}/2"), all).await.unwrap();
            assert_eq!(status, 200, "{path}, HTTP/2");
            let mut empty = http2
                .begin("GET", &format!("{path}/3"), all, false)
                .await
                .unwrap();
            empty.send_body(b"", true).unwrap();
            assert_eq!(empty.head().await.unwrap().0, 200, "{path}, an empty frame");
        }
    }
    assert!(edge.alive());
}

/// Whether the edge itself has refused the request.
fn is_refused(response: &Response, status: u16) -> bool {
    let body = String::from_utf8_lossy(&response.body);
    response.status == status && !body.contains("origin")
}

#[tokio::test]
async fn requests_beyond_the_bounds_are_refused_by_the_edge_itself() {
    let origin = Origin::start().ready().await;
    let mut edge = edge(&origin).await;
    for set in [
        lines(LINES),
        lines(1_000),
        large(BYTES),
        large(60 << 10),
        large(200_000),
    ] {
        let mut client = Client::connect(edge.address()).await;
        // The edge may answer before it has read everything.
        let _ = client.send(request("GET", "/a", &borrowed(&set))).await;
        if let Ok(response) = client.response().await {
            assert!(is_refused(&response, 431), "{response}");
            let says = String::from_utf8_lossy(&response.body);
            assert!(says.contains("100 lines, 32 KiB"), "{says}");
        }
        let http2 = Http2::connect(edge.address()).await;
        if let Ok((status, ..)) = http2.send("GET", "/a", &borrowed(&set)).await {
            assert_eq!(status, 431);
        }
    }
    assert_eq!(origin.requests().total(), 0);
    assert!(edge.alive());
}

/// The bound is a setting.
#[tokio::test]
async fn a_setting_lets_larger_requests_through() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100).max_age(60));
    let edge = Edge::http(&origin)
        .env("SLUICE_REQUEST_HEADER_BYTES", "128KiB")
        .start()
        .await;
    let set = large((128 << 10) - OWN_BYTES);
    let response = edge.send("GET", "/a", &borrowed(&set)).await;
    assert_eq!(response.status, 200, "{response}");
}

/// RFC 9110, 4.1: URLs of at least 8,000 octets should work.
#[tokio::test]
async fn urls_of_8000_bytes_reach_an_http_origin_and_are_stored() {
    let origin = Origin::start().ready().await;
    let edge = edge(&origin).await;
    let path = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
    let query = |bytes: usize| format!("/b?{}", "c".repeat(bytes - 3));
    for target in [path(1_024), path(1_025), path(8_000), query(8_000)] {
        let first = edge.get(&target).await;
        assert_eq!(first.status, 200, "{}: {first}", target.len());
        assert!(edge.get(&target).await.is_reused(), "{}", target.len());
        assert_eq!(origin.count(&target), 1, "{}", target.len());
        let http2 = Http2::connect(edge.address()).await;
        assert_eq!(http2.get(&target).await.unwrap().0, 200);
        let passes = edge.send("GET", &target, &[("cookie", "a=1")]).await;
        assert_eq!(passes.status, 200, "{}: {passes}", target.len());
    }
}

#[test_case(8_001, 414; "a byte more than may be")]
#[test_case(20_000, 414; "20 kB")]
#[test_case(50_000, 431; "50 kB")]
#[tokio::test]
async fn a_longer_query_is_refused_by_the_edge_itself(bytes: usize, status: u16) {
    let origin = Origin::start().ready().await;
    let edge = edge(&origin).await;
    let target = format!("/b?{}", "c".repeat(bytes - 3));
    let response = edge.get(&target).await;
    assert!(is_refused(&response, status), "{response}");
    assert_eq!(origin.requests().total(), 0);
}

/// S3 limits the length of a key.
#[tokio::test]
async fn a_bucket_keeps_s3s_bound_of_a_key() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100));
    let edge = Edge::scripted_bucket(&origin).start().await;
    let path = |bytes: usize| format!("/{}", "a".repeat(bytes));
    assert_eq!(edge.get(&path(1_024)).await.status, 200);
    let refused = edge.get(&path(1_025)).await;
    assert!(is_refused(&refused, 414), "{refused}");
    let dropped = format!("/a?{}", "c".repeat(20_000));
    assert_eq!(edge.get(&dropped).await.status, 200, "a query goes nowhere");
}
