// SPDX-License-Identifier: Apache-2.0
//! A response to a request around the store is never stored. Four barriers ensure this, and each is tested where the
//! others do not work.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::metrics::Metric;
use sluice_fake::{Answer, Client, Ending, FakeEnvoy, FetchId, Stage};
use sluice_store::AROUND_HEADER;

use crate::support::{FIRST, KEY, envoy, fill};

/// Values of `If-Range` that name no version.
const NOTHING: [&str; 2] = ["", " "];

/// A worker that has marked the key as hit-for-miss.
fn hit_for_miss() -> FakeEnvoy {
    let mut envoy = envoy(1);
    envoy.request(0, "GET", KEY, &[]);
    envoy.answer(FIRST, Answer::Uncacheable);
    envoy.end(FIRST);
    envoy.close_all();
    envoy
}

/// Answers the second request with a response that any cache would store.
fn answer_storable(envoy: &mut FakeEnvoy) {
    let control = [("cache-control", "public, max-age=60")];
    envoy.answer_with(FetchId(1), 200, &control, b"for one client");
    envoy.end(FetchId(1));
    envoy.commit(KEY);
    envoy.close_all();
}

/// Checks that the client has the origin's response, and that the store has nothing.
fn assert_passed(envoy: &FakeEnvoy, client: Client, message: &str) {
    assert!(!envoy.has(KEY), "stored: {message}");
    let client = &envoy.clients[client.0];
    assert_eq!(client.stage, Stage::Over(Ending::Served), "{message}");
    assert_eq!(client.body(), b"for one client", "{message}");
    let control = client.header("cache-control");
    assert_eq!(control, Some("public, max-age=60"), "{message}");
    assert_eq!(client.header(AROUND_HEADER), None, "{message}");
}

/// Requests that are sent around the store: because the key is uncacheable, alone or with a range.
const WAYS: [&[(&str, &str)]; 2] = [&[], &[("range", "bytes=0-1")]];

#[test]
fn an_if_range_that_names_nothing_leads_no_response_into_the_store() {
    for (value, way) in NOTHING
        .iter()
        .flat_map(|value| WAYS.map(|way| (value, way)))
    {
        let mut envoy = hit_for_miss();
        let headers = [way, &[("if-range", value)]].concat();
        let client = envoy.request(0, "GET", KEY, &headers);
        let sent = &envoy.fetches[1].headers;
        assert!(!sent.has("if-range"), "{headers:?}: the origin gets none");
        answer_storable(&mut envoy);
        assert_passed(&envoy, client, &format!("{headers:?}"));
    }
}

#[test]
fn a_response_is_not_stored_though_the_store_takes_part_in_a_request_that_goes_around_it() {
    for way in WAYS {
        let mut envoy = hit_for_miss();
        envoy.ignores_if_range = true;
        let client = envoy.request(0, "GET", KEY, way);
        answer_storable(&mut envoy);
        assert_passed(&envoy, client, &format!("{way:?}"));
    }
}

#[test]
fn a_response_without_cache_control_that_goes_around_the_store_has_none_for_its_client() {
    let mut envoy = hit_for_miss();
    let client = envoy.request(0, "GET", KEY, &[]);
    envoy.answer_with(FetchId(1), 200, &[("x-version", "1")], b"for one client");
    envoy.end(FetchId(1));
    assert_eq!(envoy.clients[client.0].header("cache-control"), None);
}

#[test]
fn a_stored_response_without_the_mark_of_a_fill_is_not_served() {
    let mut envoy = envoy(1);
    envoy.request(0, "GET", KEY, &[]);
    fill(&mut envoy, FIRST);
    let hit = envoy.request(0, "GET", KEY, &[]);
    assert_eq!(envoy.clients[hit.0].status(), 200);
    envoy.unmark(KEY);
    let client = envoy.request(0, "GET", KEY, &[]);
    assert_eq!(envoy.counter(Metric::KeyMismatches), 1);
    envoy.answer_with(FetchId(1), 200, &[("content-type", "a/b")], b"another");
    envoy.end(FetchId(1));
    envoy.close_all();
    let client = &envoy.clients[client.0];
    assert_eq!((client.status(), client.body()), (200, &b"another"[..]));
}
