// SPDX-License-Identifier: Apache-2.0
//! However many different keys are asked for, the v2 store keeps no more of them open than it may: requests for more go
//! around it, as long as it is not renewed (`store_renewal.rs`).

use sluice_tests::client::{Client, Response, request};
use sluice_tests::direct::Direct;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::matrix::{Cell, Store};
use sluice_tests::origin::{Origin, Reply};
use std::collections::BTreeMap;
use tokio::task::JoinSet;

const CLIENTS: usize = 16;
/// Of those that may be open, a quarter is for keys that were turned away before.
const MOST: usize = 80;
const FIRST: usize = 60;

pub fn path(number: usize) -> String {
    format!("/object/{number}")
}

/// Each of the objects once; the responses by their statuses.
async fn each_once(edge: &Edge, count: usize) -> BTreeMap<u16, Vec<(usize, Response)>> {
    let address = edge.address();
    let mut clients = JoinSet::new();
    for first in 0..CLIENTS {
        clients.spawn(async move {
            let mut client = Client::connect(address).await;
            let mut responses = Vec::new();
            for number in (first..count).step_by(CLIENTS) {
                let asked = request("GET", &path(number), &[]);
                let response = client.exchange(asked).await;
                responses.push((number, response));
            }
            responses
        });
    }
    let mut by_status: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (number, response) in clients.join_all().await.into_iter().flatten() {
        let same = by_status.entry(response.status).or_default();
        same.push((number, response));
    }
    by_status
}

async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    origin.forget_requests();
    origin.on("*", Reply::ok(3_000).max_age(3_600));
    origin
}

/// Each request to it takes a connection, and thereby a file, of its own.
async fn origin_without_keepalive() -> Origin {
    let origin = origin().await;
    let reply = Reply::ok(3_000).max_age(3_600);
    origin.on("*", reply.header("connection", "close"));
    origin
}

/// An edge whose requests all come to the store.
pub fn without_copies(origin: &Origin, store: Store) -> Builder {
    Edge::http(origin)
        .cell(Cell { store, workers: 2 })
        .env("HOT_BYTES", "0")
}

/// What Envoy says of the sessions of its cache.
async fn sessions(edge: &Edge) -> u64 {
    let stats = edge.stats("cache_sessions_entries").await;
    assert_eq!(stats.len(), 1, "{stats:?}");
    stats.into_values().sum()
}

pub fn is_overflow(response: &Response) -> bool {
    response.cache_status() == "sluice; fwd=bypass; fwd-status=200; detail=store-full"
}

#[tokio::test]
async fn more_keys_than_may_be_open_go_around_the_store_and_known_ones_stay() {
    for store in [Store::V2_DISK, Store::V2_MEMORY] {
        let origin = origin().await;
        let edge = without_copies(&origin, store)
            .env("CACHE_MAX_OPEN_KEYS", MOST.to_string())
            .direct(Direct::default());
        let edge = edge.start().await;
        let responses = each_once(&edge, 1_000).await;
        assert_eq!(responses.keys().collect::<Vec<_>>(), [&200], "{store}");
        let (around, through): (Vec<_>, Vec<_>) = responses[&200]
            .iter()
            .partition(|(_, response)| is_overflow(response));
        for (number, response) in &responses[&200] {
            let _ = response.stamp(&path(*number));
        }
        assert_eq!((through.len(), around.len()), (FIRST, 1_000 - FIRST));
        for metric in ["sluice_requests_overflowed", "sluice_limits_reached"] {
            assert_eq!(edge.counter(metric).await, around.len() as u64);
        }
        assert_eq!(sessions(&edge).await, FIRST as u64, "{store}");
        for (number, _) in &through {
            let response = edge.get(&path(*number)).await;
            assert!(response.is_hit(), "{response}");
        }
        let (again, _) = around[0];
        // On the worker that has turned it away, as a connection has one.
        let mut client = Client::connect(edge.address()).await;
        let mut statuses = Vec::new();
        for _ in 0..3 {
            let response = client.get(&path(*again)).await;
            let _ = response.stamp(&path(*again));
            statuses.push(response.cache_status().to_owned());
        }
        assert!(
            statuses[2].starts_with("sluice; hit"),
            "who comes again finds room: {statuses:?}"
        );
        assert!(sessions(&edge).await <= MOST as u64, "{store}");
    }
}

#[tokio::test]
async fn where_few_files_may_be_open_any_number_of_keys_is_answered() {
    let origin = origin_without_keepalive().await;
    let edge = without_copies(&origin, Store::V2_DISK).open_files(400);
    let edge = edge.start().await;
    edge.wait_for_log("Allow more open files").await;
    let responses = each_once(&edge, 1_500).await;
    assert_eq!(responses.keys().collect::<Vec<_>>(), [&200]);
}

/// The control.
#[tokio::test]
async fn without_that_bound_requests_fail_where_few_files_may_be_open() {
    let origin = origin_without_keepalive().await;
    let edge = without_copies(&origin, Store::V2_DISK)
        .open_files(400)
        .env("CACHE_MAX_OPEN_KEYS", "1000000");
    let edge = edge.start().await;
    edge.wait_for_log("if there are none left, requests fail")
        .await;
    let responses = each_once(&edge, 1_500).await;
    assert!(responses[&503].len() > 100, "{:?}", responses.keys());
}

#[tokio::test]
async fn the_v1_store_keeps_none_open_and_has_no_such_bound() {
    let origin = origin().await;
    let edge = without_copies(&origin, Store::V1_DISK)
        .open_files(400)
        .env("CACHE_MAX_OPEN_KEYS", "10");
    let edge = edge.start().await;
    let responses = each_once(&edge, 1_500).await;
    assert_eq!(responses.keys().collect::<Vec<_>>(), [&200]);
    assert_eq!(edge.counter("sluice_requests_overflowed").await, 0);
    assert_eq!(edge.counter("sluice_requests_miss").await, 1_500);
}

#[tokio::test]
async fn who_wants_the_store_only_opens_nothing_where_it_is_full() {
    let origin = origin().await;
    let edge = without_copies(&origin, Store::V2_DISK)
        .policy("origin: {kind: http}\nrequest: {cache_control: obey}\n")
        .env("CACHE_MAX_OPEN_KEYS", "8")
        .direct(Direct::default());
    let edge = edge.start().await;
    each_once(&edge, 100).await;
    let before = sessions(&edge).await;
    let only = [("cache-control", "only-if-cached")];
    for number in 1_000..1_020 {
        let response = edge.send("GET", &path(number), &only).await;
        assert_eq!(response.status, 504, "{response}");
        let checked = [("cache-control", "max-age=1")];
        let response = edge.send("GET", &path(number + 100), &checked).await;
        assert_eq!(response.status, 200, "{response}");
    }
    assert!(before <= 8);
    assert!(sessions(&edge).await <= 8, "first {before}");
    assert_eq!(origin.count(&path(1_000)), 0);
}
