// SPDX-License-Identifier: Apache-2.0
//! Who leads, who waits, and how each leaves, one rule at a time.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use sluice_core::coalescing::board::SLOTS;
use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::hints::Hint;
use sluice_core::coalescing::{Admission, Probed, Release};
use sluice_core::metrics::Metric;
use sluice_core::workers::KeyHash;
use sluice_fake::Calls;
use sluice_fake::mirror::{Answer, Ending, FakeHost, FetchId, HIT_FOR_MISS, Stage};
use support::flights::{
    FIRST, KEY, admission, assert_all_over, await_probe, fill, host, host_with, live, policy,
    release, releases,
};

#[test]
fn first_request_leads_and_others_wait_on_every_worker() {
    let mut host = host(3);
    let leader = host.get(0, KEY);
    let followers: Vec<_> = (0..30).map(|number| host.get(number % 3, KEY)).collect();
    assert_eq!(admission(&host, leader), Admission::Lead);
    assert!(
        followers
            .iter()
            .all(|client| admission(&host, *client) == Admission::Park)
    );
    assert_eq!(host.counter(Metric::FlightsLed), 1);
    assert_eq!(host.counter(Metric::FollowersParked), 30);

    fill(&mut host, FIRST);
    assert_eq!(releases(&host, &followers, Release::Collapsed), 30);
    assert_eq!(host.fetches.len(), 1);
    assert_all_over(&mut host);
}

#[test]
fn different_keys_never_wait_for_each_other() {
    let mut host = host(1);
    // Eight slots of the board, with 25 keys each.
    let clients: Vec<_> = (0..200).map(|key| host.get(0, key * SLOTS / 8)).collect();
    assert!(
        clients
            .iter()
            .all(|client| admission(&host, *client) == Admission::Lead)
    );
}

#[test]
fn followers_are_released_only_when_a_probe_has_found_the_object() {
    let mut host = host(2);
    host.get(0, KEY);
    let followers = [host.get(0, KEY), host.get(1, KEY)];
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    host.close_all();
    for _ in 0..20 {
        host.answer_probe(0);
        live(&mut host, 20);
        host.deliver_all();
        assert_eq!(host.parked(), 2, "the store is not ready");
    }
    host.store().commit(KeyHash(KEY));
    live(&mut host, 20);
    host.answer_probe(0);
    host.deliver_all();
    assert_eq!(releases(&host, &followers, Release::Collapsed), 2);
    assert_eq!(host.fetches.len(), 1);
    host.close_all();
    assert_all_over(&mut host);
}

#[test]
fn a_store_that_keeps_what_was_purged_makes_another_lead_after_a_second() {
    let mut host = host(1);
    host.get(0, KEY);
    let followers: Vec<_> = (0..3).map(|_| host.get(0, KEY)).collect();
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    for _ in 0..4 {
        assert_eq!(releases(&host, &followers, Release::Lead), 0);
        host.answer_probe_with(0, KeyHash(KEY), Probed::Outdated);
    }
    host.advance(1_000);
    assert_eq!(releases(&host, &followers, Release::Lead), 0);
    host.answer_probe_with(0, KeyHash(KEY), Probed::Outdated);
    assert_eq!(releases(&host, &followers, Release::Lead), 1);
    fill(&mut host, FetchId(1));
    assert_eq!(releases(&host, &followers, Release::Collapsed), 2);
    assert_eq!(host.fetches.len(), 2);
}

#[test]
fn the_headers_of_a_fill_are_the_answer_of_those_who_ask_for_changes() {
    let mut host = host(1);
    let first = host.conditional(0, KEY);
    let other = host.get(0, KEY);
    let last = host.conditional(0, KEY);
    host.answer(FIRST, Answer::Storable);
    for client in [first, last] {
        assert_eq!(host.stage(client), Stage::Over(Ending::Served));
    }
    assert_eq!(host.stage(other), Stage::Parked);
    assert_eq!(
        host.coalescer(0).map(|coalescer| coalescer.parked()),
        Some(1)
    );
    fill(&mut host, FIRST);
    assert_all_over(&mut host);
}

#[test]
fn eager_probes_come_before_the_patient_ones() {
    let mut host = host(1);
    host.get(0, KEY);
    host.get(0, KEY);
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    for probe in 1..=3 {
        assert_eq!(host.probes(0), 1, "probe {probe} follows at once");
        host.answer_probe(0);
    }
    assert_eq!(host.probes(0), 1);
    host.answer_probe(0);
    assert_eq!(host.probes(0), 0, "the store gets some time");
    assert_eq!(host.coalescer(0).unwrap().tick_period(), Some(10));
    host.advance(10);
    host.tick(0);
    assert_eq!(host.probes(0), 1);
    assert_eq!(host.counter(Metric::StoreProbes), 5);
}

