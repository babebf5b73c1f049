// SPDX-License-Identifier: Apache-2.0
//! The process's memory does not grow with the number of distinct keys, apart from what is stored.

use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Medium;
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;
use tokio::task::JoinSet;

const CLIENTS: usize = 32;
/// Small, so that most of the keys find them full.
const POLICY: &str = "origin: {kind: http}
cache: {ttl: {default: 60s}}
limits: {hints: 1000, keys_in_flight: 1000}
";

/// Asks for `count` keys, each once, from number `first` on.
async fn ask(address: SocketAddr, first: usize, count: usize) {
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(async move {
            let mut client = Client::connect(address).await;
            for key in (first + number..first + count).step_by(CLIENTS) {
                let response = client
                    .exchange(request("GET", &format!("/key/{key:012}"), &[]))
                    .await;
                assert_eq!(response.status, 404, "{response}");
            }
        });
    }
    clients.join_all().await;
}

/// The memory that `keys` keys take, after `warm` others have brought all tables and pools to their size.
async fn growth(warm: usize, keys: usize, bytes_per_key: u64) {
    let origin = Origin::start().ready().await;
    origin.forget_requests();
    origin.on("*", Reply::status(404));
    let edge = Edge::http(&origin)
        .medium(Medium::Memory)
        .policy(POLICY)
        .env("CACHE_MAX_ENTRIES", "500")
        .env("CACHE_MAX_BYTES", "64MiB")
        .start()
        .await;
    ask(edge.address(), 0, warm).await;
    let before = edge.resident_kib();
    ask(edge.address(), warm, keys).await;
    let after = edge.resident_kib();
    println!("{before} KiB, after {keys} keys {after} KiB");
    assert_eq!(
        edge.counter("sluice_requests_miss").await,
        (warm + keys) as u64
    );
    assert!(edge.counter("sluice_hints_now").await <= 2_000);
    edge.wait_for_value("sluice_flights_now", 0).await;
    edge.wait_for_value("sluice_parked_now", 0).await;
    assert!(
        after < before + 8 * 1024 + bytes_per_key * keys as u64 / 1024,
        "{before} KiB, then {after} KiB"
    );
}

#[tokio::test]
async fn distinct_keys_leave_memory_where_it_was() {
    growth(8_000, 6_000, 100).await;
}

#[tokio::test]
#[ignore = "long: make soak"]
async fn a_million_distinct_keys_leave_memory_where_it_was() {
    growth(50_000, 1_000_000, 100).await;
}
