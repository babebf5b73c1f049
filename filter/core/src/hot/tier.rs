// SPDX-License-Identifier: Apache-2.0
//! The bounded table of copies.

use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use quick_cache::Weighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};

use super::copy::{HotCopy, Wanted};
use super::sighting::Still;
use crate::policy::HotPolicy;
use crate::workers::recent_keys::RecentKeys;
use crate::workers::{KeyHash, Millis};

/// The size of a copy by which the room for keys is reckoned: about the median of what web sites serve.
const TYPICAL_BYTES: usize = 8 << 10;
/// What is remembered of keys that have no copy, for each copy of typical size: the doorkeeper's key, and the table's
/// ghost of what it has given up.
const REMEMBERED_BYTES: usize = 256;
/// Of the tier's memory, what may be in the making: clients may take their time to read.
const IN_THE_MAKING: usize = 8;

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Whether it is in the tier, where it was not before.
    pub admitted: bool,
    /// How many others had to go.
    pub evicted: u32,
}

/// Copies of one worker.
#[derive(Debug)]
pub struct HotTier {
    copies: Cache<KeyHash, Rc<HotCopy>, Bytes, BuildHasherDefault<Hashed>>,
    /// The keys that were asked for lately; of one that is asked for again a copy is made. (The doorkeeper of TinyLFU:
    /// Einziger, Friedman, Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", 2017.)
    doorkeeper: RecentKeys<()>,
    most_object_bytes: usize,
    /// Bytes of bodies that are being copied.
    in_the_making: usize,
    most_in_the_making: usize,
}

impl HotTier {
    /// An empty tier within these bounds.
    pub fn new(policy: HotPolicy) -> Self {
        let keys = policy.max_bytes / TYPICAL_BYTES;
        let room = policy.max_bytes.saturating_sub(keys * REMEMBERED_BYTES);
        let most_in_the_making = room / IN_THE_MAKING;
        let room = room - most_in_the_making;
        Self {
            copies: Cache::with(
                keys,
                room as u64,
                Bytes,
                BuildHasherDefault::default(),
                DefaultLifecycle::default(),
            ),
            doorkeeper: RecentKeys::new(keys),
            most_object_bytes: policy.max_object_bytes.min(room),
            in_the_making: 0,
            most_in_the_making,
        }
    }

    /// What the store would serve at `now`, under a key of that hash.
    pub fn get(
        &self,
        key: KeyHash,
        wanted: &Wanted<'_>,
        now: Millis,
    ) -> Option<(Rc<HotCopy>, Still)> {
        let copy = self.copies.get(&key)?;
        let still = copy.stands_for(wanted, now)?;
        Some((Rc::clone(copy), still))
    }

    /// Whether an object of `length` bytes under `key` should be copied.
    ///
    /// While there is room, all are. Then only what is asked for twice is, so that what comes once is not even copied.
    pub fn wants(&mut self, key: KeyHash, length: usize) -> bool {
        (1..=self.most_object_bytes).contains(&length)
            && (self.has_room() || self.holds(key) || self.was_asked_for(key))
    }

    /// Makes room for a copy in the making, until [`HotTier::end`]. False if there are too many.
    pub fn begin(&mut self, length: usize) -> bool {
        let fits = length <= self.most_in_the_making.saturating_sub(self.in_the_making);
        if fits {
            self.in_the_making += length;
        }
        fits
    }

    /// A body of `length` bytes has been copied, or will not be.
    pub fn end(&mut self, length: usize) {
        self.in_the_making = self.in_the_making.saturating_sub(length);
    }

    /// Takes a copy in the place of the one that there is.
    pub fn insert(&mut self, key: KeyHash, copy: HotCopy) -> Kept {
        let held = self.holds(key);
        let others = self.len() - usize::from(held);
        self.copies.insert(key, Rc::new(copy));
        let holds = self.holds(key);
        let left = self.len() - usize::from(holds);
        Kept {
            admitted: holds && !held,
            evicted: others.saturating_sub(left) as u32,
        }
    }

    /// Forgets `key`.
    pub fn remove(&mut self, key: KeyHash) {
        self.copies.remove(&key);
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Number of copies, outdated ones included.
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// What they take of the memory.
    pub fn bytes(&self) -> u64 {
        self.copies.weight()
    }

    /// Whether `key` was asked for before. It has been, from now on.
    fn was_asked_for(&mut self, key: KeyHash) -> bool {
        let known = self.doorkeeper.peek(key).is_some();
        if !known {
            self.doorkeeper.insert(key, ());
        }
        known
    }

    fn holds(&self, key: KeyHash) -> bool {
        self.copies.contains_key(&key)
    }

    fn has_room(&self) -> bool {
        let most = self.most_object_bytes as u64;
        self.copies.weight().saturating_add(most) <= self.copies.capacity()
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
