// SPDX-License-Identifier: Apache-2.0
//! What EDGE makes of a response: news for the coalescer, and what the client should see.

use std::rc::Rc;

use proxy_wasm::types::Action;
use sluice_core::admission::PassReason;
use sluice_core::coalescing::hints::Hint;
use sluice_core::coalescing::{LeaderResponse, Probed, Release};
use sluice_core::hot::Sighting;
use sluice_core::http::cache_status::{CacheStatus, Forward};
use sluice_core::http::client_control::RequestControl;
use sluice_core::http::date;
use sluice_core::http::demand::Demand;
use sluice_core::key::CanonicalTarget;
use sluice_core::link::Purpose;
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::store::entry::{ENTRY_HEADER, Entry};
use sluice_core::store::served_for::served_for;
use sluice_core::workers::BodyId;
use sluice_core::workers::Millis;

use crate::account::{self, result_of};
use crate::answer::{Answer, NO_ROOM};
use crate::delivery::{Passing, bodiless, deliver};
use crate::dress::{add_headers, dress};
use crate::edge::{CACHE_STATUS, answer_failure};
use crate::headers::Headers;
use crate::host::{self, Map};
use crate::hot;
use crate::origin::STORED_CACHE_CONTROL;
use crate::response_fields::{ResponseFields, UPSTREAM_SERVICE_TIME};
use crate::site::hold;
use crate::stream::Stream;
use crate::{variants, worker};

/// For how long what was purged is served where the origin has failed, before it is asked again.
const PURGED_MILLIS: Millis = 1_000;
/// `Cache-Status` of a response that is wanted from the store only, which does not have it.
const NOT_STORED: &str = "sluice; detail=only-if-cached";

/// A response to a request that went around the store by its own nature.
pub fn respond_passed(
    reason: PassReason,
    policy: &Policy,
    target: &CanonicalTarget,
) -> host::Result<Action> {
    add_headers(policy.rule(target.path()))?;
    let forward = match reason {
        PassReason::Method => Forward::Method,
        PassReason::Upgrade | PassReason::Grpc | PassReason::Body => Forward::Bypass,
        PassReason::Authorization | PassReason::Cookie | PassReason::Vary => Forward::Bypass,
        PassReason::NoStore => Forward::Request,
    };
    add_cache_status(&CacheStatus::forwarded(forward).detail(reason.name()))?;
    Ok(Action::Continue)
}

/// A marked response, and what is known of its way here.
struct Found<'a> {
    entry: Entry<'a>,
    /// Whether it came from the origin because of this very request.
    mine: bool,
    /// The status with which the origin has failed this request, where the store keeps what it has.
    kept: Option<u16>,
    /// Whether it was fresh when its client's request was let go to the store.
    late: bool,
    /// In seconds.
    age: u64,
    /// Whether the response says its age.
    aged: bool,
    /// Whether it was asked for before a soft purge, and stored after: the fill was under way.
    outdated: bool,
    /// Milliseconds for which the store serves it unasked; 0 if it does not have it.
    left: Millis,
    /// When it came, in milliseconds since 1970.
    seen: Millis,
}

impl<'a> Found<'a> {
    fn of(stream: &Stream, entry: Entry<'a>, fields: &ResponseFields<'_>) -> Self {
        let nonce = worker::with(|worker| worker.nonce).unwrap_or_default();
        let mine = entry.fill.nonce == nonce && entry.fill.stream == stream.id.0;
        let counted = fields.age();
        let age = match counted {
            Some(age) => age,
            // ORIGIN has taken the header with the age that the response came with.
            None if mine => entry.age,
            None => age_by_date(fields),
        };
        let outdated = worker::with(|worker| worker.is_outdated(&entry)).unwrap_or(false);
        let seen = host::unix_millis();
        Self {
            mine,
            outdated: outdated && !mine,
            kept: stream.kept.get(),
            late: stream.late.get(),
            age,
            aged: counted.is_some(),
            left: left(fields, &entry, seen),
            seen,
            entry,
        }
    }

