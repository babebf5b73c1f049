// SPDX-License-Identifier: Apache-2.0
//! Fills: the requests of this worker that are on their way to the origin through the store.

use crate::worker::keys::Keys;
use sluice_core::coalescing::Coalescer;
use std::rc::Rc;

use sluice_core::coalescing::beside::ahead::{FillProgress, Representation};
use sluice_core::metrics::Metric;
use sluice_core::workers::message::FlightOutcome;
use sluice_core::workers::{Millis, NumberMap, StreamId};
use sluice_store::Revalidation;

use crate::reply::DueReply;
use crate::request::EdgeRequest;
use crate::worker::Worker;
use sluice_host::Host;

/// Timer period while only the origin is waited for, however long it may take.
const LONGEST_WATCH_MILLIS: Millis = 1_000;
const SHORTEST_WATCH_MILLIS: Millis = 50;
/// The status of a request whose origin is silent.
const GATEWAY_TIMEOUT: u16 = 504;

/// A request of ORIGIN.
#[derive(Clone, Debug)]
struct Fill {
    context: u32,
    begun: Millis,
    /// Until the response headers have come.
    fallback: Option<Fallback>,
    /// The fallback has taken the place of the origin's answer.
    given_up: bool,
    /// What the store gets, where ranges of it can go ahead.
    brings: Option<(Rc<Representation>, FillProgress)>,
}

/// What the store serves if the origin does not answer in time.
#[derive(Clone, Debug)]
pub struct Fallback {
    /// The stored response.
    pub revalidation: Rc<Revalidation>,
    /// How long the origin may take to begin its answer.
    pub patience: Millis,
}

/// A fill whose origin has not begun its answer in time. Where the store has nothing to serve in its place, Envoy gives
/// the origin up.
#[derive(Clone, Debug)]
pub struct Overdue {
    /// The request of EDGE that caused it.
    pub stream: StreamId,
    /// ORIGIN's context.
    pub context: u32,
    /// What the store serves in place of the answer.
    pub revalidation: Rc<Revalidation>,
}

/// The fills, by the request of EDGE that caused each.
#[derive(Debug, Default)]
pub struct Fills {
    fills: NumberMap<StreamId, Fill>,
    /// The shortest time that an origin had to begin its answer, when those that are overdue were last looked for or
    /// since.
    patience: Option<Millis>,
}

impl Fills {
    /// A request goes to the origin.
    pub fn begin(
        &mut self,
        stream: StreamId,
        context: u32,
        fallback: Option<Fallback>,
        now: Millis,
    ) {
        let patience = fallback.as_ref().map(|fallback| fallback.patience);
        self.patience = [self.patience, patience].into_iter().flatten().min();
        self.fills.insert(
            stream,
            Fill {
                context,
                begun: now,
                fallback,
                given_up: false,
                brings: None,
            },
        );
    }

    /// Its response goes into the store: this, from `now` on.
    pub fn brings(&mut self, stream: StreamId, representation: Rc<Representation>, now: Millis) {
        if let Some(fill) = self.fills.get_mut(&stream) {
            let progress = FillProgress {
                begun: now,
                bytes: 0,
            };
            fill.brings = Some((representation, progress));
        }
    }

    /// What its response brings, and how far it has come.
    pub fn brought(&self, stream: StreamId) -> Option<(Rc<Representation>, FillProgress)> {
        self.fills.get(&stream)?.brings.clone()
    }

    /// `size` more bytes of its body have come.
    fn progress(&mut self, stream: StreamId, size: usize) {
        let fill = self.fills.get_mut(&stream);
        if let Some((_, progress)) = fill.and_then(|fill| fill.brings.as_mut()) {
            progress.bytes = progress.bytes.saturating_add(size as u64);
        }
    }

    /// Its response headers have come. True if the fallback has taken their place.
    pub fn answer(&mut self, stream: StreamId) -> bool {
        self.fills.get_mut(&stream).is_some_and(|fill| {
            fill.fallback = None;
            fill.given_up
        })
    }

    /// ORIGIN's context has gone. False if another has taken its place, or its fallback has.
    pub fn end(&mut self, stream: StreamId, context: u32) -> bool {
        if self.context(stream) != Some(context) {
            return false;
        }
        self.fills
            .remove(&stream)
            .is_some_and(|fill| !fill.given_up)
    }

    /// ORIGIN's context of the fill.
    pub fn context(&self, stream: StreamId) -> Option<u32> {
        self.fills.get(&stream).map(|fill| fill.context)
    }

