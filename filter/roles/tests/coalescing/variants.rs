// SPDX-License-Identifier: Apache-2.0
//! A response that proves to be one of several variants of its URL: its followers, and the knowledge of other
//! workers.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::metrics::Metric;
use sluice_core::workers::message::{Event, FlightOutcome, Message};
use sluice_fake::{Answer, Client, Ending, FakeEnvoy, FetchId, HeaderTexts as _, Stage};

use crate::support::{FIRST, KEY, assert_all_over, await_lookup, document, envoy, live};

const ONE: [(&str, &str); 1] = [("accept", "text/one")];
const OTHER: [(&str, &str); 1] = [("accept", "text/other")];

/// Ends a fetch with a variant, which the store commits.
fn vary(envoy: &mut FakeEnvoy, fetch: FetchId) {
    envoy.answer(fetch, Answer::Varying);
    envoy.end(fetch);
    envoy.deliver_all();
    settle(envoy);
}

/// Makes the store commit all ended fills, and delivers all messages.
fn settle(envoy: &mut FakeEnvoy) {
    envoy.commit(KEY);
    for seat in 0..envoy.workers() {
        await_lookup(envoy, seat);
    }
    for seat in 0..envoy.workers() {
        envoy.answer_lookup(seat);
    }
    envoy.deliver_all();
    envoy.close_all();
    envoy.check();
}

fn vary_all(envoy: &mut FakeEnvoy) {
    while let Some(fetch) = envoy.open_fetches().first().copied() {
        vary(envoy, fetch);
    }
    live(envoy, 100);
    envoy.close_all();
}

fn ask(envoy: &mut FakeEnvoy, seat: usize, headers: &[(&str, &str)]) -> Client {
    let client = envoy.request(seat, "GET", KEY, headers);
    envoy.check();
    client
}

/// Lets a worker take part, which begins with its first request.
fn join(envoy: &mut FakeEnvoy, seat: usize) {
    let client = envoy.request(seat, "GET", KEY + 1, &[]);
    envoy.abort(client);
    envoy.fetches.clear();
}

/// A number of workers, with a store that has one variant of a URL.
fn with_one(workers: usize) -> FakeEnvoy {
    let mut envoy = envoy(workers);
    ask(&mut envoy, 0, &ONE);
    vary(&mut envoy, FIRST);
    envoy
}

/// Restarts a worker, which forgets its knowledge. The store keeps its entries.
fn restart(envoy: &mut FakeEnvoy, seat: usize) {
    envoy.kill(seat);
    envoy.revive(seat);
}

/// A restarted worker, with a store that has one variant of a URL.
fn restarted_with_one() -> FakeEnvoy {
    let mut envoy = with_one(1);
    restart(&mut envoy, 0);
    envoy
}

/// Whether all of these clients have got a complete response.
fn are_served(envoy: &FakeEnvoy, clients: &[Client]) -> bool {
    let served = |client: &_| envoy.stage(*client) == Stage::Over(Ending::Served);
    clients.iter().all(served)
}

/// The fetch that brought the response which a client got in the end.
fn brought(envoy: &mut FakeEnvoy, client: Client) -> Option<FetchId> {
    envoy.close_all();
    assert_eq!(envoy.stage(client), Stage::Over(Ending::Served));
    envoy.clients[client.0].brought_by()
}

#[test]
fn a_stampede_on_a_url_that_varies_costs_one_request_for_each_variant() {
    for workers in [1, 3] {
        let mut envoy = envoy(workers);
        let clients: Vec<_> = (0..31)
            .map(|number| envoy.get(number % workers, KEY))
            .collect();
        assert_eq!(envoy.parked(), 30);
        envoy.deliver_all();
        envoy.answer(FIRST, Answer::Varying);
        envoy.deliver_all();
        // The fill of the first variant goes on, and one request leads for the other variant.
        assert_eq!(envoy.open_fetches().len(), 2, "{workers} workers");
        assert_eq!(envoy.parked(), 29, "{workers} workers");
        vary_all(&mut envoy);
        assert_eq!(envoy.fetches.len(), 2, "{workers} workers");
        assert!(are_served(&envoy, &clients), "{workers} workers");
        assert_all_over(&mut envoy);
    }
}

