// SPDX-License-Identifier: Apache-2.0
//! Any number of clients that ask for one cold object at the same moment cause one request to the origin.

use sluice_tests::bare::Bare;
use sluice_tests::body::check_start;
use sluice_tests::client::{Client, request};
use sluice_tests::crowd::{Crowd, Outcomes, stampede};
use sluice_tests::edge::Edge;
use sluice_tests::gate::Gate;
use sluice_tests::matrix::{Cell, Store, on_each};
use sluice_tests::minio::Bucket;
use sluice_tests::origin::{Origin, Reply};
use std::time::Duration;

/// The origin answers at once: fills end while clients still come.
async fn race(cell: Cell, clients: usize, keys: usize) {
    let origin = Origin::start().ready().await;
    origin.on("/k*", Reply::ok(20_000));
    let edge = Edge::http(&origin).cell(cell).start().await;
    for key in 0..keys {
        let path = format!("/k{key}");
        stampede(edge.address(), clients, &path)
            .await
            .same_object(&path);
        assert_eq!(
            origin.count(&path),
            1,
            "{path} on {cell}: {:#?}",
            edge.stats("sluice_").await
        );
    }
}

#[tokio::test]
async fn stampede_on_a_cold_key_is_one_origin_request() {
    on_each(&[1, 2], |cell| race(cell, 200, 5)).await;
}

#[tokio::test]
#[ignore = "long: make soak"]
async fn stampede_on_a_cold_key_is_one_origin_request_every_time() {
    for run in 0..50 {
        println!("-- run {run}");
        for clients in [200, 1000] {
            on_each(&[1, 2, 4], |cell| race(cell, clients, 20)).await;
        }
    }
}

#[tokio::test]
async fn a_thousand_clients_are_one_origin_request() {
    race(
        Cell {
            store: Store::V2_DISK,
            workers: 2,
        },
        1000,
        2,
    )
    .await;
    race(
        Cell {
            store: Store::V1_DISK,
            workers: 2,
        },
        1000,
        2,
    )
    .await;
}

#[tokio::test]
async fn everyone_waits_for_a_slow_origin_and_gets_the_same_object() {
    on_each(&[2], async |cell| {
        let origin = Origin::start().ready().await;
        let gate = Gate::new();
        origin.on("/a", Reply::ok(100_000).hold(&gate));
        let edge = Edge::http(&origin).cell(cell).start().await;
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
    })
    .await;
}

#[tokio::test]
async fn stampede_on_a_private_bucket_is_one_bucket_request() {
    on_each(&[2], async |cell| {
        let bucket = Bucket::new().await;
        bucket.put_stamped("object.bin", 1, 200_000).await;
        let gate = bucket.proxy().hold(&bucket.target("object.bin"));
        let edge = Edge::bucket(&bucket).cell(cell).start().await;
        let flight = Crowd::connect(edge.address(), 200)
            .await
            .fire("/object.bin");
        edge.wait_for_counter("sluice_parked_now", 199).await;
        gate.open();
        flight.land().await.same_object("/object.bin");
        assert_eq!(
            bucket.requests().total(),
            1,
            "{}",
            bucket.requests().summary()
        );
    })
    .await;
}

#[tokio::test]
async fn followers_of_the_leaders_worker_stream_with_the_running_fill_on_v2() {
    let origin = Origin::start().ready().await;
    let (head, rest) = (Gate::new(), Gate::new());
    origin.on(
        "/a",
        Reply::ok(300_000).hold(&head).hold_after(100_000, &rest),
    );
    let edge = Edge::http(&origin)
        .store(Store::V2_DISK)
        .workers(1)
        .start()
        .await;
    let leader = Crowd::connect(edge.address(), 1).await.fire("/a");
    head.wait_reached(1).await;
    let mut follower = Client::connect(edge.address()).await;
    follower.send(request("GET", "/a", &[])).await.unwrap();
    edge.wait_for_counter("sluice_parked_now", 1).await;
    head.open();
    // Who waited and who comes now get the first bytes while the origin still holds the last.
    let mut late = Client::connect(edge.address()).await;
    rest.wait_reached(1).await;
    late.send(request("GET", "/a", &[])).await.unwrap();
    for client in [&mut follower, &mut late] {
        let (_, response) = client.head().await.unwrap();
        assert_eq!(response.status, 200);
        let mut start = Vec::new();
        while start.len() < 50_000 {
            start.extend(client.some(100_000).await.unwrap());
        }
        check_start("/a", &start[..50_000]).unwrap();
    }
    rest.open();
    leader.land().await.same_object("/a");
    assert_eq!(origin.count("/a"), 1);
}

