// SPDX-License-Identifier: Apache-2.0
//! 304 responses of origins: the fields that they leave unchanged, and 304 responses about another response than the
//! stored one.

use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::{Response, until_hit};
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use std::time::Duration;
use test_case::test_case;
use tokio::time::sleep;

/// Path of an object in a bucket behind the edge.
const OBJECT: &str = "/site/a";
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

/// Waits until an object with a lifetime of one second has expired.
async fn expired() {
    sleep(Duration::from_millis(2_100)).await;
}

/// Returns for each request for `path` whether it had a condition.
fn conditions(origin: &Origin, path: &str) -> Vec<bool> {
    let asked = origin.requests().of(path);
    let has = |name: &str, n: usize| asked[n].headers.get(name).is_some();
    let all = 0..asked.len();
    all.map(|n| has("if-none-match", n) || has("if-modified-since", n))
        .collect()
}

/// leo-project/leofs#848, ceph/ceph#54587: a 304 of a bucket without the object's `Cache-Control`.
#[tokio::test]
async fn a_304_without_cache_control_leaves_the_stored_lifetime_as_it_is() {
    let origin = Origin::start().ready().await;
    let object = Reply::ok(1_000)
        .header("cache-control", "max-age=1, must-revalidate")
        .etag("a");
    let silent = Reply::new(304, 0).etag("a");
    origin.on_each(OBJECT, [object, silent]);
    let edge = Edge::scripted_bucket(&origin).env("SLUICE_HOT_BYTES", "0");
    let edge = edge.workers(1).start().await;
    let first = edge.get("/a").await.stamp(OBJECT);
    for validations in 1..=2 {
        expired().await;
        assert_eq!(edge.get("/a").await.stamp(OBJECT), first);
        assert_eq!(origin.count(OBJECT), 1 + validations, "it was fresh");
    }
    let response = edge.get("/a").await;
    assert_eq!(
        response.header("cache-control"),
        "max-age=1, must-revalidate",
        "{response}"
    );
}

/// kornelski/rusty-http-cache-semantics#39: a 304 whose `ETag` differs from the stored one.
#[test_case(1_000, 1; "to one client")]
#[test_case(1_000, 8; "to all who wait")]
#[tokio::test]
async fn a_304_about_another_object_has_that_fetched(size: usize, clients: usize) {
    let origin = Origin::start().ready().await;
    let object = |tag: &str| Reply::ok(size).max_age(1).etag(tag);
    let other = Reply::new(304, 0).etag("b").max_age(60);
    origin.on_each("/a", [object("a"), other, object("b").max_age(60)]);
    let edge = Edge::http(&origin).workers(1).start().await;
    let first = edge.get("/a").await.stamp("/a");
    expired().await;
    let crowd = Crowd::connect(edge.address(), clients).await.fire("/a");
    for response in crowd.land().await.all(200) {
        let stamp = response.stamp("/a");
        assert!(stamp.sequence > first.sequence, "{response}");
        assert_eq!(response.header("etag"), "\"b\"", "{response}");
    }
    until_hit(edge.address(), "/a").await;
    assert_eq!(conditions(&origin, "/a"), [false, true, false]);
    assert_eq!(edge.counter("sluice_validations_refused").await, 1);
}

/// A refresh in the background gets such a 304, and no client waits for the refresh.
#[tokio::test]
async fn a_304_about_another_object_does_not_end_its_refresh() {
    let origin = Origin::start().ready().await;
    let object = |tag: &str, control: &str| {
        let reply = Reply::ok(1_000).header("cache-control", control);
        reply.etag(tag)
    };
    let other = Reply::new(304, 0).etag("b").max_age(60);
    let stale = object("a", "max-age=1, stale-while-revalidate=600");
    origin.on_each("/a", [stale, other, object("b", "max-age=600")]);
    let edge = Edge::http(&origin).workers(1).start().await;
    let first = edge.get("/a").await.stamp("/a");
    expired().await;
    eventually("the other object", async || {
        let response = edge.get("/a").await;
        let stamp = response.stamp("/a");
        assert!(stamp == first || response.header("etag") == "\"b\"");
        stamp.sequence > first.sequence
    })
    .await;
    assert_eq!(conditions(&origin, "/a"), [false, true, false]);
}

#[tokio::test]
async fn a_304_changes_the_headers_and_not_what_describes_the_body() {
    let origin = Origin::start().ready().await;
    let object = Reply::ok(1_000).max_age(1).etag("a");
    let changed = Reply::new(304, 0)
        .etag("a")
        .max_age(600)
        .header("content-encoding", "gzip")
        .header("content-range", "bytes 0-9/1000")
        .header("x-version", "2");
    origin.on_each("/a", [object, changed]);
    let edge = Edge::http(&origin).workers(1).start().await;
    let first = edge.get("/a").await.stamp("/a");
    expired().await;
    let is_whole = |response: &Response| {
        assert_eq!(response.stamp("/a"), first, "{response}");
        for name in ["content-encoding", "content-range"] {
            assert_eq!(response.headers.get(name), None, "{response}");
        }
        assert_eq!(response.header("content-length"), "1000", "{response}");
    };
    is_whole(&edge.get("/a").await);
    eventually("a hit with the new headers", async || {
        let response = edge.get("/a").await;
        is_whole(&response);
        response.is_hit() && response.header("x-version") == "2"
    })
    .await;
    assert_eq!(origin.count("/a"), 2);
}

/// nginx/nginx-s3-gateway#87, pulumi/docs#397: the same bytes in the bucket with other metadata.
#[tokio::test]
async fn new_metadata_of_the_same_bytes_is_taken_from_the_bucket() {
    let origin = Origin::start().ready().await;
    let object = |media_type: &str, modified: &str| {
        let reply = Reply::ok(1_000).header("etag", "\"a\"");
        let reply = reply.header("cache-control", "max-age=1, must-revalidate");
        let reply = reply.header("content-type", media_type);
        reply.header("last-modified", modified)
    };
    let same = Reply::new(304, 0)
        .header("etag", "\"a\"")
        .header("last-modified", LATER);
    origin.on_each(
        OBJECT,
        [
            object("text/plain", MODIFIED),
            same,
            object("text/html", LATER),
        ],
    );
    let edge = Edge::scripted_bucket(&origin).workers(1).start().await;
    let response = edge.get("/a").await;
    assert_eq!(response.header("content-type"), "text/plain", "{response}");
    expired().await;
    let response = edge.get("/a").await;
    assert_eq!(response.header("content-type"), "text/html", "{response}");
    assert_eq!(response.header("last-modified"), LATER, "{response}");
    assert_eq!(conditions(&origin, OBJECT), [false, true, false]);
}

/// meziantou/Meziantou.Framework#2824: an origin that answers 501 or 505 has not failed (RFC 5861, 4).
#[tokio::test]
async fn what_is_stale_takes_the_place_of_a_failure_and_of_no_other_5xx() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(1).start().await;
    let statuses = [500, 501, 502, 503, 504, 505, 507, 511];
    let path = |status: u16| format!("/{status}");
    for status in statuses {
        let object = Reply::ok(1_000).header("cache-control", "max-age=1, stale-if-error=600");
        origin.on_each(&path(status), [object.etag("a"), Reply::new(status, 100)]);
        assert_eq!(edge.get(&path(status)).await.status, 200);
    }
    expired().await;
    for status in statuses {
        let failed = matches!(status, 500 | 502..=504);
        let response = edge.get(&path(status)).await;
        let expected = if failed { 200 } else { status };
        assert_eq!(response.status, expected, "{response}");
    }
}
