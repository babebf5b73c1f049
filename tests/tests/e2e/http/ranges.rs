// SPDX-License-Identifier: Apache-2.0
//! Ranges are cut out of whole cached objects, cold and warm.

use sluice_tests::bare::Bare;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::{Store, Version};
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::Duration;
use test_case::test_case;

const SIZE: usize = 300_000;

/// Values of `Range` with the bytes that they select. `None` stands for a response with status 416.
const RANGES: [(&str, Option<(usize, usize)>); 12] = [
    ("bytes=0-0", Some((0, 0))),
    ("bytes=0-99", Some((0, 99))),
    ("bytes=100-199", Some((100, 199))),
    ("bytes=65535-131073", Some((65_535, 131_073))),
    ("bytes=0-", Some((0, SIZE - 1))),
    ("bytes=299999-", Some((SIZE - 1, SIZE - 1))),
    ("bytes=200000-900000", Some((200_000, SIZE - 1))),
    ("bytes=-1", Some((SIZE - 1, SIZE - 1))),
    ("bytes=-100000", Some((200_000, SIZE - 1))),
    ("bytes=-900000", Some((0, SIZE - 1))),
    ("bytes=300000-", None),
    ("bytes=-0", None),
];

/// Ranges that are answered with the whole object.
const WHOLE: [&str; 6] = [
    "bytes=0-9,20-29",
    "bytes=0-0,-1",
    "items=0-9",
    "bytes=9-0",
    "bytes=x",
    "bytes=",
];

fn object() -> Reply {
    Reply::ok(SIZE).max_age(600).etag("v1").ranges()
}

/// The complete body that the response consists of, or that it is a part of.
fn whole(path: &str, response: &Response) -> Vec<u8> {
    let sequence = response
        .headers
        .number("x-origin-sequence")
        .expect("a scripted answer");
    body::make(path, sequence as u64, SIZE)
}

