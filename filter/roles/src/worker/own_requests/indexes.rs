// SPDX-License-Identifier: Apache-2.0
//! The way of a request to an object that may be served in slices, and the questions for the indexes of such objects.

use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::metrics::Metrics;
use crate::worker::own_requests::calls::Calls;
use crate::worker::roots::Roots;
use crate::worker::slices::KnownObjects;
use sluice_host::Host;
use std::rc::Rc;

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::freshness::Lifetime;
use sluice_core::http::caching::cache_status::CacheStatus;
use sluice_core::internal_headers::SLICES_HEADER;
use sluice_core::key::CanonicalTarget;
use sluice_core::metrics::Metric;
use sluice_core::slices::index::SliceIndex;
use sluice_core::slices::selection::{Selection, SlicedDelivery};
use sluice_core::workers::KeyHash;

use super::background::{pause, wait_for_index};
use super::calls::BackgroundCall;
use crate::reply::complete_reply::CompleteReply;
use crate::reply::demand_reply::DemandReply;
use crate::reply::{CACHE_STATUS, DueReply};
use crate::request::EdgeRequest;
use crate::request::account::result_of;
use crate::request::call_kind::CallKind;
use crate::request::headers::avoid_the_store;
use crate::request::policy::NumberedPolicy;
use crate::request::sliced::SlicedResponse;
use crate::worker::slices::{self, Knowledge};
use sluice_host::headers::{Headers, extend, serialize};
use sluice_host::{self as host, Map};

/// The way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approach {
    /// Like that of any request.
    Whole,
    /// Through the slicer.
    Slices,
    /// To a pause: the request waits for the index of its object, for its turn, or for its answer.
    Waits,
}

impl Approach {
    /// The next step of a paused request that goes this way, or `None` if it waits. If the object is not served in
    /// slices, the request takes part in coalescing like a new one.
    pub fn or_admit(self, coalescing: &mut Coalescing, stream: &EdgeRequest) -> Option<NextStep> {
        match self {
            Self::Slices => Some(NextStep::Send(StoreRequest::Slice)),
            Self::Waits => None,
            Self::Whole => coalescing.admit(stream),
        }
    }
}

/// Decides on the way of a request that has not been sent on. Prepares its response in slices, or its answer.
pub fn approach(
    identity: &Identity,
    keys: &Keys,
    slices: &mut KnownObjects,
    roots: &Roots,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
) -> Approach {
    if !stream.may_be_sliced() {
        return Approach::Whole;
    }
    let object = keys.object_hash(stream.target.cache_key());
    match slices.get(object) {
        Some(Knowledge::Sliced(index)) => {
            match is_usable(keys, slices, calls, stream, object, &index) {
                Some(true) => begin(identity, roots, coalescing, stream, object, index),
                Some(false) => ask(roots, calls, stream),
                None => Approach::Whole,
            }
        }
        Some(Knowledge::Whole) => Approach::Whole,
        // The slices of the object have just been found to be outdated.
        None if stream.repeats.is_some() && !has_asked(stream) => ask(roots, calls, stream),
        None if is_believed_large(keys, slices, coalescing, stream) => ask(roots, calls, stream),
        None => Approach::Whole,
    }
}

/// Whether an unknown object is large by its path, or has been served in slices. A request for such an object waits for
/// the index, once.
fn is_believed_large(
    keys: &Keys,
    slices: &KnownObjects,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
) -> bool {
    let now = coalescing.now();
    if has_asked(stream) || coalescing.coalescer.knows(stream.key.key, now) {
        return false;
    }
    let policy = &stream.policy.policy;
    let path = policy.client_path(stream.target.origin_path());
    let url = || keys.identity.large_url(&stream.target);
    policy.edge.slices.is_known(path) || slices.is_large(url)
}

/// Whether the request has waited for the index.
fn has_asked(stream: &EdgeRequest) -> bool {
    matches!(stream.progress.prior_call.get(), Some(CallKind::Index(_)))
}

/// Whether a request may use the index as it is. `None` if the origin has failed to confirm an index that is too old.
fn is_usable(
    keys: &Keys,
    slices: &mut KnownObjects,
    calls: &mut Calls,
    stream: &EdgeRequest,
    object: KeyHash,
    index: &SliceIndex,
) -> Option<bool> {
    let now = calls.host.unix_millis();
    let cache_key = stream.target.cache_key();
    let declared = keys.declared_soft(cache_key);
    let policy = &stream.policy.policy;
    // A reload has changed the headers that clients get. The store has those of the origin.
    let is_former = index.presentation != policy.presentation(stream.target.path());
    let purged = is_former || keys.was_purged_since(cache_key, index.purge_number, declared);
    if !purged && index.is_fresh(now) {
        return Some(true);
    }
    if !purged && index.is_servable_meanwhile(now) {
        refresh(keys, slices, calls, object, &stream.target, &stream.policy);
        return Some(true);
    }
    let moment = calls.host.monotonic_millis();
    let servable = !purged && index.is_servable_after_error(now);
    let fails = servable && slices.is_asked(object, moment);
    if !fails && !has_asked(stream) {
        return Some(false);
    }
    // The question has failed, because its answer would have replaced the index.
    servable.then_some(true)
}

/// Makes a request wait for the index of its object, unless there are too many calls.
fn ask(roots: &Roots, calls: &mut Calls, stream: &EdgeRequest) -> Approach {
    match wait_for_index(roots, calls, stream) {
        None => Approach::Waits,
        Some(_) => Approach::Whole,
    }
}

