// SPDX-License-Identifier: Apache-2.0
//! The URLs of objects in slices, which are known after a restart and after a hard purge.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use serde_json::{Value, json};
use sluice_core::inspection::Parameters;
use sluice_core::key::secret::{SECRET_VARIABLE, StoreSecret};
use sluice_core::metrics::Metric;
use sluice_core::policy::LargeUrl;
use sluice_fake::{Client, FakeEnvoy};

use super::world::*;
use crate::support::{assert_all_over, document};

/// The secret of the store, which a restart does not change.
const SECRET: &str = "000102030405060708090a0b0c0d0e0f";

/// A small object, in place of the large one.
const SMALL: Object = Object {
    etag: "\"v2\"",
    length: 1_000,
    ..OBJECT
};

/// The document of workers that know these URLs from former processes, and no path to be large.
fn document_with(stored: &[LargeUrl]) -> String {
    let stored: Vec<_> = stored.iter().map(|url| format!("\"{url}\"")).collect();
    let stored = stored.join(",");
    document(&format!(
        r#""store": {{"max_object_bytes": {SLICE}, "slices": {{"bytes": {SLICE}, "known": ["/none"], "stored": [{stored}]}}}}"#
    ))
}

fn start(workers: usize) -> FakeEnvoy {
    FakeEnvoy::in_environment(&document_with(&[]), workers, &[(SECRET_VARIABLE, SECRET)])
}

/// Replaces all workers, which lose all that they know. The store stays.
fn restart(envoy: &mut FakeEnvoy, stored: &[LargeUrl]) {
    envoy.reconfigure(&document_with(stored));
    for seat in 0..envoy.workers() {
        envoy.kill(seat);
        envoy.revive(seat);
    }
}

/// The URL of the object.
fn url() -> LargeUrl {
    let secret = StoreSecret::parse(SECRET).unwrap();
    LargeUrl::of(&format!("edge.test/{KEY}"), &secret)
}

fn get_served(envoy: &mut FakeEnvoy, seat: usize, object: &Object) -> Client {
    let client = get(envoy, seat);
    serve(envoy, object);
    assert_whole(envoy, client, object);
    client
}

