// SPDX-License-Identifier: Apache-2.0
//! Leading, waiting, and each way to leave, one rule at a time.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::shared::board::SLOTS;
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_fake::{
    Answer, Calls, Ending, FakeEnvoy, FetchId, HIT_FOR_MISS, HeaderTexts as _, Stage,
};

use crate::support::{
    FIRST, KEY, admission, assert_all_over, await_lookup, document, envoy, fill, live, plain,
    release, releases, warm_envoy,
};

#[test]
fn first_request_leads_and_others_wait_on_every_worker() {
    let mut envoy = envoy(3);
    let leader = envoy.get(0, KEY);
    let followers: Vec<_> = (0..30).map(|number| envoy.get(number % 3, KEY)).collect();
    assert_eq!(admission(&envoy, leader), Some(StoreRequest::Lead));
    assert!(
        followers
            .iter()
            .all(|client| admission(&envoy, *client).is_none())
    );
    assert_eq!(envoy.counter(Metric::FlightsLed), 1);
    assert_eq!(envoy.counter(Metric::FollowersParked), 30);

    fill(&mut envoy, FIRST);
    assert_eq!(
        releases(&envoy, &followers, NextStep::Send(StoreRequest::Collapsed)),
        30
    );
    assert_eq!(envoy.fetches.len(), 1);
    assert_all_over(&mut envoy);
}

#[test]
fn different_keys_never_wait_for_each_other() {
    let mut envoy = envoy(1);
    // The keys share eight slots of the board, so that each slot has about 25 keys.
    let in_slots = (0..).filter(|key| envoy.key_hash(*key).0 % SLOTS < 8);
    let keys: Vec<u64> = in_slots.take(200).collect();
    let clients: Vec<_> = keys.iter().map(|key| envoy.get(0, *key)).collect();
    assert!(
        clients
            .iter()
            .all(|client| admission(&envoy, *client) == Some(StoreRequest::Lead))
    );
}

#[test]
fn followers_are_released_only_when_a_probe_has_found_the_object() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    let followers = [envoy.get(0, KEY), envoy.get(1, KEY)];
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    envoy.close_all();
    for _ in 0..20 {
        envoy.answer_lookup(0);
        live(&mut envoy, 20);
        envoy.deliver_all();
        assert_eq!(envoy.parked(), 2, "the store is not ready");
    }
    envoy.commit(KEY);
    live(&mut envoy, 20);
    envoy.answer_lookup(0);
    envoy.deliver_all();
    assert_eq!(
        releases(&envoy, &followers, NextStep::Send(StoreRequest::Collapsed)),
        2
    );
    assert_eq!(envoy.fetches.len(), 1);
    assert_eq!(envoy.counter(Metric::UnexpectedMisses), 0);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

