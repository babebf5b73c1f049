// SPDX-License-Identifier: Apache-2.0
//! A second store behind the trait that flights use: objects in memory, readable as soon as they are complete.
//!
//! This store shows that the trait is about caches in general and not about Envoy's, because it needs no probes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use sluice_core::coalescing::{AwaitedFill, Store, StoreNews};
use sluice_core::workers::{KeyHash, Millis, StreamId};

/// Stored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryObject {
    /// Body of the object.
    pub body: Vec<u8>,
    /// Time until which the object is fresh.
    pub until: Millis,
}

/// Response on its way into the store.
#[derive(Debug)]
struct RunningFill {
    key: KeyHash,
    object: MemoryObject,
}

/// Objects that all workers share.
#[derive(Debug, Default)]
pub struct MemoryObjects {
    objects: BTreeMap<KeyHash, MemoryObject>,
    fills: BTreeMap<StreamId, RunningFill>,
}

impl MemoryObjects {
    /// Returns the fresh object under `key`.
    pub fn look_up(&self, key: KeyHash, now: Millis) -> Option<&MemoryObject> {
        self.objects.get(&key).filter(|object| now < object.until)
    }

    /// Starts to fill `key` with the response to a request.
    pub fn fill(&mut self, stream: StreamId, key: KeyHash, until: Millis) {
        let body = Vec::new();
        let object = MemoryObject { body, until };
        self.fills.insert(stream, RunningFill { key, object });
    }

    /// Adds a part of the response's body.
    pub fn append(&mut self, stream: StreamId, bytes: &[u8]) {
        if let Some(fill) = self.fills.get_mut(&stream) {
            fill.object.body.extend(bytes);
        }
    }

    /// Ends the response. The object is readable then.
    pub fn finish(&mut self, stream: StreamId) {
        if let Some(fill) = self.fills.remove(&stream) {
            self.objects.insert(fill.key, fill.object);
        }
    }

    /// Drops a response that was not completed.
    pub fn abort(&mut self, stream: StreamId) {
        self.fills.remove(&stream);
    }

    /// Sets the freshness of the object under `key`, because the origin has found the object valid.
    pub fn refresh(&mut self, key: KeyHash, until: Millis) {
        if let Some(object) = self.objects.get_mut(&key) {
            object.until = until;
        }
    }

    /// Drops the object under `key`.
    pub fn evict(&mut self, key: KeyHash) {
        self.objects.remove(&key);
    }
}

/// View of one worker on the objects.
#[derive(Debug, Default)]
pub struct MemoryStore {
    /// Objects.
    pub objects: Rc<RefCell<MemoryObjects>>,
    awaited: Vec<KeyHash>,
}

impl MemoryStore {
    /// Creates a worker's view of `objects`.
    pub fn of(objects: &Rc<RefCell<MemoryObjects>>) -> Self {
        Self {
            objects: Rc::clone(objects),
            awaited: Vec::new(),
        }
    }
}

impl Store for MemoryStore {
    fn await_fill(&mut self, key: KeyHash, _: AwaitedFill, _: Millis) {
        self.awaited.push(key);
    }

    fn await_no_more(&mut self, key: KeyHash) {
        self.awaited.retain(|awaited| *awaited != key);
    }

    fn note_abort(&mut self, _: KeyHash, _: Millis) {}

    fn take_news(&mut self, now: Millis) -> Vec<(KeyHash, StoreNews)> {
        let objects = self.objects.borrow();
        let news = |key| match objects.look_up(key, now) {
            Some(object) => StoreNews::Readable {
                until: object.until,
                small: true,
            },
            None => StoreNews::Lost,
        };
        let awaited = std::mem::take(&mut self.awaited).into_iter();
        awaited.map(|key| (key, news(key))).collect()
    }

    fn tick_period(&self) -> Option<Millis> {
        None
    }
}
