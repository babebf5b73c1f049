// SPDX-License-Identifier: Apache-2.0
//! Conditional requests are answered from the cached response, as RFC 9110, section 13, requires.

use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use test_case::test_case;

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &str = "Mon, 07 Nov 1994 08:49:37 GMT";

fn object(size: usize) -> Reply {
    Reply::ok(size)
        .max_age(600)
        .etag("v1")
        .header("last-modified", MODIFIED)
        .header("content-type", "text/css")
        .header("content-location", "/a.v1")
        .header("x-frame-options", "DENY")
}

/// Checks the response with status 304 (RFC 9110, 15.4.5).
fn assert_not_modified(response: &Response) {
    assert_eq!(
        (response.status, response.body.len()),
        (304, 0),
        "{response}"
    );
    for (name, value) in [
        ("etag", "\"v1\""),
        ("cache-control", "max-age=600"),
        ("content-location", "/a.v1"),
        ("x-frame-options", "DENY"),
    ] {
        assert_eq!(response.header(name), value, "{response}");
    }
    assert!(response.headers.get("date").is_some(), "{response}");
    for name in [
        "content-length",
        "content-type",
        "last-modified",
        "accept-ranges",
        "transfer-encoding",
    ] {
        assert_eq!(response.headers.get(name), None, "{response}");
    }
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_reload_never_reaches_the_origin(workers: usize) {
    let origin = Origin::start().ready().await;
    origin.on("/a", object(100_000));
    let edge = Edge::http(&origin).workers(workers).start().await;
    let mut client = Client::connect(edge.address()).await;
    let first = client.get("/a").await;
    let tag = first.header("etag").to_owned();
    let date = first.header("last-modified").to_owned();
    for headers in [
        &[("if-none-match", tag.as_str())][..],
        &[("if-modified-since", &date)],
        &[
            ("if-none-match", &tag),
            ("if-modified-since", &date),
            ("cache-control", "max-age=0"),
        ],
    ] {
        let reload = client.exchange(request("GET", "/a", headers)).await;
        assert_not_modified(&reload);
        let head = client.exchange(request("HEAD", "/a", headers)).await;
        assert_not_modified(&head);
        // The same connection works for complete responses.
        assert_eq!(client.get("/a").await.stamp("/a"), first.stamp("/a"));
    }
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn a_reload_over_http2_never_reaches_the_origin() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object(100_000));
    let edge = Edge::http(&origin).workers(1).start().await;
    let connection = Http2::connect(edge.address()).await;
    let _ = connection.get("/a").await.unwrap();
    for _ in 0..3 {
        let (status, headers, body) = connection
            .send("GET", "/a", &[("if-none-match", "\"v1\"")])
            .await
            .unwrap();
        assert_eq!((status, body.len()), (304, 0), "{headers:?}");
        let (status, _, body) = connection.get("/a").await.unwrap();
        assert_eq!((status, body.len()), (200, 100_000));
    }
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn every_condition_is_evaluated_in_order() {
    let origin = Origin::start().ready().await;
    origin.on("/a", object(1000));
    let edge = Edge::http(&origin).workers(1).start().await;
    let _ = edge.get("/a").await;
    let mut client = Client::connect(edge.address()).await;
    for (headers, status) in [
        (&[("if-none-match", "\"v0\", W/\"v1\"")][..], 304),
        (&[("if-none-match", "*")], 304),
        (
            &[("if-none-match", "\"v0\""), ("if-none-match", "\"v1\"")],
            304,
        ),
        (
            &[("if-none-match", "\"v0\""), ("if-modified-since", AFTER)],
            200,
        ),
        (&[("if-modified-since", BEFORE)], 200),
        (&[("if-modified-since", AFTER)], 304),
        (&[("if-match", "\"v1\"")], 200),
        (&[("if-match", "\"v0\"")], 412),
        (&[("if-match", "W/\"v1\"")], 412),
        (&[("if-match", "*"), ("if-none-match", "\"v1\"")], 304),
        (&[("if-match", "\"v0\""), ("if-none-match", "\"v1\"")], 412),
        (&[("if-unmodified-since", MODIFIED)], 200),
        (&[("if-unmodified-since", BEFORE)], 412),
        (
            &[("if-match", "\"v1\""), ("if-unmodified-since", BEFORE)],
            200,
        ),
    ] {
        let response = client.exchange(request("GET", "/a", headers)).await;
        assert_eq!(response.status, status, "{headers:?}: {response}");
        if status == 200 {
            let _ = response.stamp("/a");
        } else {
            assert!(response.body.is_empty(), "{response}");
        }
        if status == 412 {
            assert_eq!(response.headers.get("etag"), None, "{response}");
            assert_eq!(response.header("cache-control"), "no-store", "{response}");
        }
    }
    assert_eq!(origin.count("/a"), 1);
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_cold_conditional_request_fills_the_cache(workers: usize) {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(workers).start().await;
    let cases = [
        ("if-none-match", "\"v1\"", 304),
        ("if-none-match", "\"v0\"", 200),
        ("if-match", "\"v0\"", 412),
    ];
    for (n, (name, value, status)) in cases.into_iter().enumerate() {
        let path = format!("/a{n}");
        origin.on(&path, object(300_000));
        let mut client = Client::connect(edge.address()).await;
        let response = client
            .exchange(request("GET", &path, &[(name, value)]))
            .await;
        assert_eq!(response.status, status, "{response}");
        assert!(!response.is_hit(), "{response}");
        // The same connection, and another one.
        let _ = client.get(&path).await.stamp(&path);
        let _ = edge.get(&path).await.stamp(&path);
        assert_eq!(origin.count(&path), 1);
        let asked = origin.requests().of(&path);
        assert!(
            asked
                .iter()
                .all(|request| request.headers.get(name).is_none())
        );
    }
}

#[tokio::test]
async fn a_stampede_of_reloads_on_a_cold_key_is_one_request() {
    let origin = Origin::start().ready().await;
    let gate = sluice_tests::server::gate::Gate::new();
    origin.on("/a", object(50_000).hold(&gate));
    let edge = Edge::http(&origin).workers(2).start().await;
    let crowd = Crowd::connect(edge.address(), 40).await;
    let flight = crowd.fire_each(|n| {
        let tag = if n % 2 == 0 { "\"v1\"" } else { "\"v0\"" };
        request("GET", "/a", &[("if-none-match", tag)])
    });
    edge.wait_for_counter("sluice_parked_now", 39).await;
    gate.open();
    let outcomes = flight.land().await;
    let (unchanged, whole): (Vec<_>, Vec<_>) = outcomes
        .responses()
        .partition(|response| response.status == 304);
    assert_eq!((unchanged.len(), whole.len()), (20, 20));
    for response in unchanged {
        assert_not_modified(response);
    }
    for response in whole {
        let _ = response.stamp("/a");
    }
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn conditions_on_errors_and_redirects_are_ignored() {
    let origin = Origin::start().ready().await;
    origin.on("/missing", Reply::status(404));
    origin.on(
        "/moved",
        Reply::status(302).header("location", "/a").max_age(60),
    );
    origin.on("/down", Reply::status(503));
    let edge = Edge::http(&origin).workers(1).start().await;
    for (path, status) in [("/missing", 404), ("/moved", 302), ("/down", 503)] {
        for headers in [
            ("if-none-match", "*"),
            ("if-match", "\"v0\""),
            ("if-modified-since", AFTER),
        ] {
            for _ in 0..2 {
                let response = edge.send("GET", path, &[headers]).await;
                assert_eq!(response.status, status, "{response}");
            }
        }
    }
}

#[tokio::test]
async fn conditions_on_uncacheable_objects_go_to_the_origin() {
    let origin = Origin::start().ready().await;
    origin.on(
        "/a",
        Reply::ok(1000)
            .etag("v1")
            .header("cache-control", "private"),
    );
    let edge = Edge::http(&origin).workers(1).start().await;
    let _ = edge.get("/a").await.stamp("/a");
    for _ in 0..2 {
        let unchanged = edge.send("GET", "/a", &[("if-none-match", "\"v1\"")]).await;
        assert_eq!(
            (unchanged.status, unchanged.body.len()),
            (304, 0),
            "{unchanged}"
        );
    }
    let asked = origin.requests().of("/a");
    let conditional = asked
        .iter()
        .filter(|request| request.headers.get("if-none-match") == Some("\"v1\""));
    assert_eq!((asked.len(), conditional.count()), (3, 2));
}

#[tokio::test]
async fn a_failed_condition_on_an_uncacheable_object_keeps_the_connection() {
    let origin = Origin::start().ready().await;
    let private = Reply::ok(300_000).etag("v1");
    origin.on("/*", private.header("cache-control", "private"));
    let edge = Edge::http(&origin).workers(1).start().await;
    for n in 0..12 {
        let path = format!("/a{n}");
        let mut client = Client::connect(edge.address()).await;
        let ask = request("GET", &path, &[("if-match", "\"v0\"")]);
        let refused = client.exchange(ask).await;
        assert_eq!(refused.status, 412, "{path}: {refused}");
        // The same connection still works.
        let _ = client.get(&path).await.stamp(&path);
    }
}
