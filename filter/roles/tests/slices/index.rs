// SPDX-License-Identifier: Apache-2.0
//! How a worker learns that an object is served in slices, and how the index stays valid.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::metrics::Metric;
use sluice_fake::{Client, FakeEnvoy};

use super::world::*;
use crate::support::{assert_all_over, await_lookup, document};

/// An object that is served stale while its index is validated.
const PATIENT: Object = Object {
    control: "max-age=60, stale-while-revalidate=60",
    ..OBJECT
};

/// Reads the whole object, so that all slices are stored.
fn read(envoy: &mut FakeEnvoy, object: &Object) {
    introduce(envoy, object);
    introduce(envoy, object);
}

#[test]
fn an_object_on_a_known_path_is_sliced_for_its_first_client() {
    let mut envoy = workers_that_know(2, "/7*", 0);
    let clients = [0, 0, 1].map(|seat| get(&mut envoy, seat));
    serve(&mut envoy, &OBJECT);
    for client in clients {
        assert!(is_sliced(&envoy, client));
        assert_whole(&envoy, client, &OBJECT);
    }
    assert_eq!((heads(&envoy), ranges(&envoy).len()), (1, 3));
    assert_eq!(envoy.counter(Metric::SlicedPassed), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn a_small_object_on_a_known_path_costs_one_head_and_is_stored_whole() {
    let small = Object {
        length: 1_000,
        ..OBJECT
    };
    let mut envoy = workers_that_know(1, "/7*", 0);
    for _ in 0..2 {
        let client = get(&mut envoy, 0);
        serve(&mut envoy, &small);
        assert!(!is_sliced(&envoy, client));
        assert_whole(&envoy, client, &small);
    }
    assert_eq!((heads(&envoy), envoy.fetches.len()), (1, 2 + 1));
}

/// Fails unless the first client has the object in one piece, and the second one in slices that were fetched once.
fn assert_second_is_sliced(envoy: &mut FakeEnvoy, clients: [Client; 2]) {
    let sliced = clients.map(|client| is_sliced(envoy, client));
    assert_eq!(sliced, [false, true]);
    for client in clients {
        assert_whole(envoy, client, &OBJECT);
    }
    assert_eq!((ranges(envoy).len(), envoy.fetches.len()), (3, 2 + 1 + 3));
    assert_eq!(envoy.counter(Metric::SlicedPassed), 1);
    assert_all_over(envoy);
}

#[test]
fn a_leader_reads_the_index_that_another_worker_has_sent_and_gets_slices() {
    let mut envoy = workers(2);
    let first = get(&mut envoy, 0);
    answer_first(&mut envoy, &OBJECT);
    // The lease is free, and the index is still on its way to the second worker.
    assert!(envoy.messages(1) > 0);
    let second = get(&mut envoy, 1);
    serve(&mut envoy, &OBJECT);
    assert_second_is_sliced(&mut envoy, [first, second]);
}

#[test]
fn a_follower_that_the_timer_makes_the_leader_reads_the_index_and_gets_slices() {
    let mut envoy = workers(2);
    let [first, follower] = [0, 1].map(|seat| get(&mut envoy, seat));
    envoy.deliver(0);
    answer_first(&mut envoy, &OBJECT);
    // The timer of the second worker finds the free lease in front of the message that the flight has ended.
    assert!(envoy.messages(1) > 0);
    envoy.advance(1_000);
    envoy.tick(1);
    serve(&mut envoy, &OBJECT);
    assert_second_is_sliced(&mut envoy, [first, follower]);
}

#[test]
fn control_a_leader_whose_message_is_lost_gets_the_object_in_one_piece() {
    let mut envoy = workers(2);
    get(&mut envoy, 0);
    answer_first(&mut envoy, &OBJECT);
    while envoy.messages(1) > 0 {
        envoy.lose(1);
    }
    let second = get(&mut envoy, 1);
    serve(&mut envoy, &OBJECT);
    assert!(!is_sliced(&envoy, second));
    assert_whole(&envoy, second, &OBJECT);
    assert_eq!(envoy.counter(Metric::SlicedPassed), 2);
}

#[test]
fn one_head_validates_all_slices() {
    let mut envoy = workers(2);
    read(&mut envoy, &OBJECT);
    envoy.advance(61_000);
    let before = envoy.fetches.len();
    let clients = [0, 0, 1].map(|seat| get(&mut envoy, seat));
    serve(&mut envoy, &OBJECT);
    for client in clients {
        assert_whole(&envoy, client, &OBJECT);
        assert_eq!(envoy.clients[client.0].header("age"), Some("0"));
    }
    assert_eq!((heads(&envoy), envoy.fetches.len() - before), (1, 1));
    assert_all_over(&mut envoy);
}

#[test]
fn a_client_whose_headers_are_too_long_to_share_tells_nothing_about_the_object() {
    let padding = "x".repeat(5_000);
    let padding = ("x-padding", padding.as_str());
    for (method, headers) in [
        ("HEAD", &[padding][..]),
        ("GET", &[padding]),
        ("GET", &[padding, ("range", "bytes=5-9")]),
    ] {
        let mut envoy = workers(1);
        read(&mut envoy, &OBJECT);
        envoy.advance(61_000);
        envoy.request(0, method, KEY, headers);
        serve(&mut envoy, &OBJECT);
        let client = get(&mut envoy, 0);
        serve(&mut envoy, &OBJECT);
        assert!(is_sliced(&envoy, client), "{method}");
        assert_whole(&envoy, client, &OBJECT);
        assert_eq!(envoy.counter(Metric::HitForMissMarked), 0);
        assert_all_over(&mut envoy);
    }
}

#[test]
fn a_stale_index_serves_while_one_head_asks() {
    let mut envoy = workers(1);
    read(&mut envoy, &PATIENT);
    envoy.advance(61_000);
    let clients = [0, 0].map(|seat| get(&mut envoy, seat));
    envoy.close_all();
    for client in clients {
        assert_whole(&envoy, client, &PATIENT);
    }
    serve(&mut envoy, &PATIENT);
    assert_eq!(heads(&envoy), 1);
    assert_all_over(&mut envoy);
}

/// Checks that two clients get all bytes of an object whose index is stale, while the origin fails.
fn assert_served_stale(envoy: &mut FakeEnvoy, object: &Object) {
    let first = get(envoy, 0);
    let head = envoy.open_fetches()[0];
    envoy.answer_with(head, 503, &[], b"");
    envoy.close_all();
    let second = get(envoy, 0);
    envoy.close_all();
    for client in [first, second] {
        assert_whole(envoy, client, object);
    }
}

#[test]
fn a_stale_index_serves_while_the_origin_fails_and_one_head_asks() {
    let failing = Object {
        control: "max-age=60, stale-if-error=600",
        ..OBJECT
    };
    let mut envoy = workers(1);
    read(&mut envoy, &failing);
    envoy.advance(61_000);
    assert_served_stale(&mut envoy, &failing);
    assert_eq!(heads(&envoy), 1);
    assert_all_over(&mut envoy);
}

#[test]
fn an_index_of_the_store_serves_stale_after_a_restart_while_the_origin_fails_and_one_head_asks() {
    for control in [
        "max-age=60, stale-if-error=600",
        "max-age=60, stale-while-revalidate=600, stale-if-error=0",
    ] {
        let failing = Object { control, ..OBJECT };
        let mut envoy = workers_that_know(1, "/7*", 0);
        introduce(&mut envoy, &failing);
        envoy.advance(61_000);
        envoy.kill(0);
        envoy.revive(0);
        assert_served_stale(&mut envoy, &failing);
        assert_eq!(heads(&envoy), 1 + 1, "{control}");
        assert_all_over(&mut envoy);
    }
}

#[test]
fn control_without_a_window_an_index_of_the_store_is_not_served_stale() {
    let strict = Object {
        control: "max-age=60, must-revalidate",
        ..OBJECT
    };
    let mut envoy = workers_that_know(1, "/7*", 0);
    introduce(&mut envoy, &strict);
    envoy.advance(61_000);
    envoy.kill(0);
    envoy.revive(0);
    let client = get(&mut envoy, 0);
    while let Some(fetch) = envoy.open_fetches().first().copied() {
        envoy.answer_with(fetch, 503, &[], b"");
    }
    envoy.close_all();
    assert_eq!(envoy.clients[client.0].status(), 503);
    assert_all_over(&mut envoy);
}

#[test]
fn an_index_of_a_few_seconds_is_read_from_the_store_after_a_restart() {
    let brief = Object {
        control: "max-age=4",
        ..OBJECT
    };
    let mut envoy = workers_that_know(1, "/7*", 0);
    get(&mut envoy, 0);
    answer_first(&mut envoy, &brief);
    envoy.commit(KEY);
    await_lookup(&mut envoy, 0);
    envoy.answer_lookup(0);
    envoy.close_all();
    envoy.kill(0);
    envoy.revive(0);
    let client = get(&mut envoy, 0);
    envoy.close_all();
    assert!(is_sliced(&envoy, client));
    assert_eq!(heads(&envoy), 1);
}

#[test]
fn the_first_range_of_a_small_object_leads_after_one_head() {
    let small = Object {
        length: 1_000,
        ..OBJECT
    };
    let mut envoy = workers(1);
    let client = get_range(&mut envoy, 0, "bytes=10-19");
    serve(&mut envoy, &small);
    assert_eq!(envoy.clients[client.0].body(), small.part(10, 19));
    assert_eq!((heads(&envoy), envoy.fetches.len()), (1, 2 + 1));
    assert_all_over(&mut envoy);
}

#[test]
fn a_head_of_a_sliced_object_lasts_as_long_as_the_object() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    for millis in [0, 30_000] {
        envoy.advance(millis);
        let client = envoy.request(0, "HEAD", KEY, &[]);
        serve(&mut envoy, &OBJECT);
        assert_eq!(envoy.clients[client.0].status(), 200);
    }
    assert_eq!(heads(&envoy), 1);
}

#[test]
fn a_purge_covers_all_slices() {
    let mut envoy = workers(1);
    read(&mut envoy, &OBJECT);
    purge(&mut envoy, false);
    let before = ranges(&envoy).len();
    read(&mut envoy, &OBJECT);
    assert_eq!(ranges(&envoy).len() - before, 3);
    assert_all_over(&mut envoy);
}

#[test]
fn a_soft_purge_keeps_the_slices() {
    let mut envoy = workers(2);
    read(&mut envoy, &OBJECT);
    purge(&mut envoy, true);
    let before = envoy.fetches.len();
    let clients = [0, 1, 0].map(|seat| get(&mut envoy, seat));
    serve(&mut envoy, &OBJECT);
    for client in clients {
        assert_whole(&envoy, client, &OBJECT);
    }
    assert_eq!((heads(&envoy), envoy.fetches.len() - before), (1, 1));
    assert_all_over(&mut envoy);
}

fn purge(envoy: &mut FakeEnvoy, soft: bool) {
    let url = format!("http://edge.test/{KEY}");
    let call = envoy.purge(0, &format!(r#"{{"url": "{url}", "soft": {soft}}}"#));
    envoy.deliver_all();
    assert_eq!(envoy.clients[call.0].status(), 200);
}

/// A policy that has every response for a client this header.
fn document_with_header(value: &str) -> String {
    let slices = format!(r#"{{"bytes": {SLICE}, "known": ["/7*"]}}"#);
    let rule = format!(r#"{{"match": ["*"], "headers": {{"x-a": "{value}"}}}}"#);
    document(&format!(
        r#""store": {{"max_object_bytes": {SLICE}, "slices": {slices}}}, "rules": [{rule}]"#
    ))
}

#[test]
fn a_reload_changes_the_headers_of_an_object_in_slices_at_once() {
    let mut envoy = FakeEnvoy::new(&document_with_header("one"), 2);
    for value in ["one", "two", "two", "one"] {
        envoy.reconfigure(&document_with_header(value));
        for seat in [0, 1] {
            let client = get(&mut envoy, seat);
            serve(&mut envoy, &OBJECT);
            assert!(is_sliced(&envoy, client));
            assert_whole(&envoy, client, &OBJECT);
            assert_eq!(envoy.clients[client.0].header("x-a"), Some(value));
        }
        // The store has the headers and the slices.
        assert_eq!((heads(&envoy), ranges(&envoy).len()), (1, 3));
    }
    assert_all_over(&mut envoy);
}
