// SPDX-License-Identifier: Apache-2.0
//! Every response has `Cache-Status` (RFC 9211) and `Age` with correct values.

use sluice_tests::client::Response;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::http::http_date;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::{Duration, SystemTime};

#[tokio::test]
async fn a_miss_a_hit_and_a_collapsed_request_say_so() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(1000).max_age(60).hold(&gate));
    let edge = Edge::http(&origin).workers(2).start().await;
    let flight = Crowd::connect(edge.address(), 5).await.fire("/a");
    edge.wait_for_counter("sluice_parked_now", 4).await;
    gate.open();
    let outcomes = flight.land().await;
    let misses = outcomes.all(200);
    let stored: Vec<_> = misses
        .iter()
        .filter(|r| !r.cache_status().contains("collapsed"))
        .collect();
    assert_eq!(
        stored.len(),
        1,
        "{:?}",
        misses.iter().map(|r| r.cache_status()).collect::<Vec<_>>()
    );
    assert!(
        stored[0].cache_status().contains("fwd=uri-miss"),
        "{}",
        stored[0].cache_status()
    );
    assert!(
        stored[0].cache_status().contains("stored"),
        "{}",
        stored[0].cache_status()
    );
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    let hit = edge.get("/a").await;
    assert!((50..=60).contains(&ttl(&hit)), "{hit}");
    assert!(
        hit.headers.number("age").is_some_and(|age| age < 10),
        "{hit}"
    );
}

#[tokio::test]
async fn passed_and_refused_requests_have_a_cache_status_too() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).header("cache-control", "private"));
    let edge = Edge::http(&origin).start().await;
    for (method, headers) in [
        ("GET", &[("cookie", "a=1")][..]),
        ("POST", &[("content-length", "0")]),
        ("GET", &[]),
    ] {
        let response = edge.send(method, "/a", headers).await;
        assert!(
            response.cache_status().contains("fwd="),
            "{method}: {response}"
        );
        assert!(!response.is_hit(), "{method}: {response}");
    }
    let rejected = edge.get("/a%00").await;
    assert_eq!(rejected.status, 400);
    assert!(!rejected.cache_status().is_empty(), "{rejected}");
}

/// The age as a recipient computes it (RFC 9111, 4.2.3), in seconds.
fn age(response: &Response) -> usize {
    let now = SystemTime::now();
    let dated = (0..1_000)
        .find(|&seconds| response.header("date") == http_date(now - Duration::from_secs(seconds)));
    let apparent = usize::try_from(dated.expect("a recent Date")).unwrap();
    apparent.max(response.headers.number("age").unwrap_or(0))
}

fn ttl(response: &Response) -> i64 {
    let parameters = response.cache_status().split(';').map(str::trim);
    let ttl = parameters.filter_map(|parameter| parameter.strip_prefix("ttl="));
    let ttl: Vec<_> = ttl.map(|ttl| ttl.parse().unwrap()).collect();
    assert_eq!(ttl.len(), 1, "{response}");
    ttl[0]
}

#[tokio::test]
async fn age_counts_from_the_receipt_and_includes_the_origins() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(600).header("age", "100"));
    let edge = Edge::http(&origin).workers(1).start().await;
    let miss = edge.get("/a").await;
    assert!((100..110).contains(&age(&miss)), "{miss}");
    assert!((490..=500).contains(&ttl(&miss)), "{miss}");
    eventually("it ages", async || {
        let hit = edge.get("/a").await;
        assert!((490..=500).contains(&ttl(&hit)), "{hit}");
        hit.headers
            .number("age")
            .is_some_and(|age| (101..120).contains(&age))
    })
    .await;
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn an_expired_object_is_revalidated_once_for_all() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000).max_age(1).etag("v1"));
    let edge = Edge::http(&origin).workers(2).start().await;
    let first = edge.get("/a").await.stamp("/a");
    eventually("a revalidation", async || {
        assert_eq!(edge.get("/a").await.stamp("/a"), first);
        origin
            .requests()
            .matching(|request| request.headers.get("if-none-match").is_some())
            > 0
    })
    .await;
}
