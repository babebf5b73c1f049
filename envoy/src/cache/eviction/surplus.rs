// SPDX-License-Identifier: Apache-2.0
//! The choice of the entries to evict.
//!
//! The oldest entry of the site that is furthest above its share is evicted, until the rest is within the target. A
//! site's share is the part of the target that its weight gives, by bytes or by number, whichever exceeds the
//! target. This is weighted max-min fairness; if both exceed the target, by the dominant resource (Ghodsi et al.,
//! "Dominant Resource Fairness", 2011). So a site within its share loses nothing while another site is above its
//! own share, and the unused part of a share is lent to the other sites.
//!
//! Of one site, slices of an object that no client has read again go first while they hold more than an
//! [`UNREAD`]th of the site's bytes. So an object that is read through once does not displace the other objects. The
//! oldest of its slices go first, because clients of the same part follow each other closely.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::vec;

use super::Candidate;
use crate::cache::entries::{Entry, Usage};
use crate::cache::shares::Weights;

/// Fixed-point unit of a site's load: this many parts are a full share.
const PARTS: u128 = 1 << 40;

/// The part of a site's bytes that slices of one object may hold before they go first, if they were not read again.
pub const UNREAD: u64 = 8;

/// The fewest `candidates` to evict so that the rest is within `target`, in the order of eviction.
pub fn surplus(mut candidates: Vec<Candidate>, weights: &Weights, target: Usage) -> Vec<Entry> {
    candidates.sort_unstable_by_key(|candidate| (candidate.site, candidate.entry));
    let mut sites: Vec<_> = candidates
        .chunk_by(|one, other| one.site == other.site)
        .map(|candidates| SiteEntries::new(candidates, weights))
        .collect();
    let all = sites.iter().map(|site| site.usage);
    let mut left = all.fold(Usage::default(), Usage::and);
    let mut gone = Vec::new();
    while let Some(excess) = Excess::of(left, target) {
        let loads = sites.iter().map(|site| excess.load(site));
        let mut loads: BinaryHeap<_> = loads.zip((0..).map(Reverse)).collect();
        while Excess::of(left, target) == Some(excess)
            && let Some((_, site)) = loads.pop()
        {
            let Some(most) = sites.get_mut(site.0) else {
                break;
            };
            if let Some(entry) = most.rest.next() {
                most.usage = most.usage.without(entry.bytes);
                left = left.without(entry.bytes);
                gone.push(entry);
                loads.push((excess.load(most), site));
            }
        }
    }
    gone
}

/// The entries of one site.
struct SiteEntries {
    weight: u32,
    /// The usage that remains for the site.
    usage: Usage,
    /// The remaining entries, in the order of eviction.
    rest: vec::IntoIter<Entry>,
}

impl SiteEntries {
    /// The entries of one site, the oldest first.
    fn new(oldest: &[Candidate], weights: &Weights) -> Self {
        let bytes = oldest.iter().map(|candidate| candidate.entry.bytes);
        let usage = bytes.fold(Usage::default(), Usage::with);
        let weight = oldest.first().map(|candidate| weights.of(candidate.site));
        Self {
            weight: weight.unwrap_or(0),
            usage,
            rest: in_order(oldest, usage.bytes / UNREAD).into_iter(),
        }
    }
}

/// The entries of one site in the order of eviction: the slices by which an object exceeds `bound` bytes, and then all
/// others. `oldest` has the oldest first.
fn in_order(oldest: &[Candidate], bound: u64) -> Vec<Entry> {
    let mut unread: HashMap<_, u64> = HashMap::new();
    for candidate in oldest {
        if let Some(object) = candidate.unread_slice_of {
            *unread.entry(object).or_default() += candidate.entry.bytes;
        }
    }
    let exceeds = |candidate: &&Candidate| {
        let object = candidate.unread_slice_of;
        let bytes = object.and_then(|object| unread.get_mut(&object));
        bytes.filter(|bytes| **bytes > bound).is_some_and(|bytes| {
            *bytes -= candidate.entry.bytes;
            true
        })
    };
    let (mut order, rest): (Vec<&Candidate>, Vec<_>) = oldest.iter().partition(exceeds);
    order.extend(rest);
    order.into_iter().map(|candidate| candidate.entry).collect()
}

/// The quantity that exceeds the target, with the bound that the rest must keep.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Excess {
    bytes: Option<u64>,
    files: Option<u64>,
}

impl Excess {
    /// `None`: nothing exceeds the target.
    fn of(used: Usage, target: Usage) -> Option<Self> {
        let bytes = (used.bytes > target.bytes).then_some(target.bytes);
        let files = (used.files > target.files).then_some(target.files);
        let excess = Self { bytes, files };
        (!used.is_within(target)).then_some(excess)
    }

    /// The number of shares that a site uses of the exceeded quantity. A site without a share uses more than any
    /// other.
    fn load(self, site: &SiteEntries) -> u128 {
        let load = |used: u64, bound: Option<u64>| {
            let Some(bound) = bound else { return 0 };
            let share = u128::from(bound.max(1)) * u128::from(site.weight);
            let used = u128::from(used) * PARTS;
            used.checked_div(share).unwrap_or(u128::MAX)
        };
        let (bytes, files) = (site.usage.bytes, site.usage.files);
        load(bytes, self.bytes).max(load(files, self.files))
    }
}