/// Asks for the index of an object in the background, unless that question has just been asked.
fn refresh(
    keys: &Keys,
    slices: &mut KnownObjects,
    calls: &mut Calls,
    object: KeyHash,
    target: &Rc<CanonicalTarget>,
    policy: &NumberedPolicy,
) {
    let now = calls.host.monotonic_millis();
    let until = now.saturating_add(pause(&*calls.host, policy));
    if !calls.has_room_to_prepare() || !slices.take_question(object, now, until) {
        return;
    }
    calls.metrics.count_of(policy, Metric::SliceIndexesAsked);
    let call = CallKind::Index(keys.flight_key(target).key);
    let (target, policy) = (Rc::clone(target), policy.clone());
    let call = BackgroundCall::new(call, target, policy);
    calls.push(call);
}

/// Makes all workers forget the version of a response's object, because the origin does not have it any more, and has
/// the store's headers of the object validated. A worker that has not heard of this reads them.
pub fn replace(
    keys: &Keys,
    slices: &mut KnownObjects,
    roots: &mut Roots,
    calls: &mut Calls,
    response: &SlicedResponse,
    policy: &NumberedPolicy,
) {
    slices::forget(slices, roots, response.object, response.index.etag());
    if slices.is_outdated(response.object) {
        refresh(
            keys,
            slices,
            calls,
            response.object,
            &response.target,
            policy,
        );
    }
}

/// Plans the response of a request, or answers it if it needs no bytes of the object.
fn begin(
    identity: &Identity,
    roots: &Roots,
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    object: KeyHash,
    index: Rc<SliceIndex>,
) -> Approach {
    let delivery = match &stream.demand {
        Some(demand) => index.delivery(demand),
        None => SlicedDelivery::Bytes(Selection::Whole),
    };
    let reply = match delivery {
        SlicedDelivery::Bytes(selection) => {
            let policy = &stream.policy.policy.edge.slices;
            let secret = &identity.store_secret;
            let plan = index.plan(selection, secret, policy.bytes, policy.ahead);
            let Some(plan) = plan else {
                return Approach::Whole;
            };
            let Ok(connection) = slices::take_turn(roots, coalescing, stream) else {
                return Approach::Waits;
            };
            let target = Rc::clone(&stream.target);
            let client = stream.repeats.unwrap_or(stream.id);
            let response = SlicedResponse::new(client, object, target, index, plan, connection);
            return prepare(coalescing, stream, response);
        }
        SlicedDelivery::NotModified => DemandReply::not_modified(),
        SlicedDelivery::PreconditionFailed => DemandReply::precondition_failed(),
        SlicedDelivery::Unsatisfiable => DemandReply::unsatisfiable(index.length()),
    };
    let status = CacheStatus::hit()
        .ttl(fresh_for(&*coalescing.host, &index))
        .detail(DETAIL);
    let status = status.member_of(&identity.name);
    let headers = headers_of(&*coalescing.host, stream, &index, &status);
    let reply = DueReply::Complete(reply.bodiless(&headers));
    stream.progress.answered.set(true);
    stream
        .progress
        .account
        .results_in(result_of(Metric::RequestsHit));
    coalescing
        .metrics
        .count_of(&stream.policy, Metric::RequestsHit);
    coalescing.wakeups.answer(stream.id.0, reply);
    Approach::Waits
}

/// Prepares a response in slices. The slicer gets the plan with the request, or as the answer to a request that it has
/// repeated.
fn prepare(
    coalescing: &mut Coalescing,
    stream: &EdgeRequest,
    response: SlicedResponse,
) -> Approach {
    let response = Rc::new(response);
    let Some(client) = stream.repeats else {
        stream.progress.sliced.replace(Some(response));
        return Approach::Slices;
    };
    let reply = CompleteReply::plan(&response.plan);
    if let Some(client) = coalescing.requests.get(client) {
        client.progress.sliced.replace(Some(response));
    }
    stream.progress.answered.set(true);
    coalescing
        .wakeups
        .answer(stream.id.0, DueReply::Complete(reply));
    Approach::Waits
}

/// The detail of `Cache-Status` for an answer from the index.
const DETAIL: &str = "slices";

/// Seconds for which the index is fresh.
pub fn fresh_for(host: &dyn Host, index: &SliceIndex) -> i64 {
    let lifetime: Lifetime = index.times.lifetime;
    lifetime.fresh_for(index.age(host.unix_millis()))
}

/// The headers of a response from the index, with this `Cache-Status`, except the headers that its plan gives.
pub fn headers_of(
    host: &dyn Host,
    stream: &EdgeRequest,
    index: &SliceIndex,
    status: &str,
) -> Headers {
    let rule = stream.policy.policy.rule(stream.target.path());
    let age = index.age(host.unix_millis()).to_string();
    // A lifetime of the edge's own begins when the client gets the response.
    let ages = rule.client_cache_control(200).is_none();
    let own = [("age", age.as_bytes()), (CACHE_STATUS, status.as_bytes())];
    let own = own.into_iter().skip(usize::from(!ages));
    Headers::new(extend(&serialize(index.headers()), own))
}

/// Sends the effective context's request, whose response is planned, to the slicer.
pub fn send(host: &dyn Host, metrics: &Metrics, stream: &EdgeRequest) -> host::Result<()> {
    let sliced = stream.progress.sliced.borrow();
    let plan = sliced.as_ref().map(|sliced| sliced.plan.to_string());
    metrics.count_of(&stream.policy, Metric::SlicedRequests);
    // The slicer's listener accepts no qualifiers.
    host.set_header(Map::Request, ":path", stream.target.origin_path())?;
    avoid_the_store(host, false)?;
    host.set_header(Map::Request, SLICES_HEADER, plan.unwrap_or_default())
}