/// A leader whose response has ended, and that the v1 store does not have yet.
fn unawaited() -> FakeHost {
    let mut host = host(2);
    host.get(0, KEY);
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    assert_eq!(host.probes(0), 0);
    host
}

#[test]
fn where_nobody_waits_the_store_is_asked_later_and_once() {
    let mut host = unawaited();
    live(&mut host, 40);
    assert_eq!(host.probes(0), 0);
    host.store().commit(KeyHash(KEY));
    live(&mut host, 10);
    host.answer_probe(0);
    assert_eq!(host.counter(Metric::StoreProbes), 1);
    let next = host.get(0, KEY);
    assert_eq!(admission(&host, next), Admission::Fresh);
}

#[test]
fn whoever_comes_has_the_store_asked_at_once() {
    let mut host = unawaited();
    host.get(0, KEY);
    assert_eq!(host.probes(0), 1);
    host.get(0, KEY);
    assert_eq!(host.probes(0), 1);
}

#[test]
fn whoever_comes_to_another_worker_has_the_store_asked_as_soon_as_the_leader_hears_of_it() {
    let mut host = unawaited();
    let follower = host.get(1, KEY);
    assert_eq!(host.probes(0), 0);
    host.store().commit(KeyHash(KEY));
    host.deliver(0);
    host.answer_probe(0);
    host.deliver_all();
    assert_eq!(release(&host, follower), Some(Release::Collapsed));
    assert_eq!(host.fetches.len(), 1);
}

#[test]
fn whoever_waits_unheard_of_waits_a_little_longer() {
    let mut host = host(2);
    host.get(0, KEY);
    let follower = host.get(1, KEY);
    host.lose(0);
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    host.store().commit(KeyHash(KEY));
    live(&mut host, 50);
    host.answer_probe(0);
    host.deliver_all();
    assert_eq!(release(&host, follower), Some(Release::Collapsed));
    assert_eq!(host.fetches.len(), 1);
}

#[test]
fn hit_makes_no_host_call() {
    let mut host = host(2);
    host.get(0, KEY);
    host.get(1, KEY);
    fill(&mut host, FIRST);
    let before = host.data.calls();
    for _ in 0..10 {
        let clients = [host.get(0, KEY), host.get(1, KEY)];
        assert!(
            clients
                .iter()
                .all(|client| admission(&host, *client) == Admission::Fresh)
        );
        host.close_all();
    }
    assert_eq!(host.data.calls(), before);
    assert_eq!(host.fetches.len(), 1);
}

#[test]
fn uncontended_miss_costs_two_reads_and_two_writes() {
    let mut host = host(2);
    host.get(0, KEY);
    fill(&mut host, FIRST);
    assert_eq!(host.data.calls(), Calls { get: 2, set: 2 });
}

#[test]
fn follower_of_another_worker_costs_one_read_and_one_write_however_many_come() {
    let mut host = host(2);
    host.get(0, KEY);
    let Calls { get, set } = host.data.calls();
    for _ in 0..100 {
        host.get(1, KEY);
    }
    assert_eq!(
        host.data.calls(),
        Calls {
            get: get + 1,
            set: set + 1
        }
    );
}

#[test]
fn worker_that_knows_nothing_finds_the_store_filled() {
    let mut host = host(2);
    host.get(0, KEY);
    fill(&mut host, FIRST);
    let late = host.get(1, KEY);
    assert_eq!(admission(&host, late), Admission::Lead, "it has no hint");
    assert_eq!(host.fetches.len(), 1);
    host.close_all();
    assert_all_over(&mut host);
}

#[test]
fn leader_that_leaves_before_the_headers_hands_over_to_its_own_worker() {
    let mut host = host(2);
    let leader = host.get(0, KEY);
    let (heir, far) = (host.get(0, KEY), host.get(1, KEY));
    host.abort(leader);
    assert_eq!(release(&host, heir), Some(Release::Lead));
    assert_eq!(host.counter(Metric::Handovers), 1);
    host.deliver_all();
    assert_eq!(host.stage(far), Stage::Parked, "the flight goes on");
    fill(&mut host, FetchId(1));
    assert_eq!(release(&host, far), Some(Release::Collapsed));
    assert_eq!(host.fetches.len(), 2);
    assert_all_over(&mut host);
}

