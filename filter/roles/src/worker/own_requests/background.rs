// SPDX-License-Identifier: Apache-2.0
//! The worker's own requests: refreshes, background fills, and lookups that prepare a client's request.

use crate::request::call_kind::CallKind;
use crate::worker::coalescing::Coalescing;
use crate::worker::fills::Fills;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::own_requests::calls::Calls;
use crate::worker::roots::Roots;
use sluice_core::coalescing::Coalescer;
use std::rc::Rc;

use sluice_core::coalescing::{CLAIM_MILLIS, NextStep, StoreRequest};
use sluice_core::http::conditional::range::Part;
use sluice_core::metrics::Metric;
use sluice_core::workers::{KeyHash, Millis, millis};

use crate::reply::DueReply;
use crate::request::EdgeRequest;
use crate::request::headers::headers_for_calls;
use crate::request::policy::NumberedPolicy;
use crate::worker::own_requests::{calls::BackgroundCall, looks, unread};
use sluice_host::{Host, Map};

/// Starts a refresh of a stale response that was served to a client, unless a refresh is under way.
pub fn refresh(keys: &Keys, coalescing: &mut Coalescing, calls: &mut Calls, stream: &EdgeRequest) {
    let pause = pause(&*calls.host, &stream.policy);
    let variant = stream.progress.variant.borrow().clone();
    let target = variant.unwrap_or_else(|| Rc::clone(&stream.target));
    let key = keys.key_hash(target.cache_key());
    let begins = coalescing.turn(|coalescer, turn| coalescer.begin_refresh(key, pause, turn));
    if !begins {
        return;
    }
    if !calls.has_room() {
        calls.metrics.count(Metric::LimitsReached, 1);
        back_off(coalescing, stream);
        return;
    }
    calls.metrics.count(Metric::Refreshes, 1);
    calls.push(BackgroundCall::new(
        CallKind::Refresh(key),
        target,
        stream.policy.clone(),
    ));
}

/// Stops refreshes of a key for a while, because the origin has failed and a stale response was served instead.
pub fn back_off(coalescing: &mut Coalescing, stream: &EdgeRequest) {
    let pause = pause(&*coalescing.host, &stream.policy);
    coalescing.turn(|coalescer, turn| {
        coalescer.refreshed(stream.key.key, true, pause, turn);
    });
}

/// Whether the origin failed when it was last asked for `key`.
pub fn is_failing(host: &dyn Host, coalescer: &mut Coalescer, key: KeyHash) -> bool {
    let now = host.monotonic_millis();
    coalescer.hints().is_failing(key, now)
}

/// Renews this worker's claims on refreshes that take long.
pub fn renew_claims(coalescing: &mut Coalescing, calls: &mut Calls) {
    let now = calls.host.monotonic_millis();
    for key in calls.take_unrenewed(now, CLAIM_MILLIS / 2) {
        coalescing.turn(|coalescer, turn| {
            coalescer.refreshing(key, turn);
        });
    }
}

/// Makes the next call that a range, a HEAD or a conditional request needs before it may take part in coalescing.
///
/// If this worker does not know of the object, the store may have it nevertheless, for example after a restart. If
/// the store does not have the object, the range itself leads once the size is known, so that it need not wait for
/// the end of the object. A background fill continues for other requests, also after its client has left. A HEAD
/// needs a fill only to revalidate a stored response. A conditional request needs a fill that continues after its
/// client has its 304.
///
/// Returns its next step if it does not wait for a call.
fn prepare(
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
) -> Option<NextStep> {
    let key = stream.key.key;
    let call = match stream.progress.prior_call.get() {
        None if stream.looks_first() => CallKind::Look(key),
        Some(CallKind::Fill(_)) => return prepare_again(coalescing, calls, stream),
        _ if stream.sizes_next() && stream.may_be_sliced() => CallKind::Index(key),
        _ if stream.sizes_next() => CallKind::Size(key),
        _ => CallKind::Fill(key),
    };
    stream.progress.prior_call.set(Some(call));
    wait_for(calls, stream, call)
}

