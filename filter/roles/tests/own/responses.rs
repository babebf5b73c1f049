// SPDX-License-Identifier: Apache-2.0
//! Responses that a request's own headers may have caused: no other client gets them, and they change nothing for
//! others.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::metrics::Metric;
use sluice_fake::{Answer, Client, FakeEnvoy, FetchId, HeaderTexts as _};

use crate::support::{FIRST, KEY, admission, assert_all_over, envoy, fill, live, release};

const CACHEABLE: (&str, &str) = ("cache-control", "max-age=600");

/// Padding of a request above `limits.lead_header_bytes`.
fn padding() -> String {
    "x".repeat(4_096)
}

/// Sends a request whose headers beside its key are above the bound.
fn padded(envoy: &mut FakeEnvoy, method: &str, more: &[(&str, &str)]) -> Client {
    let padding = padding();
    let headers: Vec<_> = [("x-padding", padding.as_str())]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    envoy.request(0, method, KEY, &headers)
}

/// Answers a fetch with this status and a shared lifetime, and makes the store commit.
fn answer(envoy: &mut FakeEnvoy, fetch: FetchId, status: u16) {
    envoy.answer_with(
        fetch,
        status,
        &[CACHEABLE, ("location", "/login")],
        b"padded",
    );
    envoy.end(fetch);
    envoy.commit(KEY);
    envoy.deliver_all();
    envoy.close_all();
    live(envoy, 100);
}

/// Checks that Envoy's cache does not serve the response to the next client, which gets the origin's response.
fn assert_next_asks(envoy: &mut FakeEnvoy) {
    let asked = envoy.fetches.len();
    let next = envoy.get(0, KEY);
    assert_eq!(
        envoy.fetches.len(),
        asked + 1,
        "{:?}",
        envoy.clients[next.0]
    );
    fill(envoy, FetchId(asked));
    assert_eq!(envoy.clients[next.0].brought_by(), Some(FetchId(asked)));
}

#[test]
fn the_response_to_a_padded_request_is_its_clients_alone() {
    for status in [200, 301, 404] {
        let mut envoy = envoy(1);
        let client = padded(&mut envoy, "GET", &[]);
        answer(&mut envoy, FIRST, status);
        assert_eq!(envoy.clients[client.0].status(), status);
        assert!(!envoy.has(KEY), "{status}");
        assert_next_asks(&mut envoy);
        assert_all_over(&mut envoy);
    }
}

#[test]
fn a_padded_head_stores_no_headers() {
    let mut envoy = envoy(1);
    padded(&mut envoy, "HEAD", &[]);
    answer(&mut envoy, FIRST, 404);
    let next = envoy.head(0, KEY);
    envoy.answer_lookup(0);
    assert_eq!(envoy.fetches.len(), 2);
    answer(&mut envoy, FetchId(1), 200);
    assert_eq!(envoy.clients[next.0].status(), 200);
}

#[test]
fn a_padded_request_gets_what_is_stored() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    for seat in [0, 1] {
        let padding = padding();
        let client = envoy.request(seat, "GET", KEY, &[("x-padding", &padding)]);
        assert_eq!(envoy.clients[client.0].brought_by(), Some(FIRST));
    }
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn a_padded_request_validates_nothing_for_others() {
    for answered in [200, 301, 404] {
        let mut envoy = envoy(1);
        envoy.ttl = 1;
        envoy.get(0, KEY);
        fill(&mut envoy, FIRST);
        live(&mut envoy, 5_000);
        let client = padded(&mut envoy, "GET", &[]);
        let asked = &envoy.fetches[1].headers;
        assert!(!asked.has("if-none-match") && !asked.has("if-modified-since"));
        answer(&mut envoy, FetchId(1), answered);
        assert_eq!(envoy.clients[client.0].status(), answered);
        let next = envoy.get(0, KEY);
        assert!(envoy.fetches[2].headers.has("if-none-match"));
        envoy.answer(FetchId(2), Answer::Unchanged);
        assert_eq!(envoy.clients[next.0].brought_by(), Some(FIRST));
    }
}

#[test]
fn a_padded_request_fills_nothing_where_the_store_has_lost_the_object() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.evict(KEY);
    let client = padded(&mut envoy, "GET", &[]);
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Fresh));
    answer(&mut envoy, FetchId(1), 404);
    assert!(!envoy.has(KEY));
    assert_next_asks(&mut envoy);
}

#[test]
fn a_padded_request_that_waits_does_not_lead_either() {
    let mut envoy = envoy(1);
    let leader = envoy.get(0, KEY);
    let waits = padded(&mut envoy, "GET", &[]);
    assert_eq!(admission(&envoy, waits), None);
    envoy.abort(leader);
    assert!(release(&envoy, waits).is_some());
    answer(&mut envoy, FetchId(1), 404);
    assert!(!envoy.has(KEY));
    assert_next_asks(&mut envoy);
}

/// A client whose `Referer` makes the origin set a cookie.
fn from_elsewhere(envoy: &mut FakeEnvoy) -> Client {
    envoy.request(0, "GET", KEY, &[("referer", "http://there.test/")])
}

