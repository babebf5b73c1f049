// SPDX-License-Identifier: Apache-2.0
//! Requests through EDGE, the cache and ORIGIN, one claim at a time.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use sluice_core::link::Purpose;
use sluice_core::metrics::Metric;
use sluice_fake::{Ending, FakeEnvoy, Stage};
use support::{FIRST, KEY, admission, assert_all_over, document, envoy, fill};

#[test]
fn a_miss_fills_the_store_and_the_next_request_is_a_hit() {
    let mut envoy = envoy(1);
    let miss = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, miss), Some(Purpose::Lead));
    fill(&mut envoy, FIRST);
    let hit = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, hit), Some(Purpose::Fresh));
    envoy.close_all();
    for client in [miss, hit] {
        let client = &envoy.clients[client.0];
        assert_eq!(client.stage, Stage::Over(Ending::Served));
        assert_eq!((client.status(), client.body().len()), (200, 1_024));
    }
    assert_eq!(envoy.fetches.len(), 1);
    assert_eq!(envoy.counter(Metric::RequestsHit), 1);
    assert_all_over(&mut envoy);
}

/// A policy with a hot tier.
fn hot() -> FakeEnvoy {
    FakeEnvoy::new(&document(r#""hot": {"max_bytes": 100000}"#), 1)
}

#[test]
fn a_hot_hit_is_answered_from_memory() {
    let mut envoy = hot();
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    for _ in 0..3 {
        envoy.get(0, KEY);
        envoy.close_all();
    }
    envoy.evict(KEY);
    let hot = envoy.get(0, KEY);
    let hot = &envoy.clients[hot.0];
    assert_eq!((hot.status(), hot.body().len()), (200, 1_024));
    assert!(hot.header("cache-status").unwrap().contains("detail=hot"), "{hot:?}");
    assert_eq!(hot.purpose, None, "it went nowhere");
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn all_who_wait_for_a_miss_on_two_workers_get_its_body_for_one_fetch() {
    let mut envoy = envoy(2);
    let clients = [envoy.get(0, KEY), envoy.get(0, KEY), envoy.get(1, KEY)];
    assert_eq!(envoy.parked(), 2);
    fill(&mut envoy, FIRST);
    let leaders = envoy.clients[clients[0].0].body().to_vec();
    assert_eq!(leaders.len(), 1_024);
    for client in clients {
        assert_eq!(envoy.clients[client.0].body(), leaders);
    }
    assert_eq!(envoy.fetches.len(), 1);
    assert_all_over(&mut envoy);
}