/// Makes a request that has had its calls wait for one more fill, if the response to the last fill may concern that
/// fill only.
fn prepare_again(
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
) -> Option<NextStep> {
    let (key, now) = (stream.key.key, calls.host.monotonic_millis());
    let call = CallKind::Fill(key);
    let lacks_heir = coalescing.coalescer.lacks_heir(key, now);
    if lacks_heir && calls.join(call, stream.id) {
        None
    } else if coalescing.coalescer.take_heirless_fill(key, now) {
        wait_for(calls, stream, call)
    } else {
        Some(without_call(stream))
    }
}

/// Makes a request wait for a lookup. Without a stored response it can only be sent to the origin alone.
fn look(calls: &mut Calls, stream: &EdgeRequest) -> Option<NextStep> {
    let key = stream.key.key;
    stream.progress.prior_call.set(Some(CallKind::Fill(key)));
    wait_for(calls, stream, CallKind::Look(key))
}

/// Makes a request with credentials wait for a lookup of a response that it may share. Returns its next step if it
/// cannot wait.
pub fn look_for_authenticated(calls: &mut Calls, stream: &EdgeRequest) -> Option<NextStep> {
    let refused = wait_for(calls, stream, CallKind::Look(stream.key.key));
    refused.map(|_| looks::unshared(stream))
}

/// Makes a request wait for the headers of its object. Returns another step if it cannot wait.
pub fn wait_for_index(roots: &Roots, calls: &mut Calls, stream: &EdgeRequest) -> Option<NextStep> {
    let call = CallKind::Index(stream.key.key);
    stream.progress.prior_call.set(Some(call));
    if !keep_headers(&calls.metrics, roots, stream) {
        return Some(without_call(stream));
    }
    wait_for(calls, stream, call)
}

/// The next step of a request that needs no further call, or cannot have one.
fn without_call(stream: &EdgeRequest) -> NextStep {
    if stream.head {
        NextStep::Send(StoreRequest::Alone)
    } else if stream.is_for_part() {
        NextStep::UnsharedRange
    } else {
        NextStep::Unfilled
    }
}

/// Makes a request wait for a call. Makes the call if no other request waits for it. Returns the next step of the
/// request if there are too many calls, or if the bounds on unread fills leave no room for one more.
fn wait_for(calls: &mut Calls, stream: &EdgeRequest, call: CallKind) -> Option<NextStep> {
    let is_index = matches!(call, CallKind::Index(_));
    if calls.join(call, stream.id) || (is_index && calls.join_unawaited(call, stream.id)) {
        return None;
    }
    // An answer to this client's own headers says nothing about the object.
    let is_question = is_index || matches!(call, CallKind::Size(_));
    if is_question && !stream.may_share {
        return Some(without_call(stream));
    }
    if !calls.has_room_to_prepare() {
        calls.metrics.count(Metric::LimitsReached, 1);
        return Some(without_call(stream));
    }
    if !unread::may_call(calls, stream, call) {
        calls.metrics.count(Metric::UnreadFillsRefused, 1);
        return if stream.head {
            Some(without_call(stream))
        } else if stream.is_for_part() {
            Some(NextStep::Unfilled)
        } else {
            look(calls, stream)
        };
    }
    if matches!(call, CallKind::Look(_)) {
        calls.metrics.count(Metric::StoreLookups, 1);
    }
    if is_index {
        calls
            .metrics
            .count_of(&stream.policy, Metric::SliceIndexesAsked);
    }
    calls.push_for(stream.id, call_of(stream, call));
    None
}

