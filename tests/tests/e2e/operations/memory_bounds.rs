// SPDX-License-Identifier: Apache-2.0
//! The process's memory does not grow with the number of distinct keys, apart from stored objects. Memory that a peak
//! needed is returned to a machine that is short of memory.

use sluice::settings::Runtime;
use sluice::system::Machine;
use sluice_tests::bare::Bare;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::store::{Medium, Store};
use sluice_tests::machine::process::resident_kib;
use sluice_tests::machine::tool::runtime;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::net::SocketAddr;
use tokio::task::JoinSet;

const CLIENTS: usize = 32;
/// Small limits, so that most of the keys find the tables full.
const POLICY: &str = "origin: {kind: http}
cache: {ttl: {default: 60s}}
limits: {hints: 1000, keys_in_flight: 1000}
";

/// Requests `count` keys, each once, from number `first` on. Each has a path of at least `length` bytes.
async fn ask(address: SocketAddr, length: usize, first: usize, count: usize) {
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(async move {
            let mut client = Client::connect(address).await;
            for key in (first + number..first + count).step_by(CLIENTS) {
                let response = client
                    .exchange(request("GET", &format!("/key/{key:0>length$}"), &[]))
                    .await;
                assert_eq!(response.status, 404, "{response}");
            }
        });
    }
    clients.join_all().await;
}

/// Checks the memory that `keys` keys take, after `warm` other keys have grown all tables and pools to their size.
/// The allocator alone may take a few MiB, and more for longer requests.
async fn growth(length: usize, warm: usize, keys: usize, bytes_per_key: u64) {
    let allocator_mib = if length > 1_000 { 16 } else { 8 };
    let origin = Origin::start().ready().await;
    origin.forget_requests();
    origin.on("*", Reply::status(404));
    let edge = Edge::http(&origin)
        .medium(Medium::Memory)
        .policy(POLICY)
        .env("SLUICE_CACHE_MAX_ENTRIES", "500")
        .env("SLUICE_CACHE_MAX_BYTES", "64MiB")
        .start()
        .await;
    ask(edge.address(), length, 0, warm).await;
    let before = edge.resident_kib();
    ask(edge.address(), length, warm, keys).await;
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
        after < before + allocator_mib * 1024 + bytes_per_key * keys as u64 / 1024,
        "{before} KiB, then {after} KiB"
    );
}

#[tokio::test]
async fn distinct_keys_leave_memory_where_it_was() {
    growth(12, 8_000, 6_000, 100).await;
}

/// The URLs have 80 MB, and no table or message keeps them.
#[tokio::test]
async fn long_urls_leave_memory_where_it_was() {
    growth(7_990, 4_000, 10_000, 100).await;
}

#[tokio::test]
#[ignore = "long: make soak"]
async fn a_million_distinct_keys_leave_memory_where_it_was() {
    growth(12, 50_000, 1_000_000, 100).await;
}

/// Memory in KiB that an edge takes more than a bare Envoy with as many workers, after some requests to each of them.
async fn beyond_bare_envoy(workers: usize) -> u64 {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(workers).start().await;
    let bare = Bare::start(&origin, Store::V1_DISK, workers).await;
    for address in [edge.address(), bare.address()] {
        // Each request has a new connection, which the kernel gives to any worker.
        for _ in 0..20 * workers {
            let mut client = Client::connect(address).await;
            client.exchange(request("GET", "/a", &[])).await;
        }
    }
    let bare = resident_kib(bare.pid()).expect("a running Envoy");
    let edge = edge.resident_kib();
    println!("{workers} workers: bare Envoy {bare} KiB, Sluice {edge} KiB");
    edge.saturating_sub(bare)
}

#[tokio::test]
async fn memory_beyond_bare_envoys_is_bounded_whatever_the_workers() {
    let [fixed, of_worker] = match runtime() {
        // Most of it is the compiled module, which V8 keeps.
        Runtime::Wasm => [70, 1],
        Runtime::Native => [6, 1],
    };
    for workers in [1, 8] {
        let beyond = beyond_bare_envoy(workers).await;
        let most = (fixed + of_worker * workers as u64) * 1024;
        assert!(beyond < most, "{workers} workers: {beyond} KiB, not {most}");
    }
}

/// Bound on the heap. A peak almost reaches the bound.
const HEAP_BYTES: u64 = 256 << 20;
/// Size in KiB that the heap may have after a peak.
const MOST_KIB: u64 = HEAP_BYTES / 10 * 9 / 1024;
/// Number of keys of a peak. Each has its own client and connections.
const PEAK: usize = 2_000;

/// Growth of the process in KiB after a peak of keys in flight is over, and other keys have been requested.
async fn growth_after_a_peak(keeps_free_memory: bool) -> u64 {
    Machine::raise_open_files();
    let (origin, gate) = (Origin::start().ready().await, Gate::new());
    origin.on("*", Reply::ok(20_000).hold(&gate));
    let bounded = Direct {
        heap_bytes: Some(HEAP_BYTES),
        keeps_free_memory,
        ..Direct::default()
    };
    let edge = Edge::http(&origin).direct(bounded).start().await;
    let (before, address) = (edge.resident_kib(), edge.address());
    let mut clients = JoinSet::new();
    for key in 0..PEAK {
        clients.spawn(async move {
            let mut client = Client::connect(address).await;
            let request = request("GET", &format!("/{key}"), &[]);
            assert_eq!(client.exchange(request).await.status, 200);
        });
    }
    edge.wait_for_value("sluice_flights_now", PEAK as u64).await;
    gate.open();
    clients.join_all().await;
    let peak = edge.resident_kib();
    edge.wait_for_value("http.origin.downstream_cx_active", 0)
        .await;
    let mut client = Client::connect(address).await;
    for key in 0..PEAK {
        if edge.resident_kib() < before + MOST_KIB {
            break;
        }
        client
            .exchange(request("GET", &format!("/after/{key}"), &[]))
            .await;
    }
    let after = edge.resident_kib();
    println!("{before} KiB, at the peak {peak} KiB, after it {after} KiB");
    after - before
}

#[tokio::test]
async fn what_a_peak_needed_goes_back_to_a_machine_that_is_short_of_memory() {
    let grown = growth_after_a_peak(false).await;
    assert!(grown < MOST_KIB, "{grown} KiB");
}

#[tokio::test]
async fn control_envoys_allocator_keeps_what_a_peak_needed() {
    let grown = growth_after_a_peak(true).await;
    assert!(grown > MOST_KIB, "{grown} KiB");
}
