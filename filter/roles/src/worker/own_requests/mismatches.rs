// SPDX-License-Identifier: Apache-2.0
//! Requests to which the store has given the response of another key, because both keys have the same file name.
//!
//! The key then becomes hit-for-miss, so that later requests bypass the store. The request that found the mismatch
//! can no longer be sent elsewhere. It waits for a call that fetches its object around the store.

use crate::worker::coalescing::Coalescing;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use std::rc::Rc;

use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_core::workers::message::FlightOutcome;

use crate::request::EdgeRequest;
use crate::request::call_kind::CallKind;
use crate::worker::own_requests::calls::BackgroundCall;

/// Makes later requests for the key of `stream` bypass the store, and also the requests that wait for it.
pub fn avoid_the_store(keys: &mut Keys, coalescing: &mut Coalescing, stream: &EdgeRequest) {
    keys.drop_hot_copy(stream.policy.site, stream.target.cache_key());
    let until = coalescing.mark_mismatch(stream.key.key, &stream.policy);
    let reason = UncacheableReason::KeyMismatch;
    coalescing.end_flight(stream.id, FlightOutcome::HitForMiss { until, reason });
}

/// Makes a request wait for a call that fetches its object around the store. Returns false if it cannot have such a
/// call.
pub fn fetch_around(calls: &mut Calls, stream: &EdgeRequest) -> bool {
    // A call is not worth its cost for a request for which no client waits, or that wants another object than its
    // client has named. The call would lack the credentials.
    let fits = !stream.for_others
        && !stream.authenticated
        && stream.stand_in.is_none()
        && stream.slice.is_none()
        && !stream.target.is_for_headers();
    let call = CallKind::Around(stream.key.key);
    if !fits {
        return false;
    }
    if calls.join(call, stream.id) {
        return true;
    }
    if !calls.has_room_to_prepare() {
        calls.metrics.count(Metric::LimitsReached, 1);
        return false;
    }
    let (target, policy) = (Rc::clone(&stream.target), stream.policy.clone());
    calls.push_for(stream.id, BackgroundCall::new(call, target, policy));
    true
}
