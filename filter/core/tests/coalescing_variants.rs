// SPDX-License-Identifier: Apache-2.0
//! Requests that wait for a response which proves to be one of several of its URL.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use sluice_core::coalescing::{Effect, Release};
use sluice_core::workers::KeyHash;
use sluice_core::workers::message::{Event, Outcome};
use sluice_fake::mirror::{Answer, Ending, FakeHost, FetchId, Stage};
use support::flights::{FIRST, KEY, assert_all_over, fill, host, live};

/// Ends what one of several responses began.
fn vary(host: &mut FakeHost, fetch: FetchId) {
    host.answer(fetch, Answer::Varying);
    host.end(fetch);
    host.deliver_all();
}

fn fill_all(host: &mut FakeHost) {
    while let Some(fetch) = host.open_fetches().first().copied() {
        fill(host, fetch);
    }
}

#[test]
fn a_stampede_on_a_url_that_varies_costs_one_request_more_than_it_has_variants() {
    for workers in [1, 3] {
        let mut host = host(workers);
        let clients: Vec<_> = (0..31)
            .map(|number| host.get(number % workers, KEY))
            .collect();
        assert_eq!(host.parked(), 30);
        vary(&mut host, FIRST);
        // One leads for each variant, and the others wait for it.
        assert_eq!(host.open_fetches().len(), 2, "{workers} workers");
        assert_eq!(host.parked(), 28, "{workers} workers");
        fill_all(&mut host);
        assert_eq!(host.fetches.len(), 3, "{workers} workers");
        let served = |client: &_| host.stage(*client) == Stage::Over(Ending::Served);
        assert!(clients.iter().all(served), "{workers} workers");
        assert_all_over(&mut host);
    }
}

#[test]
fn who_comes_later_finds_the_variant() {
    let mut host = host(2);
    for seat in [0, 1, 0, 1] {
        host.get(seat, KEY);
    }
    vary(&mut host, FIRST);
    fill_all(&mut host);
    let fetches = host.fetches.len();
    for seat in [0, 1, 1, 0] {
        host.get(seat, KEY);
    }
    assert_eq!(host.fetches.len(), fetches);
}

#[test]
fn a_worker_that_hears_of_variants_learns_them_before_its_requests_go_on() {
    let mut host = host(2);
    host.get(0, KEY);
    host.get(1, KEY);
    vary(&mut host, FIRST);
    let learnt = |(_, effect): &(_, Effect)| matches!(effect, Effect::Learn { names, .. } if names.as_str() == "accept");
    let resumed = |(_, effect): &(_, Effect)| {
        matches!(
            effect,
            Effect::Resume {
                release: Release::Varies,
                ..
            }
        )
    };
    let (worker, _) = *host.effects.iter().find(|effect| resumed(effect)).unwrap();
    let of_worker: Vec<_> = host
        .effects
        .iter()
        .filter(|(of, _)| *of == worker)
        .collect();
    let learns = of_worker.iter().position(|effect| learnt(effect)).unwrap();
    let resumes = of_worker.iter().position(|effect| resumed(effect)).unwrap();
    assert!(learns < resumes);
}

#[test]
fn lost_news_of_variants_costs_each_worker_one_request_more() {
    let mut host = host(2);
    host.get(0, KEY);
    for _ in 0..10 {
        host.get(1, KEY);
    }
    host.answer(FIRST, Answer::Varying);
    host.end(FIRST);
    host.lose(1);
    // The other worker finds nobody on the board, and leads.
    live(&mut host, 1_000);
    assert_eq!(host.open_fetches().len(), 1);
    let second = host.open_fetches()[0];
    vary(&mut host, second);
    fill_all(&mut host);
    assert_eq!(host.fetches.len(), 4);
    assert_all_over(&mut host);
}

#[test]
fn the_key_without_variants_is_neither_fresh_nor_shunned() {
    let mut host = host(1);
    host.get(0, KEY);
    vary(&mut host, FIRST);
    let now = host.now;
    let hint = host.coalescer(0).unwrap().hints().get(KeyHash(KEY), now);
    assert_eq!(hint, None);
    let notified = |(_, effect): &(_, Effect)| match effect {
        Effect::Notify { message, .. } => {
            matches!(message.event, Event::Ended(Outcome::HitForMiss { .. }))
        }
        _ => false,
    };
    assert!(!host.effects.iter().any(notified));
}