/// A worker whose cache has a response from before a soft purge of everything.
fn softly_purged() -> FakeEnvoy {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.purge(0, r#"{"everything": true, "soft": true}"#);
    envoy
}

#[test]
fn a_store_that_keeps_what_was_purged_makes_another_lead_after_a_second() {
    let mut envoy = softly_purged();
    let second = FetchId(1);
    envoy.get(0, KEY);
    let followers: Vec<_> = (0..3).map(|_| envoy.get(0, KEY)).collect();
    envoy.answer(second, Answer::Storable);
    envoy.end(second);
    // The store behaves as if another fill from before the purge had been under way.
    envoy.drop_commits(KEY);
    for _ in 0..90 {
        assert_eq!(
            releases(&envoy, &followers, NextStep::Send(StoreRequest::Lead)),
            0
        );
        envoy.answer_lookup(0);
        live(&mut envoy, 10);
    }
    live(&mut envoy, 200);
    envoy.answer_lookup(0);
    assert_eq!(
        releases(&envoy, &followers, NextStep::Send(StoreRequest::Lead)),
        1
    );
    fill(&mut envoy, FetchId(2));
    assert_eq!(
        releases(&envoy, &followers, NextStep::Send(StoreRequest::Collapsed)),
        2
    );
    assert_eq!(envoy.fetches.len(), 3);
}

#[test]
fn the_headers_of_a_fill_are_the_answer_of_those_who_ask_for_changes() {
    let mut envoy = envoy(1);
    let first = envoy.conditional(0, KEY);
    let other = envoy.get(0, KEY);
    let last = envoy.conditional(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    for client in [first, last] {
        assert_eq!(envoy.stage(client), Stage::Over(Ending::Served));
    }
    assert_eq!(envoy.stage(other), Stage::Parked);
    assert_eq!(
        envoy.coalescer(0).map(|coalescer| coalescer.parked()),
        Some(1)
    );
    fill(&mut envoy, FIRST);
    assert_all_over(&mut envoy);
}

#[test]
fn eager_probes_come_before_the_patient_ones() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    envoy.get(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    for lookup in 1..=3 {
        assert_eq!(envoy.lookups(0), 1, "lookup {lookup} follows at once");
        envoy.answer_lookup(0);
    }
    assert_eq!(envoy.lookups(0), 1);
    envoy.answer_lookup(0);
    assert_eq!(envoy.lookups(0), 0, "the store gets some time");
    envoy.advance(10);
    envoy.tick(0);
    assert_eq!(envoy.lookups(0), 1);
    assert_eq!(envoy.counter(Metric::StoreLookups), 5);
}

/// A leader whose response has ended, and is not in the v1 store yet.
fn unawaited() -> FakeEnvoy {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    assert_eq!(envoy.lookups(0), 0);
    envoy.close_all();
    envoy
}

#[test]
fn a_fill_that_nobody_waits_for_asks_the_store_nothing() {
    let mut envoy = unawaited();
    let lease = envoy.policy.lease;
    live(&mut envoy, 100);
    envoy.commit(KEY);
    live(&mut envoy, lease);
    assert_eq!(envoy.counter(Metric::StoreLookups), 0);
    assert_all_over(&mut envoy);
    let next = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, next), Some(StoreRequest::Fresh));
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn the_next_request_after_such_a_fill_asks_once() {
    let mut envoy = unawaited();
    live(&mut envoy, 1_000);
    let clients = [envoy.get(0, KEY), envoy.head(0, KEY), envoy.range(0, KEY)];
    assert_eq!(envoy.lookups(0), 1);
    envoy.commit(KEY);
    envoy.answer_lookup(0);
    for client in clients {
        assert_eq!(
            release(&envoy, client),
            Some(NextStep::Send(StoreRequest::Fresh)),
            "a hit"
        );
    }
    assert_eq!(envoy.counter(Metric::StoreLookups), 1);
    assert_eq!(envoy.fetches.len(), 1);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn a_slow_store_still_sees_one_fetch() {
    let mut envoy = unawaited();
    live(&mut envoy, 1_000);
    let clients = [envoy.get(0, KEY), envoy.get(1, KEY)];
    envoy.deliver_all();
    for _ in 0..100 {
        envoy.answer_lookup(0);
        live(&mut envoy, 10);
        assert_eq!(envoy.parked(), 2, "the store is not ready");
    }
    envoy.commit(KEY);
    envoy.answer_lookup(0);
    envoy.deliver_all();
    assert_eq!(
        releases(&envoy, &clients, NextStep::Send(StoreRequest::Fresh)),
        2
    );
    assert_eq!(envoy.fetches.len(), 1);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn a_fill_that_nobody_waits_for_is_led_for_as_long_as_the_store_may_take() {
    let mut envoy = envoy(2);
    let (lease, max_wait) = (envoy.policy.lease, envoy.policy.max_wait);
    envoy.get(0, KEY);
    // The response is so slow that the first lease would end too early.
    live(&mut envoy, lease - 200);
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    live(&mut envoy, max_wait / 2 - 10);
    let late = envoy.get(1, KEY);
    assert_eq!(admission(&envoy, late), None);
    envoy.deliver_all();
    envoy.commit(KEY);
    envoy.answer_lookup(0);
    envoy.deliver_all();
    assert_eq!(
        release(&envoy, late),
        Some(NextStep::Send(StoreRequest::Fresh))
    );
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn a_store_that_has_dropped_what_nobody_waited_for_makes_the_next_request_lead() {
    let mut envoy = unawaited();
    envoy.drop_commits(KEY);
    let next = envoy.get(0, KEY);
    let max_wait = envoy.policy.max_wait;
    for _ in 0..max_wait / 20 + 5 {
        envoy.answer_lookup(0);
        live(&mut envoy, 10);
    }
    assert_eq!(
        release(&envoy, next),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(envoy.counter(Metric::Unshared), 1);
    fill(&mut envoy, FetchId(1));
    assert_all_over(&mut envoy);
}

#[test]
fn what_has_expired_before_anybody_came_is_asked_for_anew_at_once() {
    for seat in [0, 1] {
        let mut envoy = envoy(2);
        envoy.ttl = 1;
        envoy.get(0, KEY);
        envoy.answer(FIRST, Answer::Storable);
        envoy.end(FIRST);
        envoy.commit(KEY);
        envoy.close_all();
        live(&mut envoy, 2_100);
        assert_eq!(envoy.coalescer(0).unwrap().resting(), 1);
        let next = envoy.get(seat, KEY);
        envoy.deliver_all();
        let goes = admission(&envoy, next).or(envoy.clients[next.0].request);
        assert_eq!(goes, Some(StoreRequest::Lead), "worker {seat}");
        assert_eq!(envoy.counter(Metric::StoreLookups), 0);
        fill(&mut envoy, FetchId(1));
        assert_all_over(&mut envoy);
    }
}

#[test]
fn where_the_lease_is_short_the_store_is_asked_later_and_once() {
    let mut envoy = FakeEnvoy::new(&document(r#""coalesce": {"lease": "1s"}"#), 2);
    envoy.get(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    live(&mut envoy, 40);
    assert_eq!(envoy.lookups(0), 0);
    envoy.commit(KEY);
    live(&mut envoy, 10);
    envoy.answer_lookup(0);
    assert_eq!(envoy.counter(Metric::StoreLookups), 1);
    let next = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, next), Some(StoreRequest::Fresh));
}

#[test]
fn what_was_fetched_after_a_soft_purge_is_validated_by_no_other_worker_though_nobody_waits() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.purge(0, r#"{"everything": true, "soft": true}"#);
    envoy.deliver_all();
    envoy.get(0, KEY);
    fill(&mut envoy, FetchId(1));
    assert_eq!(envoy.counter(Metric::StoreLookups), 0);
    let next = envoy.get(1, KEY);
    assert_eq!(envoy.clients[next.0].status(), 200);
    assert_eq!(envoy.fetches.len(), 2);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn whoever_comes_has_the_store_asked_at_once() {
    let mut envoy = unawaited();
    envoy.get(0, KEY);
    assert_eq!(envoy.lookups(0), 1);
    envoy.get(0, KEY);
    assert_eq!(envoy.lookups(0), 1);
}

#[test]
fn whoever_comes_to_another_worker_has_the_store_asked_as_soon_as_the_leader_hears_of_it() {
    let mut envoy = unawaited();
    let follower = envoy.get(1, KEY);
    assert_eq!(envoy.lookups(0), 0);
    envoy.commit(KEY);
    envoy.deliver(0);
    envoy.answer_lookup(0);
    envoy.deliver_all();
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Fresh))
    );
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn whoever_waits_unheard_of_waits_a_little_longer() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    let follower = envoy.get(1, KEY);
    envoy.lose(0);
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    envoy.commit(KEY);
    live(&mut envoy, 500);
    envoy.deliver_all();
    envoy.answer_lookup(0);
    envoy.deliver_all();
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Fresh))
    );
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn hit_makes_no_host_call() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    envoy.get(1, KEY);
    fill(&mut envoy, FIRST);
    let before = envoy.data.calls();
    for _ in 0..10 {
        let clients = [envoy.get(0, KEY), envoy.get(1, KEY)];
        assert!(
            clients
                .iter()
                .all(|client| admission(&envoy, *client) == Some(StoreRequest::Fresh))
        );
        envoy.close_all();
    }
    assert_eq!(envoy.data.calls(), before);
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn uncontended_miss_costs_one_read_and_one_write_and_its_timer_as_many() {
    let mut envoy = warm_envoy(2);
    let before = envoy.data.calls();
    envoy.get(0, KEY);
    // The timer fires meanwhile, and writes the worker's share in the gauges.
    fill(&mut envoy, FIRST);
    let Calls { get, set } = envoy.data.calls();
    assert_eq!((get - before.get, set - before.set), (2, 2));
}

#[test]
fn follower_of_another_worker_costs_one_read_and_one_write_however_many_come() {
    let mut envoy = warm_envoy(2);
    envoy.get(0, KEY);
    let Calls { get, set } = envoy.data.calls();
    for _ in 0..100 {
        envoy.get(1, KEY);
    }
    assert_eq!(
        envoy.data.calls(),
        Calls {
            get: get + 1,
            set: set + 1
        }
    );
}

#[test]
fn worker_that_knows_nothing_finds_the_store_filled() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    let late = envoy.get(1, KEY);
    assert_eq!(
        admission(&envoy, late),
        Some(StoreRequest::Lead),
        "it has no hint"
    );
    assert_eq!(envoy.fetches.len(), 1);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn leader_that_leaves_before_the_headers_hands_over_to_its_own_worker() {
    let mut envoy = envoy(2);
    let leader = envoy.get(0, KEY);
    let (heir, far) = (envoy.get(0, KEY), envoy.get(1, KEY));
    envoy.abort(leader);
    assert_eq!(
        release(&envoy, heir),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(envoy.counter(Metric::Handovers), 1);
    envoy.deliver_all();
    assert_eq!(envoy.stage(far), Stage::Parked, "the flight goes on");
    fill(&mut envoy, FetchId(1));
    assert_eq!(
        release(&envoy, far),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_eq!(envoy.fetches.len(), 2);
    assert_all_over(&mut envoy);
}

#[test]
fn leader_that_leaves_hands_over_to_another_worker_without_waiting_for_the_lease() {
    let mut envoy = envoy(3);
    let leader = envoy.get(0, KEY);
    let (second, third) = (envoy.get(1, KEY), envoy.get(2, KEY));
    envoy.abort(leader);
    envoy.deliver_all();
    assert_eq!(
        release(&envoy, second),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(envoy.stage(third), Stage::Parked, "one leads");
    fill(&mut envoy, FetchId(1));
    assert_eq!(
        release(&envoy, third),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_all_over(&mut envoy);
}

#[test]
fn leader_that_leaves_amid_its_body_hands_over() {
    let mut envoy = envoy(2);
    let leader = envoy.get(0, KEY);
    let follower = envoy.get(1, KEY);
    envoy.answer(FIRST, Answer::Storable);
    envoy.progress(FIRST);
    envoy.abort(leader);
    envoy.deliver_all();
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    fill(&mut envoy, FetchId(1));
    assert_all_over(&mut envoy);
}

#[test]
fn leader_that_leaves_after_the_end_takes_nobody_with_it() {
    let mut envoy = envoy(2);
    let leader = envoy.get(0, KEY);
    let follower = envoy.get(1, KEY);
    envoy.deliver(0);
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    envoy.abort(leader);
    envoy.commit(KEY);
    envoy.answer_lookup(0);
    envoy.deliver_all();
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_eq!(envoy.fetches.len(), 1);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn heir_is_whoever_is_still_there() {
    let mut envoy = envoy(1);
    let leader = envoy.get(0, KEY);
    let waiting: Vec<_> = (0..5).map(|_| envoy.get(0, KEY)).collect();
    envoy.abort(waiting[0]);
    envoy.abort(waiting[1]);
    envoy.abort(leader);
    assert_eq!(
        release(&envoy, waiting[2]),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(envoy.parked(), 2);
}

#[test]
fn uncacheable_response_releases_all_at_once_and_is_remembered_for_its_time() {
    let mut envoy = envoy(2);
    plain(&mut envoy, 0);
    let followers: Vec<_> = (0..10).map(|number| envoy.get(number % 2, KEY)).collect();
    envoy.answer(FIRST, Answer::Uncacheable);
    envoy.deliver_all();
    assert_eq!(
        releases(
            &envoy,
            &followers,
            NextStep::HitForMiss(UncacheableReason::Private)
        ),
        10
    );
    assert_eq!(envoy.fetches.len(), 11, "each alone, at once");

    let calls = envoy.data.calls();
    let later = [envoy.get(0, KEY), envoy.get(1, KEY)];
    assert!(
        later
            .iter()
            .all(|client| admission(&envoy, *client) == Some(StoreRequest::Bypass))
    );
    assert_eq!(envoy.data.calls(), calls);

    envoy.advance(HIT_FOR_MISS);
    let after = envoy.get(0, KEY);
    assert_eq!(
        admission(&envoy, after),
        Some(StoreRequest::Lead),
        "forgotten"
    );
}

#[test]
fn without_room_a_large_response_releases_all_at_once_and_nothing_is_remembered() {
    let mut envoy = envoy(2);
    envoy.full = true;
    envoy.get(0, KEY);
    let followers: Vec<_> = (0..10).map(|number| envoy.get(number % 2, KEY)).collect();
    envoy.answer(FIRST, Answer::Storable);
    envoy.deliver_all();
    assert_eq!(releases(&envoy, &followers, NextStep::NoRoom), 10);
    let next = envoy.get(0, KEY);
    assert_eq!(
        admission(&envoy, next),
        Some(StoreRequest::Lead),
        "there may be room"
    );
}

#[test]
fn a_worker_looks_for_room_four_times_a_second_at_most() {
    let mut envoy = envoy(1);
    let stores = |envoy: &mut FakeEnvoy, key| {
        envoy.get(0, key);
        let fetch = FetchId(envoy.fetches.len() - 1);
        envoy.answer(fetch, Answer::Storable);
        envoy.end(fetch);
        envoy.commit(key);
        envoy.has(key)
    };
    assert!(stores(&mut envoy, 1));
    envoy.full = true;
    envoy.advance(249);
    assert!(stores(&mut envoy, 2), "the last look still counts");
    envoy.advance(1);
    assert!(!stores(&mut envoy, 3));
    envoy.full = false;
    envoy.advance(250);
    assert!(stores(&mut envoy, 4));
}

#[test]
fn without_room_a_response_that_is_not_found_is_not_waited_for() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    let followers = [envoy.get(0, KEY), envoy.get(1, KEY)];
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    await_lookup(&mut envoy, 0);
    envoy.refuse_lookup(0);
    envoy.deliver_all();
    assert_eq!(
        release(&envoy, followers[0]),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(envoy.stage(followers[1]), Stage::Parked);
    assert_eq!(envoy.counter(Metric::Unshared), 1);
}

/// Ends a small response for which the store has no room.
fn share_copy(envoy: &mut FakeEnvoy, fetch: FetchId) {
    envoy.answer(fetch, Answer::Storable);
    envoy.end(fetch);
}

#[test]
fn without_room_a_copy_serves_a_worker_and_one_request_asks_for_each_other_worker() {
    let mut envoy = FakeEnvoy::new(&document(r#""hot": {"max_bytes": 100000}"#), 2);
    envoy.full = true;
    envoy.get(0, KEY);
    let near = [envoy.get(0, KEY), envoy.get(0, KEY)];
    let far = [envoy.get(1, KEY), envoy.get(1, KEY)];
    share_copy(&mut envoy, FIRST);
    envoy.deliver_all();
    assert!(near.map(|client| envoy.stage(client)) == [Stage::Over(Ending::Served); 2]);
    assert_eq!(
        releases(&envoy, &far, NextStep::Send(StoreRequest::Lead)),
        1
    );
    share_copy(&mut envoy, FetchId(1));
    assert_eq!(envoy.stage(far[1]), Stage::Over(Ending::Served));
    assert_eq!(envoy.fetches.len(), 2);
    assert_eq!(envoy.parked(), 0);
}

/// Ends a small response without caching headers.
fn answer_silently(envoy: &mut FakeEnvoy, fetch: FetchId, status: u16) {
    match status {
        200 => envoy.answer(fetch, Answer::Silent),
        _ => envoy.answer_with(fetch, status, &[], b"silent"),
    }
    envoy.end(fetch);
    envoy.deliver_all();
}

#[test]
fn what_says_nothing_of_caching_is_shared_once_with_those_who_wait() {
    for status in [200, 404] {
        let mut envoy = FakeEnvoy::new(&document(r#""hot": {"max_bytes": 100000}"#), 2);
        let leader = envoy.get(0, KEY);
        let near = [envoy.get(0, KEY), envoy.get(0, KEY)];
        let far = [envoy.get(1, KEY), envoy.get(1, KEY)];
        answer_silently(&mut envoy, FIRST, status);
        assert_eq!(
            releases(&envoy, &far, NextStep::Send(StoreRequest::Lead)),
            1
        );
        answer_silently(&mut envoy, FetchId(1), status);
        for client in [leader, near[0], near[1], far[0], far[1]] {
            assert_eq!(envoy.clients[client.0].status(), status);
        }
        assert_eq!((envoy.fetches.len(), envoy.parked()), (2, 0));

        for seat in [0, 1] {
            let next = envoy.get(seat, KEY);
            let follower = envoy.get(seat, KEY);
            assert_eq!(
                admission(&envoy, next),
                Some(StoreRequest::Lead),
                "no copy is kept"
            );
            assert_eq!(admission(&envoy, follower), None);
            let fetch = FetchId(envoy.fetches.len() - 1);
            answer_silently(&mut envoy, fetch, status);
        }
    }
}

#[test]
fn what_says_nothing_of_caching_and_cannot_be_copied_is_not_waited_for() {
    let hot = r#""hot": {"max_bytes": 100000, "max_object_bytes": 5}"#;
    for sections in ["", hot] {
        let mut envoy = FakeEnvoy::new(&document(sections), 1);
        plain(&mut envoy, 0);
        let followers = [envoy.get(0, KEY), envoy.get(0, KEY)];
        envoy.answer(FIRST, Answer::Silent);
        assert_eq!(
            releases(
                &envoy,
                &followers,
                NextStep::HitForMiss(UncacheableReason::NoLifetime)
            ),
            2
        );
        let next = envoy.get(0, KEY);
        assert_eq!(admission(&envoy, next), Some(StoreRequest::Bypass));
    }
}

#[test]
fn what_says_nothing_of_caching_is_not_waited_for_longer_than_headers() {
    let mut envoy = FakeEnvoy::new(&document(r#""hot": {"max_bytes": 100000}"#), 1);
    envoy.get(0, KEY);
    let follower = envoy.get(0, KEY);
    envoy.answer(FIRST, Answer::Silent);
    for _ in 0..6 {
        envoy.progress(FIRST);
        live(&mut envoy, 1_000);
    }
    assert_eq!(release(&envoy, follower), Some(NextStep::WaitTimeout));
}

#[test]
fn failure_of_the_origin_is_shared() {
    let mut envoy = envoy(2);
    plain(&mut envoy, 0);
    let followers: Vec<_> = (0..10).map(|number| envoy.get(number % 2, KEY)).collect();
    envoy.answer(FIRST, Answer::Failed(503));
    envoy.deliver_all();
    for client in followers {
        assert_eq!(envoy.stage(client), Stage::Over(Ending::Failed(503)));
    }
    assert_eq!(envoy.fetches.len(), 1);
    assert_eq!(envoy.board(), []);
    let next = envoy.get(1, KEY);
    assert_eq!(
        admission(&envoy, next),
        Some(StoreRequest::Lead),
        "failures are not remembered"
    );
}

#[test]
fn connection_lost_before_the_headers_is_a_failure_that_is_shared() {
    let mut envoy = envoy(2);
    plain(&mut envoy, 0);
    let follower = envoy.get(1, KEY);
    envoy.reset(FIRST);
    // The error is stored for a moment, as any error whose storing is not forbidden.
    fill(&mut envoy, FIRST);
    assert_eq!(envoy.stage(follower), Stage::Over(Ending::Failed(503)));
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn connection_lost_amid_the_body_is_a_failure_that_is_shared() {
    let mut envoy = envoy(2);
    plain(&mut envoy, 0);
    let followers = [envoy.get(0, KEY), envoy.get(1, KEY)];
    envoy.answer(FIRST, Answer::Storable);
    envoy.reset(FIRST);
    envoy.deliver_all();
    for client in followers {
        assert_eq!(envoy.stage(client), Stage::Over(Ending::Failed(502)));
    }
    assert_all_over(&mut envoy);
}

#[test]
fn followers_leave_a_stalled_leader_in_growing_batches() {
    let mut envoy = envoy(1);
    let max_wait = envoy.policy.max_wait;
    envoy.get(0, KEY);
    let followers: Vec<_> = (0..100).map(|_| envoy.get(0, KEY)).collect();
    live(&mut envoy, max_wait - 10);
    assert_eq!(envoy.parked(), 100, "not before max_wait");
    let mut batches = Vec::new();
    let mut parked = envoy.parked();
    for _ in 0..100 {
        live(&mut envoy, 10);
        if envoy.parked() < parked {
            batches.push(parked - envoy.parked());
            parked = envoy.parked();
        }
    }
    assert_eq!(batches, [1, 2, 4, 8, 16, 32, 37]);
    assert_eq!(releases(&envoy, &followers, NextStep::WaitTimeout), 100);
    assert_eq!(envoy.counter(Metric::WaitTimeouts), 100);
}

#[test]
fn followers_of_another_worker_leave_a_stalled_leader_too() {
    let mut envoy = envoy(2);
    let max_wait = envoy.policy.max_wait;
    envoy.get(0, KEY);
    let follower = envoy.get(1, KEY);
    live(&mut envoy, max_wait - 10);
    assert_eq!(envoy.stage(follower), Stage::Parked);
    live(&mut envoy, 100);
    assert_eq!(release(&envoy, follower), Some(NextStep::WaitTimeout));
    assert_eq!(
        envoy.coalescer(1).unwrap().flights(),
        0,
        "no request waits there any more"
    );
}

#[test]
fn progress_of_the_leader_postpones_the_wait_timeout_on_every_worker() {
    for max_wait in [600, 1_000, 5_000] {
        let rules = format!(
            r#""coalesce": {{"max_wait": "{max_wait}ms"}}, "cache": {{"stale_if_error_timeout": "300ms"}}"#
        );
        let mut envoy = FakeEnvoy::new(&document(&rules), 2);
        envoy.get(0, KEY);
        let followers = [envoy.get(0, KEY), envoy.get(1, KEY)];
        envoy.answer(FIRST, Answer::Storable);
        for _ in 0..20_000 / 100 {
            live(&mut envoy, 100);
            envoy.progress(FIRST);
        }
        assert_eq!(
            envoy.parked(),
            2,
            "a long download is progress, max_wait {max_wait}"
        );
        fill(&mut envoy, FIRST);
        assert_eq!(
            releases(&envoy, &followers, NextStep::Send(StoreRequest::Collapsed)),
            2
        );
        assert_eq!(envoy.fetches.len(), 1);
        assert_all_over(&mut envoy);
    }
}

#[test]
fn batches_begin_anew_when_a_stalled_leader_has_moved() {
    let mut envoy = envoy(1);
    let max_wait = envoy.policy.max_wait;
    envoy.get(0, KEY);
    for _ in 0..50 {
        envoy.get(0, KEY);
    }
    envoy.answer(FIRST, Answer::Storable);
    live(&mut envoy, max_wait + 250);
    assert_eq!(envoy.parked(), 50 - 1 - 2 - 4);
    envoy.progress(FIRST);
    live(&mut envoy, max_wait - 10);
    assert_eq!(envoy.parked(), 43);
    live(&mut envoy, 60);
    assert_eq!(envoy.parked(), 42);
}

#[test]
fn a_flight_commits_between_the_end_of_its_response_and_the_sight_of_it() {
    let mut envoy = envoy(1);
    let commits = |envoy: &mut FakeEnvoy| {
        let key = envoy.key_hash(KEY);
        envoy.coalescer(0).unwrap().is_storing(key)
    };
    envoy.get(0, KEY);
    assert!(!commits(&mut envoy), "fetching");
    envoy.answer(FIRST, Answer::Storable);
    assert!(!commits(&mut envoy), "filling");
    envoy.end(FIRST);
    assert!(commits(&mut envoy));
    envoy.commit(KEY);
    await_lookup(&mut envoy, 0);
    envoy.answer_lookup(0);
    assert!(!commits(&mut envoy), "over");
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn range_waits_but_leads_only_once_the_size_is_known() {
    let mut envoy = envoy(2);
    let first = envoy.range(0, KEY);
    assert_eq!(admission(&envoy, first), None);
    envoy.answer_lookup(0);
    assert_eq!(
        envoy.fetches[0].request,
        StoreRequest::Head,
        "no leader to wait for"
    );
    envoy.answer(FIRST, Answer::Storable);
    assert_eq!(
        release(&envoy, first),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    fill(&mut envoy, FetchId(1));
    assert_eq!(envoy.clients[first.0].status(), 206);
    assert_eq!(envoy.clients[first.0].body().len(), 10);

    let other = KEY + 1;
    let leader = envoy.get(0, other);
    let (range, get) = (envoy.range(0, other), envoy.get(0, other));
    assert_eq!(admission(&envoy, range), None);
    envoy.abort(leader);
    assert_eq!(
        release(&envoy, get),
        Some(NextStep::Send(StoreRequest::Lead)),
        "though the range came first"
    );
    assert_eq!(envoy.stage(range), Stage::Parked);
    envoy.abort(get);
    envoy.answer_lookup(0);
    let asked = envoy.fetches.last().unwrap();
    assert_eq!(asked.request, StoreRequest::Head, "no leader is left");
}

#[test]
fn range_waits_on_when_the_gets_of_its_worker_have_left() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    let (get, range) = (envoy.get(1, KEY), envoy.range(1, KEY));
    envoy.abort(get);
    envoy.answer(FIRST, Answer::Storable);
    for _ in 0..20 {
        live(&mut envoy, 100);
        envoy.progress(FIRST);
    }
    assert_eq!(
        envoy.stage(range),
        Stage::Parked,
        "another worker's request leads all the time"
    );
    fill(&mut envoy, FIRST);
    assert_eq!(
        release(&envoy, range),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_all_over(&mut envoy);
}

#[test]
fn others_wait_for_a_range_that_the_store_was_to_answer_and_has_nothing_for() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.evict(KEY);
    let range = envoy.range(0, KEY);
    assert_eq!(admission(&envoy, range), Some(StoreRequest::Fresh));
    assert_eq!(envoy.fetches[1].headers.get("range"), None, "it fills");
    let others = [envoy.get(0, KEY), envoy.get(1, KEY)];
    assert_eq!(envoy.open_fetches(), [FetchId(1)]);
    fill(&mut envoy, FetchId(1));
    assert_eq!(envoy.clients[range.0].status(), 206);
    for client in others {
        assert_eq!(envoy.clients[client.0].status(), 200);
    }
    assert_eq!(envoy.fetches.len(), 2);
    assert_all_over(&mut envoy);
}

#[test]
fn unexpected_miss_is_counted_and_others_wait_for_it() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.evict(KEY);
    let surprised = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, surprised), Some(StoreRequest::Fresh));
    assert_eq!(envoy.counter(Metric::UnexpectedMisses), 1);
    let next = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, next), None);
    fill(&mut envoy, FetchId(1));
    assert_eq!(
        release(&envoy, next),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_eq!(envoy.fetches.len(), 2);
    assert_all_over(&mut envoy);
}

/// Two workers that have just served the object.
fn busy_workers() -> FakeEnvoy {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    for seat in [0, 1] {
        envoy.get(seat, KEY);
        envoy.deliver_all();
        envoy.close_all();
        let hit = envoy.get(seat, KEY);
        assert_eq!(admission(&envoy, hit), Some(StoreRequest::Fresh));
    }
    envoy
}

#[test]
fn while_the_store_writes_an_object_anew_nobody_asks_the_origin_for_it() {
    let mut envoy = busy_workers();
    envoy.begin_rewrite(KEY);
    let clients = [0, 1].map(|seat| envoy.get(seat, KEY));
    let later = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, later), None, "it waits with the others");
    envoy.answer_lookup(0);
    assert_eq!(envoy.parked(), 3, "the store does not have it yet");
    envoy.commit(KEY);
    envoy.answer_lookup(0);
    envoy.deliver_all();
    for client in [clients[0], clients[1], later] {
        assert_eq!(envoy.clients[client.0].status(), 200);
    }
    assert_eq!(envoy.fetches.len(), 1);
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn of_those_who_miss_what_was_there_a_moment_ago_one_asks_the_origin() {
    let mut envoy = busy_workers();
    envoy.evict(KEY);
    let clients = [0, 1].map(|seat| envoy.get(seat, KEY));
    assert_eq!(envoy.fetches.len(), 1);
    live(&mut envoy, 300);
    assert_eq!(envoy.fetches.len(), 2, "the store has lost it after all");
    fill(&mut envoy, FetchId(1));
    for client in clients {
        assert_eq!(envoy.clients[client.0].status(), 200);
    }
    assert_eq!(envoy.fetches.len(), 2);
    assert_eq!(envoy.counter(Metric::Unshared), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn who_misses_what_was_not_just_there_asks_the_origin_at_once() {
    let mut envoy = busy_workers();
    envoy.evict(KEY);
    envoy.advance(1_000);
    envoy.get(0, KEY);
    assert_eq!(envoy.fetches.len(), 2);
}

/// Ends a complete error response that the request itself may have caused.
fn refuse(envoy: &mut FakeEnvoy, fetch: FetchId) {
    envoy.answer_with(fetch, 400, &[("cache-control", "max-age=600")], b"too long");
    envoy.end(fetch);
    envoy.deliver_all();
}

#[test]
fn an_error_that_a_request_may_have_caused_is_its_own() {
    let mut envoy = envoy(2);
    let (leader, near, far) = (envoy.get(0, KEY), envoy.get(0, KEY), envoy.get(1, KEY));
    refuse(&mut envoy, FIRST);
    envoy.close_all();
    assert_eq!(envoy.clients[leader.0].status(), 400);
    assert_eq!(
        release(&envoy, near),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(envoy.stage(far), Stage::Parked);
    fill(&mut envoy, FetchId(1));
    for client in [near, far] {
        assert_eq!(envoy.clients[client.0].status(), 200);
    }
    assert_eq!(envoy.fetches.len(), 2);
    assert_eq!(envoy.counter(Metric::HitForMissMarked), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn an_error_that_a_request_may_have_caused_leaves_nothing_behind() {
    let mut envoy = warm_envoy(2);
    envoy.hold_calls = false;
    for client in 0..3 {
        let seat = client % 2;
        let caused = envoy.get(seat, KEY);
        assert_eq!(admission(&envoy, caused), Some(StoreRequest::Lead));
        let fetch = FetchId(envoy.fetches.len() - 1);
        refuse(&mut envoy, fetch);
        envoy.close_all();
    }
    let next = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, next), Some(StoreRequest::Lead));
    assert!(!envoy.has(KEY));
}

#[test]
fn a_redirect_for_the_moment_keeps_nobody_from_the_store_afterwards() {
    let mut envoy = envoy(1);
    let clients = [envoy.get(0, KEY), envoy.get(0, KEY), envoy.get(0, KEY)];
    let redirect = [("location", "/login"), ("cache-control", "no-store")];
    for number in 0..3 {
        envoy.answer_with(FetchId(number), 302, &redirect, b"");
        assert_eq!(envoy.fetches.len(), 3, "who waited goes on at the first");
    }
    envoy.close_all();
    for client in clients {
        assert_eq!(envoy.clients[client.0].status(), 302);
    }
    assert_eq!(envoy.counter(Metric::HitForMissMarked), 0);
    envoy.advance(1);
    let (next, follower) = (envoy.get(0, KEY), envoy.get(0, KEY));
    assert_eq!(admission(&envoy, next), Some(StoreRequest::Lead));
    fill(&mut envoy, FetchId(3));
    for client in [next, follower] {
        assert_eq!(envoy.clients[client.0].status(), 200);
    }
    assert!(envoy.has(KEY));
    assert_eq!(envoy.fetches.len(), 4);
    assert_all_over(&mut envoy);
}

#[test]
fn waiting_ends_for_ever_more_where_every_leader_is_refused() {
    let mut envoy = envoy(1);
    let leader = envoy.get(0, KEY);
    let followers: Vec<_> = (0..1_000).map(|_| envoy.get(0, KEY)).collect();
    let mut rounds = 0;
    while envoy.parked() > 0 {
        for fetch in envoy.open_fetches() {
            refuse(&mut envoy, fetch);
        }
        envoy.close_all();
        live(&mut envoy, 100);
        rounds += 1;
    }
    assert!(rounds <= 10, "{rounds}");
    for fetch in envoy.open_fetches() {
        refuse(&mut envoy, fetch);
    }
    envoy.close_all();
    assert_eq!(envoy.clients[leader.0].status(), 400);
    assert_eq!(
        releases(&envoy, &followers, NextStep::Send(StoreRequest::Lead)),
        rounds - 1
    );
    for client in followers {
        assert_eq!(envoy.clients[client.0].status(), 400);
    }
    assert_all_over(&mut envoy);
}

#[test]
fn a_server_error_is_for_those_who_wait_at_that_moment() {
    let mut envoy = envoy(1);
    let clients = [plain(&mut envoy, 0), envoy.get(0, KEY)];
    envoy.answer_with(FIRST, 503, &[], b"an error");
    envoy.end(FIRST);
    envoy.close_all();
    for client in clients {
        assert_eq!(envoy.clients[client.0].status(), 503);
    }
    let next = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, next), Some(StoreRequest::Lead));
    fill(&mut envoy, FetchId(1));
    assert_eq!(envoy.clients[next.0].status(), 200);
    assert_all_over(&mut envoy);
}
