// SPDX-License-Identifier: Apache-2.0
//! A response of the second origin is stored for a short time, and a missing object of the second origin is not
//! stored. A stale response is served only if both origins fail.

use super::world::{Pair, named};
use sluice_tests::origin::Reply;

/// The seconds for which a response stays fresh.
fn ttl(status: &str) -> u64 {
    let (_, rest) = status
        .split_once("; ttl=")
        .unwrap_or_else(|| panic!("{status}"));
    rest.split(';').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_response_of_the_second_origin_is_fresh_for_a_short_time() {
    let pair = Pair::start().await;
    pair.first.on("/site/a", Reply::status(503));
    let edge = pair.buckets().start().await;
    let second = edge.get("/a").await;
    assert_eq!(second.body, b"second", "{second}");
    assert!(ttl(second.cache_status()) <= 60, "{second}");
    assert!(edge.get("/a").await.is_hit());
    let control = edge.get("/b").await;
    assert!(ttl(control.cache_status()) > 3_000, "{control}");
}

#[tokio::test]
async fn an_object_that_the_second_bucket_lacks_is_not_stored_as_missing() {
    let pair = Pair::start().await;
    pair.first
        .on_each("/site/a", [Reply::status(503), named("first")]);
    pair.second.on("/other/copy/a", Reply::status(404));
    let edge = pair.buckets().start().await;
    assert_eq!(edge.get("/a").await.status, 404);
    let response = edge.get("/a").await;
    assert_eq!(
        (response.status, &*response.body),
        (200, &b"first"[..]),
        "{response}"
    );
}

/// The age of each stored response is beyond its time to live.
fn expired(edge: sluice_tests::edge::Builder) -> sluice_tests::edge::Builder {
    edge.policy("cache: {stale_while_revalidate: 0s, stale_if_error: 1h}")
}

#[tokio::test]
async fn a_stale_response_is_served_only_if_both_origins_fail() {
    let pair = Pair::start().await;
    pair.first
        .on("*", Reply::text("first").etag("first").max_age(1));
    let edge = expired(pair.buckets()).start().await;
    for path in ["/a", "/b", "/c", "/last"] {
        assert_eq!(edge.get(path).await.body, b"first");
    }
    sluice_tests::eventually("the responses are stale", async || {
        edge.get("/last").await.cache_status().contains("fwd=stale")
    })
    .await;
    pair.first.on("/site/*", Reply::status(503));
    assert_eq!(edge.get("/a").await.body, b"second");
    pair.second.on("/other/copy/b", Reply::status(404));
    let stale = edge.get("/b").await;
    assert_eq!(
        (stale.status, &*stale.body),
        (200, &b"first"[..]),
        "{stale}"
    );
    pair.second.on("/other/copy/c", Reply::status(503));
    let stale = edge.get("/c").await;
    assert_eq!(
        (stale.status, &*stale.body),
        (200, &b"first"[..]),
        "{stale}"
    );
    assert!(stale.cache_status().contains("fwd=stale"), "{stale}");
}
