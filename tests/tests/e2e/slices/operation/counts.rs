// SPDX-License-Identifier: Apache-2.0
//! A response in slices counts as one request with its bytes once. Its slices count apart.

use crate::slices::world::{
    KNOWN, OBJECT, SLICES, UNKNOWN, assert_whole, edge, object, origin, settle,
};
use sluice_tests::edge::Edge;

const BYTES: u64 = OBJECT as u64;
const NUMBER: u64 = SLICES as u64;

/// The counters of requests of clients, without the ones of slices.
const RESULTS: [&str; 6] = [
    "sluice_requests_hit",
    "sluice_requests_miss",
    "sluice_requests_collapsed",
    "sluice_requests_hit_for_miss",
    "sluice_requests_passed",
    "sluice_followers_failed",
];

/// Number of all requests of clients.
async fn requests(edge: &Edge) -> u64 {
    let mut requests = 0;
    for name in RESULTS {
        requests += edge.counter(name).await;
    }
    requests
}

#[tokio::test]
async fn a_response_in_slices_counts_as_one_request() {
    let origin = origin(&object(1)).await;
    let edge = edge(&origin).workers(1).metrics().start().await;
    for _ in 0..2 {
        assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    }
    settle(&origin).await;
    edge.wait_for_counter("sluice_bytes_sent", 2 * BYTES).await;
    edge.wait_for_counter("sluice_origin_bytes", BYTES).await;
    edge.wait_for_counter("sluice_slice_bytes_hit", BYTES).await;
    edge.wait_for_value("sluice_sliced_now", 0).await;
    for (name, value) in [
        ("sluice_requests_miss", 1),
        ("sluice_requests_hit", 1),
        ("sluice_bytes_sent", 2 * BYTES),
        ("sluice_origin_fetches", 1 + NUMBER),
        ("sluice_origin_bytes", BYTES),
        ("sluice_sliced_requests", 2),
        ("sluice_slices_missed", NUMBER),
        ("sluice_slices_hit", NUMBER),
        ("sluice_slices_collapsed", 0),
        ("sluice_slice_bytes_missed", BYTES),
        ("sluice_slice_bytes_hit", BYTES),
        ("sluice_slice_indexes_asked", 1),
        ("sluice_sliced_passed", 0),
        ("sluice_sliced_cut", 0),
    ] {
        assert_eq!(edge.counter(name).await, value, "{name}");
    }
    assert_eq!(requests(&edge).await, 2);
    for line in [
        "sluice_first_byte_seconds_count{result=\"hit\"} 1",
        "sluice_first_byte_seconds_count{result=\"miss\"} 1",
        "sluice_first_byte_seconds_count{result=\"collapsed\"} 0",
        "sluice_slices_total{result=\"hit\"} 25",
    ] {
        edge.wait_for_metric(line).await;
    }
}

#[tokio::test]
async fn an_object_that_passes_counts_as_one_request_and_its_bytes_are_fetched_twice() {
    let origin = origin(&object(1)).await;
    let edge = edge(&origin).workers(1).start().await;
    for passed in 1..=2 {
        assert_whole(&edge.get(UNKNOWN).await, UNKNOWN, 1);
        edge.wait_for_counter("sluice_bytes_sent", passed * BYTES)
            .await;
    }
    settle(&origin).await;
    assert_eq!(requests(&edge).await, 2);
    for (name, value) in [
        ("sluice_sliced_passed", 1),
        ("sluice_sliced_requests", 1),
        ("sluice_bytes_sent", 2 * BYTES),
        ("sluice_origin_bytes", 2 * BYTES),
    ] {
        assert_eq!(edge.counter(name).await, value, "{name}");
    }
}
