// SPDX-License-Identifier: Apache-2.0
//! Outcomes of the worker's own requests.

use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use crate::worker::roots::Roots;
use crate::worker::slices::KnownObjects;
use sluice_host::Host;
use sluice_store::Confirmations;

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
    background::pause, calls::BackgroundCall, looks, substitutes, unread, variants,
};
use sluice_host::Map;

/// Handles Envoy's answer to a call of the root context. `answered` is false if the call failed.
pub fn call_answered(worker: &mut Worker, call: u32, answered: bool, body_size: usize) {
    let Worker {
        identity,
        keys,
        roots,
        coalescing,
        calls,
        ..
    } = worker;
    if let Some(background) = calls.take(call) {
        let document = match background.kind {
            CallKind::Substitute(_)
            | CallKind::Around(_)
            | CallKind::Again(_)
            | CallKind::Variant(_)
            | CallKind::Feed
                if answered =>
            {
                Document::received(&*worker.host, body_size)
            }
            _ => None,
        };
        match document {
            Some(_) if background.kind == CallKind::Feed => end_feed_call(worker, document),
            Some(_) => end_document_call(
                identity,
                keys,
                roots,
                coalescing,
                calls,
                background.kind,
                document,
            ),
            None => end_call(worker, &background, answered),
        }
    } else if worker.purge_calls.call_answered(call, answered, body_size) {
        worker.purge_calls.go_on(&mut worker.roots);
        worker.read_own_lines();
        worker.arm_timer();
    }
    worker.settle();
    send_calls(worker);
}

/// Ends a reading of the purge feed.
fn end_feed_call(worker: &mut Worker, answer: Option<Document>) {
    let newest = worker.policies.newest().cloned();
    let sites = newest.as_ref().map(|newest| &*newest.sites);
    let (keys, roots) = (&mut worker.keys, &mut worker.roots);
    let purge_calls = &mut worker.purge_calls;
    worker.feed.end(keys, roots, purge_calls, sites, answer);
    worker.arm_timer();
}

/// Ends a call for a document, for which requests wait. Without a document, it has failed.
fn end_document_call(
    identity: &Identity,
    keys: &mut Keys,
    roots: &Roots,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    call: CallKind,
    document: Option<Document>,
) {
    match call {
        CallKind::Substitute(key) => {
            substitutes::end_substitute(identity, keys, roots, coalescing, calls, key, document);
        }
        CallKind::Around(_) => {
            let object = document.filter(Document::is_whole_answer);
            variants::end_fetch(identity, roots, coalescing, calls, call, object.as_ref());
        }
        _ => variants::end_fetch(identity, roots, coalescing, calls, call, document.as_ref()),
    }
}

/// Sends the calls that are due. For the root context's turn.
pub fn send_calls(worker: &mut Worker) {
    for call in worker.calls.take_due() {
        let made = worker.calls.send(call.clone(), &worker.identity);
        if let Err(error) = made {
            worker.metrics.check(Err(error));
            end_call(worker, &call, false);
        }
    }
}

/// Admits the requests that have waited for `call`. `length` is the length of the object in bytes, if the origin has
/// said it.
pub fn prepared(
    keys: &Keys,
    slices: &mut KnownObjects,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    call: CallKind,
    length: Option<u64>,
) {
    let mut may_lead = matches!(call, CallKind::Size(_) | CallKind::Index(_));
    for id in calls.take_waiting(call) {
        let Some(stream) = coalescing.requests.get(id) else {
            continue;
        };
        let is_whole = matches!(call, CallKind::Index(_)) && !stream.is_for_part();
        if is_whole || is_sliced(keys, slices, stream.target.cache_key()) {
            coalescing
                .wakeups
                .resume(id, NextStep::Send(StoreRequest::Slice));
            continue;
        }
        let mut request = stream.request();
        let leads = may_lead && stream.may_lead;
        request.may_lead |= leads && unread::may_lead(calls, &stream, length);
        let admitted = coalescing.turn(|coalescer, turn| coalescer.request(&request, turn));
        if admitted != Some(NextStep::Send(StoreRequest::Lead)) {
            unread::leads_not(calls, &stream);
        }
        let next_step = match admitted {
            None => continue,
            // The request has waited for the call.
            Some(NextStep::Send(StoreRequest::Fresh)) => NextStep::Send(StoreRequest::Collapsed),
            Some(next_step) => next_step,
        };
        may_lead &= next_step != NextStep::Send(StoreRequest::Lead);
        coalescing.wakeups.resume(id, next_step);
    }
}

/// Whether the object with that key has proved to be served in slices.
fn is_sliced(keys: &Keys, slices: &mut KnownObjects, cache_key: &str) -> bool {
    let object = keys.object_hash(cache_key);
    slices.is_sliced(object)
}

