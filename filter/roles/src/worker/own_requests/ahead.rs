// SPDX-License-Identifier: Apache-2.0
//! Ranges that begin far ahead of the fill of their object. They are sent to the origin alone, a few at a time.

use crate::worker::fills::Fills;
use crate::worker::own_requests::calls::Calls;
use sluice_core::coalescing::Coalescer;
use sluice_host::Host;
use std::rc::Rc;

use sluice_core::coalescing::beside::ahead::{
    Described, FillProgress, Representation, may_begin_beyond,
};
use sluice_core::coalescing::flight::Role;
use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::http::conditional::demand::Demand;
use sluice_core::key::qualifiers::{self, qualifiers};
use sluice_core::policy::Policy;
use sluice_core::workers::{KeyHash, NumberMap, StreamId};

use crate::request::EdgeRequest;
use crate::request::call_kind::CallKind;
use crate::worker::Worker;
use crate::worker::requests::OpenRequests;
use sluice_host::headers::Headers;

/// Maximum number of ranges of one object that one worker has at the origin at one time.
const MOST_AHEAD: usize = 8;

/// The longest range whose response is shared with equal ranges.
pub const MOST_SHARED_BYTES: u64 = 1 << 20;

/// The ranges of one worker that are at the origin.
#[derive(Debug, Default)]
pub struct Ahead {
    by_key: NumberMap<KeyHash, Vec<StreamId>>,
}

impl Ahead {
    fn has_room(&self, key: KeyHash) -> bool {
        self.of(key).len() < MOST_AHEAD
    }

