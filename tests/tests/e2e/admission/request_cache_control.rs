// SPDX-License-Identifier: Apache-2.0
//! The `Cache-Control` of a request (RFC 9111, 5.2.1) counts only where the policy says so.

use sluice_tests::client::Response;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};

const OBEYING: &str = "origin: {kind: http}\nrequest: {cache_control: obey}\n";

async fn ask(edge: &Edge, path: &str, control: &str) -> Response {
    edge.send("GET", path, &[("cache-control", control)]).await
}

#[tokio::test]
async fn a_client_is_obeyed_where_the_policy_says_so() {
    let origin = Origin::start().ready().await;
    origin.on(
        "/a",
        Reply::ok(1000).max_age(600).etag("v1").header("age", "100"),
    );
    let edge = Edge::http(&origin).workers(1).policy(OBEYING).start().await;
    // The store misses for a moment after each validation.
    let settle = async || {
        eventually("a hit", async || edge.get("/a").await.is_hit()).await;
        origin.count("/a")
    };
    let before = settle().await;
    for control in [
        "max-age=300",
        "min-fresh=300",
        "max-stale=9",
        "only-if-cached",
    ] {
        let hit = ask(&edge, "/a", control).await;
        assert!(hit.is_hit(), "{control}: {hit}");
    }
    assert_eq!(origin.count("/a"), before);
    for control in ["no-cache", "max-age=0", "max-age=50", "min-fresh=590"] {
        let (mut before, mut checked) = (settle().await, ask(&edge, "/a", control).await);
        while checked.cache_status().contains("uri-miss") {
            (before, checked) = (settle().await, ask(&edge, "/a", control).await);
        }
        let _ = checked.stamp("/a");
        let status = checked.cache_status();
        let asked = status.contains("fwd=request; fwd-status=304");
        assert!(asked, "{control}: {checked}");
        assert_eq!(origin.count("/a"), before + 1, "{control}");
    }
    let asked = origin.requests().of("/a");
    let last = asked.last().unwrap();
    assert_eq!(last.headers.get("if-none-match"), Some("\"v1\""));
    eventually("a validation", async || {
        settle().await;
        let pragma = edge.send("GET", "/a", &[("pragma", "no-cache")]).await;
        pragma.cache_status().contains("fwd=request")
    })
    .await;
}

#[tokio::test]
async fn an_only_if_cached_request_never_reaches_the_origin() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(600));
    let edge = Edge::http(&origin).workers(1).policy(OBEYING).start().await;
    for _ in 0..3 {
        let missing = ask(&edge, "/a", "only-if-cached").await;
        assert_eq!(missing.status, 504, "{missing}");
    }
    assert_eq!(origin.count("/a"), 0);
    // Another request may use the key afterwards.
    eventually("it is stored", async || edge.get("/a").await.is_hit()).await;
    assert!(origin.count("/a") <= 2, "{}", origin.count("/a"));
    assert!(ask(&edge, "/a", "only-if-cached").await.is_hit());
}

#[tokio::test]
async fn a_response_to_a_no_store_request_is_not_stored() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(600));
    let edge = Edge::http(&origin).workers(1).policy(OBEYING).start().await;
    for n in 1..=2 {
        let passed = ask(&edge, "/a", "no-store").await;
        let status = passed.cache_status();
        assert!(
            status.contains("fwd=request; fwd-status=200; detail=no-store"),
            "{passed}"
        );
        assert_eq!(origin.count("/a"), n);
    }
    assert!(!edge.get("/a").await.is_hit());
}

#[tokio::test]
async fn a_client_is_ignored_by_default() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(600).etag("v1"));
    let edge = Edge::http(&origin).workers(1).start().await;
    for control in [
        "only-if-cached",
        "no-store",
        "no-cache",
        "max-age=0",
        "min-fresh=99999",
        "max-stale",
    ] {
        let response = ask(&edge, "/a", control).await;
        assert_eq!(response.status, 200, "{control}: {response}");
        let headers = [("cache-control", control), ("pragma", "no-cache")];
        let head = edge.send("HEAD", "/a", &headers).await;
        assert_eq!(head.status, 200, "{control}: {head}");
    }
    assert_eq!(origin.count("/a"), 1);
}

/// The age of the stored response, if the store has one. The request never reaches the origin.
async fn stored_age(edge: &Edge, path: &str) -> Option<u64> {
    let stored = ask(edge, path, "only-if-cached, max-stale").await;
    assert!(matches!(stored.status, 200 | 504), "{stored}");
    stored.header("age").parse().ok()
}

#[tokio::test]
async fn a_client_gets_what_is_as_stale_as_it_accepts() {
    let origin = Origin::start().ready().await;
    let strict = Reply::ok(1000).header("cache-control", "max-age=1, must-revalidate");
    origin.on("/a", Reply::ok(1000).max_age(1).etag("v1"));
    origin.on("/strict", strict.etag("v1"));
    let edge = Edge::http(&origin).workers(1).policy(OBEYING).start().await;
    let first = edge.get("/a").await.stamp("/a");
    let _ = edge.get("/strict").await.stamp("/strict");
    eventually("it is stale", async || {
        stored_age(&edge, "/a").await > Some(2)
    })
    .await;
    for control in ["max-stale", "max-stale=600", "max-age=600, max-stale=600"] {
        let stale = ask(&edge, "/a", control).await;
        assert_eq!(stale.stamp("/a"), first, "{control}");
        let status = stale.cache_status();
        assert!(status.starts_with("sluice; hit; ttl=-"), "{stale}");
    }
    assert_eq!(origin.count("/a"), 1);
    // The client gets neither a response that is too stale for it, nor a stale response that the origin forbids.
    for (path, control) in [("/a", "max-stale=1"), ("/strict", "max-stale=600")] {
        let checked = ask(&edge, path, control).await;
        let status = checked.cache_status();
        let asked = status.contains("fwd=request; fwd-status=304");
        assert!(asked, "{control}: {checked}");
        assert_eq!(origin.count(path), 2);
    }
}

#[tokio::test]
async fn an_object_too_stale_for_one_client_stays_in_the_store() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(1).etag("v1"));
    let edge = Edge::http(&origin).workers(1).policy(OBEYING).start().await;
    let first = edge.get("/a").await.stamp("/a");
    eventually("it is stale", async || {
        stored_age(&edge, "/a").await > Some(2)
    })
    .await;
    for control in [
        "only-if-cached",
        "only-if-cached, max-stale=1",
        "only-if-cached, no-cache",
        "only-if-cached, max-stale, max-age=1",
        "only-if-cached, max-stale, min-fresh=1",
    ] {
        let refused = ask(&edge, "/a", control).await;
        assert_eq!(refused.status, 504, "{control}: {refused}");
        let status = refused.cache_status();
        assert!(status.contains("detail=only-if-cached"), "{refused}");
    }
    assert_eq!(origin.count("/a"), 1);
    let revalidated = edge.get("/a").await;
    assert_eq!(revalidated.stamp("/a"), first);
    let asked = origin.requests().of("/a");
    let last = asked.last().unwrap();
    assert_eq!(last.headers.get("if-none-match"), Some("\"v1\""));
}
