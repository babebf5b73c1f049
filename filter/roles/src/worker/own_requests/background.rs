// SPDX-License-Identifier: Apache-2.0
//! The worker's own requests: refreshes, background fills, and looks that prepare a client's request.

use crate::worker::metrics::Metrics;
use crate::worker::own_requests::calls::Calls;
use crate::worker::roots::Roots;
use sluice_core::coalescing::Coalescer;
use std::rc::Rc;

use sluice_core::coalescing::{CLAIM_MILLIS, NextStep};
use sluice_core::metrics::Metric;
use sluice_core::workers::{KeyHash, Millis};

use crate::reply::DueReply;
use crate::request::body::Passing;
use crate::request::headers::headers_for_calls;
use crate::request::policy::NumberedPolicy;
use crate::request::{EdgeRequest, PriorCall};
use crate::worker::Worker;
use crate::worker::own_requests::{ahead, unread};
use crate::worker::own_requests::{
    calls::{BackgroundCall, CallKind},
    looks,
};
use sluice_host::{Host, Map};

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
pub fn is_failing(host: &dyn Host, coalescer: &mut Coalescer, key: KeyHash) -> bool {
    let now = host.monotonic_millis();
    coalescer.hints().is_failing(key, now)
}

/// Renews this worker's claims on refreshes that take long.
pub fn renew_claims(worker: &mut Worker) {
    let now = worker.host.monotonic_millis();
    for key in worker.calls.take_unrenewed(now, CLAIM_MILLIS / 2) {
        worker.turn(worker.roots.serving(), |coalescer, turn| {
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
    /// The bounds on fills that no client reads leave no room for it, and the store has nothing.
    Refused,
}

/// Makes the next call that a range, a HEAD or a conditional request needs before it may take part in coalescing.
///
/// Where this worker does not know of the object, the store may have it all the same, as after a restart. A range of
/// what the store has not leads itself once the size is known, so that it need not wait for the object's end; a
/// background fill goes on for others, and after its client has left. A HEAD needs a fill only to have a stored response
/// revalidated. A conditional request needs one that goes on when its client has its 304.
fn prepare(worker: &mut Worker, stream: &EdgeRequest) -> Preparation {
    let key = stream.key.key;
    let (prior_call, call) = match stream.progress.prior_call.get() {
        PriorCall::None if stream.looks_first() => (PriorCall::Looked, CallKind::Look(key)),
        _ if stream.sizes_next() => (PriorCall::Sized, CallKind::Size(key)),
        PriorCall::Done => return prepare_again(worker, stream),
        _ => (PriorCall::Done, CallKind::Fill(key)),
    };
    stream.progress.prior_call.set(prior_call);
    wait_for(worker, stream, call)
}

/// Has a request that has had its calls wait for one more fill, if the failure of the last one was its own.
fn prepare_again(worker: &mut Worker, stream: &EdgeRequest) -> Preparation {
    let (key, now) = (stream.key.key, worker.host.monotonic_millis());
    let call = CallKind::Fill(key);
    let lacks_heir = worker.coalescer.lacks_heir(key, now);
    if lacks_heir && worker.calls.join(call, stream.id) {
        Preparation::Waits
    } else if worker.coalescer.take_heirless_fill(key, now) {
        wait_for(worker, stream, call)
    } else {
        Preparation::Done
    }
}

/// Has a request look whether the store has what it asks for, which may go to the origin by itself only.
fn look(worker: &mut Worker, stream: &EdgeRequest) -> Preparation {
    stream.progress.prior_call.set(PriorCall::Done);
    wait_for(worker, stream, CallKind::Look(stream.key.key))
}

/// Has a request with credentials look whether the store has a response that they share; how it goes on if it cannot.
pub fn look_for_authenticated(worker: &mut Worker, stream: &EdgeRequest) -> Option<NextStep> {
    match wait_for(worker, stream, CallKind::Look(stream.key.key)) {
        Preparation::Waits => None,
        Preparation::Done | Preparation::Refused => Some(looks::unshared(stream)),
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
    if !unread::may_call(&*worker.host, &mut worker.unread, stream, call) {
        worker.metrics.count(Metric::UnreadFillsRefused, 1);
        return if stream.head {
            Preparation::Done
        } else if stream.is_for_part() {
            Preparation::Refused
        } else {
            look(worker, stream)
        };
    }
    worker.calls.await_first(call, stream.id);
    if matches!(call, CallKind::Look(_)) {
        worker.metrics.count(Metric::StoreLookups, 1);
    }
    call_for(
        &*worker.host,
        &mut worker.calls,
        &worker.roots,
        stream,
        call,
    );
    Preparation::Waits
}

/// How a request really goes on, where the coalescer has said `next_step`; `None` if it waits for a call first. A range or
/// a conditional request is not worth a fill that nobody shares: after its calls it goes around the store.
pub fn ready(worker: &mut Worker, stream: &EdgeRequest, next_step: NextStep) -> Option<NextStep> {
    if next_step == NextStep::Lead {
        unread::lead(&*worker.host, &mut worker.unread, stream);
    }
    let waits = stream.is_for_part()
        || stream.shares_headers_only()
        || stream.needs_background_leader()
        || (stream.may_be_bodiless() && !stream.may_lead);
    let prepares = next_step == NextStep::Alone && waits && stream.policy.policy.coalesce.enabled;
    let fills = matches!(next_step, NextStep::Lead | NextStep::Alone);
    let calls = prepares || (fills && stream.may_finish_early());
    if (calls && !keep_headers(&worker.metrics, &worker.roots, stream)) || !prepares {
        return Some(next_step);
    }
    // Its fill in the background would have its headers.
    let prepared = if stream.may_lead {
        prepare(worker, stream)
    } else if stream.may_be_bodiless() && stream.progress.prior_call.get() != PriorCall::Done {
        look(worker, stream)
    } else {
        Preparation::Done
    };
    match prepared {
        Preparation::Waits => None,
        Preparation::Refused => Some(NextStep::Unfilled),
        Preparation::Done if stream.head => Some(NextStep::Alone),
        Preparation::Done if stream.is_for_part() => Some(NextStep::UnsharedRange),
        Preparation::Done => Some(NextStep::Unfilled),
    }
}

/// Keeps the client's request headers if a background fill may have to take the place of its request.
pub fn keep_for_rescue(metrics: &Metrics, roots: &Roots, stream: &EdgeRequest) {
    if stream.may_finish_early() {
        keep_headers(metrics, roots, stream);
    }
}

/// Keeps the client's request headers for calls on its behalf. False if they cannot be read.
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

fn call_for(
    host: &dyn Host,
    calls: &mut Calls,
    roots: &Roots,
    stream: &EdgeRequest,
    call: CallKind,
) {
    let (target, policy) = (Rc::clone(&stream.target), stream.policy.clone());
    let headers = stream.progress.headers.borrow().clone();
    calls.push(BackgroundCall {
        headers,
        ..BackgroundCall::new(host, call, target, policy)
    });
    roots.wake();
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
    if !worker.calls.has_room_to_prepare() || worker.coalescer.is_storing(stream.key.key) {
        return;
    }
    let fill = CallKind::Fill(stream.key.key);
    if !unread::may_call(&*worker.host, &mut worker.unread, stream, fill) {
        worker.metrics.count(Metric::UnreadFillsRefused, 1);
        return;
    }
    // The store would not take the next response before this one has gone. The coalescer sees to that for leaders
    // only.
    if !worker.wakeups.answers(context) {
        worker.answer_later(context, DueReply::Reset);
    }
    call_for(
        &*worker.host,
        &mut worker.calls,
        &worker.roots,
        stream,
        fill,
    );
}

/// Whether a range that has begun to wait goes to the origin at once, ahead of the fill. Where another worker fills, it
/// waits at least until the origin has told what the object is like. Host calls may be directed at the request then.
pub fn overtakes(worker: &mut Worker, stream: &EdgeRequest) -> bool {
    if ahead::asks(&worker.coalescer, &worker.calls, &worker.ahead, stream)
        && keep_headers(&worker.metrics, &worker.roots, stream)
    {
        call_for(
            &*worker.host,
            &mut worker.calls,
            &worker.roots,
            stream,
            CallKind::Size(stream.key.key),
        );
    }
    ahead::overtakes(worker, stream)
}

/// Milliseconds for which the origin is left alone with a key. A part is random, so that all keys do not ask an origin
/// at once that has come back.
pub fn pause(host: &dyn Host, policy: &NumberedPolicy) -> Millis {
    let interval = policy.policy.cache.retry_interval.as_millis();
    let interval = u64::try_from(interval).unwrap_or(u64::MAX);
    let random = host.random().map_or(0, u64::from_le_bytes);
    interval.saturating_add(random % (interval / 2).saturating_add(1))
}
