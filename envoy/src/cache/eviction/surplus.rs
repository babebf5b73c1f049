// SPDX-License-Identifier: Apache-2.0
//! The choice of the entries to evict.
//!
//! The oldest entry of the site that is furthest above its share is evicted, until the rest is within the target. A
//! site's share is the part of the target that its weight gives, by bytes or by number, whichever exceeds the
//! target. This is weighted max-min fairness; if both exceed the target, by the dominant resource (Ghodsi et al.,
//! "Dominant Resource Fairness", 2011). So a site within its share loses nothing while another site is above its
//! own share, and the unused part of a share is lent to the other sites.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::slice;

use crate::cache::entries::{Entry, SiteId, Usage};
use crate::cache::shares::Weights;

/// Fixed-point unit of a site's load: this many parts are a full share.
const PARTS: u128 = 1 << 40;

/// The fewest `entries` to evict so that the rest is within `target`, in the order of eviction.
pub fn surplus(mut entries: Vec<(SiteId, Entry)>, weights: &Weights, target: Usage) -> Vec<Entry> {
    entries.sort_unstable();
    let mut sites: Vec<_> = entries
        .chunk_by(|(one, _), (other, _)| one == other)
        .map(|entries| SiteEntries::new(entries, weights))
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
            if let Some((_, entry)) = most.oldest.next() {
                most.usage = most.usage.without(entry.bytes);
                left = left.without(entry.bytes);
                gone.push(*entry);
                loads.push((excess.load(most), site));
            }
        }
    }
    gone
}

/// The entries of one site.
struct SiteEntries<'a> {
    weight: u32,
    /// The usage that remains for the site.
    usage: Usage,
    /// The remaining entries, the oldest first.
    oldest: slice::Iter<'a, (SiteId, Entry)>,
}

impl<'a> SiteEntries<'a> {
    fn new(entries: &'a [(SiteId, Entry)], weights: &Weights) -> Self {
        let bytes = entries.iter().map(|(_, entry)| entry.bytes);
        Self {
            weight: entries.first().map_or(0, |(site, _)| weights.of(*site)),
            usage: bytes.fold(Usage::default(), Usage::with),
            oldest: entries.iter(),
        }
    }
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
    fn load(self, site: &SiteEntries<'_>) -> u128 {
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
