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

impl Worker {
    /// What is known of an object that is missing.
    pub fn known_missing(&self, target: &CanonicalTarget) -> Option<MissingObject> {
        let key = self.key_hash(target.url());
        self.substitutes.known(key, self.host.monotonic_millis())
    }

    /// Has a held response wait for its substitute; false if there is none to wait for.
    pub fn look_for_substitute(&mut self, stream: &EdgeRequest, held: HeldResponse) -> bool {
        let policy = &stream.policy;
        let Some(target) = document(&policy.policy, &stream.target, held.substitute) else {
            return false;
        };
        let key = self.key_hash(target.cache_key());
        if self.substitutes.wait(key, held) {
            let call = CallKind::Substitute(key);
            self.calls.push(BackgroundCall::new(
                &*self.host,
                call,
                Rc::new(target),
                policy.clone(),
            ));
            self.wake_root();
        }
        true
    }

    /// Releases the responses that wait for a document, which has come or does not exist.
    pub(super) fn end_substitute(&mut self, key: KeyHash, document: Option<&Document>) {
        for held in self.substitutes.take(key) {
            let Some(stream) = self.stream(held.stream) else {
                continue;
            };
            match document.filter(|document| document.serves_as(held.substitute)) {
                Some(document) => self.release_with(&stream, held, document),
                None => self.look_further(&stream, held),
            }
        }
        self.restore_context(self.roots.newest());
    }

    fn release_with(&mut self, stream: &EdgeRequest, held: HeldResponse, document: &Document) {
        let known = match held.substitute {
            Substitute::Directory => MissingObject::Directory,
            Substitute::Fallback | Substitute::Error => MissingObject::Missing(held.status),
        };
        let now = self.host.monotonic_millis();
        let missing = self.key_hash(stream.target.url());
        let until = now.saturating_add(held.known_for);
        self.substitutes.remember(missing, known, until, now);
        self.metrics.count(Metric::RequestsSubstituted, 1);
        let released = self
            .act_as(held.stream.0)
            .and_then(|()| document.take_place(&*self.host, stream, held));
        self.metrics.check(released);
        self.release(held);
    }

    fn look_further(&mut self, stream: &EdgeRequest, held: HeldResponse) {
        let site = &stream.policy.policy.site;
        let next = stream
            .visit
            .as_ref()
            .and_then(|visit| visit.next(site, Some(held.substitute)));
        let waits = next.is_some_and(|substitute| {
            self.look_for_substitute(stream, HeldResponse { substitute, ..held })
        });
        if !waits {
            self.release(held);
        }
    }

    /// Lets a held response go on.
    fn release(&mut self, held: HeldResponse) {
        let released = self
            .act_as(held.stream.0)
            .and_then(|()| self.host.resume(Half::Response));
        self.metrics.check(released);
    }
}