    /// The timer period in which [`Fills::overdue`] is wanted.
    pub fn tick_period(&self) -> Option<Millis> {
        let patience = self.patience?;
        Some(patience.clamp(SHORTEST_WATCH_MILLIS, LONGEST_WATCH_MILLIS))
    }

    /// Those whose origin has not answered in time, each named once.
    pub fn overdue(&mut self, now: Millis) -> Vec<Overdue> {
        let mut overdue = Vec::new();
        for (stream, fill) in &mut self.fills {
            let begun = fill.begun;
            let due = |fallback: &mut Fallback| begun.saturating_add(fallback.patience) <= now;
            if let Some(fallback) = fill.fallback.take_if(due) {
                fill.given_up = true;
                overdue.push(Overdue {
                    stream: *stream,
                    context: fill.context,
                    revalidation: fallback.revalidation,
                });
            }
        }
        let fallbacks = self
            .fills
            .values()
            .filter_map(|fill| fill.fallback.as_ref());
        self.patience = fallbacks.map(|fallback| fallback.patience).min();
        overdue
    }
}

/// Begins a fill: a request is on its way to the origin.
pub fn begin(worker: &mut Worker, stream: StreamId, context: u32, fallback: Option<Fallback>) {
    let now = worker.host.monotonic_millis();
    worker.fills.begin(stream, context, fallback, now);
    worker.arm_timer();
    worker.roots.restore(context);
}

/// The origin has failed a fill with `status`, and the store serves its stale response. `context` is that of this
/// callback.
pub fn keep(
    worker: &mut Worker,
    stream: StreamId,
    status: u16,
    revalidation: &Revalidation,
    context: u32,
) {
    worker.requests.note_failure(stream, status, false);
    keep_unwritten(worker, stream, revalidation, context);
}

/// The same of a failure that is the request's own ([`is_own_failure`]): another request leads, and the origin counts as
/// well.
pub fn keep_for_itself(worker: &mut Worker, stream: StreamId, status: u16, context: u32) {
    worker.requests.note_failure(stream, status, true);
    worker.turn(context, |coalescer, turn| {
        coalescer.own_failure(stream, turn);
    });
}

/// Whether the failure of the origin that a request for `cache_key` has met may be the fault of its own headers. See
/// [`Coalescer::meet_failure`](sluice_core::coalescing::Coalescer::meet_failure).
pub fn is_own_failure(worker: &mut Worker, stream: &EdgeRequest, cache_key: &str) -> bool {
    let (key, now) = (
        worker.keys.key_hash(cache_key),
        worker.host.monotonic_millis(),
    );
    worker
        .coalescer
        .meet_failure(key, stream.id, stream.own_headers, now)
}

/// The origin has answered a request for `cache_key`, and has not failed.
pub fn origin_is_well(keys: &Keys, coalescer: &mut Coalescer, cache_key: &str) {
    let key = keys.key_hash(cache_key);
    coalescer.origin_is_well(key);
}

/// The store serves its stale response unwritten, and asks again the next time. The followers must know that the
/// origin fails, or each of them would ask.
pub fn keep_unwritten(
    worker: &mut Worker,
    stream: StreamId,
    revalidation: &Revalidation,
    context: u32,
) {
    let left = revalidation.left().saturating_mul(1_000);
    let until = worker.host.monotonic_millis().saturating_add(left);
    worker.end_flight(context, stream, FlightOutcome::Kept { until });
}

/// `size` more bytes of a fill's body have come.
pub fn progress(
    host: &dyn Host,
    coalescer: &mut Coalescer,
    fills: &mut Fills,
    stream: StreamId,
    size: usize,
) {
    fills.progress(stream, size);
    coalescer.fill_progress(stream, host.monotonic_millis());
}

/// ORIGIN's context of a fill has gone; `complete` says whether all of the response has come.
pub fn end(worker: &mut Worker, stream: StreamId, context: u32, complete: bool) {
    worker.wakeups.forget(context);
    if worker.fills.end(stream, context) && !complete {
        worker.turn(context, |coalescer, turn| {
            coalescer.fill_broken(stream, turn);
        });
    }
}

/// Lets the store serve stale responses in the place of an origin that takes too long.
pub fn give_up_overdue(worker: &mut Worker) {
    for overdue in worker.fills.overdue(worker.host.monotonic_millis()) {
        worker.metrics.count(Metric::OriginOverdue, 1);
        worker
            .metrics
            .warn(|| "sluice: the origin was too slow, and a stale response is served".to_owned());
        keep(
            worker,
            overdue.stream,
            GATEWAY_TIMEOUT,
            &overdue.revalidation,
            worker.roots.serving(),
        );
        worker.answer_later(overdue.context, DueReply::Keep(overdue.revalidation));
    }
}
