// SPDX-License-Identifier: Apache-2.0
//! Validation of stored responses: the response that replaces another one, and the requests that share a validation.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_fake::{Answer, Client, Ending, FakeEnvoy, FetchId, Stage};

use crate::support::{
    FIRST, KEY, admission, assert_all_over, document, envoy, fill, plain, releases,
};

const SECOND: FetchId = FetchId(1);

/// Checks that the store answers a request for [`KEY`] with this status.
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
    plain(&mut envoy, 0);
    envoy.answer_with(FIRST, 503, &[("cache-control", "max-age=60")], b"an error");
    fill(&mut envoy, FIRST);
    envoy.advance(56_000);
    is_served(&mut envoy, 503);
    envoy.advance(6_000);
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

/// A number of workers, with a cache that has a response which each use validates.
fn with_no_cache(workers: usize, document: &str) -> FakeEnvoy {
    let mut envoy = FakeEnvoy::new(document, workers);
    envoy.directives = ", no-cache";
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy
}

/// Confirms the stored response.
fn confirm(envoy: &mut FakeEnvoy, fetch: FetchId) {
    assert!(envoy.fetches[fetch.0].headers.has("if-none-match"));
    // A request counts as earlier only if it arrived at least a millisecond before the response.
    envoy.advance(1);
    envoy.answer(fetch, Answer::Unchanged);
}

/// Checks that a client has the object that this fetch brought.
fn assert_served(envoy: &FakeEnvoy, client: Client, brought_by: FetchId) {
    let client = &envoy.clients[client.0];
    assert_eq!(client.status(), 200);
    let number = format!("{:>8}", brought_by.0);
    assert!(client.body().starts_with(number.as_bytes()), "{client:?}");
    let control = client.header("cache-control").unwrap();
    assert!(control.contains("no-cache"), "{control}");
}

