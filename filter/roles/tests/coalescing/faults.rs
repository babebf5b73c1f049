// SPDX-License-Identifier: Apache-2.0
//! Coalescing while workers die, messages are lost, the board fails and bounds are reached.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::shared::board::{FLIGHTS_PER_SLOT, SLOTS};
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_core::workers::shared_value::ATTEMPTS;
use sluice_fake::{Answer, Ending, FakeEnvoy, FakeSharedData, FetchId, Stage};

use crate::support::{FIRST, KEY, admission, envoy, fill, live, plain, release, warm_envoy};

/// Makes the store drop the response of [`KEY`], and answers lookups until no request waits for the response.
fn look_up_in_vain(envoy: &mut FakeEnvoy) {
    envoy.drop_commits(KEY);
    let max_wait = envoy.policy.max_wait;
    for _ in 0..(max_wait + 50) / 10 {
        envoy.answer_lookup(0);
        live(envoy, 10);
    }
}

#[test]
fn lease_of_a_dead_worker_is_taken_over_when_it_has_run_out() {
    let mut envoy = envoy(2);
    let lease = envoy.policy.lease;
    envoy.get(0, KEY);
    let follower = envoy.get(1, KEY);
    envoy.kill(0);
    envoy.revive(0);
    live(&mut envoy, lease - 10);
    assert_eq!(envoy.stage(follower), Stage::Parked);
    live(&mut envoy, 600);
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    fill(&mut envoy, FetchId(1));
    assert_eq!(envoy.stage(follower), Stage::Over(Ending::Served));
    assert_eq!(envoy.board(), []);
}

#[test]
fn a_dead_worker_leaves_nothing_in_the_gauges() {
    let mut envoy = envoy(2);
    for seat in [0, 1] {
        envoy.get(seat, KEY + seat as u64);
        envoy.get(seat, KEY + seat as u64);
    }
    envoy.tick_all();
    let waiting = |envoy: &FakeEnvoy| {
        [Metric::ParkedNow, Metric::FlightsNow].map(|metric| envoy.counter(metric))
    };
    assert_eq!(waiting(&envoy), [2, 2]);
    envoy.kill(0);
    envoy.revive(0);
    assert_eq!(waiting(&envoy), [1, 1]);
    envoy.tick_all();
    assert_eq!(waiting(&envoy), [1, 1]);
    envoy.kill(0);
    envoy.revive(0);
    envoy.kill(1);
    envoy.revive(1);
    assert_eq!(waiting(&envoy), [0, 0]);
}

#[test]
fn worker_that_comes_back_waits_for_its_former_lease_like_others() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    envoy.kill(0);
    envoy.revive(0);
    let client = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, client), None);
    live(&mut envoy, 3_600);
    assert_eq!(
        release(&envoy, client),
        Some(NextStep::Send(StoreRequest::Lead))
    );
}

