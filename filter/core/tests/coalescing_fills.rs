// SPDX-License-Identifier: Apache-2.0
//! Who is told what while a response is on its way into the store, and when its leader has left.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use sluice_core::coalescing::{Admission, Effect, Release};
use sluice_core::metrics::Metric;
use sluice_core::workers::KeyHash;
use sluice_fake::mirror::{Answer, Client, Ending, FakeHost, FetchId, Kind, Stage};
use support::flights::{FIRST, KEY, admission, assert_all_over, fill, host, live, release};

/// A v1 leader that left amid its body, with an abort that has not been carried out.
fn leader_that_left(host: &mut FakeHost) -> Client {
    host.slow_aborts = true;
    let leader = host.get(0, KEY);
    host.answer(FIRST, Answer::Storable);
    host.abort(leader);
    leader
}

fn aborts(host: &FakeHost) -> usize {
    host.effects
        .iter()
        .filter(|(_, effect)| matches!(effect, Effect::Abort { .. }))
        .count()
}

#[test]
fn leader_that_leaves_amid_its_body_has_its_fill_aborted_before_another_leads() {
    let mut host = host(2);
    leader_that_left(&mut host);
    let (near, far) = (host.get(0, KEY), host.get(1, KEY));
    live(&mut host, 1_000);
    host.deliver_all();
    assert_eq!(aborts(&host), 1);
    assert_eq!(host.parked(), 2, "the store has not let go of the key");
    host.carry_out_aborts();
    assert_eq!(release(&host, near), Some(Release::Lead));
    fill(&mut host, FetchId(1));
    assert_eq!(release(&host, far), Some(Release::Collapsed));
    assert_all_over(&mut host);
}

#[test]
fn key_of_an_aborted_fill_goes_to_another_worker_where_nobody_waits_on_the_first() {
    let mut host = host(3);
    leader_that_left(&mut host);
    let (second, third) = (host.get(1, KEY), host.get(2, KEY));
    host.deliver_all();
    assert_eq!(host.parked(), 2);
    host.carry_out_aborts();
    host.deliver_all();
    assert_eq!(release(&host, second), Some(Release::Lead));
    assert_eq!(host.stage(third), Stage::Parked, "one leads");
    fill(&mut host, FetchId(1));
    assert_eq!(release(&host, third), Some(Release::Collapsed));
    assert_all_over(&mut host);
}

#[test]
fn fill_that_ends_before_its_abort_is_shared() {
    let mut host = host(2);
    leader_that_left(&mut host);
    let followers = [host.get(0, KEY), host.get(1, KEY)];
    host.end(FIRST);
    host.carry_out_aborts();
    assert_eq!(host.parked(), 2, "the store is not ready");
    host.store().commit(KeyHash(KEY));
    host.answer_probe(0);
    host.deliver_all();
    for client in followers {
        assert_eq!(release(&host, client), Some(Release::Collapsed));
    }
    assert_eq!(host.fetches.len(), 1);
    host.close_all();
    assert_all_over(&mut host);
}

#[test]
fn abort_without_an_answer_holds_the_key_for_max_wait_only() {
    for followed in [false, true] {
        let mut host = host(2);
        let max_wait = host.policy.max_wait;
        leader_that_left(&mut host);
        host.lose_aborts();
        // It asks for more of the body all the time, which is no reason to go on waiting.
        for _ in 0..max_wait / 100 - 1 {
            live(&mut host, 100);
            host.progress(FIRST);
        }
        assert_ne!(host.board(), [], "the lease is renewed");
        let late = followed.then(|| host.get(1, KEY));
        live(&mut host, 200);
        host.deliver_all();
        if let Some(client) = late {
            assert_eq!(release(&host, client), Some(Release::Lead));
            fill(&mut host, FetchId(1));
        }
        assert_all_over(&mut host);
    }
}

#[test]
fn late_news_of_a_fill_that_was_given_up_disturbs_nobody() {
    let mut host = host(1);
    let max_wait = host.policy.max_wait;
    leader_that_left(&mut host);
    live(&mut host, max_wait - 100);
    let (heir, follower) = (host.get(0, KEY), host.get(0, KEY));
    live(&mut host, 200);
    assert_eq!(release(&host, heir), Some(Release::Lead));
    host.carry_out_aborts();
    assert_eq!(host.stage(follower), Stage::Parked);
    fill(&mut host, FetchId(1));
    assert_eq!(release(&host, follower), Some(Release::Collapsed));
    assert_all_over(&mut host);
}

#[test]
fn head_waits_for_the_leader_of_another_worker_and_never_leads() {
    let mut host = host(2);
    let leader = host.get(0, KEY);
    let head = host.head(1, KEY);
    assert_eq!(admission(&host, head), Admission::Park);
    host.abort(leader);
    host.deliver_all();
    assert_eq!(
        release(&host, head),
        Some(Release::Alone),
        "nobody is left to lead"
    );
    fill(&mut host, FetchId(1));

    host.get(0, KEY);
    let head = host.head(1, KEY);
    fill(&mut host, FetchId(2));
    assert_eq!(release(&host, head), Some(Release::Collapsed));
    assert_eq!(host.fetches.len(), 3);
    assert_all_over(&mut host);
}

/// A fill in the background that waits, as a GET leads, and a GET that waits beside it.
fn fill_that_waits(workers: usize) -> (FakeHost, Client, Client) {
    let mut host = host(workers);
    host.get(0, KEY);
    let fill = host.arrive(workers - 1, KEY, Kind::Background);
    let other = host.get(workers - 1, KEY);
    assert_eq!(host.parked(), 2);
    (host, fill, other)
}

#[test]
fn fill_in_the_background_that_waits_ends_when_there_is_nothing_to_lead_for() {
    for workers in [1, 2] {
        for answer in [Answer::Uncacheable, Answer::Failed(503), Answer::Storable] {
            let (mut host, waiting, other) = fill_that_waits(workers);
            host.answer(FIRST, answer);
            fill(&mut host, FIRST);
            assert_eq!(host.stage(waiting), Stage::Over(Ending::Unneeded));
            // The control: who waits for its own sake asks for itself, if that is what is to be done.
            let asks = answer == Answer::Uncacheable;
            assert_eq!(host.fetches.len(), if asks { 2 } else { 1 }, "{answer:?}");
            assert_eq!(release(&host, other) == Some(Release::HitForMiss), asks);
        }
    }
}

#[test]
fn fill_in_the_background_leaves_a_stalled_leader_for_nowhere() {
    for workers in [1, 2] {
        let (mut host, waiting, other) = fill_that_waits(workers);
        let max_wait = host.policy.max_wait;
        live(&mut host, max_wait + 20);
        assert_eq!(host.stage(waiting), Stage::Over(Ending::Unneeded));
        // It takes nobody's place among those who leave first.
        assert_eq!(release(&host, other), Some(Release::WaitTimeout));
        assert_eq!(host.counter(Metric::WaitTimeouts), 1);
        assert_eq!(host.fetches.len(), 2);
    }
}

#[test]
fn fill_in_the_background_that_waits_leads_when_the_leader_is_lost() {
    for workers in [1, 2] {
        let (mut host, waiting, other) = fill_that_waits(workers);
        host.abort(Client(0));
        host.deliver_all();
        assert_eq!(release(&host, waiting), Some(Release::Lead));
        fill(&mut host, FetchId(1));
        assert_eq!(release(&host, other), Some(Release::Collapsed));
        assert_eq!(host.fetches.len(), 2);
    }
}
