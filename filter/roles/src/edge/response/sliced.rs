// SPDX-License-Identifier: Apache-2.0
//! Responses in slices: the one that a client gets, those to the slicer's requests for slices, and those from which
//! the worker learns that an object is served in slices.

use crate::worker::coalescing::Coalescing;
use crate::worker::coalescing::slice_arrivals::note_arrival;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::roots::Roots;
use crate::worker::slices::KnownObjects;
use sluice_core::http::caching::cache_status::{CacheStatus, Forward};
use sluice_core::internal_headers::SLICE_STATE_HEADER;
use sluice_core::metrics::Metric;
use sluice_core::slices::asked::SliceState;
use sluice_core::slices::index::{Described, IndexTimes, SliceIndex};
use sluice_core::website::cors::CORS_PREFIX;
use sluice_core::workers::message::FlightOutcome;
use sluice_store::Served;

use crate::reply::complete_reply::CompleteReply;
use crate::request::EdgeRequest;
use crate::request::account::{self, result_of};
use crate::request::sliced::{RequestedSlice, Sliceable, SlicedResponse};
use crate::worker::own_requests::background::pause;
use crate::worker::own_requests::indexes::{fresh_for, headers_of};
use crate::worker::slices::{self, Knowledge};
use sluice_host::{self as host, Action, Host, Map};

/// Gives the response that the slicer has put together the headers of the object.
pub fn respond(
    host: &dyn Host,
    metrics: &Metrics,
    identity: &Identity,
    stream: &EdgeRequest,
) -> host::Result<Action> {
    let sliced = stream.progress.sliced.borrow();
    let Some(sliced) = &*sliced else {
        return Ok(Action::Continue);
    };
    if sliced.passes.get() {
        return Ok(Action::Continue);
    }
    let headers = host.headers(Map::Response)?;
    if headers.status() != Some(sliced.plan.status()) {
        stream.progress.account.results_in(account::FAILED);
        metrics.count_of(&stream.policy, Metric::FollowersFailed);
        host.remove_header(Map::Response, SLICE_STATE_HEADER)?;
        return Ok(Action::Continue);
    }
    sliced.responded.set(true);
    let first = sliced.first.get().unwrap_or(SliceState::Hit);
    let result = match first {
        SliceState::Led => Metric::RequestsMiss,
        SliceState::Followed => Metric::RequestsCollapsed,
        _ => Metric::RequestsHit,
    };
    metrics.count_of(&stream.policy, result);
    stream.progress.account.results_in(result_of(result));
    let count = format!("slices:{}", sliced.count());
    let status = cache_status(host, stream, sliced, first).detail(&count);
    let status = status.member_of(&identity.name);
    for (name, _) in headers.iter().filter(|(name, _)| !name.starts_with(':')) {
        host.remove_header(Map::Response, name)?;
    }
    let planned = sliced.plan.headers();
    let replaced = |name: &str| planned.iter().any(|(planned, _)| *planned == name);
    let own = headers_of(host, stream, &sliced.index, &status);
    for (name, value) in own.iter().filter(|(name, _)| !replaced(name)) {
        host.add_header(Map::Response, name, value)?;
    }
    for (name, value) in &planned {
        host.set_header(Map::Response, name, value)?;
    }
    Ok(Action::Continue)
}

/// The `Cache-Status` of a response whose first slice came in that way.
fn cache_status<'a>(
    host: &dyn Host,
    stream: &'a EdgeRequest,
    sliced: &SlicedResponse,
    first: SliceState,
) -> CacheStatus<'a> {
    let status = match first {
        SliceState::Led => CacheStatus::forwarded(Forward::UriMiss)
            .forward_status(206)
            .stored(),
        SliceState::Followed => CacheStatus::forwarded(Forward::UriMiss).collapsed(),
        _ => CacheStatus::hit(),
    };
    let status = status.ttl(fresh_for(host, &sliced.index));
    match stream.policy.policy.response.cache_status_key {
        true => status.key(stream.target.cache_key()),
        false => status,
    }
}

/// Records the way in which a slice arrives, and tells it to the slicer.
pub fn tell_arrival(
    host: &dyn Host,
    metrics: &Metrics,
    stream: &EdgeRequest,
    slice: &RequestedSlice,
    result: Metric,
) -> host::Result<()> {
    let state = note_arrival(metrics, &stream.policy, slice, result);
    host.set_header(Map::Response, SLICE_STATE_HEADER, state.as_str())
}