    /// Whether it is served within a window of staleness.
    fn is_stale(&self) -> bool {
        self.outdated || self.is_past_its_time()
    }

    /// What is seen of the stored response now.
    fn sighting(&self) -> Sighting {
        Sighting {
            lifetime: self.entry.lifetime(),
            age: self.age,
            seen: self.seen,
            left: self.left,
        }
    }

    fn is_past_its_time(&self) -> bool {
        let lifetime = self.entry.lifetime();
        let windows = lifetime.servable() > lifetime.ttl;
        !self.mine && windows && lifetime.fresh_for(self.age) <= 0
    }

    /// Whether it must not be served: the origin had to be asked, and has failed.
    fn is_expired(&self, control: &RequestControl) -> bool {
        let lifetime = self.entry.lifetime();
        let accepted = lifetime.ttl.saturating_add(control.max_stale.unwrap_or(0));
        // The stores count in whole seconds.
        let servable = lifetime.servable().max(accepted).saturating_add(1);
        !self.mine && !self.late && self.entry.stored && self.age > servable
    }

    /// Whether its client, who takes what the store has and nothing else, takes this.
    fn is_accepted(&self, control: &RequestControl) -> bool {
        let lifetime = self.entry.lifetime();
        let fresh_for = lifetime.fresh_for(self.age);
        control.accepts(self.age, fresh_for, lifetime.stale_while_revalidate)
    }
}

/// Milliseconds from `now` on for which the store serves a response unasked that is as it was stored.
fn left(fields: &ResponseFields<'_>, entry: &Entry<'_>, now: Millis) -> Millis {
    if !entry.stored {
        return 0;
    }
    let cache_control = fields.cache_control().unwrap_or_default();
    served_for(cache_control, fields.date().unwrap_or_default(), now)
}

/// The age of a response that Envoy has not counted, as it comes from a revalidation.
fn age_by_date(fields: &ResponseFields<'_>) -> u64 {
    let date = fields.date().and_then(date::parse);
    let age = date.map_or(0, |date| host::unix_seconds().saturating_sub(date));
    u64::try_from(age).unwrap_or(0)
}

/// Answers a request that is for the store only, which does not have what its client would take.
pub fn answer_not_stored(stream: &Stream) -> host::Result<()> {
    stream.answered.set(true);
    stream.account.results_in(account::NOT_STORED);
    let headers = [("cache-control", "no-store"), (CACHE_STATUS, NOT_STORED)];
    host::respond(504, "sluice_not_stored", &headers, "")
}

/// A response to a request that EDGE took for cacheable.
pub fn respond_cached(stream: &Rc<Stream>) -> host::Result<Action> {
    let headers = Headers::new(host::header_pairs(Map::Response)?);
    let fields = ResponseFields::of(&headers);
    let Some(entry) = fields.entry() else {
        return respond_without_entry(stream);
    };
    if entry.key != stream.target.cache_key() {
        return refuse_mismatch(stream);
    }
    let found = Found::of(stream, entry, &fields);
    if stream.purpose.get() == Purpose::StoreOnly && !found.is_accepted(&stream.control) {
        answer_not_stored(stream)?;
        return Ok(Action::Pause);
    }
    if found.is_expired(&stream.control) {
        return refuse_expired(stream, found.kept.unwrap_or(504));
    }
    report(stream, &found)?;
    // The store is seen to have it first: until then it serves what was purged.
    let committed = stream.purpose.get() != Purpose::Lead;
    if stream.forced.get() && found.mine && found.entry.stored && committed {
        worker::with(|worker| worker.confirm(stream.key));
    }
    if found.kept.is_some() {
        worker::with(|worker| worker.leave_alone(stream));
    } else if found.is_stale() {
        worker::with(|worker| worker.refresh(stream));
    }
    stream
        .unannounced
        .set(unannounced(stream, &found.entry, &fields));
    restore(&found.entry, &fields)?;
    variants::restore(stream, &headers)?;
    if !found.aged && (found.age > 0 || found.entry.lacks_room()) {
        host::set_header(Map::Response, "age", &found.age.to_string())?;
    }
    dress(
        &stream.policy.policy,
        stream.target.path(),
        found.entry.status,
        found.entry.stored,
    )?;
    add_cache_status(&describe(stream, &found))?;
    if found.entry.lacks_room() {
        pass_without_room(stream, fields.content_length(), &found)?;
    }
    let status = found.entry.status;
    if hold(stream, status, found.left)? {
        return Ok(Action::Pause);
    }
    if let Some(stand_in) = stream.stand_in {
        stand_in.finish(&stream.policy.policy, status)?;
    }
    if is_plain_hit(stream, &found) {
        hot::begin(stream, fields.content_length(), found.sighting())?;
    }
    let fragile = found.mine && found.entry.stored && !found.entry.revalidated;
    stream.fragile.set(fragile);
    deliver(stream, status, !fragile)
}