#[test]
fn the_first_response_with_a_vary_is_stored() {
    let mut envoy = with_one(1);
    let again = ask(&mut envoy, 0, &ONE);
    assert_eq!(brought(&mut envoy, again), Some(FIRST));
    let other = ask(&mut envoy, 0, &OTHER);
    let second = FetchId(1);
    vary(&mut envoy, second);
    assert_eq!(brought(&mut envoy, other), Some(second));
    for (headers, fetch) in [(&ONE, FIRST), (&OTHER, second), (&ONE, FIRST)] {
        let client = ask(&mut envoy, 0, headers);
        assert_eq!(brought(&mut envoy, client), Some(fetch));
    }
    assert_eq!(envoy.fetches.len(), 2);
    assert_eq!(envoy.counter(Metric::VaryingLearnt), 1);
}

#[test]
fn other_workers_know_the_variants_before_they_are_asked() {
    let mut envoy = envoy(2);
    join(&mut envoy, 1);
    ask(&mut envoy, 0, &ONE);
    vary(&mut envoy, FIRST);
    ask(&mut envoy, 1, &OTHER);
    let second = &envoy.fetches[1];
    assert_ne!(second.cache_key, envoy.fetches[0].cache_key);
    vary(&mut envoy, FetchId(1));
    let one = ask(&mut envoy, 1, &ONE);
    assert_eq!(brought(&mut envoy, one), Some(FIRST));
    assert_eq!(envoy.fetches.len(), 2);
}

#[test]
fn after_a_restart_a_hit_teaches_the_variant_that_is_stored() {
    let mut envoy = restarted_with_one();
    let one = ask(&mut envoy, 0, &ONE);
    assert_eq!(brought(&mut envoy, one), Some(FIRST));
    ask(&mut envoy, 0, &OTHER);
    assert_ne!(envoy.fetches[1].cache_key, envoy.fetches[0].cache_key);
    assert_eq!(envoy.fetches.len(), 2);
}

#[test]
fn after_a_restart_a_request_for_another_variant_costs_one_request_and_gets_it() {
    let mut envoy = restarted_with_one();
    let other = ask(&mut envoy, 0, &OTHER);
    assert_eq!(envoy.fetches.len(), 2);
    vary_all(&mut envoy);
    assert_eq!(brought(&mut envoy, other), Some(FetchId(1)));
    // The response to the call is stored.
    let again = ask(&mut envoy, 0, &OTHER);
    assert_eq!(brought(&mut envoy, again), Some(FetchId(1)));
    let one = ask(&mut envoy, 0, &ONE);
    assert_eq!(brought(&mut envoy, one), Some(FIRST));
    assert_eq!(envoy.fetches.len(), 2);
    assert_all_over(&mut envoy);
}

#[test]
fn after_a_restart_the_origin_gets_the_headers_of_the_request_for_another_variant() {
    let mut envoy = restarted_with_one();
    let further = [("x-page", "7"), ("if-none-match", "\"1\"")];
    let headers: Vec<_> = OTHER.into_iter().chain(further).collect();
    ask(&mut envoy, 0, &headers);
    let asked = &envoy.fetches[1];
    assert_eq!(asked.headers.get("accept"), Some("text/other"));
    assert_eq!(asked.headers.get("x-page"), Some("7"));
    assert_eq!(asked.headers.get("if-none-match"), None);
}

#[test]
fn after_a_restart_a_stored_variant_is_found_without_the_origin() {
    let mut envoy = with_one(1);
    ask(&mut envoy, 0, &OTHER);
    vary(&mut envoy, FetchId(1));
    restart(&mut envoy, 0);
    let others: Vec<_> = (0..5).map(|_| ask(&mut envoy, 0, &OTHER)).collect();
    live(&mut envoy, 100);
    for other in others {
        assert_eq!(brought(&mut envoy, other), Some(FetchId(1)));
    }
    assert_eq!(envoy.fetches.len(), 2);
}

