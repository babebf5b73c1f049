// SPDX-License-Identifier: Apache-2.0
//! Requests that wait for a response which proves to be one of several of its URL.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use sluice_core::metrics::Metric;
use sluice_core::workers::message::{Event, Message, Outcome};
use sluice_fake::{Answer, Ending, FakeEnvoy, FetchId, Stage};
use support::{FIRST, KEY, assert_all_over, envoy, fill, live};

/// Ends what one of several responses began.
fn vary(envoy: &mut FakeEnvoy, fetch: FetchId) {
    envoy.answer(fetch, Answer::Varying);
    envoy.end(fetch);
    envoy.deliver_all();
}

fn fill_all(envoy: &mut FakeEnvoy) {
    while let Some(fetch) = envoy.open_fetches().first().copied() {
        fill(envoy, fetch);
    }
}

#[test]
fn a_stampede_on_a_url_that_varies_costs_one_request_more_than_it_has_variants() {
    for workers in [1, 3] {
        let mut envoy = envoy(workers);
        let clients: Vec<_> = (0..31)
            .map(|number| envoy.get(number % workers, KEY))
            .collect();
        assert_eq!(envoy.parked(), 30);
        vary(&mut envoy, FIRST);
        // One leads for each variant, and the others wait for it.
        assert_eq!(envoy.open_fetches().len(), 2, "{workers} workers");
        assert_eq!(envoy.parked(), 28, "{workers} workers");
        fill_all(&mut envoy);
        assert_eq!(envoy.fetches.len(), 3, "{workers} workers");
        let served = |client: &_| envoy.stage(*client) == Stage::Over(Ending::Served);
        assert!(clients.iter().all(served), "{workers} workers");
        assert_all_over(&mut envoy);
    }
}

#[test]
fn who_comes_later_finds_the_variant() {
    let mut envoy = envoy(2);
    for seat in [0, 1, 0, 1] {
        envoy.get(seat, KEY);
    }
    vary(&mut envoy, FIRST);
    fill_all(&mut envoy);
    let fetches = envoy.fetches.len();
    for seat in [0, 1, 1, 0] {
        envoy.get(seat, KEY);
    }
    assert_eq!(envoy.fetches.len(), fetches);
}

#[test]
fn a_worker_that_hears_of_variants_learns_them_before_its_requests_go_on() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    envoy.get(1, KEY);
    vary(&mut envoy, FIRST);
    let second = &envoy.fetches[1];
    assert_eq!(envoy.clients[second.client.0].seat, 1);
    assert_ne!(second.cache_key, envoy.fetches[0].cache_key);
}

#[test]
fn lost_news_of_variants_costs_each_worker_one_request_more() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    for _ in 0..10 {
        envoy.get(1, KEY);
    }
    envoy.answer(FIRST, Answer::Varying);
    envoy.end(FIRST);
    envoy.lose(1);
    // The other worker finds nobody on the board, and leads.
    live(&mut envoy, 1_000);
    assert_eq!(envoy.open_fetches().len(), 1);
    let second = envoy.open_fetches()[0];
    vary(&mut envoy, second);
    fill_all(&mut envoy);
    assert_eq!(envoy.fetches.len(), 4);
    assert_all_over(&mut envoy);
}

#[test]
fn the_key_without_variants_is_neither_fresh_nor_shunned() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    envoy.get(1, KEY);
    vary(&mut envoy, FIRST);
    envoy.tick_all();
    assert_eq!(envoy.counter(Metric::HintsNow), 0);
    assert_eq!(envoy.counter(Metric::HitForMissMarked), 0);
    let shuns = |message: &Message| match message {
        Message::Flight(message) => {
            matches!(message.event, Event::Ended(Outcome::HitForMiss { .. }))
        }
        _ => false,
    };
    assert!(!envoy.sent().iter().any(shuns));
}
