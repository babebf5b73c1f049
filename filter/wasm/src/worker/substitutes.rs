// SPDX-License-Identifier: Apache-2.0
//! The worker's part in finding a substitute for a missing object.

use std::rc::Rc;

use sluice_core::key::CanonicalTarget;
use sluice_core::metrics::Metric;
use sluice_core::site::{Substitute, document};
use sluice_core::workers::KeyHash;

use super::Worker;
use crate::calls::{Call, Sent};
use crate::host::{self, Half};
use crate::site::{Document, Held, Known};
use crate::stream::Stream;

impl Worker {
    /// What is known of an object that is missing.
    pub fn known_missing(&self, target: &CanonicalTarget) -> Option<Known> {
        let key = self.key_hash(target.url());
        self.substitutes.known(key, host::monotonic_millis())
    }

    /// Counts a missing object whose place was taken.
    pub fn count_substitute(&mut self) {
        self.metrics.count(Metric::RequestsSubstituted, 1);
    }

    /// Has a held response wait for its substitute; false if there is none to wait for.
    pub fn look_for_substitute(&mut self, stream: &Stream, held: Held) -> bool {
        let policy = &stream.policy;
        let Some(target) = document(&policy.policy, &stream.target, held.substitute) else {
            return false;
        };
        let key = self.key_hash(target.cache_key());
        if self.substitutes.wait(key, held) {
            let call = Call::Substitute(key);
            self.calls
                .push(Sent::new(call, Rc::new(target), policy.clone()));
            self.wake_root();
        }
        true
    }

    /// A document has come, or there is none.
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
        self.come_back(self.root());
    }

    fn release_with(&mut self, stream: &Stream, held: Held, document: &Document) {
        let known = match held.substitute {
            Substitute::Directory => Known::Directory,
            Substitute::Fallback | Substitute::Error => Known::Missing(held.status),
        };
        let now = host::monotonic_millis();
        let missing = self.key_hash(stream.target.url());
        let until = now.saturating_add(held.known_for);
        self.substitutes.remember(missing, known, until, now);
        self.metrics.count(Metric::RequestsSubstituted, 1);
        let released = self
            .redirect(held.stream.0)
            .and_then(|()| document.take_place(stream, held));
        self.check(released);
        self.release(held);
    }

    fn look_further(&mut self, stream: &Stream, held: Held) {
        let site = &stream.policy.policy.site;
        let next = stream
            .visit
            .as_ref()
            .and_then(|visit| visit.next(site, Some(held.substitute)));
        let waits = next.is_some_and(|substitute| {
            self.look_for_substitute(stream, Held { substitute, ..held })
        });
        if !waits {
            self.release(held);
        }
    }

    /// Lets the response go on, whatever it is by now.
    fn release(&mut self, held: Held) {
        let released = self
            .redirect(held.stream.0)
            .and_then(|()| host::resume(Half::Response));
        self.check(released);
    }
}
