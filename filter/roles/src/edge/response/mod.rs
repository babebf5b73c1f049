// SPDX-License-Identifier: Apache-2.0
//! The response in EDGE: EDGE reports it to the coalescer, and turns it into the one that the client should see.

mod client_headers;
pub(in crate::edge) mod own_response;
mod refused;
pub(in crate::edge) mod sliced;
mod variants;

use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use sluice_host::Host;
use std::rc::Rc;

use sluice_core::admission::PassReason;
use sluice_core::coalescing::learnt::hints::Hint;
use sluice_core::coalescing::{NextStep, SMALL_BYTES, StoreRequest};
use sluice_core::freshness::{UncacheableReason, is_request_error};
use sluice_core::http::caching::cache_status::{CacheStatus, Forward, detailed};
use sluice_core::key::CanonicalTarget;
use sluice_core::key::vary::is_of_variant;
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::workers::message::FlightOutcome;
use sluice_core::workers::{BodyId, Millis};
use sluice_store::Entry;
use sluice_store::StoredFields;
use sluice_store::restored;
use sluice_store::{Arrival, NO_ROOM, Served};

use super::hot;
use super::website::hold_for_substitute;
use crate::reply::delivery::deliver;
use crate::reply::{CACHE_STATUS, NOT_STORED, substitute};
use crate::request::account::{self, result_of};
use crate::request::body::Sharing;
use crate::request::{EdgeRequest, OriginReport};
use crate::worker::Worker;
use crate::worker::own_requests::{background, unread};
use client_headers::{add_client_headers, add_headers, keep_from_caches};
use refused::{FOREIGN_HEADERS, UNMARKED, ask_again, refuse_mismatch, refuse_served};
use sluice_host::headers::Headers;
use sluice_host::{self as host, Action, Map};

/// How long a purged response is served after a failure of the origin, before the origin is asked again.
const PURGED_MILLIS: Millis = 1_000;

/// Handles the response to a request whose method or headers made it bypass the store.
pub fn respond_passed(
    host: &dyn Host,
    identity: &Identity,
    reason: PassReason,
    policy: &Policy,
    target: &CanonicalTarget,
) -> host::Result<Action> {
    sluice_store::unmark_around(host)?;
    add_headers(host, policy.rule(target.path()))?;
    keep_from_caches(host, policy)?;
    let forward = match reason {
        PassReason::Method => Forward::Method,
        PassReason::Upgrade
        | PassReason::Grpc
        | PassReason::Body
        | PassReason::Authorization
        | PassReason::Cookie
        | PassReason::Vary
        | PassReason::WorkerInUse
        | PassReason::AccessHeaders
        | PassReason::Purges => Forward::Bypass,
        PassReason::NoStore => Forward::Request,
    };
    let mut said = CacheStatus::forwarded(forward).detail(reason.name());
    let status = host.header_number(Map::Response, ":status")?;
    if let Some(status) = status.and_then(|status| u16::try_from(status).ok()) {
        said = said.forward_status(status);
    }
    add_cache_status(host, identity, &said)?;
    Ok(Action::Continue)
}

/// Handles the response to a cacheable request.
pub fn respond_cached(worker: &mut Worker, stream: &Rc<EdgeRequest>) -> host::Result<Action> {
    let Worker {
        host,
        metrics,
        identity,
        keys,
        roots,
        coalescing,
        calls,
        slices,
        purge_calls,
        ..
    } = worker;
    let host = &**host;
    if let Some(state) = stream.slice.as_ref().and_then(|slice| slice.outdated()) {
        return sliced::refuse_outdated(host, stream, state);
    }
    if stream.progress.take_loss() {
        return ask_again(identity, calls, stream);
    }
    let headers = host.headers(Map::Response)?;
    let fields = StoredFields::of(headers.fields());
    let Some(entry) = fields.entry() else {
        let around = sluice_store::unmark_around(host)?;
        return match is_of_the_store(stream, &fields, around) {
            true => refuse_mismatch(identity, keys, coalescing, calls, stream, UNMARKED),
            false => respond_without_entry(identity, keys, coalescing, calls, stream),
        };
    };
    let unwanted =
        variants::refuse_unwanted(identity, keys, roots, coalescing, calls, stream, &entry)?;
    if let Some(action) = unwanted {
        return Ok(action);
    }
    if !fields.describe_the_body(&entry) {
        purge_calls.discard(keys, roots, stream);
        return refuse_mismatch(identity, keys, coalescing, calls, stream, FOREIGN_HEADERS);
    }
    let served = served_to(host, identity, keys, stream, entry, &fields);
    if let Some(refused) = refuse_served(identity, keys, coalescing, calls, stream, &served) {
        return refused;
    }
    let length = fields.content_length();
    report(keys, coalescing, stream, &served, length);
    follow_up(keys, coalescing, calls, stream, &served);
    let unannounced = unannounced(stream, &served.entry, &fields);
    stream.body.unannounced.set(unannounced);
    restore(host, identity, stream, &headers, &fields, &served)?;
    sliced::learn(keys, slices, roots, coalescing, stream, length, &served)?;
    if let Some(slice) = &stream.slice {
        let result = served.metric(stream.progress.request());
        sliced::tell_arrival(host, metrics, stream, slice, result)?;
    }
    if served.entry.lacks_room() || served.entry.shared_once {
        share_unstored(keys, coalescing, stream, length, &served)?;
    }
    finish(keys, coalescing, calls, stream, length, &served)
}