#[test]
fn leader_that_leaves_hands_over_to_another_worker_without_waiting_for_the_lease() {
    let mut host = host(3);
    let leader = host.get(0, KEY);
    let (second, third) = (host.get(1, KEY), host.get(2, KEY));
    host.abort(leader);
    host.deliver_all();
    assert_eq!(release(&host, second), Some(Release::Lead));
    assert_eq!(host.stage(third), Stage::Parked, "one leads");
    fill(&mut host, FetchId(1));
    assert_eq!(release(&host, third), Some(Release::Collapsed));
    assert_all_over(&mut host);
}

#[test]
fn leader_that_leaves_amid_its_body_hands_over() {
    let mut host = host(2);
    let leader = host.get(0, KEY);
    let follower = host.get(1, KEY);
    host.answer(FIRST, Answer::Storable);
    host.progress(FIRST);
    host.abort(leader);
    host.deliver_all();
    assert_eq!(release(&host, follower), Some(Release::Lead));
    fill(&mut host, FetchId(1));
    assert_all_over(&mut host);
}

#[test]
fn leader_that_leaves_after_the_end_takes_nobody_with_it() {
    let mut host = host(2);
    let leader = host.get(0, KEY);
    let follower = host.get(1, KEY);
    host.deliver(0);
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    host.abort(leader);
    host.store().commit(KeyHash(KEY));
    host.answer_probe(0);
    host.deliver_all();
    assert_eq!(release(&host, follower), Some(Release::Collapsed));
    assert_eq!(host.fetches.len(), 1);
    host.close_all();
    assert_all_over(&mut host);
}

#[test]
fn heir_is_whoever_is_still_there() {
    let mut host = host(1);
    let leader = host.get(0, KEY);
    let waiting: Vec<_> = (0..5).map(|_| host.get(0, KEY)).collect();
    host.abort(waiting[0]);
    host.abort(waiting[1]);
    host.abort(leader);
    assert_eq!(release(&host, waiting[2]), Some(Release::Lead));
    assert_eq!(host.parked(), 2);
}

#[test]
fn uncacheable_response_releases_all_at_once_and_is_remembered_for_its_time() {
    let mut host = host(2);
    host.get(0, KEY);
    let followers: Vec<_> = (0..10).map(|number| host.get(number % 2, KEY)).collect();
    host.answer(FIRST, Answer::Uncacheable);
    host.deliver_all();
    assert_eq!(releases(&host, &followers, Release::HitForMiss), 10);
    assert_eq!(host.fetches.len(), 11, "each by itself, at once");

    let calls = host.data.calls();
    let later = [host.get(0, KEY), host.get(1, KEY)];
    assert!(
        later
            .iter()
            .all(|client| admission(&host, *client) == Admission::HitForMiss)
    );
    assert_eq!(host.data.calls(), calls);

    host.advance(HIT_FOR_MISS);
    let after = host.get(0, KEY);
    assert_eq!(admission(&host, after), Admission::Lead, "forgotten");
}

#[test]
fn without_room_a_large_response_releases_all_at_once_and_nothing_is_remembered() {
    let mut host = host(2);
    host.get(0, KEY);
    let followers: Vec<_> = (0..10).map(|number| host.get(number % 2, KEY)).collect();
    host.answer(FIRST, Answer::NoRoom);
    host.deliver_all();
    assert_eq!(releases(&host, &followers, Release::NoRoom), 10);
    let next = host.get(0, KEY);
    assert_eq!(admission(&host, next), Admission::Lead, "there may be room");
}

#[test]
fn without_room_a_response_that_is_not_found_is_not_waited_for() {
    let mut host = host(2);
    host.get(0, KEY);
    let followers = [host.get(0, KEY), host.get(1, KEY)];
    host.answer(FIRST, Answer::Storable);
    host.end(FIRST);
    await_probe(&mut host, 0, KeyHash(KEY));
    host.refuse_probe(0);
    host.deliver_all();
    assert_eq!(release(&host, followers[0]), Some(Release::Lead));
    assert_eq!(host.stage(followers[1]), Stage::Parked);
    assert_eq!(host.counter(Metric::Unshared), 1);
}