/// Passes on a response for which the store has no room: to the followers on this worker as well, by a copy, if it is
/// small, and else to its own client only.
fn pass_without_room(
    stream: &Stream,
    announced: Option<u64>,
    found: &Found<'_>,
) -> host::Result<()> {
    let plain = stream.demand.is_none() && stream.stand_in.is_none() && !stream.head;
    let whole = plain && found.entry.status == 200 && !stream.for_others;
    let left = found.entry.ttl.saturating_sub(found.age);
    let sighting = Sighting {
        left: left.saturating_mul(1_000),
        ..found.sighting()
    };
    let way = collapsed(found).detail(hot::NO_ROOM);
    let shares = whole && hot::begin_to_share(stream, announced, sighting, way)?;
    if !shares {
        worker::with(|worker| worker.pass_without_room(stream));
    }
    if !found.aged && found.age == 0 {
        // Its own client has it from the origin (RFC 9111, 5.1).
        host::remove_header(Map::Response, "age")?;
    }
    Ok(())
}

/// The response's body, if it is that of a stored object and no header tells its length.
fn unannounced(stream: &Stream, entry: &Entry<'_>, fields: &ResponseFields<'_>) -> Option<BodyId> {
    let comes = entry.stored && entry.status == 200 && !stream.head;
    comes.then(|| fields.unannounced_body()).flatten()
}

/// A response to a fill of the filter's own, which is told to those who wait and then dropped.
pub fn respond_filled(stream: &Rc<Stream>) -> host::Result<Action> {
    let shared = shared(stream)?;
    let action = respond_cached(stream)?;
    if stream.answered.get() {
        return Ok(action);
    }
    if let Some((status, way)) = shared {
        answer_followers(stream, status, &way)?;
    }
    if stream.fragile.get() {
        host::set_header(Map::Response, ":status", "200")?;
        host::remove_header(Map::Response, "content-length")?;
        stream.passing.set(Passing::Nothing);
        return Ok(Action::Continue);
    }
    Ok(end_own(stream, 204))
}

/// The status of the origin's response to a fill, if the store takes it, and how those come to it who share it.
fn shared(stream: &Stream) -> host::Result<Option<(u16, CacheStatus<'static>)>> {
    let headers = Headers::new(host::header_pairs(Map::Response)?);
    let fields = ResponseFields::of(&headers);
    let found = fields
        .entry()
        .map(|entry| Found::of(stream, entry, &fields));
    let taken = |found: &Found<'_>| found.mine && found.entry.stored && found.kept.is_none();
    let found = found.filter(taken);
    Ok(found.map(|found| (found.entry.status, collapsed(&found))))
}