/// The marked response as a request has received it, with the facts that the worker knows about it.
pub fn served_to<'a>(
    host: &dyn Host,
    identity: &Identity,
    keys: &Keys,
    stream: &EdgeRequest,
    entry: Entry<'a>,
    fields: &StoredFields<'a>,
) -> Served<'a> {
    let report = stream.progress.report.get();
    let arrival = Arrival {
        fill: identity.vouching.fill_id(stream.id),
        failure: match report {
            OriginReport::Failed { status, .. } => Some(status),
            _ => None,
        },
        late: report == OriginReport::Late,
        purged: keys.predates_soft_purge(&entry),
        now: host.unix_millis(),
    };
    Served::of(entry, fields, &arrival)
}

/// Confirms the response after a soft purge, starts a refresh if it is stale, and delays further requests to an
/// origin that has failed.
fn follow_up(
    keys: &Keys,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
    served: &Served<'_>,
) {
    // A lookup confirms a leader's response when the store has it; until then the store serves the purged object. No
    // lookup follows a lone request's fill, so it is confirmed here.
    let revalidated = served.own && served.entry.stored && served.entry.revalidated;
    let leads = stream.progress.request() == StoreRequest::Lead;
    if stream.progress.forced.get() && revalidated && !leads {
        keys.confirm(stream.key.key);
    }
    if served.failure.is_some() {
        let report = stream.progress.report.get();
        if !matches!(report, OriginReport::Failed { own: true, .. }) {
            background::back_off(coalescing, stream);
        }
    } else if served.is_stale() {
        background::refresh(keys, coalescing, calls, stream);
    }
}

/// Turns the response's headers into the headers for the client. The caller applies substitutes for missing objects,
/// conditions and ranges.
fn restore(
    host: &dyn Host,
    identity: &Identity,
    stream: &Rc<EdgeRequest>,
    headers: &Headers,
    fields: &StoredFields<'_>,
    served: &Served<'_>,
) -> host::Result<()> {
    let entry = &served.entry;
    host.edit_headers(Map::Response, restored(entry, fields))?;
    if fields.hides() {
        let mut shown = fields.hidden(|name| headers.has(name)).into_iter();
        shown.try_for_each(|(name, value)| host.add_header(Map::Response, &name, value))?;
    }
    variants::restore(host, stream, headers)?;
    if !served.has_age && (served.age > 0 || entry.lacks_room()) {
        host.set_header(Map::Response, "age", served.age.to_string())?;
    }
    let path = stream.target.path();
    add_client_headers(
        host,
        &stream.policy.policy,
        path,
        entry.status,
        entry.stored,
    )?;
    let collapsed = matches!(
        stream.progress.next_step.get(),
        Some(NextStep::Send(
            StoreRequest::Collapsed | StoreRequest::Validated
        ))
    );
    let status = if stream.authenticated && served.is_its_clients_alone() {
        CacheStatus::forwarded(Forward::Bypass)
            .forward_status(entry.status)
            .detail(PassReason::Authorization.name())
    } else {
        served.cache_status(stream.progress.request(), collapsed)
    };
    let reason = reason_of(stream, served);
    let status = reason.map_or(status, |reason| status.detail(reason.name()));
    add_status_of(host, identity, stream, status)
}

/// Passes on a response that other clients may get but the store does not. If it is small, the followers on this
/// worker get a copy. Otherwise only its own client gets it.
fn share_unstored(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    announced: Option<u64>,
    served: &Served<'_>,
) -> host::Result<()> {
    let once = served.entry.shared_once;
    let plain = stream.demand.is_none() && stream.stand_in.is_none() && !stream.head;
    let whole = plain && (once || served.entry.status == 200) && !stream.for_others;
    let way = served.collapsed_cache_status();
    let way = way.detail(if once {
        UncacheableReason::NoLifetime.name()
    } else {
        NO_ROOM
    });
    let sighting = served.sighting_without_room();
    let sharing = Sharing { way, once };
    let shares = whole
        && hot::begin_to_share(
            &*coalescing.host,
            keys,
            stream,
            announced,
            sighting,
            sharing,
        )?;
    if !shares {
        hot::share_nothing(coalescing, stream, once);
    }
    if !served.has_age && served.age == 0 {
        // The client of this request has it from the origin (RFC 9111, 5.1).
        coalescing.host.remove_header(Map::Response, "age")?;
    }
    Ok(())
}

