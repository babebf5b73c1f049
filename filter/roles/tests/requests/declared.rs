// SPDX-License-Identifier: Apache-2.0
//! Numbers that the policy declares: a change purges, and a former number brings former responses back.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_fake::{Answer, Client, FakeEnvoy, FetchId};

use crate::support::{FIRST, KEY, await_lookup, document, fill};

/// A policy with these declared numbers.
fn declaring(numbers: &str) -> String {
    let purge = format!(r#""declared": [{numbers}], "warm": false"#);
    document("").replace(r#""warm": false"#, &purge)
}

fn number(number: u64) -> String {
    declaring(&format!(r#"{{"prefix": "/", "number": {number}}}"#))
}

fn soft_number(number: u64) -> String {
    let soft = format!(r#"{{"prefix": "/", "number": {number}, "soft": true}}"#);
    declaring(&soft)
}

/// Requests the object on a worker and checks that the store answers with the response that a fetch has brought.
fn is_stored(envoy: &mut FakeEnvoy, seat: usize, fetch: FetchId) {
    let fetches = envoy.fetches.len();
    let client = envoy.get(seat, KEY);
    assert_eq!(envoy.fetches.len(), fetches, "the origin is not asked");
    assert_eq!(envoy.clients[client.0].brought_by(), Some(fetch));
    envoy.close_all();
}

/// Requests the object and lets the origin fill the store.
fn fetches(envoy: &mut FakeEnvoy, seat: usize, fetch: FetchId) {
    let client: Client = envoy.get(seat, KEY);
    fill(envoy, fetch);
    assert_eq!(envoy.clients[client.0].brought_by(), Some(fetch));
}

#[test]
fn another_number_purges_and_a_former_one_brings_its_responses_back() {
    let mut envoy = FakeEnvoy::new(&number(41), 2);
    fetches(&mut envoy, 0, FIRST);
    envoy.reconfigure(&number(42));
    fetches(&mut envoy, 0, FetchId(1));
    is_stored(&mut envoy, 1, FetchId(1));
    envoy.reconfigure(&number(41));
    is_stored(&mut envoy, 0, FIRST);
    is_stored(&mut envoy, 1, FIRST);
}

#[test]
fn a_former_number_does_not_bring_back_responses_that_a_purge_has_taken() {
    let mut envoy = FakeEnvoy::new(&number(41), 2);
    fetches(&mut envoy, 0, FIRST);
    envoy.reconfigure(&number(42));
    fetches(&mut envoy, 0, FetchId(1));
    envoy.purge(0, r#"{"everything": true}"#);
    envoy.deliver_all();
    envoy.reconfigure(&number(41));
    fetches(&mut envoy, 1, FetchId(2));
}

#[test]
fn a_fill_under_the_former_number_is_not_served_under_the_new_one() {
    let mut envoy = FakeEnvoy::new(&number(41), 1);
    envoy.get(0, KEY);
    envoy.reconfigure(&number(42));
    fill(&mut envoy, FIRST);
    fetches(&mut envoy, 0, FetchId(1));
}

#[test]
fn another_soft_number_has_stored_responses_validated_once() {
    let mut envoy = FakeEnvoy::new(&soft_number(3), 1);
    fetches(&mut envoy, 0, FIRST);
    is_stored(&mut envoy, 0, FIRST);
    envoy.reconfigure(&soft_number(4));
    let client = envoy.get(0, KEY);
    assert!(envoy.fetches[1].headers.has("if-none-match"));
    envoy.answer(FetchId(1), Answer::Unchanged);
    assert_eq!(envoy.clients[client.0].brought_by(), Some(FIRST));
    envoy.close_all();
    envoy.commit(KEY);
    await_lookup(&mut envoy, 0);
    envoy.answer_lookup(0);
    envoy.deliver_all();
    is_stored(&mut envoy, 0, FIRST);
}

#[test]
fn a_fill_under_the_former_soft_number_does_not_count_as_the_validation() {
    let mut envoy = FakeEnvoy::new(&soft_number(3), 1);
    envoy.get(0, KEY);
    envoy.reconfigure(&soft_number(4));
    fill(&mut envoy, FIRST);
    envoy.get(0, KEY);
    assert!(envoy.fetches[1].headers.has("if-none-match"));
}