/// Answers those who wait for a fill and whose copy is still good, who need not wait for its end.
fn answer_followers(stream: &Stream, status: u16, way: &CacheStatus<'_>) -> host::Result<()> {
    let headers = Headers::new(host::header_pairs(Map::Response)?);
    let answer = |demand: &Demand| Some(bodiless(demand, status, &headers)?.described(way));
    worker::with(|worker| worker.answer_followers(stream, answer));
    Ok(())
}

/// A response to a refresh, whose body nobody wants: only a fill has to be seen to its end.
pub fn respond_refreshed(stream: &Rc<Stream>) -> host::Result<Action> {
    let headers = Headers::new(host::header_pairs(Map::Response)?);
    let fields = ResponseFields::of(&headers);
    let found = fields
        .entry()
        .map(|entry| Found::of(stream, entry, &fields));
    // Not the origin's fault: what is stored is no error's stand-in.
    let lacks_room = found.as_ref().is_some_and(|found| found.entry.lacks_room());
    let stored = found.filter(|found| found.mine && found.entry.stored);
    if let Some(stored) = &stored {
        worker::with(|worker| {
            worker.cool(stream.target.cache_key());
            worker.turn(stream.id.0, |coalescer, turn| {
                let until = turn.now.saturating_add(stored.left);
                coalescer.hints().set(stream.key, Hint::Fresh, until);
            });
        });
    }
    if stored
        .as_ref()
        .is_some_and(|found| !found.entry.revalidated)
    {
        host::set_header(Map::Response, ":status", "200")?;
        host::remove_header(Map::Response, "content-length")?;
        stream.passing.set(Passing::Nothing);
        return Ok(Action::Continue);
    }
    let status = if stored.is_some() || lacks_room {
        204
    } else {
        502
    };
    Ok(end_own(stream, status))
}

/// Ends a request of the filter's own whose response nobody wants, soon.
fn end_own(stream: &Stream, status: u16) -> Action {
    stream.answered.set(true);
    worker::with(|worker| worker.answer_later(stream.id.0, Answer::Outcome { status }));
    Action::Pause
}

/// Tells the coalescer and the counters what came.
fn report(stream: &Stream, found: &Found<'_>) -> host::Result<()> {
    let entry = &found.entry;
    let filled = (found.mine || found.kept.is_some()) && entry.stored;
    worker::with(|worker| {
        if found.mine {
            worker.cool(stream.target.cache_key());
        }
        let result = result_metric(stream, found);
        worker.metrics.count(result, 1);
        stream.account.results_in(result_of(result));
        worker.turn(stream.id.0, |coalescer, turn| {
            let left = match found.kept {
                // Purged, and to be asked about again as soon as that makes sense.
                Some(_) if stream.forced.get() => PURGED_MILLIS,
                _ => found.left,
            };
            let until = turn.now.saturating_add(left);
            if filled {
                coalescer.response(stream.id, LeaderResponse::Filling, turn);
            } else if entry.stored && (stream.forced.get() || found.outdated) {
                // The store has not asked: it had a fill under way, which may bring what was purged. Who waits gets that
                // too, and one of all has it refreshed.
                coalescer.hints().forget(stream.key);
                let until = turn.now;
                coalescer.response(stream.id, LeaderResponse::Readable { until }, turn);
            } else if entry.stored {
                coalescer.hints().set(stream.key, Hint::Fresh, until);
                coalescer.response(stream.id, LeaderResponse::Readable { until }, turn);
            }
            // Any other response is nobody else's, as ORIGIN has told, or the store has no room for it.
        });
    });
    Ok(())
}

/// Whether the store has served a whole object as it is, to a request that nothing else is to be said of.
fn is_plain_hit(stream: &Stream, found: &Found<'_>) -> bool {
    let asked = stream.forced.get() || found.kept.is_some();
    let changed = stream.demand.is_some() || stream.stand_in.is_some();
    let whole = found.entry.stored && found.entry.status == 200 && !stream.head;
    whole && !asked && !changed && result_metric(stream, found) == Metric::RequestsHit
}

