// SPDX-License-Identifier: Apache-2.0
//! Coalescing while workers die, messages are lost, the board fails and bounds are reached.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use std::rc::Rc;

use sluice_core::coalescing::board::{FLIGHTS_PER_SLOT, FlightKey, SLOTS, Slot};
use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::{Admission, Coalescer, Release, Request, Turn};
use sluice_core::metrics::Metric;
use sluice_core::workers::StreamId;
use sluice_core::workers::shared_table::SharedRecord as _;
use sluice_core::workers::shared_value::ATTEMPTS;
use sluice_core::workers::{KeyHash, WorkerId};
use sluice_fake::FakeSharedData;
use sluice_fake::mirror::{Answer, Ending, FakeHost, FetchId, Stage};
use support::flights::{FIRST, KEY, admission, fill, host, host_with, live, policy, release};
use support::{bucket, canonicalize_path};

/// Has the store drop the response of [`KEY`], and probes answered until nobody waits for it any more.
fn probe_in_vain(host: &mut FakeHost) {
    host.store().drop_commits(KeyHash(KEY));
    let max_wait = host.policy.max_wait;
    for _ in 0..(max_wait + 50) / 10 {
        host.answer_probe(0);
        live(host, 10);
    }
}

#[test]
fn lease_of_a_dead_worker_is_taken_over_when_it_has_run_out() {
    let mut host = host(2);
    let lease = host.policy.lease;
    host.get(0, KEY);
    let follower = host.get(1, KEY);
    host.kill(0);
    host.revive(0);
    live(&mut host, lease - 10);
    assert_eq!(host.stage(follower), Stage::Parked);
    live(&mut host, 600);
    assert_eq!(release(&host, follower), Some(Release::Lead));
    fill(&mut host, FetchId(1));
    assert_eq!(host.stage(follower), Stage::Over(Ending::Served));
    assert_eq!(host.board(), []);
}

#[test]
fn worker_that_comes_back_waits_for_its_former_lease_like_others() {
    let mut host = host(1);
    host.get(0, KEY);
    host.kill(0);
    host.revive(0);
    let client = host.get(0, KEY);
    assert_eq!(admission(&host, client), Admission::Park);
    live(&mut host, 3_600);
    assert_eq!(release(&host, client), Some(Release::Lead));
}

#[test]
fn leader_whose_lease_ran_out_ends_its_flight_without_disturbing_the_next() {
    let mut host = host(3);
    let lease = host.policy.lease;
    let old = host.get(0, KEY);
    let near = host.get(0, KEY);
    host.advance(lease);
    let new = host.get(1, KEY);
    assert_eq!(
        admission(&host, new),
        Admission::Lead,
        "worker 0 did not renew"
    );
    let far = host.get(2, KEY);
    host.abort(old);
    assert_eq!(host.stage(near), Stage::Parked, "waits for the new leader");
    fill(&mut host, FetchId(1));
    assert_eq!(release(&host, near), Some(Release::Collapsed));
    assert_eq!(release(&host, far), Some(Release::Collapsed));
}

#[test]
fn lost_message_is_made_up_for_by_a_rescan() {
    let mut host = host(2);
    host.get(0, KEY);
    let follower = host.get(1, KEY);
    host.deliver(0);
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    host.store().commit(KeyHash(KEY));
    host.answer_probe(0);
    assert_eq!(host.messages(1), 1);
    host.lose(1);
    live(&mut host, 510);
    assert_eq!(release(&host, follower), Some(Release::Lead));
    assert_eq!(host.fetches.len(), 1, "it finds the store filled");
    host.close_all();
    assert_eq!(host.board(), []);
}

#[test]
fn news_of_a_former_flight_does_not_reach_those_who_wait_for_the_next() {
    for answer in [Answer::Failed(503), Answer::Uncacheable] {
        let mut host = host(3);
        host.get(0, KEY);
        let hasty = host.get(1, KEY);
        host.answer(FIRST, answer);
        host.abort(hasty);
        host.get(2, KEY);
        let follower = host.get(1, KEY);
        host.deliver(1);
        assert_eq!(host.stage(follower), Stage::Parked, "{answer:?}");
        host.answer(FetchId(1), Answer::Failed(504));
        host.deliver(1);
        assert_eq!(host.stage(follower), Stage::Over(Ending::Failed(504)));
    }
}

#[test]
fn news_of_a_flight_that_was_taken_over_unnoticed_is_looked_up_on_the_board() {
    let mut host = host(3);
    host.get(0, KEY);
    let follower = host.get(1, KEY);
    host.kill(0);
    host.advance(host.policy.lease);
    let next = host.get(2, KEY);
    assert_eq!(admission(&host, next), Admission::Lead);
    fill(&mut host, FetchId(1));
    assert_eq!(release(&host, follower), Some(Release::Lead));
    assert_eq!(host.fetches.len(), 2, "it finds the store filled");
    assert_eq!(host.board(), []);
}

