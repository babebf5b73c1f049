// SPDX-License-Identifier: Apache-2.0
//! Missing objects. The worker holds their responses until the substitute has arrived.

use crate::worker::coalescing::Coalescing;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use std::rc::Rc;

use sluice_core::metrics::Metric;
use sluice_core::website::{Substitute, document};
use sluice_core::workers::KeyHash;

use crate::reply::DueReply;
use crate::reply::substitute::{Document, HeldResponse};
use crate::request::EdgeRequest;
use crate::request::call_kind::CallKind;
use crate::worker::keys::MissingObject;
use crate::worker::metrics::Metrics;
use crate::worker::own_requests::calls::BackgroundCall;
use crate::worker::roots::Roots;

/// Makes a held response wait for its substitute. Returns false if no document can replace it.
pub fn look_for_substitute(
    keys: &Keys,
    calls: &mut Calls,
    stream: &EdgeRequest,
    held: HeldResponse,
) -> bool {
    let policy = &stream.policy;
    let Some(target) = document(&policy.policy, &stream.target, held.substitute) else {
        return false;
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
            None => look_further(keys, roots, calls, &stream, held),
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
        Substitute::Directory => MissingObject::Directory,
        Substitute::Fallback | Substitute::Error => MissingObject::Missing(held.status),
    };
    let url = stream.target.url();
    keys.learn_missing(url, known, held.known_for);
    calls
        .metrics
        .count_of(&stream.policy, Metric::RequestsSubstituted);
    let reply = DueReply::Substitute(Rc::clone(document), Rc::clone(stream), held);
    calls.keep_reply(stream.id, reply);
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
    keys: &Keys,
    roots: &Roots,
    calls: &mut Calls,
    stream: &EdgeRequest,
    held: HeldResponse,
) {
    let site = &stream.policy.policy.website;
    let next = stream
        .visit
        .as_ref()
        .and_then(|visit| visit.next(site, Some(held.substitute)));
    let waits = next.is_some_and(|substitute| {
        look_for_substitute(keys, calls, stream, HeldResponse { substitute, ..held })
    });
    if !waits {
        release(roots, &calls.metrics, stream);
    }
}

/// Lets a held response continue.
fn release(roots: &Roots, metrics: &Metrics, stream: &EdgeRequest) {
    let released = roots
        .act_as(stream.id.0)
        .and_then(|host| stream.body.release(host));
    metrics.check(released);
}