fn result_metric(stream: &Stream, found: &Found<'_>) -> Metric {
    match stream.purpose.get() {
        _ if found.mine && found.entry.revalidated => Metric::RequestsRevalidated,
        _ if found.mine => Metric::RequestsMiss,
        Purpose::Collapsed => Metric::RequestsCollapsed,
        _ if found.is_stale() => Metric::RequestsStale,
        _ => Metric::RequestsHit,
    }
}

/// Undoes what ORIGIN did to the response so that Envoy's cache would store it.
fn restore(entry: &Entry<'_>, fields: &ResponseFields<'_>) -> host::Result<()> {
    host::remove_header(Map::Response, ENTRY_HEADER)?;
    // The cache filter's own client adds it. A call of the host costs more than a look at what it gave.
    if fields.has_upstream_service_time() {
        host::remove_header(Map::Response, UPSTREAM_SERVICE_TIME)?;
    }
    if entry.disguised {
        host::set_header(Map::Response, ":status", &entry.status.to_string())?;
    }
    match fields.own_cache_control {
        Some(value) => {
            let value = String::from_utf8_lossy(value);
            host::set_header(Map::Response, "cache-control", &value)?;
            host::remove_header(Map::Response, STORED_CACHE_CONTROL)?;
        }
        None if fields.has_cache_control() => {
            host::remove_header(Map::Response, "cache-control")?;
        }
        None => {}
    }
    restore_validators(fields)
}

fn restore_validators(fields: &ResponseFields<'_>) -> host::Result<()> {
    let Some(validator) = fields.validator() else {
        return Ok(());
    };
    match validator.etag {
        Some(etag) => host::set_header(Map::Response, "etag", etag)?,
        None => host::remove_header(Map::Response, "etag")?,
    }
    match validator.last_modified() {
        Some(date) => host::set_header(Map::Response, "last-modified", &date),
        None => Ok(()),
    }
}