/// Holds a missing object's response for its substitute, copies a hit for the hot tier, and applies the client's
/// conditions and range.
fn finish(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &Rc<EdgeRequest>,
    announced: Option<u64>,
    served: &Served<'_>,
) -> host::Result<Action> {
    let status = served.entry.status;
    if hold_for_substitute(
        &*coalescing.host,
        keys,
        calls,
        stream,
        status,
        served.served_for,
    )? {
        return Ok(Action::Pause);
    }
    if let Some(stand_in) = stream.stand_in.filter(|_| status == 200) {
        coalescing
            .metrics
            .count_of(&stream.policy, Metric::RequestsSubstituted);
        substitute::finish(&*coalescing.host, stand_in, &stream.policy.policy)?;
    }
    if is_plain_hit(stream, served) {
        hot::begin(
            &*coalescing.host,
            keys,
            stream,
            announced,
            served.sighting(),
        )?;
    }
    let fragile = served.is_fill();
    stream.progress.fragile.set(fragile);
    let demands = stream.demand.is_some();
    let counted = demands.then(|| hot::counted(keys, stream)).flatten();
    let delivered = deliver(&*coalescing.host, stream, status, !fragile, counted);
    if fragile {
        unread::learn(calls, stream, announced);
    }
    delivered
}

/// The reason for which the origin's response to this request is not stored, if it is not.
fn reason_of(stream: &EdgeRequest, served: &Served<'_>) -> Option<UncacheableReason> {
    let reason = stream.progress.account.uncacheable();
    reason.filter(|_| served.own && !served.entry.stored)
}

/// Whether the store has served a whole object unchanged, to a request without further demands.
fn is_plain_hit(stream: &EdgeRequest, served: &Served<'_>) -> bool {
    let changed = stream.demand.is_some() || stream.stand_in.is_some() || stream.head;
    let changed = changed || stream.slice.is_some();
    let keyed = served.entry.key == stream.target.cache_key();
    !changed && keyed && !stream.progress.forced.get() && served.is_hit(stream.progress.request())
}

/// The response's body, if it is that of a stored object and the headers lack its length.
fn unannounced(
    stream: &EdgeRequest,
    entry: &Entry<'_>,
    fields: &StoredFields<'_>,
) -> Option<BodyId> {
    let comes = entry.stored && entry.status == 200 && !stream.head;
    comes.then(|| fields.unannounced_body()).flatten()
}

/// Reports the response to the coalescer and the metrics.
fn report(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    served: &Served<'_>,
    announced: Option<u64>,
) {
    let small = announced.is_some_and(|length| length <= SMALL_BYTES);
    let entry = &served.entry;
    let filled = (served.own || served.failure.is_some()) && entry.stored;
    if served.own {
        keys.drop_hot_copy(stream.policy.site, stream.target.cache_key());
    }
    let result = served.metric(stream.progress.request());
    if stream.counts {
        let metrics = &coalescing.metrics;
        metrics.count_of(&stream.policy, result);
        metrics.count_uncacheable(&stream.policy, reason_of(stream, served));
    }
    stream.progress.account.results_in(result_of(result));
    coalescing.turn(|coalescer, turn| {
        let left = match served.failure {
            // The response was purged, so the origin is asked again soon.
            Some(_) if stream.progress.forced.get() => PURGED_MILLIS,
            _ => served.served_for,
        };
        let until = turn.now.saturating_add(left);
        let validated = entry.lifetime.must_be_validated();
        if entry.stored && validated {
            coalescer.hints().forget(stream.key.key);
        }
        if filled {
            let until = (!validated).then_some(until);
            coalescer.store_fills(stream.id, until, turn.now);
        } else if entry.stored && (stream.progress.forced.get() || served.predates_purge) {
            // The store has not asked the origin, because it had a fill under way, which may contain the purged
            // object. The followers get that object too, and one of them starts a refresh.
            coalescer.hints().forget(stream.key.key);
            let until = turn.now;
            coalescer.end_flight(stream.id, FlightOutcome::Found { until, small }, turn);
        } else if entry.stored {
            coalescer.hints().set(stream.key.key, Hint::Fresh, until);
            coalescer
                .hints()
                .note_readable(stream.key.key, small, turn.now);
            coalescer.end_flight(stream.id, FlightOutcome::Found { until, small }, turn);
        }
        // Any other response is private to its client, which ORIGIN has already reported, or the store has no room
        // for it.
    });
}

