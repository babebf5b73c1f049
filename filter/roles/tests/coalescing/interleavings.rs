// SPDX-License-Identifier: Apache-2.0
//! Coalescing keeps its rules in any order of events.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_fake::{Answer, Client, Ending, Stage};

use crate::support::steps::{
    KEYS, Step, anything, anything_and_board_faults, leaving, ordinary, policy, ttl,
};
use crate::support::world::{World, is_needed};
use crate::support::{cases, document};

/// All requests get a response, whatever fails before the origin begins to answer.
fn all_is_released(policy: &str, workers: usize, ttl: u64, steps: &[Step]) {
    let mut world = World::new(policy, workers);
    world.host.ttl = ttl;
    world.run(steps);
    // This covers the lease of a dead worker, the rescan that finds it, and `max_wait` for a store that forgot.
    world.finish(20_000);
}

/// No request waits for an origin that never answers again for much longer than `max_wait`.
fn nobody_waits_for_a_silent_origin(policy: &str, workers: usize, steps: &[Step]) {
    let mut world = World::new(policy, workers);
    world.run(steps);
    // The end covers a dead worker's lease, the wait for a lost leader, and the wait of its successors.
    let policy = world.host.policy;
    let end = world.host.now() + policy.lease + 2 * policy.max_wait + 2_000;
    while world.host.now() < end {
        world.settle();
    }
    assert_eq!(
        world.host.parked(),
        0,
        "requests that wait for a silent origin"
    );
    world.finish(20_000);
}

/// If nothing fails, each key is fetched once, and all requests get the response.
fn each_key_is_fetched_once(coalesce: &str, workers: usize, steps: &[Step]) {
    let mut world = World::new(&document(coalesce), workers);
    for step in steps {
        world.run_in_time(*step);
        for seat in 0..workers {
            let told = world.host.messages(seat) == 0;
            assert!(
                !told || world.host.orphans(seat).is_empty(),
                "worker {seat} was not told"
            );
        }
    }
    world.finish(20_000);
    for key in 0..KEYS {
        let asked = world
            .host
            .clients
            .iter()
            .filter(|client| client.key == key)
            .count();
        let fetched = world
            .host
            .fetches
            .iter()
            .filter(|fetch| fetch.key == key)
            .count();
        assert_eq!(
            fetched,
            asked.min(1),
            "fetches of {key:?} for {asked} requests"
        );
    }
    world.assert_all_shared();
}

/// A lease that lets fills without followers rest, or one that would often expire without renewals.
fn lease() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(""), Just(r#""coalesce": {"lease": "300ms"}"#)]
}

/// If a leader leaves with its 304 and nothing fails, its key is fetched once more, and all others get the response.
fn a_304_costs_one_more_fetch(workers: usize, steps: &[Step]) {
    let mut world = World::new(&document(""), workers);
    // Calls fail, so that conditional requests lead.
    world.host.calls_fail = true;
    for step in steps {
        world.run_in_time(*step);
    }
    world.finish(20_000);
    for key in 0..KEYS {
        let of_key = |client: &Client| world.host.clients[client.0].key == key;
        let left = world.left.iter().filter(|client| of_key(client)).count();
        let fetches = world.host.fetches.iter();
        let fetched = fetches.filter(|fetch| fetch.key == key).count();
        assert!(
            fetched <= 1 + left,
            "{fetched} fetches of {key:?}, {left} have left"
        );
        assert_eq!(world.host.has(key), fetched > 0, "{key:?}");
    }
    let clients = world.host.clients.iter().enumerate();
    for (number, client) in clients.filter(|(_, client)| is_needed(client)) {
        let left = world.left.contains(&Client(number));
        let ending = if left { Ending::Left } else { Ending::Served };
        assert_eq!(client.stage, Stage::Over(ending), "{client:?}");
    }
}

