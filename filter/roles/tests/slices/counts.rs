// SPDX-License-Identifier: Apache-2.0
//! A response in slices counts as one request, and its slices count apart.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::metrics::Metric;
use sluice_fake::FakeEnvoy;

use super::world::*;
use crate::support::assert_all_over;

/// The counters of requests and of their bytes for the site `one`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    hits: u32,
    misses: u32,
    collapsed: u32,
    passed: u32,
    bytes: u32,
}

impl Totals {
    fn of(envoy: &FakeEnvoy) -> Self {
        let count = |metric| envoy.counter_of("one", metric);
        Self {
            hits: count(Metric::RequestsHit),
            misses: count(Metric::RequestsMiss),
            collapsed: count(Metric::RequestsCollapsed),
            passed: count(Metric::RequestsHitForMiss),
            bytes: count(Metric::BytesSent),
        }
    }
}

/// A worker with a site of the name `one`, where the object is known to be large.
fn envoy() -> FakeEnvoy {
    let document = format!(
        r#"{{
        "edge": {{
            "purge": {{"warm": false, "token_sha256": "{}"}},
            "store": {{"max_object_bytes": {SLICE}, "slices": {{"bytes": {SLICE}, "ahead": 0, "known": ["/*"]}}}}
        }},
        "sites": [
            {{"name": "one", "policy": {{"origin": {{"kind": "http"}}}}}}
        ]}}"#,
        FakeEnvoy::token_hash(),
    );
    FakeEnvoy::new(&document, 1)
}

const BYTES: u32 = LENGTH as u32;

#[test]
fn a_response_in_slices_is_one_request_of_its_site() {
    let mut envoy = envoy();
    get(&mut envoy, 0);
    serve(&mut envoy, &OBJECT);
    let mut totals = Totals {
        misses: 1,
        bytes: BYTES,
        ..Totals::default()
    };
    assert_eq!(Totals::of(&envoy), totals);
    for _ in 0..2 {
        get(&mut envoy, 0);
        serve(&mut envoy, &OBJECT);
    }
    totals.hits = 2;
    totals.bytes *= 3;
    assert_eq!(Totals::of(&envoy), totals);
    for (metric, count) in [
        (Metric::SlicedRequests, 3),
        (Metric::SlicesMissed, 3),
        (Metric::SlicesHit, 6),
        (Metric::SlicesCollapsed, 0),
        (Metric::SliceBytesMissed, BYTES),
        (Metric::SliceBytesHit, 2 * BYTES),
        (Metric::SliceIndexesAsked, 1),
        (Metric::OriginBytes, BYTES),
    ] {
        assert_eq!(envoy.counter_of("one", metric), count, "{metric:?}");
    }
    assert_all_over(&mut envoy);
}

#[test]
fn requests_that_share_the_slices_are_collapsed() {
    let mut envoy = envoy();
    let clients = [0; 2].map(|seat| get(&mut envoy, seat));
    serve(&mut envoy, &OBJECT);
    for client in clients {
        assert_whole(&envoy, client, &OBJECT);
    }
    let totals = Totals {
        misses: 1,
        collapsed: 1,
        bytes: 2 * BYTES,
        ..Totals::default()
    };
    assert_eq!(Totals::of(&envoy), totals);
    let slices = [Metric::SlicesHit, Metric::SlicesCollapsed];
    let shared = slices.map(|metric| envoy.counter_of("one", metric));
    assert_eq!(shared.iter().sum::<u32>(), 3);
}

#[test]
fn an_object_that_has_changed_is_one_miss() {
    let mut envoy = envoy();
    get(&mut envoy, 0);
    serve(&mut envoy, &OBJECT);
    envoy.evict(KEY);
    let later = Object {
        etag: "\"v2\"",
        ..OBJECT
    };
    let before = Totals::of(&envoy);
    let client = get(&mut envoy, 0);
    serve(&mut envoy, &later);
    assert_whole(&envoy, client, &later);
    let totals = Totals {
        misses: before.misses + 1,
        bytes: before.bytes + BYTES,
        ..before
    };
    assert_eq!(Totals::of(&envoy), totals);
    assert_eq!(envoy.counter_of("one", Metric::SlicesChanged), 1);
    assert_eq!(envoy.counter_of("one", Metric::SlicedPassed), 0);
}

#[test]
fn a_first_slice_that_fails_is_one_failed_request() {
    let mut envoy = envoy();
    get(&mut envoy, 0);
    let head = envoy.open_fetches()[0];
    answer_as(&mut envoy, head, &OBJECT);
    let first = envoy.open_fetches()[0];
    envoy.answer_with(first, 503, &[], b"busy");
    envoy.end(first);
    envoy.close_all();
    let totals = Totals {
        bytes: 4,
        ..Totals::default()
    };
    assert_eq!(Totals::of(&envoy), totals);
    assert_eq!(envoy.counter_of("one", Metric::FollowersFailed), 1);
}
