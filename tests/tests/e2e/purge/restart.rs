// SPDX-License-Identifier: Apache-2.0
//! After a restart all purged objects are still purged, and all others are still stored.

use serde_json::json;
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::Purger;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};

const LONG: u32 = 3_600;

#[tokio::test]
async fn a_purge_outlives_the_edge_and_takes_no_more_than_it_named() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(3_000).max_age(LONG));
    let purger = Purger::new();
    let mut edge = purger.open(Edge::http(&origin)).start().await;
    let paths = ["/a", "/css/b", "/soft", "/kept"];
    for path in paths {
        eventually("a hit", async || edge.get(path).await.is_hit()).await;
    }
    purger.purge(json!({"url": "http://edge.test/a"})).await;
    purger
        .purge(json!({"prefix": "http://edge.test/css/"}))
        .await;
    let order = json!({"url": "http://edge.test/soft", "soft": true});
    let last = purger.purge(order).await["number"].as_u64().unwrap();
    edge.restart().await;
    assert!(edge.get("/kept").await.is_hit());
    for path in paths {
        edge.get(path).await;
    }
    assert_eq!(paths.map(|path| origin.count(path)), [2, 2, 2, 1]);
    let next = purger.purge(json!({"everything": true})).await;
    assert!(next["number"].as_u64().unwrap() > last);
    edge.restart().await;
    for path in paths {
        edge.get(path).await;
    }
    assert_eq!(paths.map(|path| origin.count(path)), [3, 3, 3, 2]);
}

#[tokio::test]
async fn a_surrogate_key_that_nobody_has_indexed_purges_everything_once() {
    let origin = Origin::start().ready().await;
    let tagged = Reply::ok(1_000)
        .max_age(LONG)
        .header("Surrogate-Key", "red");
    origin.on("/red", tagged);
    origin.on("/plain", Reply::ok(1_000).max_age(LONG));
    let purger = Purger::new();
    let mut edge = purger.open(Edge::http(&origin)).start().await;
    for path in ["/red", "/plain"] {
        eventually("a hit", async || edge.get(path).await.is_hit()).await;
    }
    edge.restart().await;
    purger.purge(json!({"surrogate_keys": ["red"]})).await;
    for path in ["/red", "/plain"] {
        edge.get(path).await;
        assert_eq!(origin.count(path), 2);
        eventually("a hit", async || edge.get(path).await.is_hit()).await;
    }
    purger.purge(json!({"surrogate_keys": ["red"]})).await;
    for path in ["/red", "/plain"] {
        edge.get(path).await;
    }
    assert_eq!((origin.count("/red"), origin.count("/plain")), (3, 2));
}

#[tokio::test]
async fn a_journal_that_is_lost_costs_the_cache() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1_000).max_age(LONG));
    let mut edge = Edge::http(&origin).start().await;
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    std::fs::remove_file(edge.folder().join("cache/purges")).unwrap();
    edge.restart().await;
    assert!(edge.log().contains("no journal"), "{}", edge.log());
    assert!(!edge.get("/a").await.is_hit());
}

#[tokio::test]
async fn a_purge_that_cannot_be_recorded_says_so() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1_000).max_age(LONG));
    let purger = Purger::new();
    let edge = purger.open(Edge::http(&origin));
    let mut edge = edge.start().await;
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    std::fs::remove_file(edge.folder().join("cache/purges")).unwrap();
    let response = purger.call(&json!({"url": "http://edge.test/a"})).await;
    assert_eq!(response.status, 500, "{response}");
    assert!(!edge.get("/a").await.is_hit(), "in effect nevertheless");
    assert_eq!(edge.counter("sluice_purges_unrecorded").await, 1);
    edge.restart().await;
    assert!(!edge.get("/a").await.is_hit());
}
