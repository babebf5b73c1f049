// SPDX-License-Identifier: Apache-2.0
//! Any number of clients that request one cold object at the same moment cause one request to the origin.

use sluice_tests::bare::Bare;
use sluice_tests::bucket::Bucket;
use sluice_tests::client::crowd::{Crowd, stampede};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::{Medium, Store};
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use test_case::test_case;

/// The origin answers at once, so that fills end while clients still arrive.
async fn race(medium: Medium, workers: usize, clients: usize, keys: usize) {
    let origin = Origin::start().ready().await;
    origin.on("/k*", Reply::ok(20_000));
    let edge = Edge::http(&origin)
        .medium(medium)
        .workers(workers)
        .start()
        .await;
    for key in 0..keys {
        let path = format!("/k{key}");
        stampede(edge.address(), clients, &path)
            .await
            .same_object(&path);
        assert_eq!(
            origin.count(&path),
            1,
            "{path}: {:#?}",
            edge.stats("sluice_").await
        );
    }
}

#[test_case(Medium::Memory, 1; "in memory with one worker")]
#[test_case(Medium::Memory, 2; "in memory with two workers")]
#[test_case(Medium::Disk, 1; "on disk with one worker")]
#[test_case(Medium::Disk, 2; "on disk with two workers")]
#[tokio::test]
async fn stampede_on_a_cold_key_is_one_origin_request(medium: Medium, workers: usize) {
    race(medium, workers, 200, 5).await;
}

#[test_case(Medium::Memory, 1; "in memory with one worker")]
#[test_case(Medium::Memory, 2; "in memory with two workers")]
#[test_case(Medium::Memory, 4; "in memory with four workers")]
#[test_case(Medium::Disk, 1; "on disk with one worker")]
#[test_case(Medium::Disk, 2; "on disk with two workers")]
#[test_case(Medium::Disk, 4; "on disk with four workers")]
#[ignore = "long: make soak"]
#[tokio::test]
async fn stampede_on_a_cold_key_is_one_origin_request_every_time(medium: Medium, workers: usize) {
    for run in 0..50 {
        println!("-- run {run}");
        for clients in [200, 1000] {
            race(medium, workers, clients, 20).await;
        }
    }
}

#[tokio::test]
async fn a_thousand_clients_are_one_origin_request() {
    race(Medium::Disk, 2, 1000, 2).await;
}

#[tokio::test]
async fn everyone_waits_for_a_slow_origin_and_gets_the_same_object() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(100_000).hold(&gate));
    let edge = Edge::http(&origin).workers(2).start().await;
    let flight = Crowd::connect(edge.address(), 100).await.fire("/a");
    edge.wait_for_counter("sluice_parked_now", 99).await;
    origin.wait_for_requests("/a", 1).await;
    assert_eq!(origin.requests().total(), 1);
    gate.open();
    let outcomes = flight.land().await;
    outcomes.same_object("/a");
    assert_eq!(outcomes.collapsed(), 99);
    assert_eq!(origin.requests().total(), 1);
    edge.wait_for_value("sluice_parked_now", 0).await;
    assert_eq!(edge.counter("sluice_followers_parked").await, 99);
    assert_eq!(edge.counter("sluice_origin_fetches").await, 1);
}

#[tokio::test]
async fn stampede_on_a_private_bucket_is_one_bucket_request() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("object.dat", 1, 200_000).await;
    let gate = bucket.proxy().hold(&bucket.target("object.dat"));
    let edge = Edge::bucket(&bucket).workers(2).start().await;
    let flight = Crowd::connect(edge.address(), 200)
        .await
        .fire("/object.dat");
    edge.wait_for_counter("sluice_parked_now", 199).await;
    gate.open();
    flight.land().await.same_object("/object.dat");
    assert_eq!(
        bucket.requests().total(),
        1,
        "{}",
        bucket.requests().summary()
    );
}

#[tokio::test]
async fn different_keys_do_not_wait_for_each_other() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin
        .on("/slow", Reply::ok(1000).hold(&gate))
        .on("/fast*", Reply::ok(1000));
    let edge = Edge::http(&origin).workers(1).start().await;
    let slow = Crowd::connect(edge.address(), 20).await.fire("/slow");
    edge.wait_for_counter("sluice_parked_now", 19).await;
    for n in 0..20 {
        let path = format!("/fast{n}");
        let _ = edge.get(&path).await.stamp(&path);
    }
    gate.open();
    slow.land().await.same_object("/slow");
}

#[tokio::test]
async fn without_coalescing_each_client_is_an_origin_request() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(20_000).hold(&gate));
    let policy = "origin: {kind: http}\ncoalesce: {enabled: false}\n";
    let edge = Edge::http(&origin).policy(policy).start().await;
    let flight = Crowd::connect(edge.address(), 50).await.fire("/a");
    origin.wait_for_requests("/a", 50).await;
    gate.open();
    flight.land().await.all(200);
}

#[tokio::test]
async fn control_bare_envoy_sends_the_whole_stampede_to_the_origin() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(20_000).max_age(60).hold(&gate));
    let bare = Bare::start(&origin, Store::V1_DISK, 2).await;
    let flight = Crowd::connect(bare.address(), 50).await.fire("/a");
    origin.wait_for_requests("/a", 50).await;
    gate.open();
    flight.land().await.all(200);
}