#[test]
fn a_no_cache_response_is_stored_and_validated_at_each_use() {
    let hot = document(r#""hot": {"max_bytes": 100000}"#);
    let mut envoy = with_no_cache(1, &hot);
    for number in 1..6 {
        let client = envoy.get(0, KEY);
        assert_eq!(admission(&envoy, client), Some(StoreRequest::Lead));
        confirm(&mut envoy, FetchId(number));
        fill(&mut envoy, FetchId(number));
        assert_served(&envoy, client, FIRST);
    }
    assert_eq!(envoy.fetches.len(), 6);
    assert_all_over(&mut envoy);
}

#[test]
fn those_who_wait_share_one_validation_on_every_worker() {
    let mut envoy = with_no_cache(2, &document(""));
    let clients: Vec<_> = (0..20).map(|number| envoy.get(number % 2, KEY)).collect();
    confirm(&mut envoy, SECOND);
    fill(&mut envoy, SECOND);
    assert_eq!(
        releases(&envoy, &clients, NextStep::Send(StoreRequest::Validated)),
        19
    );
    for client in clients {
        assert_served(&envoy, client, FIRST);
    }
    assert_eq!(envoy.fetches.len(), 2);
    assert_all_over(&mut envoy);
}

#[test]
fn who_comes_after_a_validation_has_another_one() {
    let mut envoy = with_no_cache(2, &document(""));
    envoy.get(0, KEY);
    let waits = envoy.get(1, KEY);
    envoy.deliver_all();
    confirm(&mut envoy, SECOND);
    // Within the millisecond of the response, the order of the requests is unknown.
    let late = [envoy.get(0, KEY), envoy.get(1, KEY)];
    fill(&mut envoy, SECOND);
    assert_served(&envoy, waits, FIRST);
    assert_eq!(envoy.fetches.len(), 3, "one of both asks for both");
    for client in late {
        assert_ne!(envoy.stage(client), Stage::Over(Ending::Served));
    }
    envoy.advance(1);
    confirm(&mut envoy, FetchId(2));
    fill(&mut envoy, FetchId(2));
    for client in late {
        assert_served(&envoy, client, FIRST);
    }
    assert_eq!(envoy.fetches.len(), 3);
    assert_all_over(&mut envoy);
}

#[test]
fn a_no_cache_response_is_never_served_without_its_origin() {
    let mut envoy = with_no_cache(1, &document(""));
    let clients = [plain(&mut envoy, 0), plain(&mut envoy, 0)];
    envoy.reset(SECOND);
    envoy.close_all();
    for client in clients {
        assert_eq!(envoy.clients[client.0].status(), 504);
    }
    let error = plain(&mut envoy, 0);
    envoy.answer_with(FetchId(2), 503, &[], b"an error");
    envoy.end(FetchId(2));
    assert_eq!(envoy.clients[error.0].status(), 503);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn a_changed_no_cache_response_is_shared_with_those_who_wait() {
    let mut envoy = with_no_cache(1, &document(""));
    let clients = [envoy.get(0, KEY), envoy.get(0, KEY)];
    envoy.advance(1);
    fill(&mut envoy, SECOND);
    for client in clients {
        assert_served(&envoy, client, SECOND);
    }
    assert_eq!(envoy.fetches.len(), 2);
    assert_all_over(&mut envoy);
}

/// A cache with a stale object.
fn with_stale(sections: &str) -> FakeEnvoy {
    let mut envoy = FakeEnvoy::new(&document(sections), 1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.advance(envoy.ttl * 1_000 + 2_000);
    envoy
}

const KEEPS_MISSING: &str = r#""cache": {"stale_if_missing": true}"#;

/// Status that a client gets if the origin answers with `status`.
fn served_for(envoy: &mut FakeEnvoy, status: u16) -> u16 {
    let client = envoy.get(0, KEY);
    let asked = *envoy.open_fetches().last().unwrap();
    envoy.answer_with(asked, status, &[], b"not here");
    envoy.end(asked);
    envoy.commit(KEY);
    envoy.close_all();
    envoy.clients[client.0].status()
}

#[test]
fn a_missing_object_is_served_stale_only_where_the_policy_says_so() {
    for status in [404, 410] {
        assert_eq!(served_for(&mut with_stale(""), status), status);
        let mut envoy = with_stale(KEEPS_MISSING);
        assert_eq!(served_for(&mut envoy, status), 200);
        assert_eq!(served_for(&mut with_stale(KEEPS_MISSING), 403), 403);
        // The window of `stale-if-error` has ended then.
        envoy.advance(700_000);
        assert_eq!(served_for(&mut envoy, status), status);
    }
}

#[test]
fn a_purge_ends_that_a_missing_object_is_served_stale() {
    for order in [
        r#"{"everything": true, "soft": true}"#,
        r#"{"everything": true}"#,
    ] {
        let mut envoy = with_stale(KEEPS_MISSING);
        envoy.purge(0, order);
        assert_eq!(served_for(&mut envoy, 404), 404, "{order}");
    }
}

/// A cache whose object was purged softly.
fn softly_purged(sections: &str) -> FakeEnvoy {
    let mut envoy = FakeEnvoy::new(&document(sections), 1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.purge(0, r#"{"everything": true, "soft": true}"#);
    envoy
}

#[test]
fn a_response_that_breaks_off_is_no_validation_of_what_was_purged_softly() {
    let mut envoy = softly_purged("");
    let long = "x".repeat(5_000);
    envoy.request(0, "GET", KEY, &[("x-long", long.as_str())]);
    assert_eq!(envoy.fetches[1].request, StoreRequest::Alone);
    envoy.answer(SECOND, Answer::Storable);
    envoy.progress(SECOND);
    envoy.reset(SECOND);
    envoy.close_all();
    let client = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Lead));
    assert_eq!(envoy.stage(client), Stage::Fetching(FetchId(2)));
}

#[test]
fn what_was_purged_softly_is_validated_whatever_the_client_takes() {
    let obeying = r#""request": {"cache_control": "obey"}"#;
    for control in ["max-age=100", "min-fresh=5", "max-stale=100"] {
        let mut envoy = softly_purged(obeying);
        let client = envoy.request(0, "GET", KEY, &[("cache-control", control)]);
        assert_eq!(envoy.fetches.len(), 2, "{control}");
        envoy.answer(SECOND, Answer::Unchanged);
        assert_eq!(envoy.clients[client.0].status(), 200);
        envoy.close_all();
        is_served(&mut envoy, 200);
    }
    let mut envoy = softly_purged(obeying);
    let client = envoy.request(0, "GET", KEY, &[("cache-control", "only-if-cached")]);
    assert_eq!(envoy.clients[client.0].status(), 504);
    assert_eq!(envoy.fetches.len(), 1);
}

/// Ending of a client with a 304 whose own request fills the store, because the store has lost the object.
fn fills_behind_a_304(amid: impl FnOnce(&mut FakeEnvoy)) -> Stage {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.evict(KEY);
    let client = envoy.conditional(0, KEY);
    envoy.answer(SECOND, Answer::Storable);
    assert_eq!(envoy.clients[client.0].status(), 304);
    amid(&mut envoy);
    envoy.end(SECOND);
    envoy.close_all();
    envoy.clients[client.0].stage
}

#[test]
fn a_fill_behind_a_304_is_cut_if_a_soft_purge_overtakes_it() {
    let untouched = fills_behind_a_304(|_| ());
    assert_eq!(untouched, Stage::Over(Ending::Served));
    let overtaken = fills_behind_a_304(|envoy| {
        envoy.purge(0, r#"{"everything": true, "soft": true}"#);
        envoy.deliver_all();
    });
    assert_eq!(overtaken, Stage::Over(Ending::Truncated));
}