#[test]
fn without_room_a_copy_serves_a_worker_and_one_request_asks_for_each_other_worker() {
    let mut host = host(2);
    host.get(0, KEY);
    let near = [host.get(0, KEY), host.get(0, KEY)];
    let far = [host.get(1, KEY), host.get(1, KEY)];
    host.share_copy(FIRST);
    host.deliver_all();
    assert!(near.map(|client| host.stage(client)) == [Stage::Over(Ending::Served); 2]);
    assert_eq!(releases(&host, &far, Release::Lead), 1);
    host.share_copy(FetchId(1));
    assert_eq!(host.stage(far[1]), Stage::Over(Ending::Served));
    assert_eq!(host.fetches.len(), 2);
    assert_eq!(host.parked(), 0);
}

#[test]
fn failure_of_the_origin_is_shared() {
    let mut host = host(2);
    host.get(0, KEY);
    let followers: Vec<_> = (0..10).map(|number| host.get(number % 2, KEY)).collect();
    host.answer(FIRST, Answer::Failed(503));
    host.deliver_all();
    for client in followers {
        assert_eq!(host.stage(client), Stage::Over(Ending::Failed(503)));
    }
    assert_eq!(host.fetches.len(), 1);
    assert_eq!(host.board(), []);
    let next = host.get(1, KEY);
    assert_eq!(
        admission(&host, next),
        Admission::Lead,
        "failures are not remembered"
    );
}

#[test]
fn connection_lost_before_the_headers_is_a_failure_that_is_shared() {
    let mut host = host(2);
    host.get(0, KEY);
    let follower = host.get(1, KEY);
    host.reset(FIRST);
    host.deliver_all();
    assert_eq!(host.stage(follower), Stage::Over(Ending::Failed(503)));
    assert_eq!(host.fetches.len(), 1);
}

#[test]
fn connection_lost_amid_the_body_is_a_failure_that_is_shared() {
    let mut host = host(2);
    host.get(0, KEY);
    let followers = [host.get(0, KEY), host.get(1, KEY)];
    host.answer(FIRST, Answer::Storable);
    host.reset(FIRST);
    host.deliver_all();
    for client in followers {
        assert_eq!(host.stage(client), Stage::Over(Ending::Failed(502)));
    }
    assert_all_over(&mut host);
}

#[test]
fn followers_leave_a_stalled_leader_in_growing_batches() {
    let mut host = host(1);
    let max_wait = host.policy.max_wait;
    host.get(0, KEY);
    let followers: Vec<_> = (0..100).map(|_| host.get(0, KEY)).collect();
    live(&mut host, max_wait - 10);
    assert_eq!(host.parked(), 100, "not before max_wait");
    let mut batches = Vec::new();
    let mut parked = host.parked();
    for _ in 0..100 {
        live(&mut host, 10);
        if host.parked() < parked {
            batches.push(parked - host.parked());
            parked = host.parked();
        }
    }
    assert_eq!(batches, [1, 2, 4, 8, 16, 32, 37]);
    assert_eq!(releases(&host, &followers, Release::WaitTimeout), 100);
    assert_eq!(host.counter(Metric::WaitTimeouts), 100);
}

#[test]
fn followers_of_another_worker_leave_a_stalled_leader_too() {
    let mut host = host(2);
    let max_wait = host.policy.max_wait;
    host.get(0, KEY);
    let follower = host.get(1, KEY);
    live(&mut host, max_wait - 10);
    assert_eq!(host.stage(follower), Stage::Parked);
    live(&mut host, 100);
    assert_eq!(release(&host, follower), Some(Release::WaitTimeout));
    assert_eq!(
        host.coalescer(1).unwrap().flights(),
        0,
        "nobody waits there any more"
    );
}

#[test]
fn progress_of_the_leader_postpones_the_wait_timeout_on_every_worker() {
    for max_wait in [600, 1_000, 5_000] {
        let rules = FlightPolicy {
            max_wait,
            ..policy()
        };
        let mut host = host_with(rules, 2);
        host.get(0, KEY);
        let followers = [host.get(0, KEY), host.get(1, KEY)];
        host.answer(FIRST, Answer::Storable);
        for _ in 0..20_000 / 100 {
            live(&mut host, 100);
            host.progress(FIRST);
        }
        assert_eq!(
            host.parked(),
            2,
            "a long download is progress, max_wait {max_wait}"
        );
        fill(&mut host, FIRST);
        assert_eq!(releases(&host, &followers, Release::Collapsed), 2);
        assert_eq!(host.fetches.len(), 1);
        assert_all_over(&mut host);
    }
}