    fn of(&self, key: KeyHash) -> &[StreamId] {
        self.by_key.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Whether an equal range is at the origin, whose response `stream` will get too.
    fn shares(&self, requests: &OpenRequests, stream: &EdgeRequest) -> bool {
        let mut ahead = self.of(stream.key.key).iter();
        ahead.any(|id| {
            let first = requests
                .get(*id)
                .filter(|first| first.progress.shares.get());
            first.is_some_and(|first| first.is_alike(stream) && first.demand == stream.demand)
        })
    }

    fn begin(&mut self, stream: &EdgeRequest, demand: &Demand, of: &Rc<Representation>) {
        let part = of.part(demand);
        let shares =
            stream.may_share && part.is_some_and(|part| part.length() <= MOST_SHARED_BYTES);
        stream.progress.shares.set(shares);
        *stream.progress.ahead_of.borrow_mut() = Some(Rc::clone(of));
        let ahead = self.by_key.entry(stream.key.key).or_default();
        ahead.push(stream.id);
    }

    fn end(&mut self, stream: &EdgeRequest) {
        let key = stream.key.key;
        if let Some(ahead) = self.by_key.get_mut(&key) {
            ahead.retain(|id| *id != stream.id);
            if ahead.is_empty() {
                self.by_key.remove(&key);
            }
        }
    }
}

/// Ends a request, which may make room for other ranges.
pub fn close(worker: &mut Worker, stream: &EdgeRequest) {
    if let Some(representation) = stream.progress.ahead_of.take() {
        worker.ahead.end(stream);
        release(worker, stream.key.key, Some(&representation));
    }
}

/// Records that the response to a range is private to its client, so that equal ranges need not wait for it.
pub fn share_nothing(worker: &mut Worker, stream: &EdgeRequest) {
    let representation = stream.progress.ahead_of.borrow().clone();
    if stream.progress.shares.replace(false) {
        release(worker, stream.key.key, representation.as_ref());
    }
}

/// The representation in a 200 with these headers, or in the 200 that corresponds to this response to a HEAD. Returns
/// `None` if no range of it can be sent ahead. The origin cannot be asked for a part of a body that the edge
/// compresses.
pub fn representation(policy: &Policy, key: &str, headers: &Headers) -> Option<Rc<Representation>> {
    let range_ahead = policy.coalesce.range_ahead;
    let length = headers.content_length()?;
    if range_ahead == 0 || length <= range_ahead {
        return None;
    }
    if qualifiers(key).any(|(name, _)| name == qualifiers::CODING) {
        return None;
    }
    let described = Described {
        etag: headers.get("etag"),
        last_modified: headers.get("last-modified"),
        length: Some(length),
        accept_ranges: headers.get("accept-ranges"),
    };
    Representation::of(described).map(Rc::new)
}

/// Whether a range begins further than `range_ahead` into the object.
pub fn begins_far(stream: &EdgeRequest, described: &Representation) -> bool {
    let range_ahead = stream.policy.policy.coalesce.range_ahead;
    demand(stream).is_some_and(|demand| described.is_asked_beyond(range_ahead, demand))
}

/// Whether a range that has begun to wait leaves the waiting list at once, because it begins far ahead of this
/// worker's fill.
pub fn overtakes(worker: &mut Worker, stream: &EdgeRequest) -> bool {
    let key = stream.key.key;
    let filled = demand(stream).zip(filled(
        &*worker.host,
        &worker.coalescing.coalescer,
        &worker.fills,
        key,
        None,
    ));
    let Some((demand, (representation, progress))) = filled else {
        return false;
    };
    let now = worker.host.monotonic_millis();
    let reach = progress.reach(stream.policy.policy.coalesce.range_ahead, now);
    let ahead = worker.ahead.has_room(key)
        && representation.is_asked_beyond(reach, demand)
        && !worker.ahead.shares(&worker.coalescing.requests, stream);
    if ahead {
        worker.ahead.begin(stream, demand, &representation);
        let itself = |id| (id == stream.id).then_some(());
        for (id, waited, ()) in worker.coalescing.coalescer.answer_waiting(key, now, itself) {
            worker.coalescing.has_waited(id, waited);
        }
    }
    ahead
}

/// Whether to ask the origin for a description of the object, because a range waits for the fill of another worker.
/// [`release`] decides after that. Returns false if the question is under way, or if the range cannot begin far into
/// the object.
pub fn asks(coalescer: &Coalescer, calls: &Calls, ahead: &Ahead, stream: &EdgeRequest) -> bool {
    let key = stream.key.key;
    let follows = matches!(coalescer.role(key), Some(Role::Following { .. }));
    let reach = stream.policy.policy.coalesce.range_ahead;
    let range = demand(stream).filter(|_| follows).and_then(Demand::range);
    range.is_some_and(|range| may_begin_beyond(range, reach))
        && stream.may_lead
        && ahead.has_room(key)
        && calls.has_room_to_prepare()
        && !calls.has(CallKind::Size(key))
}

/// Resumes the ranges that wait on this worker and begin far ahead of the fill. `described` is the origin's
/// description of the object if another worker fills. This worker does not know the progress of that fill.
pub fn release(worker: &mut Worker, key: KeyHash, described: Option<&Rc<Representation>>) {
    let Some((representation, progress)) = filled(
        &*worker.host,
        &worker.coalescing.coalescer,
        &worker.fills,
        key,
        described,
    ) else {
        return;
    };
    let now = worker.host.monotonic_millis();
    let (requests, ahead) = (&worker.coalescing.requests, &mut worker.ahead);
    let released = worker.coalescing.coalescer.answer_waiting(key, now, |id| {
        let stream = requests.get(id).filter(|_| ahead.has_room(key))?;
        let reach = progress.reach(stream.policy.policy.coalesce.range_ahead, now);
        let demand = demand(&stream)?;
        let goes =
            representation.is_asked_beyond(reach, demand) && !ahead.shares(requests, &stream);
        goes.then(|| ahead.begin(&stream, demand, &representation))
    });
    for (id, waited, ()) in released {
        worker.coalescing.has_waited(id, waited);
        worker
            .coalescing
            .wakeups
            .resume(id, NextStep::Send(StoreRequest::Ahead));
    }
}

/// The representation that the requests of this worker wait for, and the progress of its fill.
fn filled(
    host: &dyn Host,
    coalescer: &Coalescer,
    fills: &Fills,
    key: KeyHash,
    described: Option<&Rc<Representation>>,
) -> Option<(Rc<Representation>, FillProgress)> {
    match coalescer.role(key)? {
        Role::Leading(leader) => fills.brought(leader.stream),
        Role::Following { .. } => {
            let begun = host.monotonic_millis();
            Some((Rc::clone(described?), FillProgress { begun, bytes: 0 }))
        }
    }
}

/// The demand of a request that may be sent ahead.
fn demand(stream: &EdgeRequest) -> Option<&Demand> {
    let may = stream.is_for_plain_part() && stream.policy.policy.coalesce.range_ahead > 0;
    stream.demand.as_ref().filter(|_| may)
}