#[test]
fn leader_whose_lease_ran_out_ends_its_flight_without_disturbing_the_next() {
    let mut envoy = envoy(3);
    let lease = envoy.policy.lease;
    let old = envoy.get(0, KEY);
    let near = envoy.get(0, KEY);
    envoy.advance(lease);
    let new = envoy.get(1, KEY);
    assert_eq!(
        admission(&envoy, new),
        Some(StoreRequest::Lead),
        "worker 0 did not renew"
    );
    let far = envoy.get(2, KEY);
    envoy.abort(old);
    assert_eq!(envoy.stage(near), Stage::Parked, "waits for the new leader");
    fill(&mut envoy, FetchId(1));
    assert_eq!(
        release(&envoy, near),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_eq!(
        release(&envoy, far),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
}

/// The fake Envoy refuses to do more after a callback than fits on the stack of a real Envoy.
#[test]
fn hundreds_of_followers_are_answered_in_several_turns() {
    let mut envoy = envoy(1);
    plain(&mut envoy, 0);
    let followers: Vec<_> = (0..300).map(|_| envoy.get(0, KEY)).collect();
    envoy.answer(FetchId(0), Answer::Failed(503));
    envoy.end(FetchId(0));
    for follower in followers {
        assert_eq!(envoy.stage(follower), Stage::Over(Ending::Failed(503)));
    }
}

#[test]
fn lost_message_is_made_up_for_by_a_rescan() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    let follower = envoy.get(1, KEY);
    envoy.deliver(0);
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    envoy.commit(KEY);
    envoy.answer_lookup(0);
    assert_eq!(envoy.messages(1), 1);
    envoy.lose(1);
    live(&mut envoy, 510);
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(envoy.fetches.len(), 1, "it finds the store filled");
    envoy.close_all();
    assert_eq!(envoy.board(), []);
}

#[test]
fn news_of_a_former_flight_does_not_reach_those_who_wait_for_the_next() {
    for answer in [Answer::Failed(503), Answer::Uncacheable] {
        let mut envoy = envoy(3);
        plain(&mut envoy, 0);
        let hasty = plain(&mut envoy, 1);
        envoy.answer(FIRST, answer);
        envoy.abort(hasty);
        plain(&mut envoy, 2);
        let follower = plain(&mut envoy, 1);
        envoy.deliver(1);
        assert_eq!(envoy.stage(follower), Stage::Parked, "{answer:?}");
        envoy.answer(FetchId(1), Answer::Failed(504));
        envoy.deliver(1);
        assert_eq!(envoy.stage(follower), Stage::Over(Ending::Failed(504)));
    }
}

#[test]
fn news_of_a_flight_that_was_taken_over_unnoticed_is_looked_up_on_the_board() {
    let mut envoy = envoy(3);
    envoy.get(0, KEY);
    let follower = envoy.get(1, KEY);
    envoy.kill(0);
    envoy.advance(envoy.policy.lease);
    let next = envoy.get(2, KEY);
    assert_eq!(admission(&envoy, next), Some(StoreRequest::Lead));
    fill(&mut envoy, FetchId(1));
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Fresh))
    );
    assert_eq!(envoy.fetches.len(), 2, "it finds the store filled");
    assert_eq!(envoy.board(), []);
}

/// Ends the first worker's fill, for which it knows followers, and makes a lookup find the response in the store.
fn end_and_find(envoy: &mut FakeEnvoy) {
    envoy.deliver_all();
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    envoy.commit(KEY);
    envoy.answer_lookup(0);
}

#[test]
fn policy_update_looks_at_once_for_what_the_lost_queue_held() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    let follower = envoy.get(1, KEY);
    end_and_find(&mut envoy);
    envoy.lose(1);
    envoy.update_policy(1);
    assert_eq!(envoy.stage(follower), Stage::Draining);
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn policy_update_leaves_those_alone_whose_leader_is_there() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    let followers = [envoy.get(0, KEY), envoy.get(1, KEY)];
    envoy.update_policy(0);
    envoy.update_policy(1);
    assert!(
        followers
            .iter()
            .all(|client| envoy.stage(*client) == Stage::Parked)
    );
    envoy.answer(FIRST, Answer::Storable);
    envoy.update_policy(0);
    envoy.update_policy(1);
    assert_eq!(envoy.stage(followers[1]), Stage::Parked);
    fill(&mut envoy, FIRST);
    assert_eq!(envoy.parked(), 0);
    assert_eq!(envoy.fetches.len(), 1);
}