/// Checks the response to `range`; see [`RANGES`].
fn assert_part(path: &str, range: &str, part: Option<(usize, usize)>, response: &Response) {
    let Some((first, last)) = part else {
        assert_eq!(
            (response.status, response.body.len()),
            (416, 0),
            "{range}: {response}"
        );
        assert_eq!(
            response.header("content-range"),
            format!("bytes */{SIZE}"),
            "{response}"
        );
        assert_eq!(response.header("cache-control"), "no-store", "{response}");
        assert_eq!(response.headers.get("etag"), None, "{response}");
        return;
    };
    assert_eq!(response.status, 206, "{range}: {response}");
    assert_eq!(
        response.header("content-range"),
        format!("bytes {first}-{last}/{SIZE}"),
        "{response}"
    );
    assert_eq!(
        response.headers.number("content-length"),
        Some(last - first + 1),
        "{response}"
    );
    assert_eq!(response.header("etag"), "\"v1\"", "{response}");
    assert!(
        response.body == whole(path, response)[first..=last],
        "{range}: {response}"
    );
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn every_form_of_range_is_cut_out_of_a_cached_object(workers: usize) {
    let origin = Origin::start().ready().await;
    origin.on("/a", object());
    let edge = Edge::http(&origin).workers(workers).start().await;
    let mut client = Client::connect(edge.address()).await;
    let plain = client.get("/a").await;
    assert_eq!(plain.header("accept-ranges"), "bytes", "{plain}");
    // Ranges and plain requests on one connection.
    for (range, part) in RANGES {
        let response = client
            .exchange(request("GET", "/a", &[("range", range)]))
            .await;
        assert_part("/a", range, part, &response);
        assert_eq!(client.get("/a").await.stamp("/a"), plain.stamp("/a"));
    }
    for range in WHOLE {
        let response = client
            .exchange(request("GET", "/a", &[("range", range)]))
            .await;
        assert_eq!(response.status, 200, "{range}: {response}");
        assert_eq!(response.stamp("/a"), plain.stamp("/a"));
    }
    let head = client
        .exchange(request("HEAD", "/a", &[("range", "bytes=0-9")]))
        .await;
    assert_eq!(
        (head.status, head.headers.number("content-length")),
        (200, Some(SIZE)),
        "{head}"
    );
    assert_eq!(origin.count("/a"), 1);
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn every_form_of_range_on_a_cold_object_fills_the_cache(workers: usize) {
    let origin = Origin::start().ready().await;
    origin.on("/a*", object());
    let edge = Edge::http(&origin).workers(workers).start().await;
    let mut client = Client::connect(edge.address()).await;
    for (n, (range, part)) in RANGES.into_iter().enumerate() {
        let path = format!("/a{n}");
        let response = client
            .exchange(request("GET", &path, &[("range", range)]))
            .await;
        assert_part(&path, range, part, &response);
        // The same connection, and another one.
        let _ = client.get(&path).await.stamp(&path);
        let _ = edge.get(&path).await.stamp(&path);
        let fetches = origin.requests().of(&path);
        let fetches: Vec<_> = fetches
            .iter()
            .filter(|request| request.method == "GET")
            .collect();
        assert_eq!(fetches.len(), 1, "{range}");
        assert_eq!(fetches[0].headers.get("range"), None);
    }
}

#[tokio::test]
async fn ranges_over_http2_are_the_same() {
    let origin = Origin::start().ready().await;
    origin.on("/a*", object());
    let edge = Edge::http(&origin).workers(1).start().await;
    let connection = Http2::connect(edge.address()).await;
    for path in ["/a1", "/a1"] {
        for (range, part) in RANGES {
            let (status, headers, content) = connection
                .send("GET", path, &[("range", range)])
                .await
                .unwrap();
            let Some((first, last)) = part else {
                assert_eq!((status, content.len()), (416, 0), "{range}");
                continue;
            };
            assert_eq!(status, 206, "{range} {headers:?}");
            let sequence = headers.number("x-origin-sequence").unwrap() as u64;
            assert!(
                content == body::make(path, sequence, SIZE)[first..=last],
                "{range}"
            );
        }
        let (status, _, content) = connection.get(path).await.unwrap();
        assert_eq!(status, 200);
        assert!(body::check(path, &content).is_ok());
    }
    assert_eq!(
        origin
            .requests()
            .matching(|request| request.method == "GET"),
        1
    );
}

#[tokio::test]
async fn if_range_decides_between_part_and_whole() {
    let origin = Origin::start().ready().await;
    let modified = "Sun, 06 Nov 1994 08:49:37 GMT";
    origin.on("/a", object().header("last-modified", modified));
    let edge = Edge::http(&origin).workers(1).start().await;
    let mut client = Client::connect(edge.address()).await;
    for (condition, status) in [
        ("\"v1\"", 206),
        ("\"v0\"", 200),
        ("W/\"v1\"", 200),
        (modified, 206),
        ("Sun, 06 Nov 1994 08:49:38 GMT", 200),
        ("\"v1\"", 206),
    ] {
        let headers = [("range", "bytes=100-199"), ("if-range", condition)];
        let response = client.exchange(request("GET", "/a", &headers)).await;
        assert_eq!(response.status, status, "{condition}: {response}");
        if status == 200 {
            let _ = response.stamp("/a");
        } else {
            assert_part("/a", condition, Some((100, 199)), &response);
        }
    }
    assert_eq!(
        origin
            .requests()
            .matching(|request| request.method == "GET"),
        1
    );
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn the_first_byte_of_a_cold_range_does_not_wait_for_the_end_of_the_fill(workers: usize) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object().hold_after(150_000, &gate));
    let edge = Edge::http(&origin).workers(workers).start().await;
    let mut client = Client::connect(edge.address()).await;
    let response = client
        .exchange(request("GET", "/a", &[("range", "bytes=100-199")]))
        .await;
    assert_part("/a", "bytes=100-199", Some((100, 199)), &response);
    gate.open();
    let _ = client.get("/a").await.stamp("/a");
    let _ = edge.get("/a").await.stamp("/a");
    let fetches = origin
        .requests()
        .matching(|request| request.method == "GET");
    assert_eq!(fetches, 1);
}

#[tokio::test]
async fn a_stampede_of_ranges_on_a_cold_object_is_one_fill() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object().delay(Duration::from_millis(50)));
    let edge = Edge::http(&origin).workers(2).start().await;
    let satisfied: Vec<_> = RANGES
        .into_iter()
        .filter(|(_, part)| part.is_some())
        .collect();
    let crowd = Crowd::connect(edge.address(), 60).await;
    let flight = crowd.fire_each(|n| match satisfied.get(n % (satisfied.len() + 1)) {
        Some((range, _)) => request("GET", "/a", &[("range", range)]),
        None => request("GET", "/a", &[]),
    });
    let outcomes = flight.land().await;
    assert_eq!(outcomes.responses().count(), 60, "{:?}", outcomes.tally());
    for response in outcomes.responses() {
        let bytes = whole("/a", response);
        match response.header("content-range").strip_prefix("bytes ") {
            None => assert!(response.body == bytes, "{response}"),
            Some(range) => {
                let (first, last) = range.split_once('/').unwrap().0.split_once('-').unwrap();
                let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
                assert!(response.body == bytes[first..=last], "{response}");
            }
        }
    }
    let asked = origin.requests().of("/a");
    // Each worker sends a HEAD for the size, and the first range leads. When its client leaves with its part, a
    // background fill replaces it.
    let of = |method| {
        asked
            .iter()
            .filter(|request| request.method == method)
            .count()
    };
    assert!(
        of("HEAD") <= 2 && of("GET") <= 2,
        "{}",
        origin.requests().summary()
    );
    assert!(
        asked
            .iter()
            .all(|request| request.headers.get("range").is_none())
    );
}

