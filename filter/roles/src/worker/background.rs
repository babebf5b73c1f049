// SPDX-License-Identifier: Apache-2.0
//! The worker's own requests: refreshes, background fills, and looks that prepare a client's request.

use std::rc::Rc;

use sluice_core::coalescing::ahead::Representation;
use sluice_core::coalescing::flight::Leader;
use sluice_core::coalescing::unread::UnreadFill;
use sluice_core::coalescing::{CLAIM_MILLIS, Onward, Probed};
use sluice_core::http::date;
use sluice_core::key::vary::{Fit, fit};
use sluice_core::metrics::Metric;
use sluice_core::policy::Policy;
use sluice_core::store::entry::Entry;
use sluice_core::store::stored_fields::StoredFields;
use sluice_core::workers::{KeyHash, Millis};

use super::Worker;
use super::calls::{BackgroundCall, CallKind};
use super::probes::{self, has_succeeded};
use super::{ahead, looks, mismatches, substitutes, unread, variants};
use crate::host::headers::Headers;
use crate::host::{Host, Map};
use crate::reply::DueReply;
use crate::reply::substitute::Document;
use crate::request::body::Passing;
use crate::request::headers::headers_for_calls;
use crate::request::policy::NumberedPolicy;
use crate::request::{EdgeRequest, Prelude};

/// Has a stale response refreshed that a client was served, unless a refresh is under way.
pub fn refresh(worker: &mut Worker, stream: &EdgeRequest) {
    let pause = pause(&*worker.host, &stream.policy);
    let variant = stream.progress.variant.borrow().clone();
    let target = variant.unwrap_or_else(|| Rc::clone(&stream.target));
    let key = worker.keys.key_hash(target.cache_key());
    let begins = worker.turn(stream.id.0, |coalescer, turn| {
        coalescer.begin_refresh(key, pause, turn)
    });
    if !begins {
        return;
    }
    if !worker.calls.has_room() {
        worker.metrics.count(Metric::LimitsReached, 1);
        back_off(worker, stream);
        return;
    }
    worker.metrics.count(Metric::Refreshes, 1);
    worker.calls.push(BackgroundCall::new(
        &*worker.host,
        CallKind::Refresh(key),
        target,
        stream.policy.clone(),
    ));
    worker.roots.wake();
}

/// Leaves the origin alone with a key for a while: it has failed, and a stale response was served in its place.
pub fn back_off(worker: &mut Worker, stream: &EdgeRequest) {
    let pause = pause(&*worker.host, &stream.policy);
    worker.turn(stream.id.0, |coalescer, turn| {
        coalescer.refreshed(stream.key.key, true, pause, turn);
    });
}

/// Whether the origin failed when it was last asked for `key`.
pub fn is_failing(worker: &mut Worker, key: KeyHash) -> bool {
    let now = worker.host.monotonic_millis();
    worker.coalescer.hints().is_failing(key, now)
}

/// Handles Envoy's answer to a call of the root context. `answered` is false if there is none.
pub fn call_answered(worker: &mut Worker, call: u32, answered: bool, body_size: usize) {
    if let Some(background) = worker.calls.take(call) {
        match background.kind {
            CallKind::Substitute(key) if answered => {
                let document = Document::answered(&*worker.host, body_size);
                substitutes::end_substitute(worker, key, document.as_ref());
            }
            CallKind::Around(_) if answered => {
                let object = Document::answered(&*worker.host, body_size);
                mismatches::end_fetch(worker, background.kind, object.as_ref());
            }
            CallKind::Variant(_) if answered => {
                let variant = Document::received(&*worker.host, body_size);
                variants::end_fetch(worker, background.kind, variant.as_ref());
            }
            _ => end_call(worker, &background, answered),
        }
    } else {
        let recorded = answered && has_succeeded(&*worker.host);
        if worker.purge_calls.journal_answered(call, recorded) {
            worker.purge_calls.go_on(&worker.roots);
            worker.arm_timer();
        }
    }
    send_calls(worker);
}

/// Ends all calls under way without an answer: the root context that has made them is gone.
pub fn fail_calls(worker: &mut Worker) {
    for call in worker.calls.take_all() {
        end_call(worker, &call, false);
    }
}

/// Sends the calls that are due. For the root context's turn.
pub fn send_calls(worker: &mut Worker) {
    for call in worker.calls.take_due() {
        let made = worker
            .calls
            .send(&*worker.host, call.clone(), &worker.identity);
        if let Err(error) = made {
            worker.metrics.check(Err(error));
            end_call(worker, &call, false);
        }
    }
}

