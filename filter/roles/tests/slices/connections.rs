// SPDX-License-Identifier: Apache-2.0
//! The responses in slices of one connection of a client are bounded, and further requests wait for their turn.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::metrics::Metric;
use sluice_fake::{Client, FakeEnvoy, Stage};

use super::world::*;
use crate::support::{assert_all_over, document};

/// A worker that gives each connection two responses at one time, and knows the object.
fn envoy() -> FakeEnvoy {
    let store = format!(
        r#""store": {{"max_object_bytes": {SLICE}, "slices": {{"bytes": {SLICE}, "ahead": 0, "known": ["/none"], "streams": 2}}}}"#
    );
    let mut envoy = FakeEnvoy::new(&document(&store), 1);
    introduce(&mut envoy, &OBJECT);
    envoy
}

/// Requests over one connection.
fn connect(envoy: &mut FakeEnvoy, connection: u64, number: usize) -> Vec<Client> {
    envoy.connection = Some(connection);
    (0..number).map(|_| get(envoy, 0)).collect()
}

/// The clients that wait.
fn parked(envoy: &FakeEnvoy, clients: &[Client]) -> Vec<usize> {
    let waits = |client: &Client| envoy.clients[client.0].stage == Stage::Parked;
    let numbered = clients.iter().enumerate();
    let waiting = numbered.filter(|(_, client)| waits(client));
    waiting.map(|(number, _)| number).collect()
}

#[test]
fn requests_beyond_the_bound_wait_and_no_other_connection_does() {
    let mut envoy = envoy();
    let clients = connect(&mut envoy, 1, 5);
    assert_eq!(parked(&envoy, &clients), [2, 3, 4]);
    let others = connect(&mut envoy, 2, 2);
    assert!(parked(&envoy, &others).is_empty());
    assert_eq!(envoy.counter(Metric::SlicedQueued), 3);
    serve(&mut envoy, &OBJECT);
    for client in clients.iter().chain(&others) {
        assert_whole(&envoy, *client, &OBJECT);
    }
    assert_eq!(envoy.counter(Metric::SlicedQueued), 3, "once each");
    assert_eq!(ranges(&envoy).len(), 3, "each slice once");
    assert_all_over(&mut envoy);
}

#[test]
fn the_turn_of_a_client_that_leaves_is_given_to_the_next_one() {
    let mut envoy = envoy();
    let clients = connect(&mut envoy, 1, 5);
    envoy.abort(clients[2]);
    assert_eq!(parked(&envoy, &clients), [3, 4]);
    envoy.abort(clients[0]);
    assert_eq!(parked(&envoy, &clients), [4]);
    envoy.abort(clients[1]);
    assert!(parked(&envoy, &clients).is_empty());
    serve(&mut envoy, &OBJECT);
    for client in &clients[3..] {
        assert_whole(&envoy, *client, &OBJECT);
    }
    assert_all_over(&mut envoy);
}

#[test]
fn answers_without_bytes_need_no_turn() {
    let mut envoy = envoy();
    let clients = connect(&mut envoy, 1, 3);
    assert_eq!(parked(&envoy, &clients), [2]);
    let unchanged = envoy.request(0, "GET", KEY, &[("if-none-match", OBJECT.etag)]);
    assert_eq!(envoy.clients[unchanged.0].status(), 304);
    serve(&mut envoy, &OBJECT);
    assert_all_over(&mut envoy);
}