/// The length of an object in bytes, which the origin has been asked for. Requests for an object that is too large
/// are not coalesced, unless the object is served in slices, or that length may be the one of a former version.
fn sized(
    keys: &Keys,
    slices: &mut KnownObjects,
    coalescing: &mut Coalescing,
    key: KeyHash,
    call: &BackgroundCall,
) -> Option<u64> {
    let headers = coalescing.host.headers(Map::CallResponse).ok();
    let headers = headers.filter(|_| has_succeeded(&*coalescing.host));
    let length = headers?.content_length()?;
    let is_large = length > call.policy.policy.cache.max_object_bytes;
    let object = keys.object_hash(call.target.cache_key());
    if is_large && !slices.is_sliced(object) && !slices.is_outdated(object) {
        coalescing.mark_too_large(key, &call.policy);
    }
    Some(length)
}

/// The store's report to a lookup for a flight of `key`. A flight that began before a soft purge has the hash from
/// before it, and its followers accept a response from before it.
fn news_of(
    host: &dyn Host,
    identity: &Identity,
    keys: &Keys,
    confirmations: &Confirmations,
    key: KeyHash,
    call: &BackgroundCall,
) -> StoreNews {
    let cache_key = call.target.cache_key();
    let current = key == keys.key_hash(cache_key);
    let outdated = |entry: &Entry<'_>| current && keys.predates_soft_purge(entry);
    let awaited = |entry: &Entry<'_>, fields: &StoredFields<'_>| {
        let awaited = confirmations.awaited(key);
        awaited.is_some_and(|(stream, answered)| {
            entry.fill == identity.vouching.fill_id(stream)
                || has_come_since(host, answered.unwrap_or_default(), entry, fields)
        })
    };
    let now = host.monotonic_millis();
    let news = looked_up(host, now, outdated, awaited);
    if matches!(news, StoreNews::Readable { .. } | StoreNews::Validated) {
        keys.confirm_current(key, &call.target);
    }
    news
}

/// Ends a call: completes its work, or handles its failure.
pub fn end_call(worker: &mut Worker, call: &BackgroundCall, answered: bool) {
    let Worker {
        host,
        identity,
        keys,
        roots,
        coalescing,
        calls,
        slices,
        ..
    } = worker;
    let host = &**host;
    match call.kind {
        CallKind::Confirmation(key) => {
            let news = if answered {
                news_of(host, identity, keys, &worker.confirmations, key, call)
            } else {
                StoreNews::Missing
            };
            let now = host.monotonic_millis();
            worker.confirmations.take_lookup(key, news, now);
            worker.hear_store();
        }
        CallKind::Look(key) => looks::looked(keys, coalescing, calls, key, &call.target, answered),
        CallKind::Fill(key) => {
            calls.unread.end(UnreadFill::Background(key));
            // If the failure may concern this fill only, the requests wait for the next fill.
            if !calls.is_awaited(call.kind) {
                prepared(keys, slices, coalescing, calls, call.kind, None);
            }
        }
        CallKind::Size(key) => {
            let length = answered
                .then(|| sized(keys, slices, coalescing, key, call))
                .flatten();
            prepared(keys, slices, coalescing, calls, call.kind, length);
        }
        CallKind::Index(key) => {
            let succeeded = answered && has_succeeded(host);
            let object = keys.object_hash(call.target.cache_key());
            if !succeeded {
                let pause = pause(host, &call.policy);
                let until = host.monotonic_millis().saturating_add(pause);
                slices.question_fails(object, until);
            } else if slices.is_outdated(object) && !call.is_repeated {
                // The store has answered with the headers of a former version before this worker heard of the change.
                // It validates them now.
                return calls.push(call.repeated());
            }
            let sized = || sized(keys, slices, coalescing, key, call);
            let length = succeeded.then(sized).flatten();
            prepared(keys, slices, coalescing, calls, call.kind, length);
        }
        CallKind::Inspection(call) => worker.questions.lack_origin(call),
        CallKind::Feed => end_feed_call(worker, None),
        CallKind::Created => {
            let status = host.header_number(Map::CallResponse, ":status");
            let status = status.ok().flatten().filter(|_| answered);
            let is_fetched = status.is_some_and(|status| matches!(status, 200..300));
            let metric = match is_fetched {
                true => Metric::CreatedFetched,
                false => Metric::CreatedFailed,
            };
            worker.metrics.count(metric, 1);
        }
        CallKind::Refresh(key) => {
            let failed = !(answered && has_succeeded(host));
            if failed {
                worker.metrics.count(Metric::RefreshFailures, 1);
            }
            let pause = pause(host, &call.policy);
            coalescing.turn(|coalescer, turn| {
                coalescer.refreshed(key, failed, pause, turn);
            });
        }
        CallKind::Substitute(_)
        | CallKind::Around(_)
        | CallKind::Again(_)
        | CallKind::Variant(_) => {
            end_document_call(identity, keys, roots, coalescing, calls, call.kind, None)
        }
    }
}