fn describe(stream: &Stream, found: &Found<'_>) -> CacheStatus<'static> {
    let entry = &found.entry;
    let ttl = entry.lifetime().fresh_for(found.age);
    if found.mine && entry.revalidated {
        let forward = match stream.purpose.get() {
            Purpose::Checked => Forward::Request,
            _ => Forward::Stale,
        };
        let status = CacheStatus::forwarded(forward).forward_status(304).ttl(ttl);
        return if entry.lacks_room() {
            status.detail(hot::NO_ROOM)
        } else {
            status
        };
    }
    if found.mine {
        let status = CacheStatus::forwarded(Forward::UriMiss).forward_status(entry.status);
        return if entry.stored {
            status.stored().ttl(ttl)
        } else if entry.lacks_room() {
            status.detail(hot::NO_ROOM)
        } else {
            status
        };
    }
    if let Some(status) = found.kept {
        return CacheStatus::forwarded(Forward::Stale)
            .forward_status(status)
            .ttl(ttl);
    }
    if stream.released.get() == Some(Release::Collapsed) {
        return collapsed(found);
    }
    CacheStatus::hit().ttl(ttl)
}

fn collapsed(found: &Found<'_>) -> CacheStatus<'static> {
    let ttl = found.entry.lifetime().fresh_for(found.age);
    // What it has waited for was a validation, or there was nothing.
    let forward = if found.is_stale() || found.entry.revalidated {
        Forward::Stale
    } else {
        Forward::UriMiss
    };
    CacheStatus::forwarded(forward).collapsed().ttl(ttl)
}

/// A response that ORIGIN has not marked: it went around the store, or is Envoy's own.
fn respond_without_entry(stream: &Rc<Stream>) -> host::Result<Action> {
    if stream.purpose.get() == Purpose::StoreOnly {
        stream.account.results_in(account::NOT_STORED);
        host::add_header(Map::Response, CACHE_STATUS, NOT_STORED)?;
        return Ok(Action::Continue);
    }
    let status = host::header(Map::Response, ":status")?;
    let status = status.and_then(|status| std::str::from_utf8(&status).ok()?.parse().ok());
    let status: u16 = status.unwrap_or(502);
    let bypass = stream.purpose.get() == Purpose::Bypass;
    worker::with(|worker| {
        if !bypass {
            worker.metrics.count(Metric::RequestsMiss, 1);
        }
        stream
            .account
            .results_at_least_in(match stream.released.get() {
                Some(Release::WaitTimeout) => account::WAIT_TIMEOUT,
                _ => result_of(Metric::RequestsMiss),
            });
        worker.turn(stream.id.0, |coalescer, turn| {
            let response = if status >= 400 {
                LeaderResponse::Failed { status }
            } else {
                LeaderResponse::Unshared
            };
            coalescer.response(stream.id, response, turn);
        });
    });
    let forward = if bypass {
        Forward::Bypass
    } else {
        Forward::UriMiss
    };
    let mut description = CacheStatus::forwarded(forward).forward_status(status);
    if bypass {
        description = description.detail(match stream.released.get() {
            Some(Release::WaitTimeout) => "wait-timeout",
            Some(Release::Alone) => "range",
            Some(Release::NoRoom) => hot::NO_ROOM,
            _ => "hit-for-miss",
        });
    }
    dress(&stream.policy.policy, stream.target.path(), status, false)?;
    add_cache_status(&description)?;
    Ok(if hold(stream, status, 0)? {
        Action::Pause
    } else {
        Action::Continue
    })
}

/// Envoy's disk store names files by a short hash, so an entry can be of another key.
fn refuse_mismatch(stream: &Stream) -> host::Result<Action> {
    worker::with(|worker| {
        worker.metrics.count(Metric::KeyMismatches, 1);
        worker.warn(|| "sluice: the store gave the response of another key".to_owned());
        worker.turn(stream.id.0, |coalescer, turn| {
            coalescer.response(stream.id, LeaderResponse::Failed { status: 503 }, turn);
        });
    });
    stream.answered.set(true);
    stream.account.results_in(account::FAILED);
    answer_failure(503, false)?;
    Ok(Action::Pause)
}

/// What the store has is too old for the policy, and the origin has failed (RFC 9111, 4.2.4).
fn refuse_expired(stream: &Stream, status: u16) -> host::Result<Action> {
    worker::with(|worker| {
        worker.turn(stream.id.0, |coalescer, turn| {
            coalescer.response(stream.id, LeaderResponse::Failed { status }, turn);
        });
    });
    stream.answered.set(true);
    stream.account.results_in(account::FAILED);
    answer_failure(status, false)?;
    Ok(Action::Pause)
}

fn add_cache_status(status: &CacheStatus<'_>) -> host::Result<()> {
    host::add_header(Map::Response, CACHE_STATUS, &status.to_string())
}

/// Whether a look at the store has been answered with that status.
pub fn has_told(status: u16) -> bool {
    let told = host::header(Map::CallResponse, ":status").ok().flatten();
    told.is_some_and(|told| told == status.to_string().as_bytes())
}

/// What the store has given to a probe at `now`, where `is_outdated` tells what a soft purge has overtaken.
pub fn probed(now: Millis, is_outdated: impl Fn(&Entry<'_>) -> bool) -> Probed {
    let Ok(pairs) = host::header_pairs(Map::CallResponse) else {
        return Probed::Missing;
    };
    let headers = Headers::new(pairs);
    let fields = ResponseFields::of(&headers);
    match fields.entry().filter(|entry| entry.stored) {
        None if has_told(NO_ROOM) => Probed::NoRoom,
        None => Probed::Missing,
        Some(entry) if is_outdated(&entry) => Probed::Outdated,
        Some(entry) => Probed::Readable {
            until: now.saturating_add(left(&fields, &entry, host::unix_millis())),
        },
    }
}