#[tokio::test]
async fn a_cold_object_of_unannounced_length_is_given_whole() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", object().chunked().hold_after(100_000, &gate));
    let edge = Edge::http(&origin).workers(1).start().await;
    let mut client = Client::connect(edge.address()).await;
    let range = [("range", "bytes=0-9")];
    client.send(request("GET", "/a", &range)).await.unwrap();
    let (head, response) = client.head().await.unwrap();
    assert_eq!(response.status, 200, "{response}");
    gate.open();
    let whole = client.rest(&head, response).await.unwrap();
    let _ = whole.stamp("/a");
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn every_form_of_range_is_cut_out_of_a_warm_object_of_unannounced_length(workers: usize) {
    let origin = Origin::start().ready().await;
    origin.on("/a", object().chunked());
    let edge = Edge::http(&origin).workers(workers).start().await;
    let plain = edge.get("/a").await;
    assert_eq!(plain.headers.get("content-length"), None, "{plain}");
    // The other worker learns the length a moment after the end of the fill.
    let range = [("range", "bytes=0-9")];
    eventually("a part from every worker", async || {
        let crowd = Crowd::connect(edge.address(), 20).await;
        let crowd = crowd.fire_each(|_| request("GET", "/a", &range));
        let landed = crowd.land().await;
        landed.responses().all(|response| response.status == 206)
    })
    .await;
    let mut client = Client::connect(edge.address()).await;
    for (range, part) in RANGES {
        let response = client
            .exchange(request("GET", "/a", &[("range", range)]))
            .await;
        assert_part("/a", range, part, &response);
        let again = client.get("/a").await;
        assert_eq!(again.stamp("/a"), plain.stamp("/a"));
    }
    let fills = origin
        .requests()
        .matching(|request| request.method == "GET");
    assert_eq!(fills, 1);
}

