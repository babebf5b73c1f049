// SPDX-License-Identifier: Apache-2.0
//! The explanation of a request: the decision about it, and what a worker knows of its key.

use serde_json::{Map, Value, json};
use sluice_core::coalescing::learnt::hints::Hint;
use sluice_core::coalescing::shared::board::FlightKey;
use sluice_core::hot::HotLookup;
use sluice_core::inspection::{Answer, ExplainedRequest};
use sluice_core::key::CanonicalTarget;

use super::flights;
use crate::edge::request::explanation::{Decision, Explanation};
use crate::request::policy::NumberedPolicy;
use crate::request::sliced::is_key_sliceable;
use crate::worker::Worker;
use crate::worker::coalescing::Coalescing;
use crate::worker::identity::Identity;
use crate::worker::keys::Keys;
use crate::worker::own_requests::indexes::fresh_for;
use crate::worker::slices::{Knowledge, KnownObjects};
use sluice_host::Host;
use sluice_host::headers::{Headers, serialize};

/// The headers with which EDGE would receive the request.
pub fn headers(request: &ExplainedRequest) -> Headers {
    let own = [
        (":method", "GET"),
        (":scheme", request.scheme()),
        (":authority", &*request.host),
        (":path", &*request.path),
        // The listener sets this header.
        ("x-forwarded-proto", request.scheme()),
    ];
    let theirs = request.headers.iter();
    let theirs = theirs.map(|(name, value)| (name.as_str(), value.as_str()));
    let theirs = theirs.filter(|(name, _)| *name != "x-forwarded-proto");
    let lines = own.into_iter().chain(theirs);
    let lines = lines.map(|(name, value)| (name, value.as_bytes()));
    Headers::new(serialize(lines))
}

/// The part of the answer that is the same for all workers.
pub fn decision(identity: &Identity, explanation: Option<&Explanation>) -> Value {
    let Some(explanation) = explanation else {
        return Value::Null;
    };
    let policy = explanation.policy.as_ref().map(|policy| &policy.policy);
    let target = explanation.target.as_ref();
    let rule = policy.zip(target);
    let rule = rule.and_then(|(policy, target)| policy.pattern(target.path()));
    let (admission, reason, status) = match &explanation.decision {
        Decision::Cached(_) if explanation.replaced => ("cached", Some("missing-object"), None),
        Decision::Cached(_) => ("cached", None, None),
        Decision::Passed(reason) => ("passed", Some(reason.name()), None),
        Decision::Redirected(location) => ("redirected", Some(&**location), None),
        Decision::Refused(rejection) => {
            let status = rejection.status();
            ("refused", Some(rejection.reason()), Some(status))
        }
    };
    let store_key = target.map(|target| {
        let path = identity.store_path(target);
        [target.authority(), &path].concat()
    });
    json!({
        "site": policy.map(|policy| &policy.site.name),
        "policy_rule": rule,
        "admission": admission,
        "reason": reason,
        "status": status,
        "key": target.map(CanonicalTarget::cache_key),
        "store_key": store_key,
        "bucket_path": target.map(CanonicalTarget::origin_path),
    })
}

/// The facts that one worker knows of the key of a request.
pub fn answer(worker: &mut Worker, request: &ExplainedRequest) -> Answer {
    let (keys, slices, coalescing) = (&mut worker.keys, &mut worker.slices, &mut worker.coalescing);
    let (identity, headers) = (&worker.identity, headers(request));
    let explained = Explanation::of(
        &worker.policies,
        identity,
        keys,
        slices,
        coalescing,
        &headers,
    );
    let mut facts = Map::new();
    let mut add = |name: &str, value: Value| facts.insert(name.to_owned(), value);
    if let Some(Explanation {
        policy: Some(policy),
        target: Some(target),
        decision: Decision::Cached(key),
        ..
    }) = &explained
    {
        let flight = worker.coalescing.coalescer.flight(key.key);
        let (policies, coalescing, fills) = (&worker.policies, &worker.coalescing, &worker.fills);
        let flight = flight.map(|flight| flights::fact(policies, coalescing, fills, flight));
        add(
            "hot",
            hot(&*worker.host, &worker.keys, policy, target, *key),
        );
        add("learnt", learnt(coalescing, *key));
        add("flight", flight.unwrap_or_default());
        let slices = sliced(&worker.keys, &worker.slices, policy, target);
        add("slices", slices);
        add("purges", purges(&worker.keys, policy, target, *key));
    }
    Answer::of(&facts)
}

/// The hot copy that the worker would serve.
fn hot(
    host: &dyn Host,
    keys: &Keys,
    policy: &NumberedPolicy,
    target: &CanonicalTarget,
    key: FlightKey,
) -> Value {
    let wanted = HotLookup {
        key: target.cache_key(),
        known_as: key.key,
        policy: policy.number,
    };
    let Some((copy, still)) = keys.hot_copy(policy.site, &wanted, host.unix_millis()) else {
        return Value::Null;
    };
    let passed = host.unix_millis().saturating_sub(copy.sighting.seen);
    let fresh = u64::try_from(still.fresh_for).unwrap_or(0);
    json!({
        "stored_ms_ago": passed,
        "age_ms": still.age.saturating_mul(1_000),
        "fresh_ms_left": fresh.saturating_mul(1_000),
        "status": copy.status,
        "bytes": copy.body.len(),
    })
}

/// The hint that the worker has learnt.
fn learnt(coalescing: &Coalescing, key: FlightKey) -> Value {
    let (hints, now) = (coalescing.coalescer.known_hints(), coalescing.now());
    let left = hints.left(key.key, now);
    match hints.peek(key.key, now) {
        Some(Hint::Fresh) => json!({"kind": "fresh", "reason": null, "left_ms": left}),
        Some(Hint::HitForMiss(reason)) => {
            json!({"kind": "hit_for_miss", "reason": reason.name(), "left_ms": left})
        }
        None => Value::Null,
    }
}

/// How the worker knows that the object is served in slices: by its index, by a URL that it remembers, or by its path.
fn sliced(
    keys: &Keys,
    slices: &KnownObjects,
    policy: &NumberedPolicy,
    target: &CanonicalTarget,
) -> Value {
    let (policy, key) = (&policy.policy, target.cache_key());
    if !policy.edge.slices.is_on() || !is_key_sliceable(key) {
        return Value::Null;
    }
    let path = policy.client_path(target.origin_path());
    let url = || keys.identity.large_url(target);
    match slices.peek(keys.object_hash(key)) {
        Some(Knowledge::Sliced(index)) => {
            let fresh = u64::try_from(fresh_for(&*keys.host, index)).unwrap_or(0);
            json!({
                "known_by": "index",
                "bytes": index.length(),
                "fresh_ms_left": fresh.saturating_mul(1_000),
            })
        }
        Some(Knowledge::Whole) => Value::Null,
        None if slices.is_large(url) => json!({"known_by": "url"}),
        None if policy.edge.slices.is_known(path) => json!({"known_by": "path"}),
        None => Value::Null,
    }
}

/// The numbers of the newest purges that cover the URL, and whether the next request has to revalidate.
fn purges(keys: &Keys, policy: &NumberedPolicy, target: &CanonicalTarget, key: FlightKey) -> Value {
    let known = keys.purges_of(&policy.policy, target);
    let number = |number: u64| (number > 0).then_some(number);
    json!({
        "hard": number(known.hard),
        "soft": number(known.soft),
        "changed": number(known.changed),
        "revalidates": keys.must_revalidate(target.cache_key(), key.key),
    })
}