/// The fill of the first worker, of which it knows that others wait for it, ends, and it finds the response in the store.
fn end_and_find(host: &mut FakeHost) {
    host.deliver_all();
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    host.store().commit(KeyHash(KEY));
    host.answer_probe(0);
}

#[test]
fn policy_update_looks_at_once_for_what_the_lost_queue_held() {
    let mut host = host(2);
    host.get(0, KEY);
    let follower = host.get(1, KEY);
    end_and_find(&mut host);
    host.lose(1);
    host.rescan_all(1);
    assert_eq!(host.stage(follower), Stage::Draining);
    assert_eq!(host.fetches.len(), 1);
}

#[test]
fn policy_update_leaves_those_alone_whose_leader_is_there() {
    let mut host = host(2);
    host.get(0, KEY);
    let followers = [host.get(0, KEY), host.get(1, KEY)];
    host.rescan_all(0);
    host.rescan_all(1);
    assert!(
        followers
            .iter()
            .all(|client| host.stage(*client) == Stage::Parked)
    );
    host.answer(FIRST, Answer::Storable);
    host.rescan_all(0);
    host.rescan_all(1);
    assert_eq!(host.stage(followers[1]), Stage::Parked);
    fill(&mut host, FIRST);
    assert_eq!(host.parked(), 0);
    assert_eq!(host.fetches.len(), 1);
}

#[test]
fn lost_answer_to_a_probe_keeps_nobody_for_ever() {
    let mut host = host(1);
    let max_wait = host.policy.max_wait;
    host.get(0, KEY);
    let follower = host.get(0, KEY);
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    host.close_all();
    host.lose_probe(0);
    live(&mut host, max_wait + 100);
    assert!(release(&host, follower).is_some());
    host.abort(follower);
    assert_eq!(host.coalescer(0).unwrap().flights(), 0);
    assert_eq!(host.board(), []);
}

#[test]
fn store_that_does_not_take_the_response_makes_another_lead() {
    let mut host = host(1);
    host.get(0, KEY);
    for _ in 0..20 {
        host.get(0, KEY);
    }
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    host.close_all();
    probe_in_vain(&mut host);
    assert_eq!(host.counter(Metric::Unshared), 1);
    assert_eq!(host.counter(Metric::Handovers), 1);
}

#[test]
fn store_that_never_takes_the_response_does_not_make_a_queue_of_its_followers() {
    let mut host = host(1);
    host.get(0, KEY);
    let followers: Vec<_> = (0..20).map(|_| host.get(0, KEY)).collect();
    for fetch in [FIRST, FetchId(1)] {
        host.answer(fetch, Answer::Storable);
        host.end(fetch);
        host.close_all();
        probe_in_vain(&mut host);
    }
    let released = |release| {
        followers
            .iter()
            .filter(|client| host.clients[client.0].release == Some(release))
            .count()
    };
    assert_eq!(
        (released(Release::Lead), released(Release::HitForMiss)),
        (1, 19)
    );
    let next = host.get(0, KEY);
    assert_eq!(admission(&host, next), Admission::HitForMiss);
}

#[test]
fn policy_update_asks_the_store_anew() {
    let mut host = host(1);
    host.get(0, KEY);
    let follower = host.get(0, KEY);
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    host.store().commit(KeyHash(KEY));
    host.lose_probe(0);
    host.rescan_all(0);
    host.answer_probe(0);
    assert_eq!(release(&host, follower), Some(Release::Collapsed));
}

#[test]
fn waiters_beyond_the_bound_go_alone() {
    let rules = FlightPolicy {
        waiters_per_key: 3,
        ..policy()
    };
    let mut host = host_with(rules, 1);
    host.get(0, KEY);
    let clients: Vec<_> = (0..5).map(|_| host.get(0, KEY)).collect();
    let admissions: Vec<_> = clients
        .iter()
        .map(|client| admission(&host, *client))
        .collect();
    let (park, alone) = (Admission::Park, Admission::Alone);
    assert_eq!(admissions, [park, park, park, alone, alone]);
    assert_eq!(host.counter(Metric::LimitsReached), 2);
    host.abort(clients[0]);
    let next = host.get(0, KEY);
    assert_eq!(
        admission(&host, next),
        Admission::Park,
        "there is room again"
    );
}

