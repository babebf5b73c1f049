// SPDX-License-Identifier: Apache-2.0
//! A purge of a URL covers all slices of its object. After a soft purge one HEAD validates them all.

use super::world::{Asked, KNOWN, SLICES, UNKNOWN, assert_whole, edge, object, origin};
use serde_json::json;
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::Purger;
use sluice_tests::origin::Origin;
use test_case::test_case;

async fn start(workers: usize) -> (Origin, Edge, Purger) {
    let origin = origin(&object(1)).await;
    let purger = Purger::new();
    let edge = purger.open(edge(&origin)).workers(workers).start().await;
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    (origin, edge, purger)
}

#[test_case(json!({"url": "http://edge.test/large.iso"}); "of its url")]
#[test_case(json!({"prefix": "http://edge.test/lar"}); "of a prefix")]
#[test_case(json!({"everything": true}); "of everything")]
#[tokio::test]
async fn a_purge_replaces_all_slices(order: serde_json::Value) {
    let (origin, edge, purger) = start(2).await;
    purger.purge(order).await;
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    let asked = Asked::of(origin.requests(), KNOWN);
    assert_eq!((asked.heads, asked.wholes), (2, 0));
    assert_eq!(asked.slices.values().sum::<usize>(), 2 * SLICES);
    assert!(edge.get(KNOWN).await.is_hit());
}

#[tokio::test]
async fn after_a_purge_one_head_makes_slices_for_the_first_client_of_any_path() {
    let (origin, edge, purger) = start(1).await;
    for _ in 0..2 {
        assert_whole(&edge.get(UNKNOWN).await, UNKNOWN, 1);
    }
    purger.purge(json!({"url": "http://edge.test/large"})).await;
    for _ in 0..2 {
        assert_whole(&edge.get(UNKNOWN).await, UNKNOWN, 1);
    }
    let asked = Asked::of(origin.requests(), UNKNOWN);
    assert_eq!((asked.heads, asked.wholes), (1, 1), "{asked:?}");
    assert!(asked.slices.values().all(|times| *times == 2), "{asked:?}");
    assert!(edge.get(UNKNOWN).await.is_hit());
}

#[tokio::test]
async fn a_purge_lets_the_new_object_in() {
    let (origin, edge, purger) = start(2).await;
    origin.on(KNOWN, object(2));
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    purger
        .purge(json!({"url": "http://edge.test/large.iso"}))
        .await;
    for _ in 0..3 {
        assert_whole(&edge.get(KNOWN).await, KNOWN, 2);
    }
}

#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_soft_purge_costs_one_head_and_keeps_the_slices(workers: usize) {
    let (origin, edge, purger) = start(workers).await;
    for round in 1..=2 {
        let order = json!({"url": "http://edge.test/large.iso", "soft": true});
        purger.purge(order).await;
        for _ in 0..4 {
            assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
        }
        let asked = Asked::of(origin.requests(), KNOWN);
        assert_eq!((asked.heads, asked.wholes), (1 + round, 0));
        asked.assert_each_slice_once();
    }
}
