// SPDX-License-Identifier: Apache-2.0
//! The bounded tables of copies, and the choice of responses to copy.

use std::rc::Rc;

use super::copy::{HotCopy, HotLookup};
use super::sites::{SiteNumber, SiteTables};
use super::store_check::HotAnswer;
use crate::policy::HotPolicy;
use crate::workers::{KeyHash, Millis};

/// Size of a copy from which the number of keys is computed: about the median of responses of web sites.
const TYPICAL_BYTES: usize = 8 << 10;
/// Memory for keys without a copy, per copy of typical size: the doorkeeper's key, and the table's record of an
/// evicted copy.
const REMEMBERED_BYTES: usize = 256;
/// Divisor of the tier's memory that gives the limit for copies in the making, because clients may read slowly.
const IN_THE_MAKING: usize = 8;

/// The result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotAdmission {
    /// Whether the copy is in the tier now and was not before.
    pub admitted: bool,
    /// Number of other copies that were evicted.
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

    /// Replaces the weights of the sites by `shares`, in the order of their numbers. Initially there is one site. A
    /// number must stand for the same site for as long as the site has a weight. Removes the copies of sites without
    /// a weight.
    pub fn set_shares(&mut self, shares: &[u32]) {
        self.copies.set_shares(shares);
    }

    /// Returns the copy that the store would serve at `now`, under a key of that hash.
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
    /// All objects are copied while there is room. After that only objects with a second request are, so that an
    /// object with a single request is not even copied. (The doorkeeper of TinyLFU: Einziger, Friedman, Manes,
    /// "TinyLFU: A Highly Efficient Cache Admission Policy", 2017.)
    pub fn wants(&mut self, site: SiteNumber, key: KeyHash, length: usize) -> bool {
        (1..=self.most_object_bytes).contains(&length)
            && (self.copies.has_room(site, self.most_object_bytes as u64)
                || self.copies.holds(site, key)
                || self.copies.was_asked_for(site, key))
    }

    /// Reserves memory for a copy in the making, until [`HotTier::end`]. Returns false if there are too many.
    pub fn begin(&mut self, length: usize) -> bool {
        let fits = length <= self.most_in_the_making.saturating_sub(self.in_the_making);
        if fits {
            self.in_the_making += length;
        }
        fits
    }

    /// Releases the memory of a body of `length` bytes that has been copied, or will not be.
    pub fn end(&mut self, length: usize) {
        self.in_the_making = self.in_the_making.saturating_sub(length);
    }

    /// Inserts a copy, and replaces an existing copy of the key.
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

    /// Removes the copy under `key`.
    pub fn remove(&mut self, site: SiteNumber, key: KeyHash) {
        self.copies.remove(site, key);
    }

    /// Whether there are no copies.
    pub fn is_empty(&self) -> bool {
        self.copies.len() == 0
    }

    /// Number of copies, outdated ones included.
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// Size of the copies in memory, in bytes.
    pub fn bytes(&self) -> u64 {
        self.copies.bytes()
    }
}
