// SPDX-License-Identifier: Apache-2.0
//! The requests of this worker, the flights in which they take part, and the requests that are due to continue.

mod replies;
pub mod requests;
pub mod slice_arrivals;
pub mod wakeups;

use std::rc::Rc;

use requests::OpenRequests;
use sluice_core::coalescing::learnt::hints::Hint;
use sluice_core::coalescing::{Coalescer, Effect, NextStep, StoreRequest, Turn};
use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_core::slices::connections::SlicedConnections;
use sluice_core::workers::message::FlightOutcome;
use sluice_core::workers::{KeyHash, Millis, StreamId, WorkerId};
use sluice_host::Host;
use wakeups::Wakeups;

use crate::request::EdgeRequest;
use crate::request::policy::NumberedPolicy;
use crate::worker::metrics::Metrics;

/// This worker's part of coalescing. The worker carries out the effects of its events at the end of the callback
/// ([`Worker::settle`](crate::worker::Worker::settle)).
#[derive(Debug)]
pub struct Coalescing {
    pub(crate) host: Rc<dyn Host>,
    pub(crate) metrics: Rc<Metrics>,
    /// The flights, the hints and the waiting lists. Its events pass through [`Coalescing::turn`].
    pub coalescer: Coalescer,
    /// The requests of EDGE whose clients are still connected.
    pub requests: OpenRequests,
    /// Replies and requests that wait for their turn.
    pub wakeups: Wakeups,
    /// The responses in slices of each client's connection, and the requests that wait for their turn.
    pub sliced: SlicedConnections,
    /// The effects of events that have yet to be carried out.
    effects: Vec<Effect>,
    /// Whether an event has been handled since [`Coalescing::take_change`].
    is_changed: bool,
}

impl Coalescing {
    /// The coalescing of `worker`, with at most `hints` hints.
    pub fn new(host: Rc<dyn Host>, metrics: Rc<Metrics>, worker: WorkerId, hints: usize) -> Self {
        Self {
            host,
            metrics,
            coalescer: Coalescer::new(worker, hints),
            requests: OpenRequests::default(),
            wakeups: Wakeups::default(),
            sliced: SlicedConnections::default(),
            effects: Vec::new(),
            is_changed: false,
        }
    }

    /// Has the coalescer handle an event. Its effects are carried out at the end of the callback.
    pub fn turn<R>(&mut self, event: impl FnOnce(&mut Coalescer, &mut Turn<'_>) -> R) -> R {
        self.is_changed = true;
        let mut turn = Turn {
            store: &*self.host,
            now: self.host.monotonic_millis(),
            effects: &mut self.effects,
        };
        event(&mut self.coalescer, &mut turn)
    }

    /// Has a request take part in coalescing. Returns its next step, or `None` if it waits.
    pub fn admit(&mut self, stream: &EdgeRequest) -> Option<NextStep> {
        self.turn(|coalescer, turn| stream.admission(coalescer, turn))
    }

    /// Monotonic time.
    pub fn now(&self) -> Millis {
        self.host.monotonic_millis()
    }

    /// Whether this worker believes that the store can serve a key without the origin. Requests for it neither lead
    /// nor wait.
    pub fn believes_fresh(&mut self, key: KeyHash) -> bool {
        let now = self.now();
        self.coalescer.remembered(key, now) == Some(NextStep::Send(StoreRequest::Fresh))
    }

    /// Marks a key whose object is too large as hit-for-miss, so that requests for it bypass the store for a while.
    pub fn mark_too_large(&mut self, key: KeyHash, policy: &NumberedPolicy) {
        let (most, now) = (policy.flights.hit_for_miss, self.now());
        let reason = UncacheableReason::TooLarge;
        self.metrics.count(Metric::HitForMissMarked, 1);
        self.coalescer.hints().mark(key, reason, most, now);
    }

    /// Marks a key whose file belongs to another key as hit-for-miss, so that requests for it bypass the store.
    /// Returns when the mark expires.
    pub fn mark_mismatch(&mut self, key: KeyHash, policy: &NumberedPolicy) -> Millis {
        let until = self.now().saturating_add(policy.flights.hit_for_miss);
        self.metrics.count(Metric::HitForMissMarked, 1);
        let hint = Hint::HitForMiss(UncacheableReason::KeyMismatch);
        self.coalescer.hints().set(key, hint, until);
        until
    }

    /// Ends the flight that `stream` leads, if it leads one.
    pub fn end_flight(&mut self, stream: StreamId, outcome: FlightOutcome) {
        self.turn(|coalescer, turn| coalescer.end_flight(stream, outcome, turn));
    }

    /// Publishes the gauges of the flights and the hints, and the number of indexes of sliced objects.
    pub(in crate::worker) fn publish_gauges(&mut self, slice_indexes: usize) {
        let (parked, flights) = (self.coalescer.parked(), self.coalescer.flights());
        let hints = self.coalescer.hints().len();
        self.metrics.publish(&[
            (Metric::ParkedNow, parked),
            (Metric::FlightsNow, flights),
            (Metric::HintsNow, hints),
            (Metric::SliceIndexesNow, slice_indexes),
        ]);
    }

    /// Whether an event has been handled since the last call.
    pub(in crate::worker) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Takes the effects that have yet to be carried out.
    pub(in crate::worker) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Records that a request has left the waiting list after `waited` milliseconds.
    pub(in crate::worker) fn has_waited(&self, stream: StreamId, waited: Millis) {
        self.metrics.count(Metric::FollowersResumed, 1);
        self.metrics.record(Metric::WaitMilliseconds, waited);
        if let Some(follower) = self.requests.get(stream) {
            follower.progress.account.has_waited(waited);
        }
    }
}
