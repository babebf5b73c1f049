// SPDX-License-Identifier: Apache-2.0
//! Fills: the requests of this worker that are on their way to the origin through the store.

use crate::worker::coalescing::Coalescing;
use crate::worker::keys::Keys;
use crate::worker::roots::Roots;
use sluice_core::coalescing::Coalescer;
use std::rc::Rc;

use sluice_core::metrics::Metric;
use sluice_core::workers::message::FlightOutcome;
use sluice_core::workers::{Millis, NumberMap, StreamId};
use sluice_store::Revalidation;

use crate::reply::DueReply;
use crate::reply::complete_reply::CompleteReply;
use crate::request::EdgeRequest;
use sluice_host::Host;

/// Longest timer period while fills are under way, even if the origin may take longer.
const LONGEST_WATCH_MILLIS: Millis = 1_000;
const SHORTEST_WATCH_MILLIS: Millis = 50;
/// The status that is recorded for a request whose origin is silent.
const GATEWAY_TIMEOUT: u16 = 504;

/// A request of ORIGIN.
#[derive(Clone, Debug)]
struct Fill {
    context: u32,
    begun: Millis,
    /// The stale response that the store may serve, until the response headers have arrived.
    fallback: Option<Fallback>,
    /// Whether the fallback has replaced the origin's answer.
    given_up: bool,
    /// Status and announced length of the response, after its headers have arrived.
    response: Option<(u16, Option<u64>)>,
    /// Bytes of the response's body that have arrived, if it is stored.
    bytes: u64,
}

/// The progress of a request to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginProgress {
    /// When the request was sent to the origin.
    pub begun: Millis,
    /// Status of the response, after its headers have arrived.
    pub status: Option<u16>,
    /// Announced length of the response in bytes.
    pub length: Option<u64>,
    /// Bytes of the response's body that have arrived, if it is stored.
    pub bytes: u64,
}

/// The stored response to serve if the origin does not answer in time.
#[derive(Clone, Debug)]
pub struct Fallback {
    /// The stored response.
    pub revalidation: Rc<Revalidation>,
    /// How long the origin may take to begin its answer.
    pub patience: Millis,
}

/// A fill whose origin has not begun its answer in time. If the store has nothing to serve instead, Envoy's own
/// timeout ends the fill.
#[derive(Clone, Debug)]
pub struct Overdue {
    /// The request of EDGE that caused it.
    pub stream: StreamId,
    /// ORIGIN's context.
    pub context: u32,
    /// The stored response to serve instead of the answer.
    pub revalidation: Rc<Revalidation>,
}

/// The fills, by the request of EDGE that caused each.
#[derive(Debug, Default)]
pub struct Fills {
    fills: NumberMap<StreamId, Fill>,
    /// The shortest patience among the fills that were under way at the last search for overdue ones, or that began
    /// later.
    patience: Option<Millis>,
}

impl Fills {
    /// Adds a fill: a request is being sent to the origin.
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
                response: None,
                bytes: 0,
            },
        );
    }

    /// Counts `size` more bytes of the body of a fill.
    fn progress(&mut self, stream: StreamId, size: usize) {
        if let Some(fill) = self.fills.get_mut(&stream) {
            fill.bytes = fill.bytes.saturating_add(size as u64);
        }
    }

    /// Records that the response headers of a fill have arrived. Returns true if the fallback has replaced the
    /// response.
    pub fn answer(&mut self, stream: StreamId) -> bool {
        self.fills.get_mut(&stream).is_some_and(|fill| {
            fill.fallback = None;
            fill.given_up
        })
    }

    /// Records status and announced length of the response of a fill.
    pub fn note_response(&mut self, stream: StreamId, status: u16, length: Option<u64>) {
        if let Some(fill) = self.fills.get_mut(&stream) {
            fill.response = Some((status, length));
        }
    }

    /// The progress of a fill.
    pub fn progress_of(&self, stream: StreamId) -> Option<OriginProgress> {
        let fill = self.fills.get(&stream)?;
        Some(OriginProgress {
            begun: fill.begun,
            status: fill.response.map(|(status, _)| status),
            length: fill.response.and_then(|(_, length)| length),
            bytes: fill.bytes,
        })
    }

    /// Removes a fill whose context in ORIGIN has ended. Returns false if another context or the fallback has
    /// replaced it.
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

    /// The timer period in which [`Fills::overdue`] must be called.
    pub fn tick_period(&self) -> Option<Millis> {
        let patience = self.patience?;
        Some(patience.clamp(SHORTEST_WATCH_MILLIS, LONGEST_WATCH_MILLIS))
    }

    /// The fills whose origin has not answered in time. Returns each of them once.
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
pub fn begin(
    host: &dyn Host,
    fills: &mut Fills,
    roots: &mut Roots,
    stream: StreamId,
    context: u32,
    fallback: Option<Fallback>,
) {
    let now = host.monotonic_millis();
    fills.begin(stream, context, fallback, now);
    roots.shorten_period(fills.tick_period().unwrap_or(0));
    roots.restore(context);
}