/// Renews this worker's claims on refreshes that take long.
pub fn renew_claims(worker: &mut Worker) {
    let now = worker.host.monotonic_millis();
    for key in worker.calls.take_unrenewed(now, CLAIM_MILLIS / 2) {
        worker.turn(worker.roots.newest(), |coalescer, turn| {
            coalescer.refreshing(key, turn);
        });
    }
}

/// What has become of the call that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preparation {
    /// The request waits for it.
    Waits,
    /// The request needs no more, or there are too many calls.
    Done,
}

/// Makes the next call that a range, a HEAD or a conditional request needs before it may take part in coalescing.
///
/// A range leads itself once the size is known, so that it need not wait for the object's end; a background fill
/// goes on for others, and after its client has left. A HEAD needs a fill only to have a stored response
/// revalidated. A conditional request needs one that goes on when its client has its 304.
fn prepare(worker: &mut Worker, stream: &EdgeRequest) -> Preparation {
    let key = stream.key.key;
    let (prelude, call) = match stream.progress.prelude.get() {
        Prelude::None if stream.head => (Prelude::Looked, CallKind::Look(key)),
        Prelude::None if stream.is_for_part() => (Prelude::Sized, CallKind::Size(key)),
        Prelude::Done => return Preparation::Done,
        _ => (Prelude::Done, CallKind::Fill(key)),
    };
    stream.progress.prelude.set(prelude);
    wait_for(worker, stream, call)
}

/// Has a request look whether the store has what it asks for, which may go to the origin by itself only.
fn look(worker: &mut Worker, stream: &EdgeRequest) -> Preparation {
    stream.progress.prelude.set(Prelude::Done);
    wait_for(worker, stream, CallKind::Look(stream.key.key))
}

/// Has a request with credentials look whether the store has a response that they share; how it goes on if it cannot.
pub fn look_for_authenticated(worker: &mut Worker, stream: &EdgeRequest) -> Option<Onward> {
    match wait_for(worker, stream, CallKind::Look(stream.key.key)) {
        Preparation::Waits => None,
        Preparation::Done => Some(looks::unshared(stream)),
    }
}

/// Has a request wait for a call, which it makes if it is the first.
fn wait_for(worker: &mut Worker, stream: &EdgeRequest, call: CallKind) -> Preparation {
    if worker.calls.join(call, stream.id) {
        return Preparation::Waits;
    }
    if !worker.calls.has_room_to_prepare() {
        worker.metrics.count(Metric::LimitsReached, 1);
        return Preparation::Done;
    }
    if !unread::may_call(worker, stream, call) {
        worker.metrics.count(Metric::UnreadFillsRefused, 1);
        return if stream.head {
            Preparation::Done
        } else {
            look(worker, stream)
        };
    }
    worker.calls.await_first(call, stream.id);
    if matches!(call, CallKind::Look(_)) {
        worker.metrics.count(Metric::StoreProbes, 1);
    }
    call_for(worker, stream, call);
    Preparation::Waits
}

/// How a request really goes on, where the coalescer has said `onward`; `None` if it waits for a call first. A range or
/// a conditional request is not worth a fill that nobody shares: after its calls it goes around the store.
pub fn ready(worker: &mut Worker, stream: &EdgeRequest, onward: Onward) -> Option<Onward> {
    if onward == Onward::Lead {
        unread::lead(worker, stream);
    }
    let waits = stream.is_for_part()
        || stream.shares_headers_only()
        || stream.needs_background_leader()
        || (stream.may_be_bodiless() && !stream.may_lead);
    let prepares = onward == Onward::Alone && waits && stream.policy.policy.coalesce.enabled;
    let fills = matches!(onward, Onward::Lead | Onward::Alone);
    let calls = prepares || (fills && stream.may_finish_early());
    if (calls && !keep_headers(worker, stream)) || !prepares {
        return Some(onward);
    }
    // Its fill in the background would have its headers.
    let prepared = if stream.may_lead {
        prepare(worker, stream)
    } else if stream.may_be_bodiless() && stream.progress.prelude.get() != Prelude::Done {
        look(worker, stream)
    } else {
        Preparation::Done
    };
    match prepared {
        Preparation::Waits => None,
        Preparation::Done if stream.head => Some(Onward::Alone),
        Preparation::Done if stream.is_for_part() => Some(Onward::UnsharedRange),
        Preparation::Done => Some(Onward::Unfilled),
    }
}

/// Keeps the client's request headers if a background fill may have to take the place of its request.
pub fn keep_for_rescue(worker: &mut Worker, stream: &EdgeRequest) {
    if stream.may_finish_early() {
        keep_headers(worker, stream);
    }
}