#[test]
fn keys_beyond_the_bound_go_alone() {
    let rules = FlightPolicy {
        keys_in_flight: 2,
        ..policy()
    };
    let mut host = host_with(rules, 1);
    let clients = [
        host.get(0, 1),
        host.get(0, 2),
        host.get(0, 3),
        host.get(0, 1),
    ];
    let admissions = clients.map(|client| admission(&host, client));
    let (lead, park) = (Admission::Lead, Admission::Park);
    assert_eq!(admissions, [lead, lead, Admission::Alone, park]);
    assert_eq!(host.counter(Metric::LimitsReached), 1);
}

#[test]
fn keys_beyond_the_room_in_a_slot_go_alone() {
    let mut host = host(1);
    for key in 0..FLIGHTS_PER_SLOT as u64 {
        host.get(0, KEY + key * SLOTS);
    }
    let client = host.get(0, KEY + FLIGHTS_PER_SLOT as u64 * SLOTS);
    assert_eq!(admission(&host, client), Admission::Alone);
    assert_eq!(host.counter(Metric::LimitsReached), 1);
    let elsewhere = host.get(0, KEY + 1);
    assert_eq!(admission(&host, elsewhere), Admission::Lead);
}

#[test]
fn clients_that_come_and_go_leave_no_memory_behind() {
    let mut host = host(1);
    host.get(0, KEY);
    let patient = host.get(0, KEY);
    for _ in 0..1_000 {
        let hasty = host.get(0, KEY);
        host.abort(hasty);
    }
    assert_eq!(host.stage(patient), Stage::Parked);
    let remembered = host.coalescer(0).unwrap().remembered_waiters();
    assert!(
        remembered < 100,
        "{remembered} places on the waiting list for one request"
    );
}

#[test]
fn host_that_fails_makes_requests_go_alone_and_parks_nobody() {
    let mut host = host(2);
    host.data.fail_next(u32::MAX);
    let clients: Vec<_> = (0..10).map(|number| host.get(number % 2, KEY)).collect();
    assert!(
        clients
            .iter()
            .all(|client| admission(&host, *client) == Admission::Alone)
    );
    assert_eq!(host.counter(Metric::HostErrors), 10);
    assert_eq!(host.coalescer(0).unwrap().flights(), 0);
}

#[test]
fn compare_and_swap_is_repeated_and_its_conflicts_are_counted() {
    let mut host = host(1);
    host.data.lose_next(ATTEMPTS - 1);
    let client = host.get(0, KEY);
    assert_eq!(admission(&host, client), Admission::Lead);
    assert_eq!(host.counter(Metric::BoardConflicts), ATTEMPTS - 1);

    host.data.lose_next(ATTEMPTS);
    let client = host.get(0, KEY + 1);
    assert_eq!(admission(&host, client), Admission::Alone);
    assert_eq!(host.counter(Metric::LimitsReached), 1);
}

#[test]
fn rescan_that_cannot_use_the_board_makes_no_second_leader() {
    for fault in [FakeSharedData::fail_next, FakeSharedData::lose_next] {
        let mut host = host(2);
        host.get(0, KEY);
        let follower = host.get(1, KEY);
        host.answer(FIRST, Answer::Storable);
        host.advance(500);
        // The lease ran out for the follower's worker to see, so that it has to write.
        host.advance(host.policy.lease - 500);
        fault(&host.data, ATTEMPTS);
        host.tick(1);
        assert_eq!(host.stage(follower), Stage::Parked);
        fault(&host.data, 0);
        host.tick(0);
        fill(&mut host, FIRST);
        assert_eq!(host.fetches.len(), 1);
        assert_eq!(release(&host, follower), Some(Release::Collapsed));
    }
}

#[test]
fn handover_that_cannot_use_the_board_keeps_the_lease() {
    for fault in [FakeSharedData::fail_next, FakeSharedData::lose_next] {
        let mut host = host(2);
        let leader = host.get(0, KEY);
        let (heir, far) = (host.get(0, KEY), host.get(1, KEY));
        fault(&host.data, ATTEMPTS);
        host.abort(leader);
        fault(&host.data, 0);
        assert_eq!(release(&host, heir), Some(Release::Lead));
        host.answer(FetchId(1), Answer::Storable);
        for _ in 0..100 {
            live(&mut host, 100);
            host.progress(FetchId(1));
        }
        assert_eq!(host.stage(far), Stage::Parked, "the lease was renewed");
        fill(&mut host, FetchId(1));
        assert_eq!(
            release(&host, far),
            Some(Release::Collapsed),
            "and the news told"
        );
        assert_eq!(host.board(), []);
    }
}