#[test]
fn lost_answer_to_a_probe_keeps_nobody_for_ever() {
    let mut envoy = envoy(1);
    let max_wait = envoy.policy.max_wait;
    envoy.get(0, KEY);
    let follower = envoy.get(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    envoy.close_all();
    envoy.lose_lookup(0);
    live(&mut envoy, max_wait + 100);
    assert!(release(&envoy, follower).is_some());
    envoy.abort(follower);
    assert_eq!(envoy.coalescer(0).unwrap().flights(), 0);
    assert_eq!(envoy.board(), []);
}

#[test]
fn store_that_does_not_take_the_response_makes_another_lead() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    for _ in 0..20 {
        envoy.get(0, KEY);
    }
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    envoy.close_all();
    look_up_in_vain(&mut envoy);
    assert_eq!(envoy.counter(Metric::Unshared), 1);
    assert_eq!(envoy.counter(Metric::Handovers), 1);
}

#[test]
fn store_that_never_takes_the_response_does_not_make_a_queue_of_its_followers() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    let followers: Vec<_> = (0..20).map(|_| envoy.get(0, KEY)).collect();
    for fetch in [FIRST, FetchId(1)] {
        envoy.answer(fetch, Answer::Storable);
        envoy.end(fetch);
        envoy.close_all();
        look_up_in_vain(&mut envoy);
    }
    let released = |release| {
        followers
            .iter()
            .filter(|client| envoy.clients[client.0].release == Some(release))
            .count()
    };
    assert_eq!(
        (
            released(NextStep::Send(StoreRequest::Lead)),
            released(NextStep::HitForMiss(UncacheableReason::NotTaken))
        ),
        (1, 19)
    );
}

#[test]
fn policy_update_asks_the_store_anew() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    let follower = envoy.get(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    envoy.commit(KEY);
    envoy.lose_lookup(0);
    envoy.update_policy(0);
    envoy.answer_lookup(0);
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
}

/// A worker with this limit.
fn bounded(limit: &str) -> FakeEnvoy {
    let document = format!(
        r#"{{"origin": {{"kind": "http"}}, "purge": {{"warm": false}}, "limits": {{{limit}}}}}"#
    );
    FakeEnvoy::new(&document, 1)
}

#[test]
fn waiters_beyond_the_bound_go_alone() {
    let mut envoy = bounded(r#""waiters_per_key": 3"#);
    envoy.get(0, KEY);
    let clients: Vec<_> = (0..5).map(|_| envoy.get(0, KEY)).collect();
    let admissions: Vec<_> = clients
        .iter()
        .map(|client| admission(&envoy, *client))
        .collect();
    let (park, alone) = (None, Some(StoreRequest::Alone));
    assert_eq!(admissions, [park, park, park, alone, alone]);
    assert_eq!(envoy.counter(Metric::LimitsReached), 2);
    envoy.abort(clients[0]);
    let next = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, next), None, "there is room again");
}

#[test]
fn keys_beyond_the_bound_go_alone() {
    let mut envoy = bounded(r#""keys_in_flight": 2"#);
    let clients = [
        envoy.get(0, 1),
        envoy.get(0, 2),
        envoy.get(0, 3),
        envoy.get(0, 1),
    ];
    let admissions = clients.map(|client| admission(&envoy, client));
    let (lead, park) = (Some(StoreRequest::Lead), None);
    assert_eq!(admissions, [lead, lead, Some(StoreRequest::Alone), park]);
    assert_eq!(envoy.counter(Metric::LimitsReached), 1);
}

#[test]
fn keys_beyond_the_room_in_a_slot_go_alone() {
    let mut envoy = envoy(1);
    let slot = envoy.key_hash(KEY).0 % SLOTS;
    let in_slot = (0..).filter(|key| envoy.key_hash(*key).0 % SLOTS == slot);
    let keys: Vec<u64> = in_slot.take(FLIGHTS_PER_SLOT + 1).collect();
    let clients: Vec<_> = keys.iter().map(|key| envoy.get(0, *key)).collect();
    let client = clients[FLIGHTS_PER_SLOT];
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Alone));
    assert_eq!(envoy.counter(Metric::LimitsReached), 1);
    let elsewhere = envoy.get(0, keys[0] + 1);
    assert_eq!(admission(&envoy, elsewhere), Some(StoreRequest::Lead));
}

