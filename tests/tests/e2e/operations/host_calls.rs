// SPDX-License-Identifier: Apache-2.0
//! Number of calls between the VM and its host, in either direction, for a hit and for a miss. They are most of the
//! filter's cost, about a microsecond each. Envoy's own trace of its Wasm host counts them.

use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Medium;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use std::collections::BTreeMap;
use std::iter::repeat_n;

/// Number of crossings by the name of the called function.
type Crossings = BTreeMap<String, usize>;

/// The host calls of a hot hit. A change that saves calls updates this table.
const HOT: [(&str, usize); 13] = [
    ("clock_time_get", 1),
    ("malloc", 1),
    ("proxy_get_header_map_pairs", 1),
    ("proxy_increment_metric", 3),
    ("proxy_on_context_create", 1),
    ("proxy_on_delete", 1),
    ("proxy_on_done", 1),
    ("proxy_on_log", 1),
    ("proxy_on_request_headers", 1),
    ("proxy_on_response_body", 1),
    ("proxy_on_response_headers", 1),
    ("proxy_record_metric", 1),
    ("proxy_send_local_response", 1),
];

/// The host calls of a stored hit, without a hot tier.
const HIT: [(&str, usize); 15] = [
    ("clock_time_get", 4),
    ("malloc", 2),
    ("proxy_add_header_map_value", 3),
    ("proxy_get_header_map_pairs", 2),
    ("proxy_increment_metric", 2),
    ("proxy_on_context_create", 1),
    ("proxy_on_delete", 1),
    ("proxy_on_done", 1),
    ("proxy_on_log", 1),
    ("proxy_on_request_headers", 1),
    ("proxy_on_response_body", 1),
    ("proxy_on_response_headers", 1),
    ("proxy_record_metric", 1),
    ("proxy_remove_header_map_value", 3),
    ("proxy_replace_header_map_value", 3),
];

/// The host calls of a miss without followers, with those of ORIGIN. The slot of its key on the board is new.
const MISS: [(&str, usize); 18] = [
    ("clock_time_get", 11),
    ("malloc", 4),
    ("proxy_add_header_map_value", 9),
    ("proxy_dequeue_shared_queue", 1),
    ("proxy_get_header_map_pairs", 4),
    ("proxy_get_shared_data", 1),
    ("proxy_increment_metric", 5),
    ("proxy_on_context_create", 2),
    ("proxy_on_delete", 2),
    ("proxy_on_done", 2),
    ("proxy_on_log", 1),
    ("proxy_on_request_headers", 2),
    ("proxy_on_response_body", 4),
    ("proxy_on_response_headers", 2),
    ("proxy_record_metric", 2),
    ("proxy_remove_header_map_value", 7),
    ("proxy_replace_header_map_value", 6),
    ("proxy_set_shared_data", 1),
];

/// Upper bound on the number of requests until two are alike.
const MOST_ASKED: usize = 30;

/// The host calls that are added by an access log with the result and the key.
const ACCOUNT: (&str, usize) = ("proxy_set_property", 2);

/// Name of the function, if the line shows a call and not a return.
fn called(line: &str) -> Option<&str> {
    let (_, call) = line
        .split_once("[host->vm] ")
        .or_else(|| line.split_once("[vm->host] "))?;
    let name = call.split('(').next()?;
    Some(name.rsplit('.').next().unwrap_or(name))
}

/// The crossings of one request with `contexts` contexts, while no other request runs.
async fn crossings(edge: &Edge, target: &str, contexts: usize) -> Crossings {
    let before = edge.log().len();
    let _ = edge.get(target).await;
    eventually("the end of the request", async || {
        let log = edge.log();
        log[before..].matches("[host<-vm] proxy_on_delete").count() >= contexts
    })
    .await;
    let mut crossings = Crossings::new();
    let log = edge.log();
    for name in log[before..].lines().filter_map(called) {
        *crossings.entry(name.to_owned()).or_default() += 1;
    }
    crossings
}

/// The crossings of one of many identical requests, each with `contexts` contexts. A timer that stops soon, or a late
/// check of the edge's health, may add calls to one of the requests, and not to the next one.
async fn usual_crossings(
    edge: &Edge,
    contexts: usize,
    targets: impl Iterator<Item = String>,
) -> Crossings {
    let mut last = Crossings::new();
    for target in targets.take(MOST_ASKED) {
        let next = crossings(edge, &target, contexts).await;
        if std::mem::replace(&mut last, next.clone()) == next {
            return next;
        }
    }
    panic!("no two requests are alike: {last:?}");
}

/// The crossings of a hit and of a miss.
async fn hit_and_miss(hot_bytes: &str, access_log: &str) -> [Crossings; 2] {
    let origin = Origin::start().ready().await;
    // The body of a miss arrives in one part.
    for (path, bytes) in [("/a", 10_000), ("/miss/*", 1_000)] {
        let object = Reply::ok(bytes)
            .max_age(3_600)
            .header("content-type", "text/plain")
            .header("etag", "\"1\"");
        origin.on(
            path,
            object.header("last-modified", "Sat, 21 Nov 2026 08:00:00 GMT"),
        );
    }
    let edge = Edge::http(&origin)
        .medium(Medium::Memory)
        .workers(1)
        // Envoy logs each call of a VM.
        .env("SLUICE_RUNTIME", "wasm")
        .env("SLUICE_HOT_BYTES", hot_bytes)
        .env("SLUICE_ACCESS_LOG", access_log)
        .start()
        .await;
    // With a hot tier, the first hit is copied.
    for _ in 0..2 {
        eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    }
    let traced = edge.admin_send("POST", "/logging?wasm=trace").await;
    assert_eq!(traced.status, 200, "{traced}");
    [
        usual_crossings(&edge, 1, repeat_n("/a".to_owned(), MOST_ASKED)).await,
        usual_crossings(&edge, 2, (0..).map(|number: u32| format!("/miss/{number}"))).await,
    ]
}

#[tokio::test]
async fn a_stored_hit_makes_no_more_host_calls_than_it_must() {
    let [hit, miss] = hit_and_miss("0", "text").await;
    let expected: Crossings = HIT.map(|(name, times)| (name.to_owned(), times)).into();
    assert_eq!(hit, expected);
    let expected: Crossings = MISS.map(|(name, times)| (name.to_owned(), times)).into();
    assert_eq!(miss, expected);
}

#[tokio::test]
async fn a_hot_hit_makes_fewer_host_calls() {
    let [hit, _] = hit_and_miss("1MiB", "text").await;
    let expected: Crossings = HOT.map(|(name, times)| (name.to_owned(), times)).into();
    assert_eq!(hit, expected);
}

#[tokio::test]
async fn envoy_is_told_what_the_filter_did_only_where_the_access_log_shows_it() {
    let [hit, _] = hit_and_miss("1MiB", "json").await;
    let expected = HOT.into_iter().chain([ACCOUNT]);
    let expected: Crossings = expected
        .map(|(name, times)| (name.to_owned(), times))
        .collect();
    assert_eq!(hit, expected);
}