#[test]
fn end_that_cannot_use_the_board_is_found_when_the_lease_has_run_out() {
    let mut host = host(2);
    host.get(0, KEY);
    let follower = host.get(1, KEY);
    host.deliver_all();
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    host.store().commit(KeyHash(KEY));
    host.data.fail_next(1);
    host.answer_probe(0);
    host.deliver_all();
    assert_eq!(
        host.stage(follower),
        Stage::Parked,
        "nobody could tell whom to tell"
    );
    live(&mut host, 3_600);
    assert_eq!(release(&host, follower), Some(Release::Lead));
    assert_eq!(host.fetches.len(), 1, "it finds the store filled");
    assert_eq!(host.board(), []);
}

/// Two workers that meet between the read and the write of one of them.
mod race {
    use super::*;

    const FLIGHT: FlightKey = FlightKey {
        entry: KeyHash(KEY),
        key: KeyHash(KEY),
    };

    fn request(worker: u16, data: &FakeSharedData, coalescer: &mut Coalescer) -> Admission {
        let target = Rc::new(canonicalize_path(&bucket(), b"/object").unwrap());
        let request = Request {
            stream: StreamId(u32::from(worker)),
            key: FLIGHT,
            target: &target,
            may_lead: true,
            for_others: false,
            policy: policy(),
        };
        let mut effects = Vec::new();
        coalescer.request(
            &request,
            &mut Turn {
                store: data,
                now: 1,
                effects: &mut effects,
            },
        )
    }

    fn coalescer(worker: u16) -> Coalescer {
        Coalescer::new(WorkerId(worker), 8)
    }

    #[test]
    fn of_two_first_requests_the_one_that_writes_first_leads() {
        for occupied in [false, true] {
            let data = FakeSharedData::default();
            let mut second = coalescer(2);
            if occupied {
                // The slot exists, so that its creation does not decide.
                request(2, &data, &mut second);
                let mut effects = Vec::new();
                let mut turn = Turn {
                    store: &data,
                    now: 1,
                    effects: &mut effects,
                };
                second.closed(StreamId(2), &mut turn);
            }
            data.before_next_set(move |data| {
                assert_eq!(request(2, data, &mut second), Admission::Lead);
            });
            let first = request(1, &data, &mut coalescer(1));
            assert_eq!(first, Admission::Park, "slot occupied before: {occupied}");
        }
    }

    #[test]
    fn request_that_would_follow_a_flight_which_ends_meanwhile_leads() {
        let data = FakeSharedData::default();
        let mut leader = coalescer(1);
        request(1, &data, &mut leader);
        data.before_next_set(move |data| {
            let mut effects = Vec::new();
            leader.closed(
                StreamId(1),
                &mut Turn {
                    store: data,
                    now: 1,
                    effects: &mut effects,
                },
            );
            assert_eq!(leader.flights(), 0);
        });
        assert_eq!(request(2, &data, &mut coalescer(2)), Admission::Lead);
    }

    #[test]
    fn flight_that_ends_while_another_worker_joins_tells_it() {
        let data = FakeSharedData::default();
        let mut leader = coalescer(1);
        request(1, &data, &mut leader);
        data.before_next_set(|data| {
            assert_eq!(request(2, data, &mut coalescer(2)), Admission::Park);
        });
        let mut effects = Vec::new();
        leader.closed(
            StreamId(1),
            &mut Turn {
                store: &data,
                now: 1,
                effects: &mut effects,
            },
        );
        let told = format!("{effects:?}");
        assert!(told.contains("Notify { worker: WorkerId(2)"), "{told}");
    }

    #[test]
    fn lease_that_runs_out_while_its_leader_ends_has_one_owner() {
        let data = FakeSharedData::default();
        let mut leader = coalescer(1);
        request(1, &data, &mut leader);
        data.before_next_set(|data| {
            let mut heir = coalescer(2);
            let target = Rc::new(canonicalize_path(&bucket(), b"/object").unwrap());
            let policy = policy();
            let stream = StreamId(9);
            let request = Request {
                stream,
                key: FLIGHT,
                target: &target,
                may_lead: true,
                for_others: false,
                policy,
            };
            let mut effects = Vec::new();
            let mut turn = Turn {
                store: data,
                now: 5_000,
                effects: &mut effects,
            };
            assert_eq!(heir.request(&request, &mut turn), Admission::Lead);
        });
        let mut effects = Vec::new();
        let mut turn = Turn {
            store: &data,
            now: 5_000,
            effects: &mut effects,
        };
        leader.closed(StreamId(1), &mut turn);
        let slot = Slot::decode(&data.values()[0].1).unwrap_or_default();
        let owners: Vec<_> = slot.leases().map(|(_, id, _)| id.worker).collect();
        assert_eq!(owners, [WorkerId(2)], "the heir's flight stays");
    }
}