/// Keeps the client's request headers for calls on its behalf. False if they cannot be read.
fn keep_headers(worker: &mut Worker, stream: &EdgeRequest) -> bool {
    if !stream.progress.headers.borrow().is_empty() {
        return true;
    }
    let acting = worker.roots.act_as(stream.id.0);
    let headers = acting.and_then(|host| host.headers(Map::Request));
    match headers.map(|headers| headers_for_calls(&headers)) {
        Ok(headers) => *stream.progress.headers.borrow_mut() = headers,
        Err(error) => {
            worker.metrics.check(Err(error));
            return false;
        }
    }
    true
}

fn call_for(worker: &mut Worker, stream: &EdgeRequest, call: CallKind) {
    let (target, policy) = (Rc::clone(&stream.target), stream.policy.clone());
    let headers = stream.progress.headers.borrow().clone();
    worker.calls.push(BackgroundCall {
        headers,
        ..BackgroundCall::new(&*worker.host, call, target, policy)
    });
    worker.roots.wake();
}

/// Starts a background fill in the place of one that has ended with its client, who needed less than the object.
/// Not after `Fresh`: its request headers were not kept. The next request refetches.
pub fn rescue(worker: &mut Worker, stream: &EdgeRequest) {
    let less = !matches!(stream.body.passing.get(), Passing::Whole);
    let known = !stream.progress.headers.borrow().is_empty();
    let filled = stream.progress.fragile.get() && stream.may_finish_early() && less && known;
    let Some(context) = worker.fills.context(stream.id).filter(|_| filled) else {
        return;
    };
    if !worker.calls.has_room_to_prepare() || worker.coalescer.is_committing(stream.key.key) {
        return;
    }
    let fill = CallKind::Fill(stream.key.key);
    if !unread::may_call(worker, stream, fill) {
        worker.metrics.count(Metric::UnreadFillsRefused, 1);
        return;
    }
    // The store would not take the next response before this one has gone. The coalescer sees to that for leaders
    // only.
    if !worker.due.answers(context) {
        worker.answer_later(context, DueReply::Reset);
    }
    call_for(worker, stream, fill);
}

/// Whether a range that has begun to wait goes to the origin at once, ahead of the fill. Where another worker fills, it
/// waits at least until the origin has told what the object is like. `context` is that of this callback.
pub fn overtakes(worker: &mut Worker, stream: &EdgeRequest, context: u32) -> bool {
    if ahead::asks(worker, stream) {
        if keep_headers(worker, stream) {
            call_for(worker, stream, CallKind::Size(stream.key.key));
        }
        worker.roots.restore(context);
    }
    ahead::overtakes(worker, stream)
}

/// Admits the requests that have waited for `call`, when the origin has `told` what the object is like. `context` is that
/// of this callback.
///
/// A range that begins far into the object does not lead, as its client would wait for all that comes before.
pub fn prepared(worker: &mut Worker, call: CallKind, told: &Told, context: u32) {
    let asked = matches!(call, CallKind::Size(_));
    let mut may_lead = asked;
    for id in worker.calls.take_waiting(call) {
        let Some(stream) = worker.stream(id) else {
            continue;
        };
        let mut request = stream.request();
        let far = told.representation.as_ref();
        let far = far.is_some_and(|described| ahead::begins_far(&stream, described));
        let leads = may_lead && stream.may_lead && !far;
        request.may_lead |= leads && unread::may_lead(worker, &stream, told.length);
        let admitted = worker.turn(context, |coalescer, turn| coalescer.request(&request, turn));
        if admitted != Some(Onward::Lead) {
            unread::leads_not(worker, &stream);
        }
        let onward = match admitted {
            None if !asked && overtakes(worker, &stream, context) => Onward::Ahead,
            None => continue,
            // It has waited for the call.
            Some(Onward::Fresh) => Onward::Collapsed,
            Some(onward) => onward,
        };
        may_lead &= onward != Onward::Lead;
        worker.due.resume(id, onward);
    }
    worker.roots.wake();
}

/// What the origin has told of an object that a range is asked of.
#[derive(Debug, Default)]
pub struct Told {
    /// How many bytes it has.
    length: Option<u64>,
    /// What can be asked for in ranges.
    representation: Option<Rc<Representation>>,
}