/// Envoy's v2 store does not survive a fill that the origin cuts while requests of several workers read it (see the
/// control below), so that those of other workers wait for its end.
#[tokio::test]
async fn followers_of_other_workers_get_the_whole_object_at_the_end_of_the_fill_on_v2() {
    let origin = Origin::start().ready().await;
    let (head, rest) = (Gate::new(), Gate::new());
    origin.on(
        "/a",
        Reply::ok(300_000).hold(&head).hold_after(100_000, &rest),
    );
    let policy = "origin: {kind: http}\ncoalesce: {max_wait: 600s, lease: 600s}\n";
    let builder = Edge::http(&origin).store(Store::V2_DISK).policy(policy);
    let edge = builder.start().await;
    let early = Crowd::connect(edge.address(), 40).await.fire("/a");
    edge.wait_for_value("sluice_parked_now", 39).await;
    head.open();
    rest.wait_reached(1).await;
    // Those of the leader's worker go on, the others wait; so it is for those who come now.
    edge.wait_for_counter("sluice_followers_resumed", 1).await;
    let late = Crowd::connect(edge.address(), 40).await.fire("/a");
    edge.wait_for_counter("sluice_followers_parked", 40).await;
    rest.open();
    for crowd in [early, late] {
        crowd.land().await.same_object("/a");
    }
    assert_eq!(origin.count("/a"), 1);
    edge.wait_for_value("sluice_parked_now", 0).await;
    assert_eq!(edge.counter("sluice_wait_timeouts").await, 0);
}

/// Why requests of other workers do not join a running fill: the store resets all who read it from the thread of the
/// worker that fetched.
#[tokio::test]
async fn control_bare_v2_hangs_or_dies_when_the_origin_cuts_a_fill() {
    let origin = Origin::start().ready().await;
    let cell = Cell {
        store: Store::V2_DISK,
        workers: 2,
    };
    let mut bare = Bare::start(&origin, cell).await;
    for round in 0..20 {
        let path = format!("/a{round}");
        let rest = Gate::new();
        let cut = Reply::ok(200_000).reset_after(50_000).max_age(60);
        origin.on(&path, cut.hold_after(100, &rest));
        let crowd = Crowd::connect(bare.address(), 20).await.fire(&path);
        rest.wait_reached(1).await;
        rest.open();
        let landed = tokio::time::timeout(Duration::from_secs(3), crowd.land()).await;
        println!("round {round}: {:?}", landed.as_ref().map(Outcomes::tally));
        if landed.is_err() || !bare.alive() {
            return;
        }
    }
    panic!("a newer Envoy? Then requests of all workers may join a running fill.");
}

#[tokio::test]
async fn different_keys_do_not_wait_for_each_other() {
    on_each(&[1], async |cell| {
        let origin = Origin::start().ready().await;
        let gate = Gate::new();
        origin
            .on("/slow", Reply::ok(1000).hold(&gate))
            .on("/fast*", Reply::ok(1000));
        let edge = Edge::http(&origin).cell(cell).start().await;
        let slow = Crowd::connect(edge.address(), 20).await.fire("/slow");
        edge.wait_for_counter("sluice_parked_now", 19).await;
        for n in 0..20 {
            let path = format!("/fast{n}");
            let _ = edge.get(&path).await.stamp(&path);
        }
        gate.open();
        slow.land().await.same_object("/slow");
    })
    .await;
}

#[tokio::test]
async fn without_coalescing_each_client_of_v1_is_an_origin_request() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(20_000).hold(&gate));
    let policy = "origin: {kind: http}\ncoalesce: {enabled: false}\n";
    let edge = Edge::http(&origin)
        .store(Store::V1_DISK)
        .policy(policy)
        .start()
        .await;
    let flight = Crowd::connect(edge.address(), 50).await.fire("/a");
    origin.wait_for_requests("/a", 50).await;
    gate.open();
    flight.land().await.all(200);
}

#[tokio::test]
async fn control_bare_v1_sends_the_whole_stampede_to_the_origin() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(20_000).max_age(60).hold(&gate));
    let bare = Bare::start(
        &origin,
        Cell {
            store: Store::V1_DISK,
            workers: 2,
        },
    )
    .await;
    let flight = Crowd::connect(bare.address(), 50).await.fire("/a");
    origin.wait_for_requests("/a", 50).await;
    gate.open();
    flight.land().await.all(200);
}
