// SPDX-License-Identifier: Apache-2.0
//! An object that changes while clients read it.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::metrics::Metric;
use sluice_fake::{Ending, FakeEnvoy, HeaderTexts as _, Stage};

use super::world::*;
use crate::support::{assert_all_over, await_lookup};

const NEWER: Object = Object {
    etag: "\"v2\"",
    ..OBJECT
};

#[test]
fn an_object_that_changes_is_cut_and_never_mixed() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    let client = get(&mut envoy, 0);
    answer_first(&mut envoy, &OBJECT);
    serve(&mut envoy, &NEWER);
    assert_eq!(envoy.stage(client), Stage::Over(Ending::Truncated));
    let body = envoy.clients[client.0].body();
    assert!(body == OBJECT.part(0, SLICE - 1), "{}", body.len());
    assert_eq!(envoy.counter(Metric::SlicedCut), 1);
    assert_eq!(envoy.counter(Metric::SlicesChanged), 1);
    assert_all_over(&mut envoy);
}

#[test]
fn clients_whose_response_has_not_begun_get_the_new_version() {
    let mut envoy = workers(2);
    introduce(&mut envoy, &OBJECT);
    let clients = [0, 0, 1].map(|seat| get(&mut envoy, seat));
    serve(&mut envoy, &NEWER);
    for client in clients {
        assert_whole(&envoy, client, &NEWER);
        assert_eq!(envoy.clients[client.0].header("etag"), Some(NEWER.etag));
    }
    assert_eq!(heads(&envoy), 1);
    let all: Vec<_> = ranges(&envoy).into_iter().skip(1).collect();
    assert_eq!(all.len(), 3, "each slice once: {all:?}");
    assert_eq!(
        envoy.counter(Metric::SlicedPassed),
        1,
        "when it was not known"
    );
    assert_all_over(&mut envoy);
}

#[test]
fn conditions_and_ranges_are_decided_by_the_new_version() {
    for (name, value, status) in [
        ("if-none-match", NEWER.etag, 304),
        ("if-match", OBJECT.etag, 412),
        ("range", "bytes=5-9", 206),
        ("range", "bytes=300000-", 416),
    ] {
        let mut envoy = workers(1);
        introduce(&mut envoy, &OBJECT);
        let client = envoy.request(0, "GET", KEY, &[(name, value)]);
        let newer = Object {
            length: SLICE + 1,
            ..NEWER
        };
        serve(&mut envoy, &newer);
        let record = &envoy.clients[client.0];
        assert_eq!(record.status(), status, "{name}: {record:?}");
        if status == 206 {
            assert_eq!(record.body(), newer.part(5, 9));
        }
        assert_all_over(&mut envoy);
    }
}

#[test]
fn a_changed_object_that_is_small_is_stored_whole() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    let small = Object {
        length: 1_000,
        ..NEWER
    };
    let client = get(&mut envoy, 0);
    serve(&mut envoy, &small);
    assert_whole(&envoy, client, &small);
    let fetches = envoy.fetches.len();
    let next = get(&mut envoy, 0);
    serve(&mut envoy, &small);
    assert_whole(&envoy, next, &small);
    assert!(!is_sliced(&envoy, next));
    assert_eq!(envoy.fetches.len(), fetches, "a hit");
    assert_all_over(&mut envoy);
}

#[test]
fn the_next_client_gets_the_new_version_in_slices() {
    let mut envoy = workers(2);
    introduce(&mut envoy, &OBJECT);
    get(&mut envoy, 0);
    answer_first(&mut envoy, &OBJECT);
    serve(&mut envoy, &NEWER);
    for seat in [0, 1] {
        introduce(&mut envoy, &NEWER);
        let client = get(&mut envoy, seat);
        serve(&mut envoy, &NEWER);
        assert!(is_sliced(&envoy, client));
        assert_whole(&envoy, client, &NEWER);
    }
    assert_all_over(&mut envoy);
}