/// Notes that the origin has failed a fill with `status` and that the store serves its stale response.
pub fn keep(
    coalescing: &mut Coalescing,
    stream: StreamId,
    status: u16,
    revalidation: &Revalidation,
) {
    coalescing.requests.note_failure(stream, status, false);
    keep_unwritten(coalescing, stream, revalidation);
}

/// Notes a failure that the request itself may have caused ([`is_own_failure`]). Another request leads, and the
/// origin does not count as failing.
pub fn keep_for_itself(coalescing: &mut Coalescing, stream: StreamId, status: u16) {
    coalescing.requests.note_failure(stream, status, true);
    coalescing.turn(|coalescer, turn| {
        coalescer.own_failure(stream, turn);
    });
}

/// Whether the request's own headers may have caused the failure of the origin to answer a request for `cache_key`.
/// See [`Coalescer::meet_failure`](sluice_core::coalescing::Coalescer::meet_failure).
pub fn is_own_failure(
    host: &dyn Host,
    keys: &Keys,
    coalescer: &mut Coalescer,
    stream: &EdgeRequest,
    cache_key: &str,
) -> bool {
    let (key, now) = (keys.key_hash(cache_key), host.monotonic_millis());
    coalescer.meet_failure(key, stream.id, stream.own_headers, now)
}

/// Records that the origin has answered a request for `cache_key` without a failure.
pub fn origin_is_well(keys: &Keys, coalescer: &mut Coalescer, cache_key: &str) {
    let key = keys.key_hash(cache_key);
    coalescer.origin_is_well(key);
}

/// Ends the flight while the store serves its stale response without writing it again; the next request revalidates
/// it. The followers must learn that the origin fails, because otherwise each of them would ask the origin.
pub fn keep_unwritten(coalescing: &mut Coalescing, stream: StreamId, revalidation: &Revalidation) {
    let left = revalidation.left().saturating_mul(1_000);
    let until = coalescing.now().saturating_add(left);
    coalescing.end_flight(stream, FlightOutcome::Kept { until });
}

/// Records that `size` more bytes of a fill's body have arrived.
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

/// Ends a fill whose context in ORIGIN has ended. `complete` says whether the whole response has arrived.
pub fn end(
    fills: &mut Fills,
    coalescing: &mut Coalescing,
    stream: StreamId,
    context: u32,
    complete: bool,
) {
    coalescing.wakeups.forget(context);
    if fills.end(stream, context) && !complete {
        coalescing.turn(|coalescer, turn| {
            coalescer.fill_broken(stream, turn);
        });
    }
}

/// Makes the store serve stale responses in place of the answers of an origin that takes too long.
pub fn give_up_overdue(fills: &mut Fills, coalescing: &mut Coalescing) {
    for overdue in fills.overdue(coalescing.now()) {
        coalescing.metrics.count(Metric::OriginOverdue, 1);
        coalescing
            .metrics
            .warn(|| "sluice: the origin was too slow, and a stale response is served".to_owned());
        keep(
            coalescing,
            overdue.stream,
            GATEWAY_TIMEOUT,
            &overdue.revalidation,
        );
        let keeping = CompleteReply::keeping(&overdue.revalidation);
        coalescing
            .wakeups
            .answer(overdue.context, DueReply::Complete(keeping));
    }
}
