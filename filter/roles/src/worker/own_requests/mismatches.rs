// SPDX-License-Identifier: Apache-2.0
//! Requests to which the store has given the response of another key, as both have one file name.
//!
//! The key is hit-for-miss then, so that later requests go around the store. The request that has found the mismatch
//! cannot go elsewhere any more: it waits for a call that fetches its object around the store.

use std::rc::Rc;

use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_core::workers::message::FlightOutcome;

use crate::reply::answer_mismatch;
use crate::reply::substitute::Document;
use crate::request::EdgeRequest;
use crate::worker::Worker;
use crate::worker::own_requests::calls::{BackgroundCall, CallKind};

/// Lets later requests for the key of `stream` go around the store, and those that wait for it.
pub fn avoid_the_store(worker: &mut Worker, stream: &EdgeRequest) {
    worker
        .keys
        .drop_hot_copy(stream.policy.site, stream.target.cache_key());
    let until = worker.mark_mismatch(stream.key.key, &stream.policy);
    let reason = UncacheableReason::KeyMismatch;
    worker.end_flight(
        stream.id.0,
        stream.id,
        FlightOutcome::HitForMiss { until, reason },
    );
}

/// Has a request wait for a call that fetches its object around the store. False if no call fits.
pub fn fetch_around(worker: &mut Worker, stream: &EdgeRequest) -> bool {
    // What nobody waits for, and what is another object than its client has asked for, is not worth a call.
    // The call would have no credentials.
    let fits = !stream.for_others
        && !stream.authenticated
        && stream.stand_in.is_none()
        && !stream.target.is_for_headers();
    let call = CallKind::Around(stream.key.key);
    if !fits {
        return false;
    }
    if worker.calls.join(call, stream.id) {
        return true;
    }
    if !worker.calls.has_room_to_prepare() {
        worker.metrics.count(Metric::LimitsReached, 1);
        return false;
    }
    worker.calls.await_first(call, stream.id);
    let (target, policy) = (Rc::clone(&stream.target), stream.policy.clone());
    let call = BackgroundCall::new(&*worker.host, call, target, policy);
    worker.calls.push(call);
    worker.roots.wake();
    true
}

/// Answers the requests that wait for `call` with the object that it has brought, if it has brought one.
pub fn end_fetch(worker: &mut Worker, call: CallKind, object: Option<&Document>) {
    let object = object.filter(|object| object.is_whole_answer());
    for id in worker.calls.take_waiting(call) {
        let Some(stream) = worker.requests.get(id) else {
            continue;
        };
        let acting = worker.roots.act_as(id.0);
        let answered = acting.and_then(|host| match object {
            Some(object) => object.answer(host, &stream),
            None => answer_mismatch(host, &worker.identity.name),
        });
        worker.metrics.check(answered);
    }
    worker.roots.restore(worker.roots.serving());
}