#[test]
fn batches_begin_anew_when_a_stalled_leader_has_moved() {
    let mut host = host(1);
    let max_wait = host.policy.max_wait;
    host.get(0, KEY);
    for _ in 0..50 {
        host.get(0, KEY);
    }
    host.answer(FIRST, Answer::Storable);
    live(&mut host, max_wait + 250);
    assert_eq!(host.parked(), 50 - 1 - 2 - 4);
    host.progress(FIRST);
    live(&mut host, max_wait - 10);
    assert_eq!(host.parked(), 43);
    live(&mut host, 60);
    assert_eq!(host.parked(), 42);
}

#[test]
fn a_flight_commits_between_the_end_of_its_response_and_the_sight_of_it() {
    let mut host = host(1);
    let commits = |host: &mut FakeHost| host.coalescer(0).unwrap().is_committing(KeyHash(KEY));
    host.get(0, KEY);
    assert!(!commits(&mut host), "fetching");
    host.answer(FIRST, Answer::Storable);
    assert!(!commits(&mut host), "filling");
    host.end(FIRST);
    assert!(commits(&mut host));
    host.store().commit(KeyHash(KEY));
    await_probe(&mut host, 0, KeyHash(KEY));
    host.answer_probe(0);
    assert!(!commits(&mut host), "over");
    host.close_all();
    assert_all_over(&mut host);
}

#[test]
fn what_is_remembered_of_a_key_neither_leads_nor_waits() {
    let mut host = host(1);
    let (flying, stored, barred) = (KeyHash(KEY), KeyHash(KEY + 1), KeyHash(KEY + 2));
    let leader = host.get(0, KEY);
    let coalescer = host.coalescer(0).unwrap();
    coalescer.hints().set(stored, Hint::Fresh, 1_000);
    coalescer.hints().set(barred, Hint::HitForMiss, 1_000);
    for (key, remembered, known) in [
        (flying, None, true),
        (stored, Some(Admission::Fresh), true),
        (barred, Some(Admission::HitForMiss), true),
        (KeyHash(KEY + 3), None, false),
    ] {
        assert_eq!(coalescer.remembered(key, 999), remembered, "{key:?}");
        assert_eq!(coalescer.knows(key, 999), known, "{key:?}");
    }
    assert!(!coalescer.knows(stored, 1_000), "outdated");
    assert_eq!(coalescer.parked(), 0);
    host.abort(leader);
    assert!(!host.coalescer(0).unwrap().knows(flying, 999));
}

#[test]
fn head_waits_but_never_leads() {
    let mut host = host(2);
    let first = host.head(0, KEY);
    assert_eq!(
        admission(&host, first),
        Admission::Alone,
        "nobody to wait for"
    );
    host.end(FIRST);

    let leader = host.get(0, KEY);
    let (head, get) = (host.head(0, KEY), host.get(0, KEY));
    assert_eq!(admission(&host, head), Admission::Park);
    host.abort(leader);
    assert_eq!(
        release(&host, get),
        Some(Release::Lead),
        "though the HEAD came first"
    );
    assert_eq!(host.stage(head), Stage::Parked);
    host.abort(get);
    assert_eq!(
        release(&host, head),
        Some(Release::Alone),
        "nobody is left to lead"
    );
}

#[test]
fn head_waits_on_when_the_gets_of_its_worker_have_left() {
    let mut host = host(2);
    host.get(0, KEY);
    let (get, head) = (host.get(1, KEY), host.head(1, KEY));
    host.abort(get);
    host.answer(FIRST, Answer::Storable);
    for _ in 0..20 {
        live(&mut host, 100);
        host.progress(FIRST);
    }
    assert_eq!(
        host.stage(head),
        Stage::Parked,
        "another worker's request leads all the time"
    );
    fill(&mut host, FIRST);
    assert_eq!(release(&host, head), Some(Release::Collapsed));
    assert_all_over(&mut host);
}

#[test]
fn unexpected_miss_is_counted_and_others_wait_for_it() {
    let mut host = host(1);
    host.get(0, KEY);
    fill(&mut host, FIRST);
    host.store().evict(KeyHash(KEY));
    let surprised = host.get(0, KEY);
    assert_eq!(admission(&host, surprised), Admission::Fresh);
    assert_eq!(host.counter(Metric::UnexpectedMisses), 1);
    let next = host.get(0, KEY);
    assert_eq!(admission(&host, next), Admission::Park);
    fill(&mut host, FetchId(1));
    assert_eq!(release(&host, next), Some(Release::Collapsed));
    assert_eq!(host.fetches.len(), 2);
    assert_all_over(&mut host);
}
