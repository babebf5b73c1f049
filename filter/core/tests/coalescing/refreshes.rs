// SPDX-License-Identifier: Apache-2.0
//! One refresh runs for a key, for any number of workers, and the origin is not asked again soon after it.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use sluice_core::coalescing::flight::FlightPolicy;
use sluice_core::coalescing::learnt::hints::Hint;
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::coalescing::{
    CLAIM_MILLIS, Coalescer, Effect, NextStep, Request, StoreRequest, Turn,
};
use sluice_core::key::CanonicalTarget;
use sluice_core::workers::message::{Event, FlightOutcome};
use sluice_core::workers::{KeyHash, Millis, OwnHeaders, StreamId, WorkerId};
use sluice_fake::FakeSharedData;

use crate::support::{bucket, canonicalize_path};

const KEY: KeyHash = KeyHash(7);
const PAUSE: Millis = 2_000;
/// Long after the start of the process.
const START: Millis = 1_000_000;

/// Workers that share data and know that the store has the key.
struct Edge {
    workers: Vec<Coalescer>,
    data: FakeSharedData,
    now: Millis,
    effects: Vec<Effect>,
}

impl Edge {
    fn new(workers: u16) -> Self {
        let worker = |number| {
            let mut worker = Coalescer::new(WorkerId(number), 100);
            worker.hints().set(KEY, Hint::Fresh, Millis::MAX);
            worker
        };
        Self {
            workers: (1..=workers).map(worker).collect(),
            data: FakeSharedData::default(),
            now: START,
            effects: Vec::new(),
        }
    }

    fn turn<R>(
        &mut self,
        worker: usize,
        event: impl FnOnce(&mut Coalescer, &mut Turn<'_>) -> R,
    ) -> R {
        let mut turn = Turn {
            store: &self.data,
            now: self.now,
            effects: &mut self.effects,
        };
        event(&mut self.workers[worker], &mut turn)
    }

    fn begins(&mut self, worker: usize) -> bool {
        self.turn(worker, |coalescer, turn| {
            coalescer.begin_refresh(KEY, PAUSE, turn)
        })
    }

    fn ends(&mut self, worker: usize, failed: bool) {
        self.turn(worker, |coalescer, turn| {
            coalescer.refreshed(KEY, failed, PAUSE, turn);
        });
    }
}

#[test]
fn one_worker_refreshes_and_the_others_leave_the_key_alone() {
    let mut edge = Edge::new(3);
    assert!(edge.begins(1));
    for worker in [0, 1, 2, 0, 1, 2] {
        assert!(!edge.begins(worker), "worker {worker}");
    }
}

#[test]
fn a_stale_hit_costs_a_look_at_shared_data_once_in_every_interval() {
    let mut edge = Edge::new(2);
    assert!(edge.begins(0));
    assert!(!edge.begins(1));
    let before = edge.data.calls().get;
    for _ in 0..100 {
        assert!(!edge.begins(0) && !edge.begins(1));
    }
    assert_eq!(edge.data.calls().get, before);
    edge.now += PAUSE;
    assert!(!edge.begins(1));
    assert_eq!(edge.data.calls().get, before + 1);
}

#[test]
fn nobody_asks_again_before_the_pause_is_over_whatever_came_of_it() {
    for failed in [true, false] {
        let mut edge = Edge::new(2);
        assert!(edge.begins(0));
        edge.ends(0, failed);
        edge.now += PAUSE - 1;
        assert!(!edge.begins(0) && !edge.begins(1), "failed: {failed}");
        edge.now += PAUSE;
        assert!(edge.begins(1), "failed: {failed}");
        assert!(!edge.begins(0), "failed: {failed}");
    }
}

#[test]
fn a_refresh_whose_worker_has_vanished_is_begun_anew_and_one_that_goes_on_is_not() {
    let mut edge = Edge::new(2);
    assert!(edge.begins(0));
    edge.now += CLAIM_MILLIS - 1;
    assert!(!edge.begins(1));
    edge.turn(0, |coalescer, turn| coalescer.refreshing(KEY, turn));
    edge.now += CLAIM_MILLIS - 1;
    assert!(!edge.begins(1));
    edge.now += PAUSE;
    assert!(edge.begins(1));
}

#[test]
fn an_origin_that_fails_is_known_until_it_answers() {
    let mut edge = Edge::new(1);
    assert!(edge.begins(0));
    edge.ends(0, true);
    let now = edge.now;
    assert!(edge.workers[0].hints().is_failing(KEY, now));
    edge.now += 2 * PAUSE;
    assert!(edge.begins(0));
    edge.ends(0, false);
    assert!(!edge.workers[0].hints().is_failing(KEY, now));
}

#[test]
fn followers_everywhere_get_what_the_store_keeps_and_learn_why() {
    let mut edge = Edge::new(2);
    for worker in &mut edge.workers {
        worker.hints().forget(KEY);
    }
    let target = Rc::new(canonicalize_path(&bucket(), b"/object").unwrap());
    let ask = |edge: &mut Edge, worker: usize, stream: u32| {
        let request = request(&target, stream);
        edge.turn(worker, |coalescer, turn| coalescer.request(&request, turn))
    };
    assert_eq!(
        ask(&mut edge, 0, 1),
        Some(NextStep::Send(StoreRequest::Lead))
    );
    assert_eq!(ask(&mut edge, 0, 2), None);
    assert_eq!(ask(&mut edge, 1, 1), None);
    let until = edge.now + 60_000;
    edge.turn(0, |coalescer, turn| {
        coalescer.end_flight(StreamId(1), FlightOutcome::Kept { until }, turn);
    });
    let news = edge.effects.iter().find_map(|effect| match effect {
        Effect::Notify { message, .. } if message.event != Event::Awaited => Some(message.clone()),
        _ => None,
    });
    let news = news.expect("a message to the other worker");
    edge.turn(1, |coalescer, turn| coalescer.message(news, turn));
    let released = edge.effects.iter().filter(
        |effect| matches!(effect, Effect::Resume { next_step, .. } if *next_step == NextStep::Send(StoreRequest::Collapsed)),
    );
    assert_eq!(released.count(), 2);
    let now = edge.now;
    for worker in &mut edge.workers {
        assert!(worker.hints().is_failing(KEY, now));
        assert_eq!(worker.hints().get(KEY, now), Some(Hint::Fresh));
        assert_eq!(worker.parked(), 0);
    }
}

fn request(target: &Rc<CanonicalTarget>, stream: u32) -> Request<'_> {
    Request {
        stream: StreamId(stream),
        key: FlightKey {
            entry: KEY,
            key: KEY,
        },
        target,
        own_headers: OwnHeaders::NONE,
        may_lead: true,
        for_others: false,
        policy: FlightPolicy::of(&bucket()),
    }
}

