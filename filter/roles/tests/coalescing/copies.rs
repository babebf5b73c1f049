// SPDX-License-Identifier: Apache-2.0
//! Followers on the leader's worker get a copy of a small response that is stored, without a lookup in the store.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_fake::{Answer, Client, Ending, FakeEnvoy, FetchId, Stage};

use crate::support::{FIRST, KEY, assert_all_over, await_lookup, document, releases};

const ROOM: &str = r#""hot": {"max_bytes": 100000}"#;

/// Workers with a leader on the first one, two followers there, and two on the second one.
fn crowd(sections: &str) -> (FakeEnvoy, [Client; 2], [Client; 2]) {
    let mut envoy = FakeEnvoy::new(&document(sections), 2);
    envoy.get(0, KEY);
    let near = [envoy.get(0, KEY), envoy.get(0, KEY)];
    let far = [envoy.get(1, KEY), envoy.get(1, KEY)];
    (envoy, near, far)
}

/// Makes the store readable, and answers the lookup that asks for it.
fn find(envoy: &mut FakeEnvoy) {
    envoy.commit(KEY);
    await_lookup(envoy, 0);
    envoy.answer_lookup(0);
    envoy.deliver_all();
}

fn stages(envoy: &FakeEnvoy, clients: [Client; 2]) -> [Stage; 2] {
    clients.map(|client| envoy.stage(client))
}

#[test]
fn followers_on_the_leaders_worker_do_not_wait_for_the_store() {
    let (mut envoy, near, far) = crowd(ROOM);
    envoy.answer(FIRST, Answer::Storable);
    assert!(stages(&envoy, near) == [Stage::Parked; 2], "no body yet");
    envoy.end(FIRST);
    assert!(stages(&envoy, near) == [Stage::Over(Ending::Served); 2]);
    for client in near {
        let response = &envoy.clients[client.0];
        let told = response.header("cache-status").unwrap();
        assert!(told.contains("fwd=uri-miss; collapsed; ttl="), "{told}");
        assert_eq!(response.header("age"), Some("0"));
    }
    assert!(stages(&envoy, far) == [Stage::Parked; 2]);
    find(&mut envoy);
    let collapsed = NextStep::Send(StoreRequest::Collapsed);
    assert_eq!(releases(&envoy, &far, collapsed), 2);
    assert_eq!(envoy.fetches.len(), 1);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn a_request_after_the_end_waits_for_the_store_since_the_copy_is_not_kept() {
    let (mut envoy, ..) = crowd(ROOM);
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    let next = envoy.get(0, KEY);
    assert_eq!(envoy.stage(next), Stage::Parked);
    find(&mut envoy);
    let collapsed = NextStep::Send(StoreRequest::Collapsed);
    assert_eq!(releases(&envoy, &[next], collapsed), 1);
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn followers_of_an_object_that_is_too_large_for_a_copy_get_it_from_the_store() {
    for sections in ["", r#""hot": {"max_bytes": 100000, "max_object_bytes": 5}"#] {
        let (mut envoy, near, _) = crowd(sections);
        envoy.answer(FIRST, Answer::Storable);
        envoy.end(FIRST);
        assert!(stages(&envoy, near) == [Stage::Parked; 2], "{sections}");
        find(&mut envoy);
        let collapsed = NextStep::Send(StoreRequest::Collapsed);
        assert_eq!(releases(&envoy, &near, collapsed), 2);
    }
}

#[test]
fn a_response_that_expires_before_its_end_is_not_copied() {
    let (mut envoy, near, _) = crowd(ROOM);
    envoy.ttl = 1;
    envoy.answer(FIRST, Answer::Storable);
    envoy.advance(1_500);
    envoy.end(FIRST);
    assert!(stages(&envoy, near) == [Stage::Parked; 2]);
}

#[test]
fn a_response_that_each_use_validates_is_not_copied() {
    let (mut envoy, near, _) = crowd(ROOM);
    let headers = [("cache-control", "no-cache"), ("etag", "\"1\"")];
    envoy.answer_with(FIRST, 200, &headers, b"object");
    envoy.end(FIRST);
    assert!(stages(&envoy, near) == [Stage::Parked; 2]);
}

#[test]
fn a_response_that_breaks_off_gives_no_copy() {
    let (mut envoy, near, _) = crowd(ROOM);
    envoy.answer(FIRST, Answer::Storable);
    envoy.progress(FIRST);
    envoy.reset(FIRST);
    let served = |envoy: &FakeEnvoy| {
        let stages = stages(envoy, near);
        stages.contains(&Stage::Over(Ending::Served))
    };
    assert!(!served(&envoy));
    envoy.answer(FetchId(1), Answer::Storable);
    envoy.end(FetchId(1));
    assert!(served(&envoy), "the next leader's copy");
}
