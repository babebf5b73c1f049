// SPDX-License-Identifier: Apache-2.0
//! Parts, headers and conditions of a sliced object are answered as those of any object (RFC 9110, 13 and 14).

use super::world::{
    Asked, KNOWN, OBJECT, SLICE, UNKNOWN, assert_part, assert_whole, edge, object, origin, settle,
};
use sluice_tests::client::http2::Http2;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::origin::Origin;
use std::ops::Range;
use test_case::test_case;

const DATE: &str = "Wed, 01 Jan 2025 00:00:00 GMT";

async fn start() -> (Origin, Edge) {
    let origin = origin(&object(1).header("last-modified", DATE)).await;
    let edge = edge(&origin).start().await;
    (origin, edge)
}

#[test_case("/large.iso"; "of a known path")]
#[test_case("/large"; "of an unknown path")]
#[tokio::test]
async fn a_far_range_costs_two_requests_and_one_slice_and_then_nothing(path: &str) {
    let (origin, edge) = start().await;
    let first = 20 * SLICE + 500;
    for hit in [false, true] {
        let range = format!("bytes={first}-{}", first + 999);
        let response = edge.send("GET", path, &[("range", &range)]).await;
        assert_part(&response, path, first..first + 1_000);
        assert_eq!(response.is_hit(), hit, "{response}");
        let asked = Asked::of(origin.requests(), path);
        assert_eq!((asked.heads, asked.wholes), (1, 0));
        assert_eq!(asked.slices.into_iter().collect::<Vec<_>>(), [(20, 1)]);
    }
}

/// Requested ranges and the bytes of the response.
const RANGES: [(&str, Range<usize>); 7] = [
    ("bytes=0-0", 0..1),
    ("bytes=0-99", 0..100),
    ("bytes=1048575-1048576", SLICE - 1..SLICE + 1),
    ("bytes=1000000-5000000", 1_000_000..5_000_001),
    ("bytes=-500", OBJECT - 500..OBJECT),
    ("bytes=25000000-", 25_000_000..OBJECT),
    ("bytes=25000000-99999999", 25_000_000..OBJECT),
];

#[tokio::test]
async fn a_range_gets_exactly_its_bytes() {
    let (_origin, edge) = start().await;
    for _ in 0..2 {
        for (range, bytes) in RANGES {
            let response = edge.send("GET", KNOWN, &[("range", range)]).await;
            assert_part(&response, KNOWN, bytes);
            assert_eq!(response.header("etag"), "\"v1\"", "{response}");
            assert_eq!(response.header("last-modified"), DATE, "{response}");
        }
    }
}

#[tokio::test]
async fn several_ranges_are_a_multipart_response_with_exactly_their_bytes() {
    let (_origin, edge) = start().await;
    let ranges = [10..20, SLICE - 5..SLICE + 5, OBJECT - 10..OBJECT];
    let spelled = ranges
        .each_ref()
        .map(|range| format!("{}-{}", range.start, range.end - 1));
    let header = format!("bytes={}", spelled.join(","));
    let response = edge.send("GET", KNOWN, &[("range", &header)]).await;
    assert_eq!(response.status, 206, "{response}");
    let kind = response.header("content-type");
    let boundary = kind
        .strip_prefix("multipart/byteranges; boundary=")
        .expect(kind);
    let mut wanted = Vec::new();
    for (range, spelled) in ranges.into_iter().zip(&spelled) {
        let head = format!("--{boundary}\r\nContent-Range: bytes {spelled}/{OBJECT}\r\n\r\n");
        let bytes = body::part(KNOWN, 1, OBJECT, range);
        wanted.push((head.to_ascii_lowercase(), bytes));
    }
    let mut rest = response.body.as_slice();
    for (head, bytes) in wanted {
        let at = rest.windows(bytes.len()).position(|window| window == bytes);
        let (before, after) = rest.split_at(at.expect("the bytes of the range"));
        let before = String::from_utf8_lossy(before)
            .trim_start()
            .to_ascii_lowercase();
        assert_eq!(before, head);
        rest = &after[bytes.len()..];
    }
    assert_eq!(rest, format!("\r\n--{boundary}--\r\n").as_bytes());
}

