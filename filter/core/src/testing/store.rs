// SPDX-License-Identifier: Apache-2.0
//! Envoy's cache filters as far as coalescing depends on them: who finds what, and who shares a fill.

use std::collections::BTreeMap;

use super::{Client, FetchId};
use crate::board::{KeyHash, Millis};
use crate::policy::StoreVersion;

/// What a request meets in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A fresh response.
    Hit {
        /// The end of its freshness.
        until: Millis,
    },
    /// A fill that has its response headers (v2).
    Running {
        /// The fill.
        fetch: FetchId,
        /// The end of its freshness.
        until: Millis,
    },
    /// A fill that waits for its response headers (v2).
    Pending,
    /// Nothing. The caller's fetch, if its response can be stored, fills the store if `fills`.
    Miss {
        /// Whether it does.
        fills: bool,
    },
}

/// One key of the store.
#[derive(Debug, Default)]
struct Entry {
    stored: Option<Millis>,
    filling: Option<Filling>,
    /// v2: the last response could not be stored, so the next one is let through to see.
    uncacheable: bool,
    /// v1: fills that have ended and cannot be read yet.
    committing: Vec<Millis>,
}

#[derive(Debug)]
struct Filling {
    fetch: FetchId,
    /// The end of its freshness, once its headers have come.
    until: Option<Millis>,
    joined: Vec<Client>,
}

/// A store of either version.
#[derive(Debug)]
pub struct FakeStore {
    version: StoreVersion,
    entries: BTreeMap<KeyHash, Entry>,
}

impl FakeStore {
    /// An empty store.
    pub fn new(version: StoreVersion) -> Self {
        Self {
            version,
            entries: BTreeMap::new(),
        }
    }

    /// What `client` meets under `key`. A miss must be followed by [`FakeStore::begin`].
    pub fn look_up(&mut self, key: KeyHash, client: Client, now: Millis) -> Lookup {
        let entry = self.entries.entry(key).or_default();
        if let Some(until) = entry.stored.filter(|until| *until > now) {
            return Lookup::Hit { until };
        }
        match &mut entry.filling {
            Some(Filling {
                fetch,
                until: Some(until),
                ..
            }) => Lookup::Running {
                fetch: *fetch,
                until: *until,
            },
            Some(filling) => {
                filling.joined.push(client);
                Lookup::Pending
            }
            None => Lookup::Miss {
                fills: !entry.uncacheable,
            },
        }
    }

    /// Whether a probe (v1) finds `key`, and until when it is fresh.
    pub fn probe(&self, key: KeyHash, now: Millis) -> Option<Millis> {
        self.entries.get(&key)?.stored.filter(|until| *until > now)
    }

    /// Whether there is a response, fresh or stale.
    pub fn has(&self, key: KeyHash) -> bool {
        let entry = self.entries.get(&key);
        entry.is_some_and(|entry| entry.stored.is_some())
    }

    /// A fetch that fills `key` has begun.
    pub fn begin(&mut self, key: KeyHash, fetch: FetchId) {
        if self.version == StoreVersion::V2 {
            let filling = Filling {
                fetch,
                until: None,
                joined: Vec::new(),
            };
            self.entries.entry(key).or_default().filling = Some(filling);
        }
    }

    /// The headers of a response that can be stored have come; says who can read it from now on.
    pub fn headers(&mut self, key: KeyHash, fetch: FetchId, until: Millis) -> Vec<Client> {
        let entry = self.entries.entry(key).or_default();
        entry.uncacheable = false;
        match &mut entry.filling {
            Some(filling) if filling.fetch == fetch => {
                filling.until = Some(until);
                std::mem::take(&mut filling.joined)
            }
            _ => Vec::new(),
        }
    }

    /// The response cannot be stored; says who waited for it in vain.
    pub fn refuse(&mut self, key: KeyHash, fetch: FetchId) -> Vec<Client> {
        let joined = self.abandon(key, fetch);
        self.entries.entry(key).or_default().uncacheable = self.version == StoreVersion::V2;
        joined
    }

    /// The fill has come to nothing; says who waited for it in vain.
    pub fn abandon(&mut self, key: KeyHash, fetch: FetchId) -> Vec<Client> {
        let entry = self.entries.entry(key).or_default();
        match entry.filling.take_if(|filling| filling.fetch == fetch) {
            Some(filling) => filling.joined,
            None => Vec::new(),
        }
    }

    /// `client` waits for nothing any more.
    pub fn leave(&mut self, key: KeyHash, client: Client) {
        if let Some(filling) = self.entries.entry(key).or_default().filling.as_mut() {
            filling.joined.retain(|joined| *joined != client);
        }
    }

    /// Whether anyone waits for the headers of that fill.
    pub fn is_joined(&self, key: KeyHash, fetch: FetchId) -> bool {
        self.entries
            .get(&key)
            .and_then(|entry| entry.filling.as_ref())
            .is_some_and(|filling| filling.fetch == fetch && !filling.joined.is_empty())
    }

    /// The fill has ended. On v1 it can be read after [`FakeStore::commit`].
    pub fn end(&mut self, key: KeyHash, fetch: FetchId, until: Millis) {
        let entry = self.entries.entry(key).or_default();
        match self.version {
            StoreVersion::V1 => entry.committing.push(until),
            StoreVersion::V2 => {
                if entry
                    .filling
                    .take_if(|filling| filling.fetch == fetch)
                    .is_some()
                {
                    entry.stored = Some(until);
                }
            }
        }
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
