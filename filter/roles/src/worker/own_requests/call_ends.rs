// SPDX-License-Identifier: Apache-2.0
//! Outcomes of the worker's own requests.

use sluice_core::coalescing::beside::unread::UnreadFill;
use sluice_core::coalescing::{NextStep, StoreNews, StoreRequest};
use sluice_core::metrics::Metric;
use sluice_core::workers::KeyHash;
use sluice_store::Entry;
use sluice_store::StoredFields;
use sluice_store::{has_come_since, has_succeeded, looked_up};

use crate::reply::substitute::Document;
use crate::request::call_kind::CallKind;
use crate::worker::Worker;
use crate::worker::own_requests::{
    background::pause, calls::BackgroundCall, looks, mismatches, substitutes, unread, variants,
};
use sluice_host::Map;

/// Handles Envoy's answer to a call of the root context. `answered` is false if the call failed.
pub fn call_answered(worker: &mut Worker, call: u32, answered: bool, body_size: usize) {
    if let Some(background) = worker.calls.take(call) {
        match background.kind {
            CallKind::Substitute(key) if answered => {
                let document = Document::answered(&*worker.host, body_size);
                substitutes::end_substitute(worker, key, document);
            }
            CallKind::Around(_) if answered => {
                let object = Document::answered(&*worker.host, body_size);
                mismatches::end_fetch(worker, background.kind, object.as_ref());
            }
            CallKind::Again(_) | CallKind::Variant(_) if answered => {
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
    worker.settle();
    send_calls(worker);
}

/// Ends all calls under way without an answer, because the root context that made them has ended.
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

/// Admits the requests that have waited for `call`. `length` is the length of the object in bytes, if the origin has
/// said it. `context` is that of the current callback.
pub fn prepared(worker: &mut Worker, call: CallKind, length: Option<u64>, context: u32) {
    let mut may_lead = matches!(call, CallKind::Size(_) | CallKind::Index(_));
    for id in worker.calls.take_waiting(call) {
        let Some(stream) = worker.coalescing.requests.get(id) else {
            continue;
        };
        let is_whole = matches!(call, CallKind::Index(_)) && !stream.is_for_part();
        if is_whole || is_sliced(worker, stream.target.cache_key()) {
            worker.coalescing.wakeups.resume(id, NextStep::Sliced);
            continue;
        }
        let mut request = stream.request();
        let leads = may_lead && stream.may_lead;
        request.may_lead |=
            leads && unread::may_lead(&*worker.host, &mut worker.unread, &stream, length);
        let admitted = worker
            .coalescing
            .turn(|coalescer, turn| coalescer.request(&request, turn));
        if admitted != Some(NextStep::Send(StoreRequest::Lead)) {
            unread::leads_not(&mut worker.unread, &stream);
        }
        let next_step = match admitted {
            None => continue,
            // The request has waited for the call.
            Some(NextStep::Send(StoreRequest::Fresh)) => NextStep::Send(StoreRequest::Collapsed),
            Some(next_step) => next_step,
        };
        may_lead &= next_step != NextStep::Send(StoreRequest::Lead);
        worker.coalescing.wakeups.resume(id, next_step);
    }
    worker.roots.restore(context);
}

/// Whether the object with that key has proved to be served in slices.
fn is_sliced(worker: &mut Worker, cache_key: &str) -> bool {
    let object = worker.keys.object_hash(cache_key);
    worker.slices.is_sliced(object)
}

/// The length of an object in bytes, which the origin has been asked for. Requests for an object that is too large
/// are not coalesced, unless the object is served in slices.
fn sized(worker: &mut Worker, key: KeyHash, call: &BackgroundCall) -> Option<u64> {
    let headers = worker.host.headers(Map::CallResponse).ok();
    let headers = headers.filter(|_| has_succeeded(&*worker.host));
    let length = headers?.content_length()?;
    let is_large = length > call.policy.policy.cache.max_object_bytes;
    if is_large && !is_sliced(worker, call.target.cache_key()) {
        worker.mark_too_large(key, &call.policy);
    }
    Some(length)
}

/// The store's report to a lookup for a flight of `key`. A flight that began before a soft purge has the hash from
/// before it, and its followers accept a response from before it.
fn news_of(worker: &mut Worker, key: KeyHash, call: &BackgroundCall) -> StoreNews {
    let cache_key = call.target.cache_key();
    let current = key == worker.keys.key_hash(cache_key);
    let outdated = |entry: &Entry<'_>| current && worker.keys.predates_soft_purge(entry);
    let awaited = |entry: &Entry<'_>, fields: &StoredFields<'_>| {
        let awaited = worker.confirmations.awaited(key);
        awaited.is_some_and(|(stream, answered)| {
            entry.fill == worker.identity.vouching.fill_id(stream)
                || has_come_since(&*worker.host, answered.unwrap_or_default(), entry, fields)
        })
    };
    let now = worker.host.monotonic_millis();
    let news = looked_up(&*worker.host, now, outdated, awaited);
    if matches!(news, StoreNews::Readable { .. } | StoreNews::Validated) {
        worker.keys.confirm_current(key, &call.target);
    }
    news
}

/// Ends a call: completes its work, or handles its failure.
pub fn end_call(worker: &mut Worker, call: &BackgroundCall, answered: bool) {
    match call.kind {
        CallKind::Confirmation(key) => {
            let news = if answered {
                news_of(worker, key, call)
            } else {
                StoreNews::Missing
            };
            let now = worker.host.monotonic_millis();
            worker.confirmations.take_lookup(key, news, now);
            worker.hear_store();
        }
        CallKind::Look(key) => looks::looked(worker, key, &call.target, answered),
        CallKind::Fill(key) => {
            worker.unread.end(UnreadFill::Background(key));
            let context = worker.roots.serving();
            // If the failure may concern this fill only, the requests wait for the next fill.
            if !worker.calls.is_awaited(call.kind) {
                prepared(worker, call.kind, None, context);
            }
        }
        CallKind::Size(key) => {
            let length = answered.then(|| sized(worker, key, call)).flatten();
            prepared(worker, call.kind, length, worker.roots.serving());
        }
        CallKind::Index(key) => {
            let succeeded = answered && has_succeeded(&*worker.host);
            if !succeeded {
                let pause = pause(&*worker.host, &call.policy);
                let until = worker.host.monotonic_millis().saturating_add(pause);
                let object = worker.keys.object_hash(call.target.cache_key());
                worker.slices.question_fails(object, until);
            }
            let length = succeeded.then(|| sized(worker, key, call)).flatten();
            prepared(worker, call.kind, length, worker.roots.serving());
        }
        CallKind::Inspection(call) => worker.questions.lack_origin(call),
        CallKind::Refresh(key) => {
            let failed = !(answered && has_succeeded(&*worker.host));
            if failed {
                worker.metrics.count(Metric::RefreshFailures, 1);
            }
            let pause = pause(&*worker.host, &call.policy);
            worker.coalescing.turn(|coalescer, turn| {
                coalescer.refreshed(key, failed, pause, turn);
            });
        }
        CallKind::Substitute(key) => substitutes::end_substitute(worker, key, None),
        CallKind::Around(_) => mismatches::end_fetch(worker, call.kind, None),
        CallKind::Again(_) | CallKind::Variant(_) => {
            variants::end_fetch(worker, call.kind, None);
        }
    }
}
