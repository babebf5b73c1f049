// SPDX-License-Identifier: Apache-2.0
//! After a soft purge the next request revalidates: one conditional request for all workers.

use serde_json::json;
use sluice_tests::client::crowd::{Crowd, stampede};
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::Purger;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use test_case::test_case;

const LONG: u32 = 3_600;

fn tagged(version: &str) -> Reply {
    Reply::ok(2_000).max_age(LONG).etag(version)
}

#[test_case(1; "with one worker")]
#[test_case(4; "with four workers")]
#[tokio::test]
async fn a_soft_purge_costs_one_conditional_request(workers: usize) {
    let origin = Origin::start().ready().await;
    origin.on("/a", tagged("one"));
    let purger = Purger::new();
    let edge = purger
        .open(Edge::http(&origin))
        .workers(workers)
        .start()
        .await;
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    for round in 1..=3 {
        let before = edge.get("/a").await.stamp("/a");
        let requests = origin.count("/a");
        let order = match round {
            1 => json!({"url": "http://edge.test/a", "soft": true}),
            2 => json!({"prefix": "http://edge.test/", "soft": true}),
            _ => json!({"everything": true, "soft": true}),
        };
        purger.purge(order).await;
        let after = edge.get("/a").await;
        assert!(after.cache_status().contains("fwd=stale"), "{after}");
        assert_eq!(after.stamp("/a").sequence, before.sequence);
        // The store needs a moment to apply the headers of the 304, and misses meanwhile.
        eventually("a hit", async || edge.get("/a").await.is_hit()).await;
        stampede(edge.address(), 40, "/a").await.all(200);
        let asked = origin.requests().of("/a");
        let first = asked.get(requests).expect("one is asked");
        assert_eq!(first.headers.get("if-none-match"), Some("\"one\""));
    }
}

#[tokio::test]
async fn a_changed_object_replaces_a_softly_purged_one() {
    let origin = Origin::start().ready().await;
    origin.on("/a", tagged("one"));
    let purger = Purger::new();
    let edge = purger.open(Edge::http(&origin)).workers(2).start().await;
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    let old = edge.get("/a").await.stamp("/a");
    origin.on("/a", tagged("two"));
    let order = json!({"url": "http://edge.test/a", "soft": true});
    purger.purge(order).await;
    let new = edge.get("/a").await;
    assert_eq!(new.header("etag"), "\"two\"");
    assert!(new.stamp("/a").sequence > old.sequence);
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    assert_eq!(edge.get("/a").await.header("etag"), "\"two\"");
    assert_eq!(origin.count("/a"), 2);
}

#[tokio::test]
async fn a_fill_under_way_does_not_count_as_the_revalidation() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on_each("/a", [tagged("one").hold_after(500, &gate), tagged("two")]);
    let purger = Purger::new();
    let edge = purger.open(Edge::http(&origin)).workers(2).start().await;
    let (first, ()) = tokio::join!(edge.get("/a"), async {
        gate.wait_reached(1).await;
        let order = json!({"url": "http://edge.test/a", "soft": true});
        purger.purge(order).await;
        gate.open();
    });
    assert_eq!(first.header("etag"), "\"one\"");
    // The store may commit the old version last. The old version is stale then, and is refreshed.
    eventually("a hit of the new version", async || {
        let response = edge.get("/a").await;
        response.is_hit() && response.header("etag") == "\"two\""
    })
    .await;
}

/// Envoy's cache accepts one fill of a key at a time: here the fill that runs when the purge arrives.
#[test_case(1; "with one worker")]
#[test_case(2; "with two workers")]
#[tokio::test]
async fn a_soft_purge_amid_a_cold_fill_keeps_nobody_waiting(workers: usize) {
    // Both times are longer than any wait of the test.
    const POLICY: &str = "origin: {kind: http}\ncoalesce: {max_wait: 600s, lease: 600s}\n";
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", tagged("one").hold_after(200, &gate));
    let purger = Purger::new();
    let edge = purger
        .open(Edge::http(&origin))
        .workers(workers)
        .policy(POLICY);
    let edge = edge.start().await;
    let early = Crowd::connect(edge.address(), 20).await.fire("/a");
    edge.wait_for_value("sluice_parked_now", 19).await;
    let order = json!({"url": "http://edge.test/a", "soft": true});
    purger.purge(order).await;
    let late = Crowd::connect(edge.address(), 20).await.fire("/a");
    gate.open();
    for crowd in [early, late] {
        crowd.land().await.all(200);
    }
    let requests = origin.count("/a");
    assert!(requests <= 4, "{requests} requests");
}
