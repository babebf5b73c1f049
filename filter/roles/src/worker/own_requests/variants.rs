// SPDX-License-Identifier: Apache-2.0
//! Variants that are stored under the plain key of their URL, and the call that fetches the right variant for a
//! request. Such a request got the plain variant from the store before the worker knew that the URL varies.

use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use crate::worker::roots::Roots;
use std::rc::Rc;

use sluice_core::http::conditional::demand::Demand;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::vary::{VaryNames, variant_of};
use sluice_core::metrics::Metric;
use sluice_core::workers::KeyHash;
use sluice_core::workers::message::Message;

use crate::reply::answer_mismatch;
use crate::reply::substitute::Document;
use crate::request::EdgeRequest;
use crate::request::call_kind::CallKind;
use crate::request::headers::headers_for_calls;
use crate::worker::own_requests::calls::BackgroundCall;

/// Remembers that the store has the variant with key `cache_key` under the plain key of its URL, and tells the other
/// workers. Requests that wait for `flight`, whose response showed it, continue under the keys of the variants that
/// they want.
pub fn learn_plain_variant(
    keys: &mut Keys,
    roots: &mut Roots,
    coalescing: &mut Coalescing,
    plain_key: &str,
    cache_key: &str,
    flight: KeyHash,
) {
    let names = VaryNames::beyond(plain_key, cache_key);
    let Some((names, variant)) = names.zip(variant_of(plain_key, cache_key)) else {
        return;
    };
    let (plain, plain_variant) = keys.lesson_hashes(plain_key, variant);
    if !keys.learn_plain_variant(plain, plain_variant, names.clone()) {
        return;
    }
    coalescing.metrics.count(Metric::VaryingLearnt, 1);
    let message = Message::Varies {
        plain,
        flight,
        plain_variant,
        names,
    };
    let consequence = "a worker did not learn that a URL varies";
    roots.tell_others(&message, consequence);
    coalescing.turn(|coalescer, turn| {
        coalescer.part_variants(flight, turn);
    });
}

/// Makes a request wait for a call for `wanted`. The call has the request's headers, as the request itself would have
/// on its way to the origin, and without conditions, because it fetches the whole variant. Without `wanted`, because a
/// header is too long for a key, or with credentials, the call bypasses the store. Returns false if the request cannot
/// have such a call.
pub fn fetch_variant(
    calls: &mut Calls,
    stream: &EdgeRequest,
    wanted: Option<CanonicalTarget>,
) -> bool {
    let Some(selecting) = stream
        .selecting
        .as_ref()
        .filter(|_| stream.stand_in.is_none())
    else {
        return false;
    };
    if !calls.has_room_to_prepare() {
        calls.metrics.count(Metric::LimitsReached, 1);
        return false;
    }
    // A fill would be sent without the client's credentials. This call is for its client alone, so it includes them.
    let wanted = wanted.filter(|_| !stream.authenticated);
    let mut headers = headers_for_calls(selecting);
    if wanted.is_some() {
        headers.retain(|(name, _)| !Demand::concerns(name.as_bytes()));
    }
    let credentials = selecting.get("authorization");
    if let Some(credentials) = credentials.filter(|_| stream.authenticated) {
        headers.push(("authorization".to_owned(), credentials.bytes().to_owned()));
    }
    let target = Rc::new(wanted.unwrap_or_else(|| stream.target.plain()));
    let call = BackgroundCall::new(CallKind::Variant(stream.id), target, stream.policy.clone());
    calls.push_for(stream.id, BackgroundCall { headers, ..call });
    true
}

/// Makes a request wait for a call that repeats the request.
pub fn fetch_again(calls: &mut Calls, stream: &EdgeRequest) {
    let headers = stream.selecting.as_deref().map(headers_for_calls);
    let mut headers = headers.unwrap_or_default();
    // The call fetches the whole object.
    headers.retain(|(name, _)| !Demand::concerns(name.as_bytes()));
    let (target, policy) = (Rc::clone(&stream.target), stream.policy.clone());
    let call = BackgroundCall::new(CallKind::Again(stream.id), target, policy);
    calls.push_for(stream.id, BackgroundCall { headers, ..call });
}

/// Answers the requests that wait for `call` with its response, or with an error if it has none.
pub fn end_fetch(
    identity: &Identity,
    roots: &Roots,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    call: CallKind,
    response: Option<&Document>,
) {
    for id in calls.take_waiting(call) {
        let Some(stream) = coalescing.requests.get(id) else {
            continue;
        };
        let untyped = response.is_some_and(|response| !response.is_typed());
        stream.progress.answered_untyped.set(untyped);
        let acting = roots.act_as(id.0);
        let answered = acting.and_then(|host| match response {
            Some(response) => response.answer(host, &stream),
            None => answer_mismatch(host, &identity.name),
        });
        calls.metrics.check(answered);
    }
    roots.restore(roots.serving());
}