#[test]
fn a_call_for_a_variant_brings_errors_too() {
    let mut envoy = restarted_with_one();
    let other = ask(&mut envoy, 0, &OTHER);
    envoy.answer(FetchId(1), Answer::Failed(404));
    envoy.end(FetchId(1));
    live(&mut envoy, 100);
    assert_eq!(envoy.clients[other.0].status(), 404);
}

#[test]
fn a_stale_variant_is_not_validated_by_a_request_for_another() {
    let mut envoy = with_one(1);
    envoy.advance(1_000 * (envoy.ttl + 5));
    restart(&mut envoy, 0);
    let other = ask(&mut envoy, 0, &OTHER);
    assert!(!envoy.fetches[1].headers.has("if-none-match"));
    envoy.answer(FetchId(1), Answer::Unchanged);
    envoy.end(FetchId(1));
    settle(&mut envoy);
    assert_eq!(brought(&mut envoy, other), Some(FetchId(1)));
}

#[test]
fn a_stale_variant_is_validated_with_the_headers_that_vary_names() {
    for restarted in [false, true] {
        let mut envoy = with_one(1);
        envoy.advance(1_000 * (envoy.ttl + 5));
        if restarted {
            restart(&mut envoy, 0);
        }
        let one = ask(&mut envoy, 0, &ONE);
        let asked = &envoy.fetches[1].headers;
        assert_eq!(asked.get("accept"), Some("text/one"));
        assert!(asked.has("if-none-match"));
        envoy.answer(FetchId(1), Answer::Unchanged);
        envoy.end(FetchId(1));
        settle(&mut envoy);
        assert_eq!(brought(&mut envoy, one), Some(FIRST));
        // The 304 had no `Vary`, and the stored response still varies.
        restart(&mut envoy, 0);
        ask(&mut envoy, 0, &OTHER);
        assert_eq!(envoy.fetches.len(), 3);
    }
}