/// If the origin fails and nothing else does, all requests get the stored response, and each worker sends at most
/// four requests.
fn an_error_is_met_once(workers: usize, steps: &[Step]) {
    let patient = document(r#""cache": {"retry_interval": "1h"}"#);
    let mut world = World::new(&patient, workers);
    world.host.ttl = 1;
    for key in 0..KEYS {
        world.host.get(0, key);
    }
    world.finish(20_000);
    let before = world.host.fetches.len();
    world.answer = Answer::Failed(503);
    for step in steps {
        let step = match *step {
            Step::Answer { fetch, .. } => Step::Answer {
                fetch,
                answer: Answer::Failed(503),
            },
            Step::LoseWrites { .. } => Step::TickAll,
            step => step,
        };
        world.run_in_time(step);
    }
    world.finish(20_000);
    for key in 0..KEYS {
        let fetches = world.host.fetches.iter().skip(before);
        let fetches = fetches.filter(|fetch| fetch.key == key).count();
        // The headers of a request may have caused the first error, and the error of each request that others wait
        // for. If these cannot lead, the first error of the fill that leads for them may have the same cause.
        assert!(fetches <= 4 * workers, "{fetches} requests for {key:?}");
    }
    world.assert_all_shared();
}

#[test]
fn who_waits_for_a_response_that_is_lost_at_once_waits_for_who_fetches_it_again() {
    let get = |worker| Step::Get { worker, key: 1 };
    let answer = Step::Answer {
        fetch: 0,
        answer: Answer::Storable,
    };
    let stored = [
        Step::End { fetch: 0 },
        Step::Commit { key: 1 },
        Step::AnswerLookup { worker: 0 },
    ];
    let lost = [Step::Evict { key: 1 }, get(2)];
    let mut world = World::new(&document(""), 3);
    world.run(&[get(0), answer, get(1)]);
    world.run(&[Step::Deliver { worker: 0 }]);
    world.run(&stored);
    world.run(&lost);
    world.finish(20_000);
    let follower = &world.host.clients[1];
    assert_eq!(
        follower.release,
        Some(NextStep::Send(StoreRequest::Collapsed)),
        "{follower:?}"
    );
    assert_eq!(world.host.fetches.len(), 2);
}

#[test]
fn a_worker_whose_news_is_late_follows_a_fill_that_has_ended_since() {
    let get = |worker| Step::Get { worker, key: 1 };
    let answer = |fetch, answer| Step::Answer { fetch, answer };
    let crowded = document(r#""limits": {"waiters_per_key": 1}"#);
    let mut world = World::new(&crowded, 3);
    // Worker 2 gets none of these messages until the lease of worker 1 has expired.
    world.run(&[get(0), get(2), answer(0, Answer::Uncacheable)]);
    world.run(&[get(0), answer(1, Answer::Uncacheable)]);
    world.run(&[get(1), answer(2, Answer::Storable)]);
    world.run(&[
        Step::Advance { millis: 3_000 },
        Step::Advance { millis: 450 },
    ]);
    world.finish(20_000);
    assert_eq!(world.host.fetches.len(), 3);
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn all_is_released_once_the_origin_answers(
        policy in policy(),
        workers in 1..=4_usize,
        ttl in ttl(),
        steps in vec(anything(), 0..80),
    ) {
        all_is_released(&policy, workers, ttl, &steps);
    }

    #[test]
    fn all_is_released_though_the_board_fails(
        policy in policy(),
        workers in 2..=4_usize,
        ttl in ttl(),
        steps in vec(anything_and_board_faults(), 0..80),
    ) {
        all_is_released(&policy, workers, ttl, &steps);
    }

    #[test]
    fn each_key_is_fetched_once_where_nothing_goes_wrong(
        lease in lease(),
        workers in 1..=4_usize,
        steps in vec(ordinary(), 0..80),
    ) {
        each_key_is_fetched_once(lease, workers, &steps);
    }

    #[test]
    fn a_leader_that_leaves_with_its_304_costs_one_more_fetch(
        workers in 1..=4_usize,
        steps in vec(prop_oneof![8 => ordinary(), 2 => leaving()], 0..80),
    ) {
        a_304_costs_one_more_fetch(workers, &steps);
    }

    #[test]
    fn all_get_what_is_stored_where_the_origin_fails(
        workers in 1..=4_usize,
        steps in vec(ordinary(), 0..80),
    ) {
        an_error_is_met_once(workers, &steps);
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn nobody_waits_long_for_an_origin_that_fell_silent(
        policy in policy(),
        workers in 1..=4_usize,
        steps in vec(anything(), 0..60),
    ) {
        nobody_waits_for_a_silent_origin(&policy, workers, &steps);
    }
}

proptest! {
    #![proptest_config(cases(10_000))]

    #[test]
    #[ignore = "takes minutes"]
    fn soak(
        policy in policy(),
        workers in 1..=4_usize,
        ttl in ttl(),
        steps in vec(anything(), 0..200),
        faulty_steps in vec(anything_and_board_faults(), 0..120),
        lease in lease(),
        ordinary_steps in vec(ordinary(), 0..200),
    ) {
        all_is_released(&policy, workers, ttl, &steps);
        nobody_waits_for_a_silent_origin(&policy, workers, &steps);
        all_is_released(&policy, workers, ttl, &faulty_steps);
        each_key_is_fetched_once(lease, workers, &ordinary_steps);
    }
}