/// Answers each request to the origin with a 404, until no request is open.
fn serve_nothing(envoy: &mut FakeEnvoy) {
    while let Some(fetch) = envoy.open_fetches().first().copied() {
        if envoy.fetches[fetch.0].headers.get(":method") == Some("HEAD") {
            envoy.answer_head(fetch, 404, &[]);
        } else {
            envoy.answer_with(fetch, 404, &[], b"gone");
        }
        envoy.end(fetch);
        envoy.deliver_all();
        envoy.close_all();
    }
}

#[test]
fn an_object_that_is_gone_is_forgotten_by_all_workers() {
    let mut envoy = workers(2);
    introduce(&mut envoy, &OBJECT);
    let client = get(&mut envoy, 0);
    serve_nothing(&mut envoy);
    assert_eq!(envoy.clients[client.0].status(), 404);
    let other = get(&mut envoy, 1);
    assert!(!is_sliced(&envoy, other));
    envoy.abort(other);
}

#[test]
fn a_validation_that_finds_another_version_brings_its_slices() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    introduce(&mut envoy, &OBJECT);
    envoy.advance(61_000);
    let client = get(&mut envoy, 0);
    serve(&mut envoy, &NEWER);
    assert!(is_sliced(&envoy, client));
    assert_whole(&envoy, client, &NEWER);
    assert_eq!(heads(&envoy), 1);
    assert_eq!(envoy.counter(Metric::SlicesChanged), 0);
}

#[test]
fn stored_headers_of_a_former_version_are_validated_once_for_all_workers() {
    let mut envoy = workers_that_know(2, "/7*", 0);
    get(&mut envoy, 0);
    answer_first(&mut envoy, &OBJECT);
    envoy.commit(KEY);
    envoy.close_all();
    answer_first(&mut envoy, &OBJECT);
    serve(&mut envoy, &NEWER);
    envoy.tick(0);
    serve(&mut envoy, &NEWER);
    assert_eq!(heads(&envoy), 2, "no client has to come for it");
    for seat in [0, 1] {
        let client = get(&mut envoy, seat);
        serve(&mut envoy, &NEWER);
        assert!(is_sliced(&envoy, client));
        assert_whole(&envoy, client, &NEWER);
    }
    assert_eq!(heads(&envoy), 2);
    assert_all_over(&mut envoy);
}

#[test]
fn stored_headers_of_a_version_that_has_just_gone_are_validated_and_no_request_bypasses_the_store()
{
    let mut envoy = workers_that_know(2, "/7*", 0);
    let first = get(&mut envoy, 0);
    answer_first(&mut envoy, &OBJECT);
    envoy.commit(KEY);
    await_lookup(&mut envoy, 0);
    envoy.answer_lookup(0);
    envoy.close_all();
    envoy.kill(1);
    envoy.revive(1);
    envoy.hold_lookups = true;
    let second = get(&mut envoy, 1);
    envoy.hold_lookups = false;
    answer_first(&mut envoy, &NEWER);
    envoy.deliver_all();
    // The store has the headers of the version that is gone.
    envoy.look_up();
    serve(&mut envoy, &NEWER);
    for client in [first, second] {
        assert!(is_sliced(&envoy, client));
        assert_whole(&envoy, client, &NEWER);
    }
    assert_eq!(envoy.counter(Metric::HitForMissMarked), 0);
    assert_eq!(ranges(&envoy).len(), 1 + 3, "each slice once");
    // Each worker has fetched another object at its start.
    let wholes = envoy.fetches.len() - 2 - heads(&envoy) - ranges(&envoy).len();
    assert_eq!(wholes, 0);
    assert_all_over(&mut envoy);
}

#[test]
fn the_answer_to_a_request_for_a_slice_of_a_former_version_is_not_stored() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    let client = get(&mut envoy, 0);
    let fetch = envoy.open_fetches()[0];
    envoy.answer_with(fetch, 412, &[("cache-control", "max-age=600")], b"");
    envoy.end(fetch);
    serve(&mut envoy, &NEWER);
    assert_whole(&envoy, client, &NEWER);
    envoy.advance(61_000);
    for _ in 0..2 {
        let client = get(&mut envoy, 0);
        serve(&mut envoy, &OBJECT);
        assert_whole(&envoy, client, &OBJECT);
    }
}