/// The final next step of a request for which the coalescer has decided on `next_step`, or `None` if it waits for a
/// call first. A range or a conditional request does not justify a fill that no other request shares, so it bypasses
/// the store after its calls.
pub fn ready(
    roots: &Roots,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
    next_step: NextStep,
) -> Option<NextStep> {
    if next_step == NextStep::Send(StoreRequest::Lead) {
        unread::lead(calls, stream);
    }
    let waits = stream.is_for_part()
        || stream.shares_headers_only()
        || stream.needs_background_leader()
        || (stream.may_be_bodiless() && !stream.may_lead);
    let prepares = next_step == NextStep::Send(StoreRequest::Alone)
        && waits
        && stream.policy.policy.coalesce.enabled;
    let fills = matches!(
        next_step,
        NextStep::Send(StoreRequest::Lead | StoreRequest::Alone)
    );
    let may_call = prepares || (fills && stream.may_finish_early());
    if (may_call && !keep_headers(&calls.metrics, roots, stream)) || !prepares {
        return Some(next_step);
    }
    // A background fill would be sent with these headers.
    if stream.may_lead {
        prepare(coalescing, calls, stream)
    } else if stream.may_be_bodiless() && stream.progress.prior_call.get().is_none() {
        look(calls, stream)
    } else {
        Some(without_call(stream))
    }
}

/// Keeps the client's request headers if a background fill may have to replace its request.
pub fn keep_for_rescue(metrics: &Metrics, roots: &Roots, stream: &EdgeRequest) {
    if stream.may_finish_early() {
        keep_headers(metrics, roots, stream);
    }
}

/// Keeps the client's request headers for calls on its behalf. Returns false if the headers cannot be read.
fn keep_headers(metrics: &Metrics, roots: &Roots, stream: &EdgeRequest) -> bool {
    if !stream.progress.headers.borrow().is_empty() {
        return true;
    }
    let acting = roots.act_as(stream.id.0);
    let headers = acting.and_then(|host| host.headers(Map::Request));
    match headers.map(|headers| headers_for_calls(&headers)) {
        Ok(headers) => *stream.progress.headers.borrow_mut() = headers,
        Err(error) => {
            metrics.check(Err(error));
            return false;
        }
    }
    true
}

/// A call with the headers of the client's request.
fn call_of(stream: &EdgeRequest, call: CallKind) -> BackgroundCall {
    let (target, policy) = (Rc::clone(&stream.target), stream.policy.clone());
    BackgroundCall {
        headers: stream.progress.headers.borrow().clone(),
        ..BackgroundCall::new(call, target, policy)
    }
}

/// Starts a background fill that replaces the fill of a client that has left because it needed less than the object.
/// It starts none after `Fresh`, because the request headers were not kept then; the next request fetches the object
/// again.
pub fn rescue(fills: &Fills, coalescing: &mut Coalescing, calls: &mut Calls, stream: &EdgeRequest) {
    let less = stream.body.passing.get().part != Part::Whole;
    let known = !stream.progress.headers.borrow().is_empty();
    let replaceable = stream.may_finish_early() && less && known;
    let filled = stream.progress.fragile.get() && replaceable;
    let Some(context) = fills.context(stream.id).filter(|_| filled) else {
        return;
    };
    if !calls.has_room_to_prepare() || coalescing.coalescer.is_storing(stream.key.key) {
        return;
    }
    let fill = CallKind::Fill(stream.key.key);
    if !unread::may_call(calls, stream, fill) {
        calls.metrics.count(Metric::UnreadFillsRefused, 1);
        return;
    }
    // The store rejects the next response until this one is gone. The coalescer ensures that for leaders only.
    if !coalescing.wakeups.answers(context) {
        coalescing.wakeups.answer(context, DueReply::Reset);
    }
    calls.push(call_of(stream, fill));
}

/// Time in milliseconds for which the origin is not asked for a key again. A part of it is random, so that not all
/// keys ask a recovered origin at the same time.
pub fn pause(host: &dyn Host, policy: &NumberedPolicy) -> Millis {
    let interval = millis(policy.policy.cache.retry_interval);
    let random = host.random().map_or(0, u64::from_le_bytes);
    interval.saturating_add(random % (interval / 2).saturating_add(1))
}