#[tokio::test]
async fn the_length_of_an_object_outlives_its_revalidation_but_no_change() {
    let origin = Origin::start().ready().await;
    let brief = |size: usize, tag: &str| Reply::ok(size).max_age(1).etag(tag).chunked();
    origin.on("/a", brief(SIZE, "v1"));
    let edge = Edge::http(&origin).workers(1).start().await;
    let _ = edge.get("/a").await.stamp("/a");
    let range = [("range", "bytes=-10")];
    let part = async || edge.send("GET", "/a", &range).await;
    eventually("a part", async || part().await.status == 206).await;
    // From then on no client gets the complete object.
    let last = Some((SIZE - 10, SIZE - 1));
    eventually("two revalidations", async || {
        assert_part("/a", "bytes=-10", last, &part().await);
        let asked = origin.requests().matching(|request| {
            request.target == "/a" && request.headers.get("if-none-match").is_some()
        });
        asked >= 2
    })
    .await;
    assert_part("/a", "bytes=-10", last, &part().await);
    origin.on("/a", brief(SIZE + 7, "v2"));
    eventually("the change", async || {
        edge.get("/a").await.header("etag") == "\"v2\""
    })
    .await;
    eventually("a part of it", async || {
        let part = part().await;
        let range = format!("bytes {}-{}/{}", SIZE - 3, SIZE + 6, SIZE + 7);
        part.status == 206 && part.header("content-range") == range
    })
    .await;
}

/// Bare Envoy's response to a range of `/a` after it has stored `/a`, and the connection.
async fn part_of_stored(bare: &Bare) -> (Client, Response) {
    eventually("the object is stored", async || {
        bare.get("/a").await.headers.get("age").is_some()
    })
    .await;
    part_of(bare).await
}

/// Bare Envoy's response to a range of `/a`, and the connection.
async fn part_of(bare: &Bare) -> (Client, Response) {
    let mut client = Client::connect(bare.address()).await;
    client
        .send(request("GET", "/a", &[("range", "bytes=100-199")]))
        .await
        .unwrap();
    let part = client.response().await.expect("a part");
    (client, part)
}

#[tokio::test]
async fn control_bare_envoy_cuts_ranges_out_of_what_it_has_stored_without_a_length() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object().chunked());
    let bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    let (_, part) = part_of_stored(&bare).await;
    assert_part("/a", "bytes=100-199", Some((100, 199)), &part);
}

#[tokio::test]
async fn control_bare_v1_takes_a_part_for_the_whole() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object());
    let bare = Bare::without_files(&origin, Version::V1, 1).await;
    let (_, part) = part_of(&bare).await;
    assert_eq!(part.status, 206, "{part}");
    eventually("the part is stored", async || {
        let mut client = Client::connect(bare.address()).await;
        client.send(request("GET", "/a", &[])).await.unwrap();
        let whole = client.response().await.expect("a response");
        whole.body.len() == 100
    })
    .await;
}

#[tokio::test]
async fn control_bare_v1_leaves_a_connection_stuck_after_a_part() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object());
    let bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    let (mut client, part) = part_of_stored(&bare).await;
    assert_eq!((part.status, part.body.len()), (206, 100), "{part}");
    client.send(request("GET", "/a", &[])).await.unwrap();
    let response = tokio::time::timeout(Duration::from_secs(1), client.response()).await;
    assert!(
        !matches!(response, Ok(Ok(_))),
        "a newer Envoy? It answers now."
    );
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn ten_bytes_of_a_huge_object_do_not_cost_the_whole(workers: usize) {
    const HUGE: usize = 100_000_000_000;
    let origin = Origin::start().ready().await;
    origin.on("/huge", Reply::zeros(HUGE).max_age(600).etag("v1").ranges());
    let edge = Edge::http(&origin).workers(workers).start().await;
    let mut client = Client::connect(edge.address()).await;
    for (range, first) in [
        ("bytes=50000000000-50000000009", 50_000_000_000_usize),
        ("bytes=99999999990-", HUGE - 10),
        ("bytes=0-9", 0),
    ] {
        let part = client
            .exchange(request("GET", "/huge", &[("range", range)]))
            .await;
        assert_eq!((part.status, part.body.len()), (206, 10), "{part}");
        let expected = format!("bytes {first}-{}/{HUGE}", first + 9);
        assert_eq!(part.header("content-range"), expected, "{part}");
    }
    let summary = origin.requests().summary();
    let whole = origin
        .requests()
        .matching(|request| request.method == "GET" && request.headers.get("range").is_none());
    assert_eq!((whole, origin.bytes_sent()), (0, 30), "{summary}");
}
