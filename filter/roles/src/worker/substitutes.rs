// SPDX-License-Identifier: Apache-2.0
//! Missing objects: what the worker knows of them, and which responses it holds until their substitute has come.

use std::collections::HashMap;
use std::rc::Rc;

use sluice_core::key::CanonicalTarget;
use sluice_core::metrics::Metric;
use sluice_core::site::{Substitute, document};
use sluice_core::workers::{KeyHash, Millis};

use super::Worker;
use super::calls::{BackgroundCall, CallKind};
use crate::host::Half;
use crate::reply::substitute::{Document, HeldResponse};
use crate::request::EdgeRequest;

/// Most missing objects that are remembered.
const MOST_KNOWN: usize = 4_096;

/// What is known of a missing object.
#[derive(Clone, Copy, Debug)]
pub enum MissingObject {
    /// The object is a directory.
    Directory,
    /// The object is no directory, and the bucket has answered with this status.
    Missing(u16),
}

/// What a worker knows of missing objects, and who waits for a substitute.
#[derive(Debug, Default)]
pub struct Substitutes {
    known: HashMap<KeyHash, (MissingObject, Millis)>,
    waiting: HashMap<KeyHash, Vec<HeldResponse>>,
}

impl Substitutes {
    /// What is known of an object at `now`.
    pub fn known(&self, key: KeyHash, now: Millis) -> Option<MissingObject> {
        let (known, until) = self.known.get(&key)?;
        (*until > now).then_some(*known)
    }

    /// Remembers a missing object until `until`.
    pub fn remember(&mut self, key: KeyHash, known: MissingObject, until: Millis, now: Millis) {
        if self.known.len() >= MOST_KNOWN {
            self.known.retain(|_, (_, until)| *until > now);
            if self.known.len() >= MOST_KNOWN {
                self.known.clear();
            }
        }
        self.known.insert(key, (known, until));
    }

    /// Has a response wait for a document; true if nobody has asked for it.
    pub fn wait(&mut self, document: KeyHash, held: HeldResponse) -> bool {
        let waiting = self.waiting.entry(document).or_default();
        waiting.push(held);
        waiting.len() == 1
    }

    /// Takes the responses that wait for a document.
    pub fn take(&mut self, document: KeyHash) -> Vec<HeldResponse> {
        self.waiting.remove(&document).unwrap_or_default()
    }
}

/// What is known of an object that is missing.
pub fn known_missing(worker: &Worker, target: &CanonicalTarget) -> Option<MissingObject> {
    let key = worker.keys.key_hash(target.url());
    worker
        .substitutes
        .known(key, worker.host.monotonic_millis())
}

/// Has a held response wait for its substitute; false if there is none to wait for.
pub fn look_for_substitute(worker: &mut Worker, stream: &EdgeRequest, held: HeldResponse) -> bool {
    let policy = &stream.policy;
    let Some(target) = document(&policy.policy, &stream.target, held.substitute) else {
        return false;
    };
    let key = worker.keys.key_hash(target.cache_key());
    if worker.substitutes.wait(key, held) {
        let call = CallKind::Substitute(key);
        worker.calls.push(BackgroundCall::new(
            &*worker.host,
            call,
            Rc::new(target),
            policy.clone(),
        ));
        worker.roots.wake();
    }
    true
}

/// Releases the responses that wait for a document, which has come or does not exist.
pub fn end_substitute(worker: &mut Worker, key: KeyHash, document: Option<&Document>) {
    for held in worker.substitutes.take(key) {
        let Some(stream) = worker.stream(held.stream) else {
            continue;
        };
        match document.filter(|document| document.serves_as(held.substitute)) {
            Some(document) => release_with(worker, &stream, held, document),
            None => look_further(worker, &stream, held),
        }
    }
    worker.roots.restore(worker.roots.newest());
}

fn release_with(
    worker: &mut Worker,
    stream: &EdgeRequest,
    held: HeldResponse,
    document: &Document,
) {
    let known = match held.substitute {
        Substitute::Directory => MissingObject::Directory,
        Substitute::Fallback | Substitute::Error => MissingObject::Missing(held.status),
    };
    let now = worker.host.monotonic_millis();
    let missing = worker.keys.key_hash(stream.target.url());
    let until = now.saturating_add(held.known_for);
    worker.substitutes.remember(missing, known, until, now);
    worker.metrics.count(Metric::RequestsSubstituted, 1);
    let released = worker
        .roots
        .act_as(held.stream.0)
        .and_then(|()| document.take_place(&*worker.host, stream, held));
    worker.metrics.check(released);
    release(worker, held);
}

fn look_further(worker: &mut Worker, stream: &EdgeRequest, held: HeldResponse) {
    let site = &stream.policy.policy.site;
    let next = stream
        .visit
        .as_ref()
        .and_then(|visit| visit.next(site, Some(held.substitute)));
    let waits = next.is_some_and(|substitute| {
        look_for_substitute(worker, stream, HeldResponse { substitute, ..held })
    });
    if !waits {
        release(worker, held);
    }
}

/// Lets a held response go on.
fn release(worker: &mut Worker, held: HeldResponse) {
    let released = worker
        .roots
        .act_as(held.stream.0)
        .and_then(|()| worker.host.resume(Half::Response));
    worker.metrics.check(released);
}
