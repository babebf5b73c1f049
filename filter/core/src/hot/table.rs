// SPDX-License-Identifier: Apache-2.0
//! The copies of one site.

use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use quick_cache::Weighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};

use super::copy::HotCopy;
use crate::workers::KeyHash;

/// A bounded table of copies. It keeps copies with frequent requests, even if many other keys are requested once.
#[derive(Debug)]
pub struct CopyTable(Cache<KeyHash, Rc<HotCopy>, Bytes, BuildHasherDefault<Hashed>>);

impl CopyTable {
    /// An empty table of `room` bytes, for about `keys` keys.
    pub fn new(keys: usize, room: u64) -> Self {
        let hasher = BuildHasherDefault::default();
        let lifecycle = DefaultLifecycle::default();
        Self(Cache::with(keys, room, Bytes, hasher, lifecycle))
    }

    /// The copy under `key`.
    pub fn get(&self, key: KeyHash) -> Option<&Rc<HotCopy>> {
        self.0.get(&key)
    }

    /// Whether there is a copy under `key`. This does not count as a use of the copy.
    pub fn holds(&self, key: KeyHash) -> bool {
        self.0.contains_key(&key)
    }

    /// Inserts a copy, replaces an existing copy of the key, and evicts others for room.
    pub fn insert(&mut self, key: KeyHash, copy: HotCopy) {
        self.0.insert(key, Rc::new(copy));
    }

    /// Removes the copy under `key`.
    pub fn remove(&mut self, key: KeyHash) {
        self.0.remove(&key);
    }

    /// Number of copies.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Size of the copies in memory, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }

    /// Largest size of the copies in memory, in bytes.
    pub fn room(&self) -> u64 {
        self.0.capacity()
    }

    /// Changes the largest size of the copies. Evicts copies until the others fit.
    ///
    /// The library remembers keys of evicted copies, in proportion to the room, and rounds their number down at each
    /// change. That costs no hits, because a key without a copy gets one only after two requests.
    pub fn resize(&mut self, room: u64) {
        self.0.set_capacity(room);
    }
}

/// Weighs copies by their size in memory.
#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<KeyHash, Rc<HotCopy>> for Bytes {
    fn weight(&self, _: &KeyHash, copy: &Rc<HotCopy>) -> u64 {
        copy.bytes() as u64
    }
}

/// Hashes keys, which are hashes already.
#[derive(Clone, Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // A key only writes its number. Other input would be correct, only slow.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
