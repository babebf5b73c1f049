// SPDX-License-Identifier: Apache-2.0
//! The copies of one site.

use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use quick_cache::Weighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};

use super::copy::HotCopy;
use crate::workers::KeyHash;

/// A bounded table of copies. It keeps what is asked for often, whatever comes once.
#[derive(Debug)]
pub struct CopyTable(Cache<KeyHash, Rc<HotCopy>, Bytes, BuildHasherDefault<Hashed>>);

impl CopyTable {
    /// An empty table of `room` bytes, for about as many keys.
    pub fn new(keys: usize, room: u64) -> Self {
        let hasher = BuildHasherDefault::default();
        let lifecycle = DefaultLifecycle::default();
        Self(Cache::with(keys, room, Bytes, hasher, lifecycle))
    }

    /// The copy under `key`.
    pub fn get(&self, key: KeyHash) -> Option<&Rc<HotCopy>> {
        self.0.get(&key)
    }

    /// Whether there is a copy under `key`. This is no use of it.
    pub fn holds(&self, key: KeyHash) -> bool {
        self.0.contains_key(&key)
    }

    /// Takes a copy in the place of the one that there is. Others go for it.
    pub fn insert(&mut self, key: KeyHash, copy: HotCopy) {
        self.0.insert(key, Rc::new(copy));
    }

    /// Forgets `key`.
    pub fn remove(&mut self, key: KeyHash) {
        self.0.remove(&key);
    }

    /// Number of copies.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// What the copies take of the memory.
    pub fn bytes(&self) -> u64 {
        self.0.weight()
    }

    /// What they may take.
    pub fn room(&self) -> u64 {
        self.0.capacity()
    }

    /// Changes what they may take. Copies go until the others fit.
    ///
    /// The library remembers keys of copies that it has given up, in proportion to the room, and rounds their number down at
    /// each change. That costs no hits: what has no copy is asked for twice before it gets one.
    pub fn resize(&mut self, room: u64) {
        self.0.set_capacity(room);
    }
}

/// Copies are weighed by what they take of the memory.
#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<KeyHash, Rc<HotCopy>> for Bytes {
    fn weight(&self, _: &KeyHash, copy: &Rc<HotCopy>) -> u64 {
        copy.bytes() as u64
    }
}

/// Keys are hashes already.
#[derive(Clone, Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // A key writes its number only; nothing else would be wrong, only slow.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