/// An event on a worker.
#[derive(Clone, Copy, Debug)]
enum Step {
    StaleHit,
    End { failed: bool },
    Renew,
    Forget,
    Advance(Millis),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn at_most_one_refresh_runs_and_none_begins_within_the_pause(
        steps in vec((0..3_usize, prop_oneof![
            6 => Just(Step::StaleHit),
            2 => any::<bool>().prop_map(|failed| Step::End { failed }),
            1 => Just(Step::Renew),
            1 => Just(Step::Forget),
            3 => (0..3_000_u64).prop_map(Step::Advance),
        ]), 1..120),
    ) {
        let mut edge = Edge::new(3);
        let mut running: Option<(usize, Millis)> = None;
        let mut rests: Millis = 0;
        for (worker, step) in steps {
            let now = edge.now;
            match step {
                Step::StaleHit => {
                    if edge.begins(worker) {
                        prop_assert!(running.is_none_or(|(_, until)| until <= now));
                        prop_assert!(rests <= now);
                        running = Some((worker, now + CLAIM_MILLIS));
                    }
                }
                Step::End { failed } => {
                    if let Some((by, _)) = running.filter(|(by, until)| *by == worker && *until > now) {
                        edge.ends(by, failed);
                        running = None;
                        rests = now + PAUSE;
                    }
                }
                Step::Renew => {
                    if let Some((by, _)) = running.filter(|(by, until)| *by == worker && *until > now) {
                        edge.turn(by, |coalescer, turn| coalescer.refreshing(KEY, turn));
                        running = Some((by, now + CLAIM_MILLIS));
                    }
                }
                // The same as with a full table of hints: a worker without a hint asks the board.
                Step::Forget => {
                    edge.workers[worker].hints().forget(KEY);
                    edge.workers[worker].hints().set(KEY, Hint::Fresh, Millis::MAX);
                }
                Step::Advance(millis) => edge.now += millis,
            }
        }
    }
}
