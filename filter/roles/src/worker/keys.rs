// SPDX-License-Identifier: Apache-2.0
//! Keys: what they are made of, and the hashes under which the worker knows them.

use std::hash::Hasher;

use sluice_core::coalescing::board::FlightKey;
use sluice_core::http::accept_encoding::Coding;
use sluice_core::key::CanonicalTarget;
use sluice_core::key::qualifiers;
use sluice_core::key::vary::{self, ACCEPT_ENCODING, TooLong, VaryNames};
use sluice_core::policy::Policy;
use sluice_core::workers::KeyHash;

use super::Worker;
use crate::host::headers::Headers;

impl Worker {
    /// The hash under which requests wait for each other and hints are remembered. It changes with a soft purge, after
    /// which the worker must know nothing of the key.
    pub fn key_hash(&self, cache_key: &str) -> KeyHash {
        self.flight_key(cache_key).key
    }

    /// The hashes by which the board knows a cache key.
    pub fn flight_key(&self, cache_key: &str) -> FlightKey {
        let entry = self.entry_hash(cache_key);
        let key = match self.soft_generation(cache_key) {
            0 => entry,
            soft => self.identity.hash(|hasher| {
                hasher.write_u64(entry.0);
                hasher.write_u64(soft);
            }),
        };
        FlightKey { entry, key }
    }

    /// The hash under which the store's entry is known, whatever was purged softly: its fills, hot copies and body lengths,
    /// and what a URL varies with.
    pub(super) fn entry_hash(&self, cache_key: &str) -> KeyHash {
        self.identity
            .hash(|hasher| hasher.write(cache_key.as_bytes()))
    }

    /// The request headers that responses for a URL are known to vary with.
    fn varies(&mut self, url: &str) -> Option<VaryNames> {
        if self.known.varying.is_empty() {
            return None;
        }
        let url = self.entry_hash(url);
        self.known.varying.get(url, self.host.monotonic_millis())
    }

    /// Remembers that responses for a URL vary with `names`.
    pub fn learn(&mut self, url: &str, names: VaryNames) {
        let url = self.entry_hash(url);
        self.known
            .varying
            .learn(url, names, self.host.monotonic_millis());
    }

    /// Adds the qualifiers for content coding and `Vary` to the key of `target`.
    ///
    /// # Errors
    /// The value of a header that the response varies with is too long for a key.
    pub fn qualify(
        &mut self,
        policy: &Policy,
        target: &mut CanonicalTarget,
        headers: &Headers,
    ) -> Result<(), TooLong> {
        if let Some(coding) = compressed(policy, target, headers) {
            target.qualify(qualifiers::CODING, coding.token());
        }
        match self.varies(target.url()) {
            Some(names) => vary::qualify(policy, target, &names, |name| headers.joined(name)),
            None => Ok(()),
        }
    }
}

/// The coding in which a response is compressed on its way into the cache.
fn compressed(policy: &Policy, target: &CanonicalTarget, headers: &Headers) -> Option<Coding> {
    let compression = &policy.compression;
    if !compression.applies(policy.client_path(target.origin_path())) {
        return None;
    }
    compression.negotiate(headers.joined(ACCEPT_ENCODING).as_deref())
}