fn purge(envoy: &mut FakeEnvoy) {
    let order = format!(r#"{{"url": "http://edge.test/{KEY}"}}"#);
    let call = envoy.purge(0, &order);
    envoy.deliver_all();
    assert_eq!(envoy.clients[call.0].status(), 200);
}

/// Makes the workers know the object by its headers, which the store has then, and stores its slices.
fn describe(envoy: &mut FakeEnvoy) {
    envoy.request(0, "HEAD", KEY, &[]);
    serve(envoy, &OBJECT);
    get_served(envoy, 0, &OBJECT);
}

#[test]
fn the_first_client_after_a_restart_gets_slices_of_the_store() {
    let mut envoy = start(2);
    describe(&mut envoy);
    let before = envoy.fetches.len();
    restart(&mut envoy, &[url()]);
    for seat in [0, 1] {
        let client = get_served(&mut envoy, seat, &OBJECT);
        assert!(is_sliced(&envoy, client));
    }
    assert_eq!(envoy.fetches.len(), before);
    assert_all_over(&mut envoy);
}

#[test]
fn an_object_that_has_passed_costs_one_head_after_a_restart() {
    let mut envoy = start(2);
    for _ in 0..2 {
        get_served(&mut envoy, 0, &OBJECT);
    }
    let before = envoy.fetches.len();
    for _ in 0..2 {
        restart(&mut envoy, &[url()]);
        for seat in [0, 1] {
            let client = get_served(&mut envoy, seat, &OBJECT);
            assert!(is_sliced(&envoy, client));
        }
        assert_eq!((heads(&envoy), envoy.fetches.len() - before), (1, 1));
    }
    assert_all_over(&mut envoy);
}

#[test]
fn a_restart_after_the_index_has_expired_costs_one_head() {
    let mut envoy = start(2);
    describe(&mut envoy);
    let before = envoy.fetches.len();
    restart(&mut envoy, &[url()]);
    envoy.advance(61_000);
    for seat in [0, 1] {
        let client = get_served(&mut envoy, seat, &OBJECT);
        assert!(is_sliced(&envoy, client));
    }
    assert_eq!((heads(&envoy), envoy.fetches.len() - before), (1 + 1, 1));
}

#[test]
fn control_without_its_url_an_object_passes_again_after_a_restart() {
    let mut envoy = start(2);
    for _ in 0..2 {
        get_served(&mut envoy, 0, &OBJECT);
    }
    let before = envoy.fetches.len();
    restart(&mut envoy, &[]);
    let client = get_served(&mut envoy, 0, &OBJECT);
    assert!(!is_sliced(&envoy, client));
    assert_eq!(envoy.fetches.len() - before, 1);
    assert_eq!(envoy.counter(Metric::SlicedPassed), 1 + 1);
}

#[test]
fn a_hard_purge_costs_one_head_and_each_slice_once() {
    let mut envoy = start(2);
    // A worker hears of others' objects from its first request on.
    let other = envoy.get(1, 1);
    envoy.abort(other);
    for _ in 0..2 {
        get_served(&mut envoy, 0, &OBJECT);
    }
    let (before, heads_before) = (envoy.fetches.len(), heads(&envoy));
    purge(&mut envoy);
    for seat in [1, 0, 1] {
        let client = get_served(&mut envoy, seat, &OBJECT);
        assert!(is_sliced(&envoy, client));
    }
    assert_eq!(heads(&envoy) - heads_before, 1);
    assert_eq!(envoy.fetches.len() - before, 1 + 3);
    assert_eq!(envoy.counter(Metric::SlicedPassed), 1);
    assert_all_over(&mut envoy);
}

#[test]
fn an_object_that_has_become_small_costs_one_head_and_is_stored_whole() {
    let mut envoy = start(2);
    for _ in 0..2 {
        get_served(&mut envoy, 0, &OBJECT);
    }
    let heads_before = heads(&envoy);
    for purges in 1..=2 {
        purge(&mut envoy);
        for _ in 0..2 {
            let client = get_served(&mut envoy, 0, &SMALL);
            assert!(!is_sliced(&envoy, client));
        }
        assert_eq!(heads(&envoy) - heads_before, 1, "after {purges} purges");
    }
    assert_all_over(&mut envoy);
}

/// The explanation by the only worker of how it knows the object.
fn explained(envoy: &mut FakeEnvoy) -> Value {
    let mut question = "/explain".to_owned();
    let path = format!("/{KEY}");
    for (name, value) in [("host", "edge.test"), ("path", &path), ("scheme", "http")] {
        Parameters::append(&mut question, name, value);
    }
    let client = envoy.inspect(0, &question, &[]);
    envoy.deliver_all();
    let document: Value = serde_json::from_slice(envoy.clients[client.0].body()).unwrap();
    document["workers"][0]["slices"].clone()
}

#[test]
fn the_way_in_which_an_object_is_known_is_explained() {
    let mut envoy = start(1);
    let other = envoy.get(0, 1);
    envoy.abort(other);
    assert_eq!(explained(&mut envoy), Value::Null);
    get_served(&mut envoy, 0, &OBJECT);
    envoy.advance(20_000);
    let index = json!({"known_by": "index", "bytes": LENGTH, "fresh_ms_left": 40_000});
    assert_eq!(explained(&mut envoy), index);
    envoy.advance(60_000);
    assert_eq!(explained(&mut envoy)["fresh_ms_left"], 0);
    purge(&mut envoy);
    assert_eq!(explained(&mut envoy), json!({"known_by": "url"}));
    get_served(&mut envoy, 0, &SMALL);
    assert_eq!(explained(&mut envoy), Value::Null);
    let mut envoy = workers_that_know(1, "/7*", 0);
    assert_eq!(explained(&mut envoy), json!({"known_by": "path"}));
}
