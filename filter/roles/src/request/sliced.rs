// SPDX-License-Identifier: Apache-2.0
//! Responses in slices: the record that a client's request and the slicer's requests for its slices share.

use std::cell::Cell;
use std::rc::Rc;

use sluice_core::freshness::Storage;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::qualifiers::{self, qualifiers};
use sluice_core::metrics::Metric;
use sluice_core::slices::asked::SliceState;
use sluice_core::slices::connections::ConnectionId;
use sluice_core::slices::index::SliceIndex;
use sluice_core::slices::origin_answer::SliceRequest;
use sluice_core::slices::plan::{Segment, SlicePlan};
use sluice_core::workers::{KeyHash, StreamId};

/// Whether a key is for the bytes that the origin sends: for the whole object, not compressed by the edge.
pub fn is_key_sliceable(cache_key: &str) -> bool {
    const OTHERS: [&str; 2] = [qualifiers::CODING, qualifiers::SLICE];
    let mut names = qualifiers(cache_key).map(|(name, _)| name);
    !names.any(|name| OTHERS.contains(&name.as_str()))
}

/// A client's response in slices.
#[derive(Debug)]
pub struct SlicedResponse {
    /// The client's request.
    pub client: StreamId,
    /// The hash of the object's key, by which workers know the object.
    pub object: KeyHash,
    /// The object.
    pub target: Rc<CanonicalTarget>,
    /// The index of the object.
    pub index: Rc<SliceIndex>,
    /// The client's connection, if it is known.
    pub connection: Option<ConnectionId>,
    /// The bytes that the client gets, and the slices that make them up.
    pub plan: SlicePlan,
    /// The way in which the first slice came.
    pub first: Cell<Option<SliceState>>,
    /// Slices whose response has begun.
    pub begun: Cell<u64>,
    /// Slices that came from the origin for this response.
    pub led: Cell<u64>,
    /// Whether the response is not made of these slices, because the object has changed.
    pub passes: Cell<bool>,
    /// Whether the client has the headers of its response.
    pub responded: Cell<bool>,
    /// Whether one of the slices has failed.
    pub failed: Cell<bool>,
}

impl SlicedResponse {
    /// Creates the record of a response that has not begun.
    pub const fn new(
        client: StreamId,
        object: KeyHash,
        target: Rc<CanonicalTarget>,
        index: Rc<SliceIndex>,
        plan: SlicePlan,
        connection: Option<ConnectionId>,
    ) -> Self {
        Self {
            client,
            connection,
            object,
            target,
            index,
            plan,
            first: Cell::new(None),
            begun: Cell::new(0),
            led: Cell::new(0),
            passes: Cell::new(false),
            responded: Cell::new(false),
            failed: Cell::new(false),
        }
    }

    /// The number of slices that the response needs.
    pub fn count(&self) -> u64 {
        let (mut count, mut next) = (0, 0);
        for segment in self.plan.segments() {
            let Segment::Bytes(range) = segment else {
                continue;
            };
            let grid = self.plan.grid();
            // Two ranges may begin in one slice.
            let first = grid.number_at(range.first()).max(next);
            next = grid.number_at(range.last()).saturating_add(1);
            count += next.saturating_sub(first);
        }
        count
    }

    /// The histogram for the time to the first byte of the response. A request that has waited, for the index or for its
    /// turn, is not a hit. Without a slice, the response came from the origin.
    pub fn first_byte_metric(&self, has_waited: bool) -> Metric {
        match self.first.get() {
            Some(SliceState::Hit) if !has_waited => Metric::FirstByteHit,
            Some(SliceState::Hit | SliceState::Followed) => Metric::FirstByteCollapsed,
            _ => Metric::FirstByteMiss,
        }
    }

    /// Records that a slice has begun to arrive in this way.
    fn note(&self, state: SliceState) {
        self.begun.set(self.begun.get().saturating_add(1));
        self.first.set(self.first.get().or(Some(state)));
        if state == SliceState::Led {
            self.led.set(self.led.get().saturating_add(1));
        }
    }
}

/// A slice that the slicer has requested.
#[derive(Debug)]
pub struct RequestedSlice {
    /// The response that the slice is for.
    pub of: Rc<SlicedResponse>,
    /// The number of the slice in its object, from 0.
    pub number: u64,
    /// The outcome, as far as it is known.
    state: Cell<Option<SliceState>>,
}

impl RequestedSlice {
    /// Creates the record of a slice that has not begun to arrive.
    pub const fn new(of: Rc<SlicedResponse>, number: u64) -> Self {
        Self {
            of,
            number,
            state: Cell::new(None),
        }
    }

    /// The request to the origin. `None` if the object has no slice of that number.
    pub fn request(&self) -> Option<SliceRequest<'_>> {
        Some(SliceRequest {
            range: self.of.plan.grid().range_of(self.number)?,
            length: self.of.index.length(),
            etag: self.of.index.etag(),
        })
    }

    /// Records that the object of the slice is no longer the object of the index.
    pub fn becomes(&self, state: SliceState) {
        self.state.set(Some(state));
    }

    /// The outcome if the object is no longer the object of the index.
    pub fn outdated(&self) -> Option<SliceState> {
        self.state.get().filter(|state| state.is_outdated())
    }

    /// The outcome, as far as it is known.
    pub fn state(&self) -> Option<SliceState> {
        self.state.get()
    }

    /// Records that the slice arrives, and returns in which way. `result` is the metric of requests with this result.
    pub fn arrives(&self, result: Metric) -> SliceState {
        let state = match result {
            Metric::RequestsMiss | Metric::RequestsRevalidated => SliceState::Led,
            Metric::RequestsCollapsed => SliceState::Followed,
            _ => SliceState::Hit,
        };
        self.arrives_as(state);
        state
    }

    /// Records that the slice arrives in this way.
    pub fn arrives_as(&self, state: SliceState) {
        self.state.set(Some(state));
        self.of.note(state);
    }

    /// Records that the request for the slice has ended after `bytes` of it.
    pub fn ends(&self, bytes: u64, is_awaited: bool) {
        let range = self.request().map(|request| request.range);
        let is_whole = range.is_some_and(|range| range.length() == bytes);
        let fails = is_awaited && !is_whole;
        self.of.failed.set(self.of.failed.get() || fails);
    }
}

/// The properties of an object that the origin has sent or described, and that is large enough for slices.
#[derive(Clone, Copy, Debug)]
pub struct Sliceable {
    /// How the object could be stored, apart from its size.
    pub storage: Storage,
    /// The number of the newest purge when the request was sent.
    pub purge: u64,
}
