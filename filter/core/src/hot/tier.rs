// SPDX-License-Identifier: Apache-2.0
//! The bounded tables of copies, and what is copied.

use std::rc::Rc;

use super::copy::{HotCopy, HotLookup};
use super::sites::{SiteNumber, SiteTables};
use super::store_check::HotAnswer;
use crate::policy::HotPolicy;
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
pub struct HotAdmission {
    /// Whether it is in the tier, where it was not before.
    pub admitted: bool,
    /// How many others had to go.
    pub evicted: u32,
}

/// Copies of one worker.
#[derive(Debug)]
pub struct HotTier {
    copies: SiteTables,
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
            copies: SiteTables::new(keys, room as u64),
            most_object_bytes: policy.max_object_bytes.min(room),
            in_the_making: 0,
            most_in_the_making,
        }
    }

    /// Replaces the weights of the sites by `shares`, in the order of their numbers. Before, there is one site. A number
    /// must stand for the same site for as long as it has a weight; the copies of a site without a weight go.
    pub fn set_shares(&mut self, shares: &[u32]) {
        self.copies.set_shares(shares);
    }

    /// What the store would serve at `now`, under a key of that hash.
    pub fn get(
        &self,
        site: SiteNumber,
        key: KeyHash,
        wanted: &HotLookup<'_>,
        now: Millis,
    ) -> Option<(Rc<HotCopy>, HotAnswer)> {
        let copy = self.copies.of(site)?.get(key)?;
        let still = copy.stands_for(wanted, now)?;
        Some((Rc::clone(copy), still))
    }

    /// Whether an object of `length` bytes under `key` should be copied.
    ///
    /// While there is room, all are. Then only what is asked for twice is, so that what comes once is not even copied. (The
    /// doorkeeper of TinyLFU: Einziger, Friedman, Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", 2017.)
    pub fn wants(&mut self, site: SiteNumber, key: KeyHash, length: usize) -> bool {
        (1..=self.most_object_bytes).contains(&length)
            && (self.copies.has_room(site, self.most_object_bytes as u64)
                || self.copies.holds(site, key)
                || self.copies.was_asked_for(site, key))
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
    pub fn insert(&mut self, site: SiteNumber, key: KeyHash, copy: HotCopy) -> HotAdmission {
        let held = self.copies.holds(site, key);
        let others = self.len() - usize::from(held);
        self.copies.insert(site, key, copy);
        let holds = self.copies.holds(site, key);
        let left = self.len() - usize::from(holds);
        HotAdmission {
            admitted: holds && !held,
            evicted: others.saturating_sub(left) as u32,
        }
    }

    /// Forgets `key`.
    pub fn remove(&mut self, site: SiteNumber, key: KeyHash) {
        self.copies.remove(site, key);
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.copies.len() == 0
    }

    /// Number of copies, outdated ones included.
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// What they take of the memory.
    pub fn bytes(&self) -> u64 {
        self.copies.bytes()
    }
}