#[test]
fn a_refresh_asks_for_the_variant_that_is_stale() {
    for restarted in [false, true] {
        let mut envoy = FakeEnvoy::new(
            &document(r#""rules": [{"match": ["/**"], "stale_while_revalidate": "100s"}]"#),
            1,
        );
        ask(&mut envoy, 0, &ONE);
        vary(&mut envoy, FIRST);
        envoy.advance(1_000 * (envoy.ttl + 5));
        if restarted {
            restart(&mut envoy, 0);
        }
        let one = ask(&mut envoy, 0, &ONE);
        assert_eq!(brought(&mut envoy, one), Some(FIRST));
        assert_eq!(envoy.fetches.len(), 2);
        let asked = &envoy.fetches[1].headers;
        assert_eq!(asked.get("accept"), Some("text/one"));
        assert!(asked.has("if-none-match"));
    }
}

#[test]
fn a_purge_reaches_every_variant() {
    for soft in [false, true] {
        let mut envoy = with_one(2);
        ask(&mut envoy, 1, &OTHER);
        vary(&mut envoy, FetchId(1));
        envoy.purge(
            0,
            &format!(r#"{{"url": "http://edge.test/{KEY}", "soft": {soft}}}"#),
        );
        envoy.deliver_all();
        for (seat, headers) in [(0, &ONE), (1, &OTHER)] {
            let fetches = envoy.fetches.len();
            ask(&mut envoy, seat, headers);
            assert_eq!(envoy.fetches.len(), fetches + 1, "soft: {soft}");
            vary(&mut envoy, FetchId(fetches));
        }
    }
}

#[test]
fn what_is_not_stored_is_not_shared_with_who_wants_another_variant() {
    let mut envoy = envoy(1);
    ask(&mut envoy, 0, &ONE);
    let other = ask(&mut envoy, 0, &OTHER);
    assert_eq!(envoy.parked(), 1);
    // The response has no lifetime.
    envoy.answer_with(FIRST, 200, &[("vary", "accept")], b"for the first");
    envoy.end(FIRST);
    envoy.check();
    let second = &envoy.fetches[1];
    assert_eq!(second.client, other);
    assert_eq!(second.headers.get("accept"), Some("text/other"));
}

#[test]
fn a_header_that_is_too_long_for_a_key_costs_no_error_after_a_restart() {
    let mut envoy = restarted_with_one();
    let long = "x".repeat(300);
    let other = ask(&mut envoy, 0, &[("accept", &long)]);
    assert_eq!(envoy.fetches[1].headers.get("accept"), Some(&*long));
    vary_all(&mut envoy);
    assert_eq!(brought(&mut envoy, other), Some(FetchId(1)));
}

#[test]
fn a_head_and_a_range_get_their_variant_after_a_restart() {
    for (method, more) in [("HEAD", None), ("GET", Some(("range", "bytes=0-9")))] {
        let mut envoy = restarted_with_one();
        let headers: Vec<_> = OTHER.into_iter().chain(more).collect();
        let other = envoy.request(0, method, KEY, &headers);
        envoy.answer_lookup(0);
        live(&mut envoy, 100);
        assert_eq!(envoy.fetches.len(), 2, "{method}");
        vary_all(&mut envoy);
        envoy.close_all();
        let record = &envoy.clients[other.0];
        // Before a range, the filter asks the origin for the size.
        assert_ne!(record.header("x-version"), Some("0"), "{method}");
        let status = if more.is_some() { 206 } else { 200 };
        assert_eq!(record.status(), status);
    }
}

#[test]
fn a_client_with_credentials_gets_its_variant_by_them_after_a_restart() {
    let mut envoy = envoy(1);
    ask(&mut envoy, 0, &ONE);
    let headers = [("vary", "accept"), ("cache-control", "public, max-age=60")];
    envoy.answer_with(FIRST, 200, &headers, b"for the first");
    envoy.end(FIRST);
    settle(&mut envoy);
    restart(&mut envoy, 0);
    let secret = ("authorization", "Bearer secret");
    ask(&mut envoy, 0, &[OTHER[0], secret]);
    envoy.answer_lookup(0);
    live(&mut envoy, 100);
    let asked = &envoy.fetches[1];
    assert_eq!(asked.headers.get("authorization"), Some("Bearer secret"));
    assert_eq!(asked.headers.get("accept"), Some("text/other"));
    assert!(!asked.fills);
}

#[test]
fn a_large_response_teaches_only() {
    let mut envoy = envoy(1);
    ask(&mut envoy, 0, &ONE);
    let headers = [("vary", "accept"), ("cache-control", "max-age=60")];
    envoy.answer_with(FIRST, 200, &headers, &vec![0; (1 << 20) + 1]);
    envoy.end(FIRST);
    settle(&mut envoy);
    ask(&mut envoy, 0, &ONE);
    assert_ne!(envoy.fetches[1].cache_key, envoy.fetches[0].cache_key);
}

#[test]
fn lost_news_of_variants_costs_nobody_a_wrong_one() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    let clients: Vec<_> = (0..10).map(|_| envoy.get(1, KEY)).collect();
    envoy.answer(FIRST, Answer::Varying);
    envoy.end(FIRST);
    envoy.lose(1);
    settle(&mut envoy);
    live(&mut envoy, 1_000);
    vary_all(&mut envoy);
    live(&mut envoy, 1_000);
    vary_all(&mut envoy);
    assert!(are_served(&envoy, &clients));
    assert!(envoy.fetches.len() <= 3);
    assert_all_over(&mut envoy);
}

#[test]
fn the_plain_key_is_not_shunned() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    envoy.get(1, KEY);
    vary(&mut envoy, FIRST);
    envoy.tick_all();
    assert_eq!(envoy.counter(Metric::HitForMissMarked), 0);
    let shuns = |message: &Message| match message {
        Message::Flight(message) => {
            matches!(
                message.event,
                Event::Ended(FlightOutcome::HitForMiss { .. })
            )
        }
        _ => false,
    };
    assert!(!envoy.sent().iter().any(shuns));
}
