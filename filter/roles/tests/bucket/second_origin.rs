// SPDX-License-Identifier: Apache-2.0
//! A response of the second origin, which the hop marks, is stored for a short time.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::internal_headers::{MISSING_HEADER, SECOND_ORIGIN_HEADER};
use sluice_core::metrics::Metric;
use sluice_fake::{FakeEnvoy, FetchId};

use crate::support::{FIRST, KEY, fill};

const DOCUMENT: &str = r#"{
    "origin": {"kind": "bucket", "bucket": "edge", "addressing": "virtual_host", "authority": "edge.test"},
    "cache": {"ttl": {"default": "1h"}, "stale_while_revalidate": "0s", "stale_if_error": "1h"},
    "limits": {"hints": 64, "varying_urls": 64},
    "purge": {"warm": false}
}"#;

/// The answer to the fetch, with the hop's `word` about the second origin.
fn answer(envoy: &mut FakeEnvoy, fetch: FetchId, status: u16, word: &str) {
    let headers = [
        (SECOND_ORIGIN_HEADER, word),
        (MISSING_HEADER, "none"),
        ("etag", "\"2\""),
    ];
    envoy.answer_with(fetch, status, &headers, b"object");
    fill(envoy, fetch);
}

#[test]
fn a_marked_response_is_fresh_for_the_marked_time_and_tells_its_client() {
    let mut envoy = FakeEnvoy::new(DOCUMENT, 1);
    let client = envoy.request(0, "GET", KEY, &[]);
    answer(&mut envoy, FIRST, 200, "60");
    let client = &envoy.clients[client.0];
    let status = client.header("cache-status").unwrap();
    assert!(status.contains("; ttl=60; "), "{status}");
    assert!(status.ends_with("; detail=failover"), "{status}");
    for name in [SECOND_ORIGIN_HEADER, MISSING_HEADER] {
        assert_eq!(client.header(name), None);
    }
    assert_eq!(envoy.counter(Metric::SecondOriginAnswers), 1);
    envoy.request(0, "GET", KEY, &[]);
    assert_eq!(envoy.fetches.len(), 1);
    envoy.advance(61_000);
    envoy.tick(0);
    envoy.request(0, "GET", KEY, &[]);
    assert_eq!(envoy.fetches.len(), 2);
}

#[test]
fn a_marked_404_is_not_stored() {
    let mut envoy = FakeEnvoy::new(DOCUMENT, 1);
    let first = envoy.request(0, "GET", KEY, &[]);
    answer(&mut envoy, FIRST, 404, "60");
    assert_eq!(envoy.clients[first.0].status(), 404);
    let second = envoy.request(0, "GET", KEY, &[]);
    assert_eq!(envoy.fetches.len(), 2);
    answer(&mut envoy, FetchId(1), 200, "60");
    assert_eq!(envoy.clients[second.0].status(), 200);
}

#[test]
fn an_object_that_the_first_origin_lacks_is_stored_like_any() {
    for status in [200, 404] {
        let mut envoy = FakeEnvoy::new(DOCUMENT, 1);
        let client = envoy.request(0, "GET", KEY, &[]);
        answer(&mut envoy, FIRST, status, "missing");
        let told = envoy.clients[client.0].header("cache-status").unwrap();
        assert!(told.contains("; ttl=3600; "), "{told}");
        assert!(told.ends_with("; detail=on-missing"), "{told}");
        assert_eq!(envoy.counter(Metric::SecondOriginAnswers), 0);
        assert_eq!(envoy.counter(Metric::MissingObjectsAsked), 1);
    }
}