/// Notes that a slice has failed, if the response to its request is another one than the slice.
pub fn note_slice(host: &dyn Host, slice: &RequestedSlice) -> host::Result<()> {
    let status = host.header_number(Map::Response, ":status")?;
    slice
        .of
        .failed
        .set(slice.of.failed.get() || status != Some(200));
    Ok(())
}

/// Answers the slicer's request for a slice of an object that has changed. The rest of the origin's response is not
/// needed.
pub fn refuse_outdated(
    host: &dyn Host,
    stream: &EdgeRequest,
    state: SliceState,
) -> host::Result<Action> {
    stream.progress.answered.set(true);
    CompleteReply::outdated_slice(state).send(host)?;
    Ok(Action::Pause)
}

/// Learns from the headers of an object whether it is served in slices. The response has its headers for clients, but
/// no conditions of a client have been applied to it. `length` is that of the object.
pub fn learn(
    keys: &Keys,
    slices: &mut KnownObjects,
    roots: &mut Roots,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    length: Option<u64>,
    served: &Served<'_>,
) -> host::Result<()> {
    let policy = &stream.policy.policy;
    let sliceable = stream.progress.sliceable.take();
    let describes = stream.target.is_for_headers();
    if !policy.edge.slices.is_on() || !(describes || sliceable.is_some()) {
        return Ok(());
    }
    let times = match sliceable {
        Some(Sliceable { storage, purge }) => Some((storage.lifetime, storage.age, purge)),
        // ORIGIN has not judged the object, because the response is for its client alone.
        None if served.own && !stream.may_share => return Ok(()),
        // ORIGIN has found that the object is not to be served in slices.
        None if served.own => None,
        None if served.entry.is_of_index => {
            Some((served.entry.lifetime, served.age, served.entry.purge))
        }
        None => return Ok(()),
    };
    let object = keys.object_hash(stream.target.whole_key());
    let url = keys.identity.large_url(&stream.target);
    let index = match times {
        Some((lifetime, age, purge)) => {
            let validated = coalescing.host.unix_millis();
            let times = IndexTimes {
                validated,
                age,
                lifetime,
            };
            index_of(&*coalescing.host, stream, length, times, purge)?
        }
        None => None,
    };
    let is_former = |index: &SliceIndex| {
        let etag = index.etag();
        !served.own && slices.is_outdated_version(object, etag)
    };
    if index.as_ref().is_some_and(is_former) {
        return Ok(());
    }
    match index {
        Some(index) => {
            slices::learn(slices, roots, object, url, index, served.own);
            if served.failure.is_some() {
                let (now, pause) = (coalescing.now(), pause(&*coalescing.host, &stream.policy));
                slices.question_fails(object, now.saturating_add(pause));
            }
        }
        None if served.entry.status < 500 => slices.learn(object, url, Knowledge::Whole),
        None => {}
    }
    if sliceable.is_some() && !describes {
        coalescing
            .metrics
            .count_of(&stream.policy, Metric::SlicedPassed);
        coalescing.end_flight(stream.id, FlightOutcome::Sliced);
    }
    Ok(())
}

/// The index of an object from the headers for its client.
fn index_of(
    host: &dyn Host,
    stream: &EdgeRequest,
    length: Option<u64>,
    times: IndexTimes,
    purge: u64,
) -> host::Result<Option<SliceIndex>> {
    let headers = host.headers(Map::Response)?;
    let policy = &stream.policy.policy;
    let described = Described {
        status: headers.status().unwrap_or_default(),
        etag: headers.get("etag"),
        last_modified: headers.get("last-modified"),
        length: length.or(headers.content_length()),
        // ORIGIN has checked that.
        accepts_ranges: true,
    };
    let shares = policy.website.cors.is_some();
    let kept = headers
        .iter()
        .filter(|(name, _)| !(shares && name.starts_with(CORS_PREFIX)));
    let lengths = policy.edge.slices.lengths;
    let index = SliceIndex::of(&described, kept, lengths, times, purge);
    let presentation = policy.presentation(stream.target.path());
    Ok(index.map(|index| index.presented_by(presentation)))
}
