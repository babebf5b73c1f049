// SPDX-License-Identifier: Apache-2.0
//! Stored responses that the origin is asked about: which response takes whose place, and who shares a validation.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use sluice_fake::{Answer, FakeEnvoy, FetchId};
use support::{FIRST, KEY, envoy, fill};

const SECOND: FetchId = FetchId(1);

/// The store answers a request for [`KEY`] with this status.
fn is_served(envoy: &mut FakeEnvoy, status: u16) {
    let fetches = envoy.fetches.len();
    let client = envoy.get(0, KEY);
    assert_eq!(envoy.clients[client.0].status(), status);
    assert_eq!(envoy.fetches.len(), fetches, "the origin is not asked");
    envoy.close_all();
}

#[test]
fn an_error_is_stored_for_as_long_as_the_origin_says() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    envoy.answer_with(FIRST, 503, &[("cache-control", "max-age=60")], b"an error");
    fill(&mut envoy, FIRST);
    envoy.advance(59_000);
    is_served(&mut envoy, 503);
    envoy.advance(3_000);
    envoy.get(0, KEY);
    fill(&mut envoy, SECOND);
    is_served(&mut envoy, 200);
}

#[test]
fn an_error_with_a_lifetime_does_not_take_the_place_of_what_may_be_served_stale() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.advance(envoy.ttl * 1_000 + 2_000);
    let stale = envoy.get(0, KEY);
    let lasting = [("cache-control", "max-age=3600")];
    envoy.answer_with(SECOND, 503, &lasting, b"an error");
    assert_eq!(envoy.clients[stale.0].status(), 200);
    envoy.close_all();
    envoy.advance(5_000);
    let asks_again = envoy.get(0, KEY);
    envoy.answer(FetchId(2), Answer::Unchanged);
    assert_eq!(envoy.clients[asks_again.0].status(), 200);
    envoy.close_all();
}
