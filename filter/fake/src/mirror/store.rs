// SPDX-License-Identifier: Apache-2.0
//! Envoy's cache filter as far as coalescing depends on it: who finds what.

use std::collections::BTreeMap;

use sluice_core::workers::{KeyHash, Millis};

/// One key of the store.
#[derive(Debug, Default)]
struct Entry {
    stored: Option<Millis>,
    /// Fills that have ended and cannot be read yet.
    committing: Vec<Millis>,
}

/// The store.
#[derive(Debug, Default)]
pub struct FakeStore {
    entries: BTreeMap<KeyHash, Entry>,
}

impl FakeStore {
    /// Until when what is stored under `key` is fresh; `None` if there is nothing fresh.
    pub fn look_up(&self, key: KeyHash, now: Millis) -> Option<Millis> {
        self.entries.get(&key)?.stored.filter(|until| *until > now)
    }

    /// Whether there is a response, fresh or stale.
    pub fn has(&self, key: KeyHash) -> bool {
        let entry = self.entries.get(&key);
        entry.is_some_and(|entry| entry.stored.is_some())
    }

    /// A fill has ended. It can be read after [`FakeStore::commit`].
    pub fn end(&mut self, key: KeyHash, until: Millis) {
        self.entries.entry(key).or_default().committing.push(until);
    }

    /// Makes what has ended readable.
    pub fn commit(&mut self, key: KeyHash) {
        let entry = self.entries.entry(key).or_default();
        if let Some(until) = entry.committing.drain(..).max() {
            entry.stored = Some(until);
        }
    }

    /// Forgets what has ended instead, as a store that is full or broken.
    pub fn drop_commits(&mut self, key: KeyHash) {
        self.entries.entry(key).or_default().committing.clear();
    }

    /// Removes the stored response.
    pub fn evict(&mut self, key: KeyHash) {
        self.entries.entry(key).or_default().stored = None;
    }
}
