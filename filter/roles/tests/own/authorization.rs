// SPDX-License-Identifier: Apache-2.0
//! Requests with `Authorization`: the credentials that the origin gets, and the clients that share its responses (RFC
//! 9111, 3.5).
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::StoreRequest;
use sluice_core::internal_headers::AUTHORIZATION_HEADER;
use sluice_fake::{Answer, Client, FakeEnvoy, FetchId, HeaderTexts as _, Stage};

use crate::support::{FIRST, KEY, admission, assert_all_over, document, envoy, fill};

const ALICE: &str = "Basic YWxpY2U6MQ==";
const BOB: &str = "Basic Ym9iOjI=";
const SHARED: [(&str, &str); 1] = [("cache-control", "public, max-age=60")];

/// Sends a GET with these credentials, and lets it look in the store.
fn by(envoy: &mut FakeEnvoy, seat: usize, credentials: &str) -> Client {
    let client = envoy.request(seat, "GET", KEY, &[("authorization", credentials)]);
    envoy.answer_lookup(seat);
    client
}

/// Answers with this body, which arrives completely.
fn answer(envoy: &mut FakeEnvoy, fetch: FetchId, headers: &[(&str, &str)], body: &str) {
    envoy.answer_with(fetch, 200, headers, body.as_bytes());
    fill(envoy, fetch);
}

/// Credentials of each request that the origin got.
fn seen(envoy: &FakeEnvoy) -> Vec<Option<&str>> {
    let fetches = envoy.fetches.iter();
    fetches
        .map(|fetch| fetch.headers.get("authorization"))
        .collect()
}

fn body(envoy: &FakeEnvoy, client: Client) -> String {
    String::from_utf8_lossy(envoy.clients[client.0].body()).into_owned()
}

