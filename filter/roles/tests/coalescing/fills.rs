// SPDX-License-Identifier: Apache-2.0
//! Messages to followers while a response is on its way into the store, and after its leader has left.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_fake::{Answer, Client, Ending, FakeEnvoy, FetchId, Kind, Stage};

use crate::support::{FIRST, KEY, admission, assert_all_over, envoy, fill, live, plain, release};

/// Starts a v1 leader that leaves amid its body. The abort of its fill has not been carried out.
fn leader_that_left(envoy: &mut FakeEnvoy) -> Client {
    envoy.slow_aborts = true;
    let leader = envoy.get(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    envoy.abort(leader);
    leader
}

fn aborts(envoy: &FakeEnvoy) -> u32 {
    envoy.counter(Metric::FillsAborted)
}

#[test]
fn leader_that_leaves_amid_its_body_has_its_fill_aborted_before_another_leads() {
    let mut envoy = envoy(2);
    leader_that_left(&mut envoy);
    let (near, far) = (envoy.get(0, KEY), envoy.get(1, KEY));
    live(&mut envoy, 1_000);
    envoy.deliver_all();
    assert_eq!(aborts(&envoy), 1);
    assert_eq!(envoy.parked(), 2, "the store has not let go of the key");
    envoy.carry_out_aborts();
    assert_eq!(
        release(&envoy, near),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    fill(&mut envoy, FetchId(1));
    assert_eq!(
        release(&envoy, far),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_all_over(&mut envoy);
}

#[test]
fn key_of_an_aborted_fill_goes_to_another_worker_where_nobody_waits_on_the_first() {
    let mut envoy = envoy(3);
    leader_that_left(&mut envoy);
    let (second, third) = (envoy.get(1, KEY), envoy.get(2, KEY));
    envoy.deliver_all();
    assert_eq!(envoy.parked(), 2);
    envoy.carry_out_aborts();
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
fn fill_that_ends_before_its_abort_is_aborted_at_its_end() {
    let mut envoy = envoy(2);
    leader_that_left(&mut envoy);
    let (near, far) = (envoy.get(0, KEY), envoy.get(1, KEY));
    envoy.end(FIRST);
    assert_eq!(
        release(&envoy, near),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    envoy.carry_out_aborts();
    fill(&mut envoy, FetchId(1));
    assert_eq!(
        release(&envoy, far),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_all_over(&mut envoy);
}

#[test]
fn abort_without_an_answer_holds_the_key_for_max_wait_only() {
    for followed in [false, true] {
        let mut envoy = envoy(2);
        let max_wait = envoy.policy.max_wait;
        leader_that_left(&mut envoy);
        envoy.lose_aborts();
        live(&mut envoy, max_wait - 100);
        assert_ne!(envoy.board(), [], "the lease is renewed");
        let late = followed.then(|| envoy.get(1, KEY));
        live(&mut envoy, 200);
        envoy.deliver_all();
        if let Some(client) = late {
            assert_eq!(release(&envoy, client), Some(NextStep::WaitTimeout));
        }
        envoy.progress(FIRST);
        let next = envoy.get(1, KEY);
        assert_eq!(admission(&envoy, next), Some(StoreRequest::Lead));
        for fetch in envoy.open_fetches() {
            fill(&mut envoy, fetch);
        }
        assert_all_over(&mut envoy);
    }
}

#[test]
fn late_news_of_a_fill_that_was_given_up_disturbs_nobody() {
    let mut envoy = envoy(1);
    let max_wait = envoy.policy.max_wait;
    leader_that_left(&mut envoy);
    live(&mut envoy, max_wait - 100);
    let (heir, follower) = (envoy.get(0, KEY), envoy.get(0, KEY));
    live(&mut envoy, 200);
    assert_eq!(
        release(&envoy, heir),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    envoy.carry_out_aborts();
    assert_eq!(envoy.stage(follower), Stage::Parked);
    fill(&mut envoy, FetchId(1));
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_all_over(&mut envoy);
}

#[test]
fn range_waits_for_the_leader_of_another_worker_and_does_not_lead_unseen() {
    let mut envoy = envoy(2);
    let leader = envoy.get(0, KEY);
    let range = envoy.range(1, KEY);
    assert_eq!(admission(&envoy, range), None);
    envoy.abort(leader);
    envoy.deliver_all();
    envoy.answer_lookup(1);
    let asked = envoy.fetches.last().unwrap();
    assert_eq!(asked.request, StoreRequest::Head, "no leader is left");
    envoy.answer(FetchId(1), Answer::Storable);
    fill(&mut envoy, FetchId(2));

    envoy.get(0, KEY + 1);
    let range = envoy.range(1, KEY + 1);
    fill(&mut envoy, FetchId(3));
    assert_eq!(
        release(&envoy, range),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_eq!(envoy.fetches.len(), 4);
    assert_all_over(&mut envoy);
}

/// A background fill that waits because a GET leads, and a GET that waits beside it. The client for which the fill
/// was started has left.
fn fill_that_waits(workers: usize) -> (FakeEnvoy, Client, Client) {
    let mut envoy = envoy(workers);
    envoy.hold_calls = true;
    let hasty = envoy.conditional(workers - 1, KEY);
    envoy.abort(hasty);
    plain(&mut envoy, 0);
    envoy.hold_calls = false;
    envoy.send_calls(workers - 1);
    let fill = Client(envoy.clients.len() - 1);
    assert_eq!(envoy.clients[fill.0].kind, Kind::Background);
    let other = envoy.get(workers - 1, KEY);
    assert_eq!(envoy.parked(), 2);
    (envoy, fill, other)
}

#[test]
fn fill_in_the_background_that_waits_ends_when_there_is_nothing_to_lead_for() {
    for workers in [1, 2] {
        for answer in [Answer::Uncacheable, Answer::Failed(503), Answer::Storable] {
            let (mut envoy, waiting, other) = fill_that_waits(workers);
            envoy.answer(FIRST, answer);
            fill(&mut envoy, FIRST);
            assert_eq!(envoy.stage(waiting), Stage::Over(Ending::Unneeded));
            // The control: a client that waits for its own response sends its own request, if the response is
            // uncacheable.
            let asks = answer == Answer::Uncacheable;
            assert_eq!(envoy.fetches.len(), if asks { 2 } else { 1 }, "{answer:?}");
            assert_eq!(
                release(&envoy, other) == Some(NextStep::HitForMiss(UncacheableReason::Private)),
                asks
            );
        }
    }
}

#[test]
fn fill_in_the_background_leaves_a_stalled_leader_for_nowhere() {
    for workers in [1, 2] {
        let (mut envoy, waiting, other) = fill_that_waits(workers);
        let max_wait = envoy.policy.max_wait;
        live(&mut envoy, max_wait + 20);
        assert_eq!(envoy.stage(waiting), Stage::Over(Ending::Unneeded));
        // The background fill takes no place among the followers that leave first.
        assert_eq!(release(&envoy, other), Some(NextStep::WaitTimeout));
        assert_eq!(envoy.counter(Metric::WaitTimeouts), 1);
        assert_eq!(envoy.fetches.len(), 2);
    }
}

#[test]
fn fill_in_the_background_that_waits_leads_when_the_leader_is_lost() {
    for workers in [1, 2] {
        let (mut envoy, waiting, other) = fill_that_waits(workers);
        envoy.abort(Client(1));
        envoy.deliver_all();
        assert_eq!(
            release(&envoy, waiting),
            Some(NextStep::Send(StoreRequest::Lead))
        );
        fill(&mut envoy, FetchId(1));
        assert_eq!(
            release(&envoy, other),
            Some(NextStep::Send(StoreRequest::Collapsed))
        );
        assert_eq!(envoy.fetches.len(), 2);
    }
}