/// Whether the store has served a response that ORIGIN has not marked as that of a fill. ORIGIN marks every response
/// that passes through it, also one that bypasses the store with its request. A response made by Envoy has no age.
fn is_of_the_store(stream: &EdgeRequest, fields: &StoredFields<'_>, around: bool) -> bool {
    match around {
        true => !stream.progress.request().avoids_the_store(),
        false => fields.has_age(),
    }
}

/// Handles a response that ORIGIN has not marked: it bypassed the store, or Envoy made it.
fn respond_without_entry(
    identity: &Identity,
    keys: &Keys,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &Rc<EdgeRequest>,
) -> host::Result<Action> {
    if stream.progress.request() == StoreRequest::StoreOnly {
        stream.progress.account.results_in(account::NOT_STORED);
        let not_stored = detailed(&identity.name, NOT_STORED);
        coalescing
            .host
            .add_header(Map::Response, CACHE_STATUS, &not_stored)?;
        return Ok(Action::Continue);
    }
    let status = coalescing.host.header_number(Map::Response, ":status")?;
    let status = status.and_then(|status| u16::try_from(status).ok());
    let status = status.unwrap_or(502);
    let bypass = stream.progress.request() == StoreRequest::Bypass;
    if let Some(slice) = stream.slice.as_ref().filter(|_| status == 200) {
        sliced::tell_arrival(
            &*coalescing.host,
            &coalescing.metrics,
            stream,
            slice,
            Metric::RequestsMiss,
        )?;
    }
    if !bypass && stream.counts {
        coalescing
            .metrics
            .count_of(&stream.policy, Metric::RequestsMiss);
    }
    stream
        .progress
        .account
        .results_at_least_in(match stream.progress.next_step.get() {
            Some(NextStep::WaitTimeout) => account::WAIT_TIMEOUT,
            _ => result_of(Metric::RequestsMiss),
        });
    coalescing.turn(|coalescer, turn| {
        if is_request_error(&stream.policy.policy, status) {
            coalescer.request_failed(stream.id, turn);
        } else if status >= 400 {
            coalescer.origin_failed(stream.id, status, turn);
        } else {
            coalescer.store_refused(stream.id, turn);
        }
    });
    let description = without_entry(stream, status);
    add_client_headers(
        &*coalescing.host,
        &stream.policy.policy,
        stream.target.path(),
        status,
        false,
    )?;
    add_status_of(&*coalescing.host, identity, stream, description)?;
    if hold_for_substitute(&*coalescing.host, keys, calls, stream, status, 0)? {
        return Ok(Action::Pause);
    }
    Ok(Action::Continue)
}

/// The `Cache-Status` of a response that ORIGIN has not marked.
fn without_entry<'a>(stream: &EdgeRequest, status: u16) -> CacheStatus<'a> {
    match stream.progress.request() {
        StoreRequest::Bypass => CacheStatus::forwarded(Forward::Bypass)
            .forward_status(status)
            .detail(match stream.progress.next_step.get() {
                Some(NextStep::WaitTimeout) => "wait-timeout",
                Some(NextStep::UnsharedRange) => "range",
                Some(NextStep::Unfilled) => "unfilled",
                Some(NextStep::NoRoom) => NO_ROOM,
                Some(NextStep::HitForMiss(reason)) => reason.hit_for_miss(),
                _ => "hit-for-miss",
            }),
        _ => CacheStatus::forwarded(Forward::UriMiss).forward_status(status),
    }
}

/// Adds the `Cache-Status` of the response to a cacheable request.
fn add_status_of<'a>(
    host: &dyn Host,
    identity: &Identity,
    stream: &'a EdgeRequest,
    mut status: CacheStatus<'a>,
) -> host::Result<()> {
    let (policy, key) = (&stream.policy.policy, stream.target.cache_key());
    if is_of_variant(policy, key) {
        status = status.of_variant();
    }
    if policy.response.cache_status_key {
        status = status.key(key);
    }
    if let Some(second) = stream.progress.second_origin.get() {
        status = status.detail(second.detail());
    }
    add_cache_status(host, identity, &status)
}

fn add_cache_status(
    host: &dyn Host,
    identity: &Identity,
    status: &CacheStatus<'_>,
) -> host::Result<()> {
    let member = status.member_of(&identity.name);
    host.add_header(Map::Response, CACHE_STATUS, &member)
}