#[test]
fn what_says_public_is_shared_by_all_credentials() {
    for control in [
        "public, max-age=60",
        "s-maxage=60",
        "max-age=60, must-revalidate",
    ] {
        let hot = document(r#""hot": {"max_bytes": 100000}"#);
        let mut envoy = FakeEnvoy::new(&hot, 2);
        by(&mut envoy, 0, ALICE);
        answer(&mut envoy, FIRST, &[("cache-control", control)], "for all");
        for _ in 0..4 {
            for (seat, credentials) in [(0, ALICE), (0, BOB), (1, BOB)] {
                let client = by(&mut envoy, seat, credentials);
                assert_eq!(body(&envoy, client), "for all", "{control}");
                envoy.close_all();
            }
        }
        let anonymous = envoy.request(0, "GET", KEY, &[]);
        assert_eq!(body(&envoy, anonymous), "for all", "{control}");
        envoy.close_all();
        assert_eq!(seen(&envoy), [Some(ALICE)], "{control}");
        assert_all_over(&mut envoy);
    }
}

#[test]
fn a_response_to_credentials_is_its_clients_alone() {
    for headers in [
        &[("cache-control", "max-age=60")][..],
        &[("cache-control", "max-age=60, proxy-revalidate")],
        &[("cache-control", "private, max-age=60")],
        &[
            ("cache-control", "public, max-age=60"),
            ("vary", "Authorization"),
        ],
        &[("cache-control", "public, max-age=60"), ("vary", "*")],
        &[("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")],
        &[],
    ] {
        let mut envoy = envoy(1);
        let clients = [ALICE, BOB, ALICE].map(|who| by(&mut envoy, 0, who));
        let anonymous = envoy.request(0, "GET", KEY, &[]);
        assert_eq!(
            seen(&envoy),
            [Some(ALICE), Some(BOB), Some(ALICE), None],
            "no request waits: {headers:?}"
        );
        for (number, client) in clients.into_iter().enumerate() {
            let own = format!("for client {number}");
            answer(&mut envoy, FetchId(number), headers, &own);
            assert_eq!(body(&envoy, client), own, "{headers:?}");
        }
        assert!(!envoy.has(KEY), "{headers:?}");
        answer(&mut envoy, FetchId(3), &SHARED, "for all");
        assert_eq!(body(&envoy, anonymous), "for all", "{headers:?}");
        assert_all_over(&mut envoy);
    }
}

#[test]
fn a_response_to_no_credentials_is_not_for_those_who_have_some() {
    let mut envoy = envoy(1);
    envoy.request(0, "GET", KEY, &[]);
    let kept = [("cache-control", "max-age=60"), ("etag", "\"v1\"")];
    answer(&mut envoy, FIRST, &kept, "for strangers");
    let alice = by(&mut envoy, 0, ALICE);
    assert_eq!(
        admission(&envoy, alice),
        None,
        "it looks at the store first"
    );
    let asked = &envoy.fetches[1].headers;
    assert!(!asked.has("if-none-match"), "asked for whole");
    answer(&mut envoy, FetchId(1), &kept, "for Alice");
    assert_eq!(body(&envoy, alice), "for Alice");
    let stranger = envoy.request(0, "GET", KEY, &[]);
    assert_eq!(body(&envoy, stranger), "for strangers");
    assert_eq!(seen(&envoy), [None, Some(ALICE)]);
}

#[test]
fn credentials_wait_only_where_the_url_is_known_to_share() {
    let mut envoy = envoy(1);
    by(&mut envoy, 0, ALICE);
    answer(&mut envoy, FIRST, &SHARED, "for all");
    envoy.evict(KEY);
    envoy.advance(70_000);
    let leader = by(&mut envoy, 0, ALICE);
    let followers = [BOB, ALICE].map(|who| by(&mut envoy, 0, who));
    assert_eq!(admission(&envoy, leader), Some(StoreRequest::Lead));
    for follower in followers {
        assert_eq!(envoy.stage(follower), Stage::Parked);
    }
    // The origin has changed its mind, so each client sends its own request with its own credentials.
    answer(&mut envoy, FetchId(1), &[], "for Alice");
    answer(&mut envoy, FetchId(2), &[], "for Bob");
    answer(&mut envoy, FetchId(3), &[], "for Alice again");
    assert_eq!(body(&envoy, followers[0]), "for Bob");
    assert_eq!(body(&envoy, followers[1]), "for Alice again");
    assert_eq!(
        seen(&envoy),
        [Some(ALICE), Some(ALICE), Some(BOB), Some(ALICE)]
    );
    envoy.request(0, "GET", KEY, &[("authorization", BOB)]);
    assert_eq!(envoy.parked(), 0);
    let lone = by(&mut envoy, 0, BOB);
    assert_eq!(admission(&envoy, lone), Some(StoreRequest::Bypass));
}

#[test]
fn a_stranger_who_waits_for_credentials_does_not_get_what_is_theirs() {
    let mut envoy = envoy(2);
    by(&mut envoy, 0, ALICE);
    answer(&mut envoy, FIRST, &SHARED, "for all");
    by(&mut envoy, 1, ALICE);
    envoy.close_all();
    envoy.evict(KEY);
    envoy.advance(70_000);
    let alice = by(&mut envoy, 0, ALICE);
    let first = FetchId(envoy.fetches.len() - 1);
    let strangers = [0, 1].map(|seat| envoy.request(seat, "GET", KEY, &[]));
    for stranger in strangers {
        assert_eq!(envoy.stage(stranger), Stage::Parked);
    }
    let lasting = [("cache-control", "max-age=60")];
    answer(&mut envoy, first, &lasting, "for Alice");
    assert_eq!(body(&envoy, alice), "for Alice");
    while let Some(fetch) = envoy.open_fetches().first().copied() {
        assert!(!envoy.fetches[fetch.0].headers.has("authorization"));
        answer(&mut envoy, fetch, &lasting, "for strangers");
    }
    for stranger in strangers {
        assert_eq!(body(&envoy, stranger), "for strangers");
    }
}

#[test]
fn a_304_to_credentials_changes_nothing_for_others_unless_it_says_so() {
    let mut envoy = envoy(1);
    by(&mut envoy, 0, ALICE);
    let tag = ("etag", "\"v1\"");
    answer(&mut envoy, FIRST, &[SHARED[0], tag], "for all");
    envoy.advance(70_000);
    let alice = by(&mut envoy, 0, ALICE);
    assert!(envoy.fetches[1].headers.has("if-none-match"));
    let own = [("cache-control", "max-age=60"), tag, ("x-user", "alice")];
    envoy.answer_with(FetchId(1), 304, &own, b"");
    assert_eq!(body(&envoy, alice), "for all");
    envoy.close_all();
    let stranger = envoy.request(0, "GET", KEY, &[]);
    envoy.answer_with(FetchId(2), 304, &[SHARED[0], tag], b"");
    assert_eq!(body(&envoy, stranger), "for all");
    assert_eq!(envoy.clients[stranger.0].header("x-user"), None);
    envoy.close_all();
}

#[test]
fn no_request_in_the_background_carries_credentials() {
    let mut envoy = envoy(1);
    by(&mut envoy, 0, ALICE);
    let stale = "public, max-age=60, stale-while-revalidate=600";
    let headers = [("cache-control", stale), ("etag", "\"v1\"")];
    answer(&mut envoy, FIRST, &headers, "for all");
    envoy.advance(70_000);
    let bob = by(&mut envoy, 0, BOB);
    assert_eq!(body(&envoy, bob), "for all");
    envoy.close_all();
    envoy.take_turns();
    assert_eq!(seen(&envoy), [Some(ALICE), None], "the refresh has none");
    // A range or a conditional request is sent alone if the store does not have the response.
    for demand in [("range", "bytes=0-1"), ("if-none-match", "\"v1\"")] {
        let mut envoy = crate::support::envoy(1);
        let headers = [("authorization", ALICE), demand];
        let client = envoy.request(0, "GET", KEY, &headers);
        envoy.answer_lookup(0);
        assert_eq!(envoy.clients[client.0].request, Some(StoreRequest::Bypass));
        assert_eq!(seen(&envoy), [Some(ALICE)], "{demand:?}");
        assert!(envoy.fetches[0].headers.has(demand.0), "{demand:?}");
    }
}

#[test]
fn no_client_can_set_the_hidden_credentials() {
    let mut envoy = envoy(1);
    let forged = [(AUTHORIZATION_HEADER, ALICE)];
    for (method, key) in [("GET", KEY), ("POST", KEY), ("HEAD", 8)] {
        envoy.request(0, method, key, &forged);
        envoy.answer_lookup(0);
    }
    let both = [(AUTHORIZATION_HEADER, ALICE), ("authorization", BOB)];
    envoy.request(0, "GET", 9, &both);
    envoy.answer_lookup(0);
    assert_eq!(seen(&envoy), [None, None, None, Some(BOB)]);
    for fetch in &envoy.fetches {
        assert!(!fetch.headers.has(AUTHORIZATION_HEADER));
    }
}

#[test]
fn an_error_to_credentials_says_nothing_to_others() {
    let mut envoy = envoy(1);
    by(&mut envoy, 0, ALICE);
    answer(&mut envoy, FIRST, &SHARED, "for all");
    envoy.evict(KEY);
    envoy.advance(70_000);
    by(&mut envoy, 0, ALICE);
    let bob = by(&mut envoy, 0, BOB);
    envoy.answer(FetchId(1), Answer::Failed(503));
    envoy.end(FetchId(1));
    answer(&mut envoy, FetchId(2), &SHARED, "for all");
    assert_eq!(body(&envoy, bob), "for all");
    assert_eq!(seen(&envoy)[2], Some(BOB));
}

#[test]
fn another_variant_is_not_for_those_with_credentials() {
    let mut envoy = envoy(2);
    let varying = [SHARED[0], ("vary", "accept")];
    envoy.request(0, "GET", KEY, &[("accept", "text/a")]);
    answer(&mut envoy, FIRST, &varying, "a");
    // Worker 1 does not know yet that the URL varies.
    let headers = [("authorization", ALICE), ("accept", "text/b")];
    let alice = envoy.request(1, "GET", KEY, &headers);
    envoy.answer_lookup(1);
    assert_eq!(seen(&envoy), [None, Some(ALICE)]);
    answer(&mut envoy, FetchId(1), &varying, "b");
    assert_eq!(body(&envoy, alice), "b");
    for fetch in &envoy.fetches {
        assert!(!fetch.cache_key.contains("authorization"), "{fetch:?}");
    }
}
