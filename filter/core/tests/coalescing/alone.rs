// SPDX-License-Identifier: Apache-2.0
//! Claims about a single coalescer: races between two calls of the host, and events that the roles do not pass to it.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::rc::Rc;

use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::learnt::hints::Hint;
use sluice_core::coalescing::shared::board::{FlightKey, Slot};
use sluice_core::coalescing::{
    Coalescer, Effect, NextStep, Request, StoreNews, StoreRequest, Turn,
};
use sluice_core::freshness::UncacheableReason;
use sluice_core::workers::message::FlightOutcome;
use sluice_core::workers::shared_table::SharedRecord as _;
use sluice_core::workers::{KeyHash, Millis, OwnHeaders, StreamId, WorkerId};
use sluice_fake::FakeSharedData;

use crate::support::{bucket, canonicalize_path};

const KEY: KeyHash = KeyHash(7);
const FLIGHT: FlightKey = FlightKey {
    entry: KEY,
    key: KEY,
};
const LEADER: StreamId = StreamId(1);
const FOLLOWER: StreamId = StreamId(2);

fn coalescer(worker: u16) -> Coalescer {
    Coalescer::new(WorkerId(worker), 8)
}

fn policy() -> FlightPolicy {
    FlightPolicy::of(&bucket())
}

/// Handles an event at `now`, and returns its effects.
fn turn<R>(
    data: &FakeSharedData,
    now: Millis,
    event: impl FnOnce(&mut Turn<'_>) -> R,
) -> (R, Vec<Effect>) {
    let mut effects = Vec::new();
    let result = event(&mut Turn {
        store: data,
        now,
        effects: &mut effects,
    });
    (result, effects)
}

fn request(
    coalescer: &mut Coalescer,
    data: &FakeSharedData,
    stream: StreamId,
    now: Millis,
) -> Option<NextStep> {
    let target = Rc::new(canonicalize_path(&bucket(), b"/object").unwrap());
    let request = Request {
        stream,
        key: FLIGHT,
        target: &target,
        own_headers: OwnHeaders::NONE,
        may_lead: true,
        for_others: false,
        policy: policy(),
    };
    turn(data, now, |turn| coalescer.request(&request, turn)).0
}

fn close(
    coalescer: &mut Coalescer,
    data: &FakeSharedData,
    stream: StreamId,
    now: Millis,
) -> Vec<Effect> {
    turn(data, now, |turn| coalescer.closed(stream, turn)).1
}

#[test]
fn what_is_remembered_of_a_key_neither_leads_nor_waits() {
    let (data, mut coalescer) = (FakeSharedData::default(), coalescer(1));
    let (stored, barred) = (KeyHash(8), KeyHash(9));
    assert_eq!(
        request(&mut coalescer, &data, LEADER, 1),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    coalescer.hints().set(stored, Hint::Fresh, 1_000);
    coalescer
        .hints()
        .set(barred, Hint::HitForMiss(UncacheableReason::Private), 1_000);
    for (key, remembered, known) in [
        (KEY, None, true),
        (stored, Some(NextStep::Send(StoreRequest::Fresh)), true),
        (
            barred,
            Some(NextStep::HitForMiss(UncacheableReason::Private)),
            true,
        ),
        (KeyHash(10), None, false),
    ] {
        assert_eq!(coalescer.remembered(key, 999), remembered, "{key:?}");
        assert_eq!(coalescer.knows(key, 999), known, "{key:?}");
    }
    assert!(!coalescer.knows(stored, 1_000), "outdated");
    assert_eq!(coalescer.parked(), 0);
    close(&mut coalescer, &data, LEADER, 1);
    assert!(!coalescer.knows(KEY, 999));
}

#[test]
fn followers_of_a_leader_that_the_store_serves_are_hits_too() {
    let (data, mut coalescer) = (FakeSharedData::default(), coalescer(1));
    request(&mut coalescer, &data, LEADER, 1);
    assert_eq!(request(&mut coalescer, &data, FOLLOWER, 1), None);
    let stored = FlightOutcome::Found {
        until: 1_000,
        small: true,
    };
    let ((), effects) = turn(&data, 2, |turn| coalescer.end_flight(LEADER, stored, turn));
    assert!(
        resumes(&effects, NextStep::Send(StoreRequest::Fresh)),
        "{effects:?}"
    );
    assert_eq!(
        coalescer.remembered(KEY, 999),
        Some(NextStep::Send(StoreRequest::Fresh))
    );
}

/// A leader whose client disconnected in the middle of the body, with an abort that has not been carried out, and a
/// follower.
fn leader_that_left(data: &FakeSharedData) -> Coalescer {
    let mut coalescer = coalescer(1);
    assert_eq!(
        request(&mut coalescer, data, LEADER, 1),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    turn(data, 1, |turn| {
        coalescer.fill_begins(LEADER, turn.now);
    });
    let effects = close(&mut coalescer, data, LEADER, 1);
    assert!(effects.contains(&Effect::Abort { stream: LEADER }));
    assert_eq!(request(&mut coalescer, data, FOLLOWER, 1), None);
    coalescer
}

fn resumes(effects: &[Effect], wanted: NextStep) -> bool {
    let resumes = |effect: &Effect| matches!(effect, Effect::Resume { stream: FOLLOWER, next_step, .. } if *next_step == wanted);
    effects.iter().any(resumes)
}

#[test]
fn fill_that_ends_before_its_abort_is_shared() {
    let data = FakeSharedData::default();
    let mut coalescer = leader_that_left(&data);
    turn(&data, 2, |turn| coalescer.fill_ended(LEADER, turn));
    turn(&data, 2, |turn| coalescer.fill_broken(LEADER, turn));
    assert_eq!(coalescer.parked(), 1, "the store is not ready");
    let found = StoreNews::Readable {
        until: 1_000,
        small: true,
    };
    let ((), effects) = turn(&data, 3, |turn| coalescer.stored(KEY, found, turn));
    assert!(
        resumes(&effects, NextStep::Send(StoreRequest::Collapsed)),
        "{effects:?}"
    );
}

#[test]
fn a_store_that_does_not_take_a_response_has_another_request_lead_and_then_none() {
    const OTHERS: [StreamId; 2] = [StreamId(8), StreamId(9)];
    let data = FakeSharedData::default();
    let mut coalescer = leader_that_left(&data);
    let ((), effects) = turn(&data, 2, |turn| coalescer.fill_broken(LEADER, turn));
    assert!(
        effects.contains(&Effect::Aborted { key: KEY }),
        "{effects:?}"
    );
    assert!(
        resumes(&effects, NextStep::Send(StoreRequest::Lead)),
        "{effects:?}"
    );
    for other in OTHERS {
        assert_eq!(request(&mut coalescer, &data, other, 3), None);
    }
    let barred = NextStep::HitForMiss(UncacheableReason::NotTaken);
    let leaders = [FOLLOWER, OTHERS[0]].into_iter();
    let next = [
        (OTHERS[0], NextStep::Send(StoreRequest::Lead)),
        (OTHERS[1], barred),
    ];
    for (leader, expected) in leaders.zip(next) {
        turn(&data, 3, |turn| {
            coalescer.fill_begins(leader, turn.now);
            coalescer.fill_ended(leader, turn);
        });
        let ((), effects) = turn(&data, 4, |turn| {
            coalescer.stored(KEY, StoreNews::Missing, turn);
        });
        let resumed = effects.iter().find_map(|effect| match effect {
            Effect::Resume {
                stream, next_step, ..
            } => Some((*stream, *next_step)),
            _ => None,
        });
        assert_eq!(resumed, Some(expected), "{effects:?}");
    }
    assert_eq!(coalescer.remembered(KEY, 5), Some(barred));
}

#[test]
fn abort_without_an_answer_is_not_waited_for_any_longer_though_the_body_goes_on() {
    let data = FakeSharedData::default();
    let mut coalescer = leader_that_left(&data);
    let max_wait = policy().max_wait;
    for now in (101..max_wait).step_by(100) {
        coalescer.fill_progress(LEADER, now);
        let ((), effects) = turn(&data, now, |turn| coalescer.tick(turn));
        assert_eq!(coalescer.parked(), 1, "{now}: {effects:?}");
    }
    let ((), effects) = turn(&data, max_wait + 1, |turn| coalescer.tick(turn));
    assert!(
        resumes(&effects, NextStep::Send(StoreRequest::Lead)),
        "{effects:?}"
    );
}

#[test]
fn store_is_asked_at_once_where_a_request_waits_and_not_once_the_flight_is_over() {
    let (data, mut coalescer) = (FakeSharedData::default(), coalescer(1));
    request(&mut coalescer, &data, LEADER, 1);
    assert_eq!(request(&mut coalescer, &data, FOLLOWER, 1), None);
    turn(&data, 1, |turn| {
        coalescer.fill_begins(LEADER, turn.now);
    });
    let ((), effects) = turn(&data, 1, |turn| coalescer.fill_ended(LEADER, turn));
    let asked = |effect: &Effect| matches!(effect, Effect::Await { fill, .. } if fill.urgent);
    assert!(effects.iter().any(asked), "{effects:?}");
    close(&mut coalescer, &data, LEADER, 1);
    let ((), effects) = turn(&data, 2, |turn| {
        coalescer.stored(KEY, StoreNews::Lost, turn);
    });
    assert!(
        resumes(&effects, NextStep::Send(StoreRequest::Lead)),
        "{effects:?}"
    );
    let over = Effect::AwaitNoMore { key: KEY };
    assert!(effects.contains(&over), "{effects:?}");
}

/// Two workers that race between the read and the write of one of them.
mod race {
    use super::*;

    #[test]
    fn of_two_first_requests_the_one_that_writes_first_leads() {
        for occupied in [false, true] {
            let data = FakeSharedData::default();
            let mut second = coalescer(2);
            if occupied {
                // The slot exists already, so that its creation does not decide the race.
                request(&mut second, &data, FOLLOWER, 1);
                close(&mut second, &data, FOLLOWER, 1);
            }
            data.before_next_set(move |data| {
                let admission = request(&mut second, data, FOLLOWER, 1);
                assert_eq!(admission, Some(NextStep::Send(StoreRequest::Lead)));
            });
            let first = request(&mut coalescer(1), &data, LEADER, 1);
            assert_eq!(first, None, "slot occupied before: {occupied}");
        }
    }

    #[test]
    fn request_that_would_follow_a_flight_which_ends_meanwhile_leads() {
        let data = FakeSharedData::default();
        let mut leader = coalescer(1);
        request(&mut leader, &data, LEADER, 1);
        data.before_next_set(move |data| {
            close(&mut leader, data, LEADER, 1);
            assert_eq!(leader.flights(), 0);
        });
        let admission = request(&mut coalescer(2), &data, FOLLOWER, 1);
        assert_eq!(admission, Some(NextStep::Send(StoreRequest::Lead)));
    }

    #[test]
    fn flight_that_ends_while_another_worker_joins_tells_it() {
        let data = FakeSharedData::default();
        let mut leader = coalescer(1);
        request(&mut leader, &data, LEADER, 1);
        data.before_next_set(|data| {
            let admission = request(&mut coalescer(2), data, FOLLOWER, 1);
            assert_eq!(admission, None);
        });
        let effects = close(&mut leader, &data, LEADER, 1);
        let told = format!("{effects:?}");
        assert!(told.contains("Notify { worker: WorkerId(2)"), "{told}");
    }

    #[test]
    fn lease_that_runs_out_while_its_leader_ends_has_one_owner() {
        let data = FakeSharedData::default();
        let mut leader = coalescer(1);
        request(&mut leader, &data, LEADER, 1);
        data.before_next_set(|data| {
            let admission = request(&mut coalescer(2), data, FOLLOWER, 5_000);
            assert_eq!(admission, Some(NextStep::Send(StoreRequest::Lead)));
        });
        close(&mut leader, &data, LEADER, 5_000);
        let slot = Slot::decode(&data.values()[0].1).unwrap_or_default();
        let owners: Vec<_> = slot.leases().map(|(_, id, _)| id.worker).collect();
        assert_eq!(owners, [WorkerId(2)], "the heir's flight stays");
    }
}

#[test]
fn a_hit_from_before_a_rewrite_does_not_send_others_into_the_gap() {
    let (data, mut coalescer) = (FakeSharedData::default(), coalescer(1));
    let target = Rc::new(canonicalize_path(&bucket(), b"/object").unwrap());
    let met = Request {
        stream: LEADER,
        key: FLIGHT,
        target: &target,
        own_headers: OwnHeaders::NONE,
        may_lead: true,
        for_others: false,
        policy: policy(),
    };
    turn(&data, 0, |turn| coalescer.await_return(&met, turn));
    coalescer.hints().set(KEY, Hint::Fresh, 1_000);
    let waits = request(&mut coalescer, &data, FOLLOWER, 1);
    assert_eq!(waits, None, "it waits for the store");
    let found = StoreNews::Readable {
        until: 1_000,
        small: true,
    };
    let (_, effects) = turn(&data, 2, |turn| coalescer.stored(KEY, found, turn));
    assert!(
        resumes(&effects, NextStep::Send(StoreRequest::Fresh)),
        "{effects:?}"
    );
    let after = request(&mut coalescer, &data, StreamId(3), 3);
    assert_eq!(after, Some(NextStep::Send(StoreRequest::Fresh)));
}