#[tokio::test]
async fn ranges_that_would_cost_more_than_the_object_are_refused() {
    let (origin, edge) = start().await;
    for range in [
        "bytes=26000000-",
        "bytes=0-,0-",
        "bytes=20-29,0-9",
        "bytes=0-9,5-14",
    ] {
        let response = edge.send("GET", KNOWN, &[("range", range)]).await;
        assert_eq!(response.status, 416, "{range}: {response}");
        let whole = format!("bytes */{OBJECT}");
        assert_eq!(
            response.header("content-range"),
            whole,
            "{range}: {response}"
        );
    }
    let asked = Asked::of(origin.requests(), KNOWN);
    assert_eq!((asked.heads, asked.total()), (1, 1), "{asked:?}");
}

#[tokio::test]
async fn a_head_has_the_headers_of_the_object_and_costs_one_head() {
    let (origin, edge) = start().await;
    for _ in 0..3 {
        let response = edge.send("HEAD", KNOWN, &[]).await;
        assert_eq!(response.status, 200, "{response}");
        assert_eq!(
            response.header("content-length"),
            OBJECT.to_string(),
            "{response}"
        );
        assert_eq!(response.header("accept-ranges"), "bytes", "{response}");
        assert_eq!(response.header("etag"), "\"v1\"", "{response}");
    }
    let asked = Asked::of(origin.requests(), KNOWN);
    assert_eq!((asked.heads, asked.total()), (1, 1), "{asked:?}");
}

/// Conditions, and the status of the response to a request with a range of ten bytes.
const CONDITIONS: [(&str, &str, u16); 9] = [
    ("if-none-match", "\"v1\"", 304),
    ("if-none-match", "W/\"v1\"", 304),
    ("if-none-match", "\"v0\"", 206),
    ("if-match", "\"v1\"", 206),
    ("if-match", "\"v0\"", 412),
    ("if-modified-since", DATE, 304),
    ("if-unmodified-since", "Wed, 01 Jan 2020 00:00:00 GMT", 412),
    ("if-range", "\"v1\"", 206),
    ("if-range", "\"v0\"", 200),
];

#[tokio::test]
async fn conditions_decide_in_front_of_ranges() {
    let (_origin, edge) = start().await;
    for _ in 0..2 {
        for (name, value, status) in CONDITIONS {
            let headers = [("range", "bytes=2000000-2000009"), (name, value)];
            let response = edge.send("GET", KNOWN, &headers).await;
            assert_eq!(response.status, status, "{name}: {value}: {response}");
            match status {
                200 => assert_whole(&response, KNOWN, 1),
                206 => assert_part(&response, KNOWN, 2_000_000..2_000_010),
                _ => {}
            }
        }
    }
}

/// Envoy's cache ignores a request that does not end with its headers, so such a request takes another way.
#[tokio::test]
async fn a_request_that_ends_with_an_empty_frame_gets_slices() {
    let (origin, edge) = start().await;
    let connection = Http2::connect(edge.address()).await;
    for path in [KNOWN, UNKNOWN, KNOWN, UNKNOWN] {
        let mut stream = connection.begin("GET", path, &[], false).await.unwrap();
        stream.send_body(b"", true).unwrap();
        let (status, headers) = stream.head().await.unwrap();
        assert_eq!(status, 200, "{path}: {headers:?}");
        assert!(!headers.any_with_prefix("x-sluice-"), "{headers:?}");
        let content = stream.read(usize::MAX).await.unwrap();
        assert_eq!(body::check(path, &content).unwrap().sequence, 1);
    }
    settle(&origin).await;
    let asked = Asked::of(origin.requests(), KNOWN);
    assert_eq!((asked.heads, asked.wholes), (1, 0));
    asked.assert_each_slice_once();
}

#[tokio::test]
async fn the_age_counts_from_the_validation_of_the_object() {
    let origin = origin(&object(1).header("age", "100")).await;
    let edge = edge(&origin).start().await;
    let age = async || {
        let response = edge.send("GET", KNOWN, &[("range", "bytes=0-9")]).await;
        response.header("age").parse::<u64>().unwrap()
    };
    assert!((100..110).contains(&age().await));
    eventually("a greater age", async || age().await > 101).await;
    assert_eq!(Asked::of(origin.requests(), KNOWN).heads, 1);
}
