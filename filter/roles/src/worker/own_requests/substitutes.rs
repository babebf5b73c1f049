// SPDX-License-Identifier: Apache-2.0
//! Missing objects and other errors. The worker holds their responses until the substitute has arrived.

use crate::worker::coalescing::Coalescing;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use std::rc::Rc;

use sluice_core::metrics::Metric;
use sluice_core::website::Substitute;
use sluice_core::workers::KeyHash;

use crate::reply::DueReply;
use crate::reply::complete_reply::CompleteReply;
use crate::reply::substitute::{Document, FailedResponse, HeldResponse};
use crate::request::EdgeRequest;
use crate::request::call_kind::CallKind;
use crate::worker::identity::Identity;
use crate::worker::keys::MissingObject;
use crate::worker::metrics::Metrics;
use crate::worker::own_requests::calls::BackgroundCall;
use crate::worker::roots::Roots;

/// Makes an error wait for the substitute after `tried`. Returns false if no document can replace it.
pub fn look_for_substitute(
    keys: &Keys,
    calls: &mut Calls,
    stream: &EdgeRequest,
    response: FailedResponse,
    tried: Option<Substitute>,
) -> bool {
    let (policy, object) = (&stream.policy, &stream.target);
    // An error that the client cannot get says nothing about a directory.
    let tried = tried.or(response.is_dropped.then_some(Substitute::Listing));
    let visit = stream.visit.as_ref();
    let next =
        visit.and_then(|visit| visit.next_document(&policy.policy, object, response.status, tried));
    let Some((substitute, target)) = next else {
        return false;
    };
    let held = HeldResponse {
        stream: stream.id,
        substitute,
        response,
    };
    let key = keys.key_hash(target.cache_key());
    if calls.hold(key, held) {
        let call = CallKind::Substitute(key);
        calls.push(BackgroundCall::new(call, Rc::new(target), policy.clone()));
    }
    true
}

/// Releases the responses that wait for a document. The document has arrived, or does not exist.
pub fn end_substitute(
    identity: &Identity,
    keys: &mut Keys,
    roots: &Roots,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    key: KeyHash,
    document: Option<Document>,
) {
    let document = document.map(Rc::new);
    for held in calls.take_held(key) {
        let Some(stream) = coalescing.requests.get(held.stream) else {
            continue;
        };
        match document
            .as_ref()
            .filter(|document| document.serves_as(held.substitute))
        {
            Some(document) => release_with(keys, coalescing, calls, &stream, held, document),
            None if document.is_none() && held.substitute == Substitute::Listing => {
                fail(identity, coalescing, calls, &stream);
            }
            None => look_further(identity, keys, roots, coalescing, calls, &stream, held),
        }
    }
    roots.restore(roots.serving());
}

fn release_with(
    keys: &mut Keys,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &Rc<EdgeRequest>,
    held: HeldResponse,
    document: &Rc<Document>,
) {
    let known = match held.substitute {
        Substitute::Directory | Substitute::ListedDirectory => Some(MissingObject::Directory),
        // A listing may have become empty, so each request asks for it again.
        Substitute::Listing => None,
        Substitute::Fallback | Substitute::Error => {
            Some(MissingObject::Missing(held.response.status))
        }
    };
    if let Some(known) = known {
        keys.learn_missing(stream.target.url(), known, held.response.known_for);
    }
    calls
        .metrics
        .count_of(&stream.policy, Metric::RequestsSubstituted);
    let reply = DueReply::Substitute(Rc::clone(document), Rc::clone(stream), held);
    if held.response.is_dropped {
        coalescing.wakeups.answer(stream.id.0, reply);
        return;
    }
    calls.keep_reply(stream.id, reply);
    settle(coalescing, calls, stream);
}

/// Answers a request for a directory whose listing could not be made.
fn fail(
    identity: &Identity,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &Rc<EdgeRequest>,
) {
    let failure = CompleteReply::failure(&identity.name, 502, false);
    let failure = failure.explained(&stream.policy.policy);
    calls.keep_reply(stream.id, DueReply::Complete(failure));
    settle(coalescing, calls, stream);
}

/// Answers a request with the document that replaces its held response, once the held response has ended. Until then
/// the store may still be writing the held response, and an answer would abort that.
pub fn settle(coalescing: &mut Coalescing, calls: &mut Calls, stream: &EdgeRequest) {
    if stream.body.has_ended()
        && let Some(reply) = calls.take_reply(stream.id)
    {
        stream.progress.answered.set(true);
        coalescing.wakeups.answer(stream.id.0, reply);
    }
}

fn look_further(
    identity: &Identity,
    keys: &Keys,
    roots: &Roots,
    coalescing: &mut Coalescing,
    calls: &mut Calls,
    stream: &EdgeRequest,
    held: HeldResponse,
) {
    let tried = Some(held.substitute);
    if look_for_substitute(keys, calls, stream, held.response, tried) {
        return;
    }
    if held.response.is_dropped {
        let failure = CompleteReply::failure(&identity.name, held.response.status, true)
            .explained(&stream.policy.policy);
        coalescing
            .wakeups
            .answer(stream.id.0, DueReply::Complete(failure));
        return;
    }
    release(roots, &calls.metrics, stream);
}

/// Lets a held response continue.
fn release(roots: &Roots, metrics: &Metrics, stream: &EdgeRequest) {
    let released = roots
        .act_as(stream.id.0)
        .and_then(|host| stream.body.release(host));
    metrics.check(released);
}
