// SPDX-License-Identifier: Apache-2.0
//! Fills that no client reads are bounded.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::metrics::Metric;
use sluice_fake::{Answer, FakeEnvoy, FetchId, HeaderTexts as _, Kind, Stage};

use crate::support::{FIRST, KEY, assert_all_over, fill, live, release};

/// A worker with these bounds.
fn bounded(fills: usize, bytes: u64) -> FakeEnvoy {
    bounded_workers(1, fills, bytes)
}

fn bounded_workers(workers: usize, fills: usize, bytes: u64) -> FakeEnvoy {
    let token = FakeEnvoy::token_hash();
    let policy = format!(
        r#"{{"origin": {{"kind": "http"}}, "purge": {{"warm": false, "token_sha256": "{token}"}},
            "store": {{"max_object_bytes": 2000}},
            "limits": {{"hints": 64, "unread_fills": {fills}, "unread_fill_bytes": {bytes}}}}}"#
    );
    FakeEnvoy::new(&policy, workers)
}

fn refused(envoy: &FakeEnvoy) -> u32 {
    envoy.counter(Metric::UnreadFillsRefused)
}

/// Makes a range lead, and begins its fill.
fn range_that_leads(envoy: &mut FakeEnvoy, key: u64) -> FetchId {
    let range = envoy.range(0, key);
    envoy.answer_lookup(0);
    envoy.answer(FetchId(envoy.fetches.len() - 1), Answer::Storable);
    assert_eq!(
        release(envoy, range),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    let fetch = FetchId(envoy.fetches.len() - 1);
    envoy.answer(fetch, Answer::Storable);
    envoy.progress(fetch);
    fetch
}

#[test]
fn a_range_beyond_the_number_goes_to_the_origin_as_it_is() {
    let mut envoy = bounded(1, 1 << 20);
    let first = range_that_leads(&mut envoy, KEY);
    let range = envoy.range(0, KEY + 1);
    envoy.answer_lookup(0);
    let asked = envoy.fetches.last().unwrap();
    assert_eq!(asked.request, StoreRequest::Bypass, "not even for its size");
    assert_eq!(asked.headers.get("range"), Some("bytes=0-9"));
    assert_eq!(refused(&envoy), 1);
    let fetch = FetchId(envoy.fetches.len() - 1);
    let (version, part) = (fetch.0.to_string(), format!("{:>8}..", fetch.0));
    let headers = [("content-range", "bytes 0-9/1024"), ("x-version", &version)];
    envoy.answer_with(fetch, 206, &headers, part.as_bytes());
    envoy.end(fetch);
    let passed = &envoy.clients[range.0];
    assert_eq!((passed.status(), passed.body().len()), (206, 10));
    let way = passed.header("cache-status").unwrap();
    assert!(
        way.contains("fwd=bypass") && way.contains("detail=unfilled"),
        "{way}"
    );
    assert!(!envoy.has(KEY + 1));
    fill(&mut envoy, first);
    assert!(envoy.has(KEY));
    range_that_leads(&mut envoy, KEY + 2);
    assert_eq!(refused(&envoy), 1);
}

#[test]
fn a_conditional_request_beyond_the_number_goes_to_the_origin_as_it_is() {
    let mut envoy = bounded(1, 1 << 20);
    envoy.conditional(0, KEY);
    assert_eq!(envoy.fetches[0].request, StoreRequest::Lead);
    let unchanged = envoy.conditional(0, KEY + 1);
    envoy.answer_lookup(0);
    assert_eq!(envoy.fetches[1].request, StoreRequest::Bypass);
    assert!(envoy.fetches[1].headers.has("if-none-match"));
    envoy.answer_with(FetchId(1), 304, &[("etag", "\"v1\"")], b"");
    assert_eq!(envoy.clients[unchanged.0].status(), 304);
    assert_eq!(refused(&envoy), 1);
    let joins = envoy.conditional(0, KEY);
    assert_eq!(
        envoy.fetches.len(),
        2,
        "it waits for the fill that there is"
    );
    fill(&mut envoy, FIRST);
    assert_eq!(envoy.clients[joins.0].status(), 304);
    envoy.conditional(0, KEY + 2);
    assert_eq!(envoy.fetches[2].request, StoreRequest::Lead);
    assert_eq!(refused(&envoy), 1);
}

#[test]
fn what_the_store_has_is_served_from_it_beyond_the_bounds_too() {
    for (kind, refusals) in [(Kind::Range, 0), (Kind::Conditional, 1)] {
        let mut envoy = bounded_workers(2, 0, 0);
        envoy.get(0, KEY);
        fill(&mut envoy, FIRST);
        let client = envoy.arrive(1, KEY, kind);
        envoy.answer_lookup(1);
        assert_eq!(
            release(&envoy, client),
            Some(NextStep::Send(StoreRequest::Fresh))
        );
        assert_eq!(envoy.fetches.len(), 1);
        assert_eq!(refused(&envoy), refusals);
    }
}

#[test]
fn a_get_is_never_bounded_and_a_range_may_wait_for_one() {
    let mut envoy = bounded(0, 0);
    let get = envoy.get(0, KEY);
    let range = envoy.range(0, KEY);
    assert_eq!(envoy.stage(range), Stage::Parked);
    fill(&mut envoy, FIRST);
    assert_eq!(envoy.clients[get.0].status(), 200);
    assert_eq!(envoy.clients[range.0].status(), 206);
    assert_eq!(envoy.fetches.len(), 1);
    assert_eq!(refused(&envoy), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn a_range_that_is_most_of_its_object_is_not_bounded() {
    let mut envoy = bounded(0, 0);
    let range = envoy.request(0, "GET", KEY, &[("range", "bytes=400-")]);
    envoy.answer_lookup(0);
    envoy.answer(FIRST, Answer::Storable);
    assert_eq!(
        release(&envoy, range),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    fill(&mut envoy, FetchId(1));
    assert_eq!(envoy.clients[range.0].status(), 206);
    let last = envoy.request(0, "GET", KEY + 1, &[("range", "bytes=1023-")]);
    envoy.answer_lookup(0);
    envoy.answer(FetchId(2), Answer::Storable);
    assert_eq!(release(&envoy, last), Some(NextStep::Unfilled));
    assert_eq!(envoy.fetches[3].headers.get("range"), Some("bytes=1023-"));
    assert_eq!(refused(&envoy), 1);
}

#[test]
fn a_fill_is_not_replaced_beyond_the_bytes_of_a_minute() {
    let mut envoy = bounded(8, 2_900);
    envoy.range(0, KEY);
    envoy.answer_lookup(0);
    envoy.answer(FIRST, Answer::Storable);
    let leader = envoy.fetches[1].client;
    envoy.answer(FetchId(1), Answer::Storable);
    envoy.progress(FetchId(1));
    assert_eq!(refused(&envoy), 0);
    // 1,024 bytes have been fetched, and the next fill may be of the largest object.
    envoy.abort(leader);
    envoy.progress(FetchId(1));
    assert_eq!(refused(&envoy), 1);
    assert_eq!(envoy.open_fetches(), []);
    live(&mut envoy, 2_000);
    range_that_leads(&mut envoy, KEY + 1);
    envoy.range(0, KEY + 2);
    envoy.answer_lookup(0);
    envoy.answer(FetchId(envoy.fetches.len() - 1), Answer::Storable);
    let asked = envoy.fetches.last().unwrap();
    assert_eq!(
        asked.request,
        StoreRequest::Bypass,
        "it is too long for what is left"
    );
    assert_eq!(refused(&envoy), 2);
    envoy.advance(60_000);
    range_that_leads(&mut envoy, KEY + 3);
}

#[test]
fn fills_that_bring_nothing_leave_their_place_to_others() {
    let mut envoy = bounded(1, 2_000);
    for key in 0..8 {
        envoy.request(0, "GET", key, &[("if-none-match", "\"v1\"")]);
        let fetch = FetchId(envoy.fetches.len() - 1);
        assert_eq!(envoy.fetches[fetch.0].request, StoreRequest::Lead);
        envoy.answer(fetch, Answer::Failed(503));
        envoy.end(fetch);
        envoy.close_all();
    }
    assert_eq!(refused(&envoy), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn clients_that_leave_early_leave_no_place_taken() {
    let mut envoy = bounded(1, 1 << 20);
    for key in 0..4 {
        let range = envoy.range(0, key);
        envoy.answer_lookup(0);
        envoy.abort(range);
        let fetch = FetchId(envoy.fetches.len() - 1);
        envoy.answer(fetch, Answer::Storable);
        let conditional = envoy.conditional(0, key + 10);
        envoy.abort(conditional);
        let fetch = FetchId(envoy.fetches.len() - 1);
        fill(&mut envoy, fetch);
    }
    assert_eq!(refused(&envoy), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn a_conditional_request_that_may_not_lead_goes_to_the_origin_as_it_is() {
    let mut envoy = bounded(8, 1 << 20);
    let long = "x".repeat(5_000);
    let headers = [("if-none-match", "*"), ("x-long", long.as_str())];
    envoy.request(0, "GET", KEY, &headers);
    envoy.answer_lookup(0);
    assert_eq!(envoy.fetches[0].request, StoreRequest::Bypass);
    assert_eq!(envoy.fetches[0].headers.get("if-none-match"), Some("*"));
    let unmatched = [("if-match", "\"other\"")];
    let client = envoy.request(0, "GET", KEY + 1, &unmatched);
    assert_eq!(envoy.fetches[1].request, StoreRequest::Lead);
    envoy.answer(FetchId(1), Answer::Storable);
    assert_eq!(envoy.clients[client.0].status(), 412);
}

/// A conditional request that may not lead is sent to the origin, though the store has its object.
fn asks_after_a_soft_purge(fills: usize, padding: usize) {
    let mut envoy = bounded(fills, 1 << 20);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    let soft = format!(r#"{{"url": "http://edge.test/{KEY}", "soft": true}}"#);
    envoy.purge(0, &soft);
    let padding = "x".repeat(padding);
    let headers = [("if-none-match", "\"v0\""), ("x-long", padding.as_str())];
    let client = envoy.request(0, "GET", KEY, &headers);
    envoy.answer_lookup(0);
    assert_eq!(release(&envoy, client), Some(NextStep::Unfilled));
    assert_eq!(envoy.fetches[1].request, StoreRequest::Bypass);
    assert!(envoy.fetches[1].headers.has("if-none-match"));
}

#[test]
fn a_conditional_request_that_may_not_lead_gets_nothing_from_before_a_soft_purge() {
    asks_after_a_soft_purge(8, 5_000);
    asks_after_a_soft_purge(0, 0);
}

#[test]
fn a_precondition_beyond_the_number_goes_to_the_origin_as_it_is() {
    for header in ["if-match", "if-unmodified-since"] {
        let mut envoy = bounded(1, 1 << 20);
        envoy.request(0, "GET", KEY, &[(header, "\"other\"")]);
        assert_eq!(envoy.fetches[0].request, StoreRequest::Lead);
        envoy.request(0, "GET", KEY + 1, &[(header, "\"other\"")]);
        envoy.answer_lookup(0);
        assert_eq!(envoy.fetches[1].request, StoreRequest::Bypass);
        assert!(envoy.fetches[1].headers.has(header));
        fill(&mut envoy, FIRST);
        envoy.request(0, "GET", KEY + 2, &[(header, "\"other\"")]);
        assert_eq!(envoy.fetches[2].request, StoreRequest::Lead);
    }
}
