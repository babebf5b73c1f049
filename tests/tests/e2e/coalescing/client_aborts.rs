// SPDX-License-Identifier: Apache-2.0
//! A client cannot stop the edge, or make it serve a wrong object, whenever and however the client leaves.

use sluice_tests::bare::Bare;
use sluice_tests::client::crowd::stampede;
use sluice_tests::client::storm::{Storm, Wreckage};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::{Medium, Store};
use sluice_tests::origin::{Origin, Reply};
use std::time::Duration;
use test_case::test_case;

/// Objects of several sizes and speeds, uncacheable responses, and errors. Later paths are new keys, so that fills go
/// on.
fn sea(origin: &Origin, keys: usize) -> Vec<String> {
    let slow = |size: usize| Reply::ok(size).pace(size / 10, Duration::from_millis(5));
    origin.on("/small*", Reply::ok(5_000).max_age(60));
    origin.on("/slow*", slow(20_000).max_age(60));
    origin.on("/large*", slow(2_000_000).max_age(60));
    origin.on("/chunked*", slow(100_000).max_age(60).chunked());
    origin.on("/brief*", slow(20_000).header("cache-control", "max-age=1"));
    origin.on("/private*", slow(20_000).header("cache-control", "private"));
    origin.on("/down*", Reply::status(503).delay(Duration::from_millis(5)));
    let kinds = [
        "small", "slow", "slow", "large", "chunked", "brief", "private", "down",
    ];
    (0..keys)
        .map(|n| format!("/{}{n}", kinds[n % kinds.len()]))
        .collect()
}

async fn storm_over_the_edge(medium: Medium, workers: usize, clients: usize) -> Wreckage {
    let origin = Origin::start().ready().await;
    let mut edge = Edge::http(&origin)
        .medium(medium)
        .workers(workers)
        .start()
        .await;
    let wreckage = storm_over(&origin, &mut edge, clients).await;
    // After the storm the edge works as before.
    origin.on("/after", Reply::ok(50_000));
    stampede(edge.address(), 50, "/after")
        .await
        .same_object("/after");
    assert_eq!(origin.count("/after"), 1);
    wreckage
}

async fn storm_over(origin: &Origin, edge: &mut Edge, clients: usize) -> Wreckage {
    let paths = sea(origin, clients / 8);
    let storm = Storm {
        clients,
        at_once: 100,
        paths,
        seed: 1,
        span: Duration::from_millis(120),
    };
    let wreckage = storm.rage(edge.address()).await;
    println!("{} whole, other {:?}", wreckage.whole, wreckage.other);
    edge.check();
    assert!(wreckage.wrong.is_empty(), "{:?}", wreckage.wrong);
    assert!(wreckage.failed.is_empty(), "{:?}", wreckage.failed);
    assert!(
        wreckage.other.keys().all(|status| *status == 503),
        "{:?}",
        wreckage.other
    );
    edge.wait_for_counter_until("none waits", "sluice_parked_now", |parked| parked == 0)
        .await;
    edge.wait_for_counter_until("no key is fetched", "sluice_flights_now", |flights| {
        flights == 0
    })
    .await;
    wreckage
}

#[test_case(Medium::Memory, 1; "in memory with one worker")]
#[test_case(Medium::Memory, 2; "in memory with two workers")]
#[test_case(Medium::Disk, 1; "on disk with one worker")]
#[test_case(Medium::Disk, 2; "on disk with two workers")]
#[tokio::test]
async fn edge_survives_clients_that_leave_in_every_phase(medium: Medium, workers: usize) {
    storm_over_the_edge(medium, workers, 400).await;
}

#[test_case(Medium::Memory, 1; "in memory with one worker")]
#[test_case(Medium::Memory, 2; "in memory with two workers")]
#[test_case(Medium::Memory, 4; "in memory with four workers")]
#[test_case(Medium::Disk, 1; "on disk with one worker")]
#[test_case(Medium::Disk, 2; "on disk with two workers")]
#[test_case(Medium::Disk, 4; "on disk with four workers")]
#[ignore = "long: make soak"]
#[tokio::test]
async fn edge_survives_ten_thousand_clients_that_leave(medium: Medium, workers: usize) {
    storm_over_the_edge(medium, workers, 10_000).await;
}

#[tokio::test]
async fn a_slow_leader_delays_nobody() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(3_000_000));
    let edge = Edge::http(&origin).workers(2).start().await;
    let mut leader = sluice_tests::client::Client::connect_narrow(edge.address()).await;
    leader
        .send(sluice_tests::client::request("GET", "/a", &[]))
        .await
        .unwrap();
    origin.wait_for_requests("/a", 1).await;
    // Meanwhile the leader reads nothing.
    stampede(edge.address(), 10, "/a").await.same_object("/a");
    assert_eq!(origin.count("/a"), 1);
    let _ = leader.response().await.unwrap().stamp("/a");
}

#[tokio::test]
async fn a_cold_head_of_a_large_object_is_harmless() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(5_000_000).max_age(60));
    let edge = Edge::http(&origin).workers(1).start().await;
    for _ in 0..5 {
        let response = edge.send("HEAD", "/a", &[]).await;
        assert_eq!(
            (response.status, response.header("content-length")),
            (200, "5000000")
        );
    }
    let _ = edge.get("/a").await.stamp("/a");
}

async fn storm_over_bare_envoy() -> (bool, String) {
    let origin = Origin::start().ready().await;
    origin.on(
        "/slow*",
        Reply::ok(20_000)
            .max_age(60)
            .pace(2_000, Duration::from_millis(10)),
    );
    let mut bare = Bare::start(&origin, Store::V1_DISK, 2).await;
    let paths: Vec<_> = (0..50).map(|n| format!("/slow{n}")).collect();
    for seed in 0..5 {
        let storm = Storm {
            clients: 200,
            at_once: 200,
            paths: paths.clone(),
            seed,
            span: Duration::from_millis(120),
        };
        // The clients fail when Envoy dies during their requests. The test waits for that.
        if !storm.survives(bare.address()).await || !bare.alive() {
            break;
        }
    }
    (bare.alive(), bare.log())
}

#[tokio::test]
async fn control_bare_envoy_dies_of_clients_that_leave() {
    let (alive, log) = storm_over_bare_envoy().await;
    assert!(!alive, "a newer Envoy? Then the guard may go.");
    assert!(log.contains("Segmentation fault"), "{log}");
}