/// Handles the answer to a question for the size of an object: one that is too large is not coalesced.
fn sized(worker: &mut Worker, key: KeyHash, call: &BackgroundCall) -> Told {
    let headers = worker.host.headers(Map::CallResponse);
    let Some(headers) = headers.ok().filter(|_| has_succeeded(&*worker.host)) else {
        return Told::default();
    };
    let (policy, length) = (&call.policy.policy, headers.content_length());
    if length.is_some_and(|length| length > policy.cache.max_object_bytes) {
        worker.mark_hit_for_miss(key, &call.policy);
        return Told {
            length,
            representation: None,
        };
    }
    Told {
        length,
        representation: ahead::representation(policy, call.target.cache_key(), &headers)
            .filter(|_| !varies(policy, call.target.cache_key(), &headers)),
    }
}

/// Whether ranges of a response with these headers are not alike for all who ask for them under `key`.
fn varies(policy: &Policy, key: &str, headers: &Headers) -> bool {
    fit(policy, key, headers.joined("vary").as_deref()) != Fit::Keyed
}

/// What a probe for a flight of `key` has found. A flight from before a soft purge has a hash from before it, and
/// its followers take a response from before it.
fn probed(worker: &mut Worker, key: KeyHash, call: &BackgroundCall) -> Probed {
    let cache_key = call.target.cache_key();
    let current = key == worker.keys.key_hash(cache_key);
    let outdated = |entry: &Entry<'_>| current && worker.keys.predates_soft_purge(entry);
    let leader = worker.coalescer.leader(key);
    let awaited = |entry: &Entry<'_>, fields: &StoredFields<'_>| {
        leader.is_some_and(|leader| is_awaited(worker, leader, entry, fields))
    };
    let now = worker.host.monotonic_millis();
    let probed = probes::probed(&*worker.host, now, outdated, awaited);
    let found = matches!(probed, Probed::Readable { .. } | Probed::Validated);
    if current && found && worker.keys.soft_generation(cache_key) > 0 {
        worker.keys.confirm(key);
    }
    probed
}

/// Whether the store has the response of `leader`, or one that came after it. While Envoy's cache writes what a 304 has
/// brought, it may still have the response from before.
fn is_awaited(
    worker: &Worker,
    leader: Leader,
    entry: &Entry<'_>,
    fields: &StoredFields<'_>,
) -> bool {
    let host = &*worker.host;
    let since = host.monotonic_millis().saturating_sub(leader.answered) / 1_000;
    let answered = host.unix_seconds().saturating_sub_unsigned(since);
    let date = fields.date().and_then(date::parse);
    let received = date.map(|date| date.saturating_add_unsigned(entry.age));
    let newer = received.is_some_and(|received| received > answered);
    newer || entry.fill == worker.identity.fill_id(leader.stream)
}

fn end_call(worker: &mut Worker, call: &BackgroundCall, answered: bool) {
    match call.kind {
        CallKind::Probe(key) => {
            let probed = if answered {
                probed(worker, key, call)
            } else {
                Probed::Missing
            };
            worker.turn(worker.roots.newest(), |coalescer, turn| {
                coalescer.probed(key, probed, turn);
            });
        }
        CallKind::Look(key) => looks::looked(worker, key, &call.target, answered),
        CallKind::Fill(key) => {
            worker.unread.end(UnreadFill::Background(key));
            let context = worker.roots.newest();
            prepared(worker, call.kind, &Told::default(), context);
        }
        CallKind::Size(key) => {
            let told = answered.then(|| sized(worker, key, call));
            let (told, context) = (told.unwrap_or_default(), worker.roots.newest());
            prepared(worker, call.kind, &told, context);
            if let Some(representation) = &told.representation {
                ahead::release(worker, key, Some(representation));
            }
        }
        CallKind::Refresh(key) => {
            let failed = !(answered && has_succeeded(&*worker.host));
            if failed {
                worker.metrics.count(Metric::RefreshFailures, 1);
            }
            let pause = pause(&*worker.host, &call.policy);
            worker.turn(worker.roots.newest(), |coalescer, turn| {
                coalescer.refreshed(key, failed, pause, turn);
            });
        }
        CallKind::Substitute(key) => substitutes::end_substitute(worker, key, None),
        CallKind::Around(_) => mismatches::end_fetch(worker, call.kind, None),
        CallKind::Variant(_) => variants::end_fetch(worker, call.kind, None),
    }
}

/// Milliseconds for which the origin is left alone with a key. A part is random, so that all keys do not ask an origin
/// at once that has come back.
fn pause(host: &dyn Host, policy: &NumberedPolicy) -> Millis {
    let interval = policy.policy.cache.retry_interval.as_millis();
    let interval = u64::try_from(interval).unwrap_or(u64::MAX);
    let random = host.random().map_or(0, u64::from_le_bytes);
    interval.saturating_add(random % (interval / 2).saturating_add(1))
}