/// Answers with a shared page that sets a cookie.
fn set_cookie(envoy: &mut FakeEnvoy, fetch: FetchId) {
    let cookie = [CACHEABLE, ("set-cookie", "from=there")];
    envoy.answer_with(fetch, 200, &cookie, b"for one");
    envoy.end(fetch);
    envoy.deliver_all();
    envoy.close_all();
}

#[test]
fn a_cookie_that_one_header_has_set_leaves_no_mark() {
    let mut envoy = envoy(1);
    from_elsewhere(&mut envoy);
    set_cookie(&mut envoy, FIRST);
    assert_eq!(envoy.counter(Metric::HitForMissMarked), 0);
    let next = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, next), Some(StoreRequest::Lead));
    fill(&mut envoy, FetchId(1));
    assert!(envoy.has(KEY));
    assert_all_over(&mut envoy);
}

#[test]
fn who_waits_for_such_a_response_leads_in_its_place() {
    let mut envoy = envoy(2);
    from_elsewhere(&mut envoy);
    let others = [envoy.get(0, KEY), envoy.get(0, KEY), envoy.get(1, KEY)];
    set_cookie(&mut envoy, FIRST);
    assert_eq!(
        release(&envoy, others[0]),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(envoy.parked(), 2);
    fill(&mut envoy, FetchId(1));
    for client in others {
        assert_eq!(envoy.clients[client.0].brought_by(), Some(FetchId(1)));
    }
    assert_eq!(envoy.fetches.len(), 2);
    assert_all_over(&mut envoy);
}

#[test]
fn a_mark_is_checked_once_a_second_and_ends_with_the_first_response_that_is_stored() {
    let mut envoy = envoy(1);
    for _ in 0..4 {
        let client = from_elsewhere(&mut envoy);
        let fetch = FetchId(envoy.fetches.len() - 1);
        set_cookie(&mut envoy, fetch);
        assert_eq!(envoy.clients[client.0].status(), 200);
        live(&mut envoy, 1_000);
    }
    // The key was marked for one second and then for two seconds, and the second mark is still in force.
    assert!(envoy.counter(Metric::HitForMissMarked) >= 2);
    let mut requests = Vec::new();
    for _ in 0..40 {
        let client = envoy.get(0, KEY);
        requests.push(admission(&envoy, client));
        let fetch = FetchId(envoy.fetches.len() - 1);
        fill(&mut envoy, fetch);
        if envoy.has(KEY) {
            break;
        }
        live(&mut envoy, 100);
    }
    assert!(envoy.has(KEY), "{requests:?}");
    assert!(requests.len() <= 12, "within a second or so: {requests:?}");
    let next = envoy.get(0, KEY);
    assert_eq!(envoy.clients[next.0].status(), 200);
    assert_eq!(admission(&envoy, next), Some(StoreRequest::Fresh));
}

#[test]
fn requests_that_nobody_shares_wait_for_each_other_ever_less() {
    let mut envoy = envoy(1);
    let mut led = Vec::new();
    for second in 0..100 {
        let client = from_elsewhere(&mut envoy);
        if admission(&envoy, client) == Some(StoreRequest::Lead) {
            led.push(second);
        }
        let follower = from_elsewhere(&mut envoy);
        assert!(
            second < 4 || admission(&envoy, follower).is_some(),
            "{second}"
        );
        for fetch in envoy.open_fetches() {
            set_cookie(&mut envoy, fetch);
        }
        live(&mut envoy, 1_000);
    }
    assert!(led.len() > 90, "one checks in each second: {led:?}");
}

const STATE: &str = "[\"\",{}]";

/// Answers a request that has `RSC` with this `Vary`.
fn answer_payload(envoy: &mut FakeEnvoy, fetch: FetchId, vary: Option<&str>) {
    assert_eq!(envoy.fetches[fetch.0].headers.get("rsc"), Some("1"));
    let vary = vary.map(|vary| ("vary", vary));
    let headers: Vec<_> = [CACHEABLE].into_iter().chain(vary).collect();
    envoy.answer_with(fetch, 200, &headers, b"payload");
    envoy.end(fetch);
    envoy.commit(KEY);
    envoy.deliver_all();
    envoy.close_all();
    live(envoy, 100);
}

#[test]
fn a_payload_is_shared_only_if_vary_names_all_that_has_asked_for_it() {
    let asks = [("rsc", "1"), ("next-router-state-tree", STATE)];
    for (vary, shared) in [
        (None, false),
        (Some("rsc"), false),
        (Some("Accept-Encoding"), false),
        (Some("*"), false),
        (
            Some("RSC, Next-Router-State-Tree, Next-Router-Prefetch"),
            true,
        ),
    ] {
        let mut envoy = envoy(1);
        envoy.request(0, "GET", KEY, &asks);
        answer_payload(&mut envoy, FIRST, vary);
        assert_eq!(envoy.has(KEY), shared, "{vary:?}");
        let page = envoy.request(0, "GET", KEY, &[]);
        envoy.answer_with(FetchId(1), 200, &[CACHEABLE], b"page");
        envoy.end(FetchId(1));
        assert_eq!(envoy.clients[page.0].body(), b"page", "{vary:?}");
    }
}