#[test]
fn host_that_fails_makes_requests_go_alone_and_parks_nobody() {
    let mut envoy = warm_envoy(2);
    envoy.data.fail_next(u32::MAX);
    let clients: Vec<_> = (0..10).map(|number| envoy.get(number % 2, KEY)).collect();
    assert!(
        clients
            .iter()
            .all(|client| admission(&envoy, *client) == Some(StoreRequest::Alone))
    );
    assert_eq!(envoy.counter(Metric::HostErrors), 10);
    assert_eq!(envoy.coalescer(0).unwrap().flights(), 0);
}

#[test]
fn compare_and_swap_is_repeated_and_its_conflicts_are_counted() {
    let mut envoy = warm_envoy(1);
    envoy.data.lose_next(ATTEMPTS - 1);
    let client = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Lead));
    assert_eq!(envoy.counter(Metric::BoardConflicts), ATTEMPTS - 1);

    envoy.data.lose_next(ATTEMPTS);
    let client = envoy.get(0, KEY + 1);
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Alone));
    assert_eq!(envoy.counter(Metric::LimitsReached), 1);
}

#[test]
fn rescan_that_cannot_use_the_board_makes_no_second_leader() {
    for fault in [FakeSharedData::fail_next, FakeSharedData::lose_next] {
        let mut envoy = envoy(2);
        envoy.get(0, KEY);
        let follower = envoy.get(1, KEY);
        envoy.answer(FIRST, Answer::Storable);
        envoy.advance(500);
        // The follower's worker sees an expired lease, so it has to write.
        envoy.advance(envoy.policy.lease - 500);
        fault(&envoy.data, ATTEMPTS);
        envoy.tick(1);
        assert_eq!(envoy.stage(follower), Stage::Parked);
        fault(&envoy.data, 0);
        envoy.tick(0);
        fill(&mut envoy, FIRST);
        assert_eq!(envoy.fetches.len(), 1);
        assert_eq!(
            release(&envoy, follower),
            Some(NextStep::Send(StoreRequest::Collapsed))
        );
    }
}

#[test]
fn handover_that_cannot_use_the_board_keeps_the_lease() {
    for fault in [FakeSharedData::fail_next, FakeSharedData::lose_next] {
        let mut envoy = envoy(2);
        let leader = envoy.get(0, KEY);
        let (heir, far) = (envoy.get(0, KEY), envoy.get(1, KEY));
        fault(&envoy.data, ATTEMPTS);
        envoy.abort(leader);
        fault(&envoy.data, 0);
        assert_eq!(
            release(&envoy, heir),
            Some(NextStep::Send(StoreRequest::Lead))
        );
        envoy.answer(FetchId(1), Answer::Storable);
        for _ in 0..100 {
            live(&mut envoy, 100);
            envoy.progress(FetchId(1));
        }
        assert_eq!(envoy.stage(far), Stage::Parked, "the lease was renewed");
        fill(&mut envoy, FetchId(1));
        assert_eq!(
            release(&envoy, far),
            Some(NextStep::Send(StoreRequest::Collapsed)),
            "and the news told"
        );
        assert_eq!(envoy.board(), []);
    }
}

#[test]
fn end_that_cannot_use_the_board_is_found_when_the_lease_has_run_out() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    let follower = envoy.get(1, KEY);
    envoy.deliver_all();
    envoy.answer(FIRST, Answer::Storable);
    envoy.end(FIRST);
    envoy.commit(KEY);
    envoy.data.fail_next(1);
    envoy.answer_lookup(0);
    envoy.deliver_all();
    assert_eq!(
        envoy.stage(follower),
        Stage::Parked,
        "the worker could not look up the waiting workers"
    );
    live(&mut envoy, 3_600);
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(envoy.fetches.len(), 1, "it finds the store filled");
    assert_eq!(envoy.board(), []);
}
