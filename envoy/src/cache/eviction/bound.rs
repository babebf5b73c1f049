// SPDX-License-Identifier: Apache-2.0
//! The usage at which entries must be evicted, and how many are evicted.

use crate::cache::entries::Usage;

/// Eviction starts when the cache is within this part of its bound. The part leaves room for entries that are
/// stored while the folder is read.
const SLACK: u64 = 64;
/// At least this part of the bound is evicted at a time, because each eviction reads the whole folder.
const BATCH: u64 = 16;

/// The bytes above which Envoy's store evicts, in a cache that may hold `bytes`. While the cache grows faster than the
/// keeper removes files, it may hold an eighth more, because Envoy would remove the oldest files of all.
pub const fn envoys_bound(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 8)
}

/// The usage down to which a cache with `used` must evict, when it may hold `bound` and its disk lacks `shortage`
/// bytes; `None`: no eviction. A cache that holds less than `shortage` could not end the shortage, so it keeps its
/// entries.
pub fn target(used: Usage, bound: Usage, shortage: u64) -> Option<Usage> {
    let high = bound.less_part(SLACK);
    let low = high.less_part(BATCH);
    if (1..=used.bytes).contains(&shortage) {
        // More than the shortage, so that the folder is not read again for each of many small shortages.
        let left = used.less_part(BATCH).bytes.saturating_sub(shortage);
        return Some(Usage {
            bytes: low.bytes.min(left),
            files: low.files,
        });
    }
    (!used.is_within(high)).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Usage = Usage {
        bytes: 1 << 30,
        files: 6_400,
    };

    fn used(bytes: u64, files: u64) -> Usage {
        Usage { bytes, files }
    }

    #[test]
    fn room_is_made_shortly_before_the_bound_by_number_or_bytes() {
        let (most, low) = (used(1_056_964_608, 6_300), used(990_904_320, 5_907));
        for full in [used(0, 6_300), used(most.bytes, 0), most] {
            assert_eq!(target(full, BOUND, 0), None, "{full:?}");
        }
        for fuller in [used(0, 6_301), used(most.bytes + 1, 0)] {
            assert_eq!(target(fuller, BOUND, 0), Some(low), "{fuller:?}");
        }
    }

    #[test]
    fn a_small_cache_holds_as_many_as_it_may() {
        let bound = used(1 << 30, 10);
        assert_eq!(target(used(0, 10), bound, 0), None);
        assert_eq!(target(used(0, 11), bound, 0).map(|low| low.files), Some(10));
        let one = used(1 << 30, 1);
        assert_eq!(target(used(0, 2), one, 0).map(|low| low.files), Some(1));
    }

    #[test]
    fn a_cache_gives_way_on_a_disk_that_lacks_space() {
        let half = used(1 << 29, 1_000);
        let left = target(half, BOUND, 1 << 20).unwrap();
        assert_eq!(left.bytes, (1 << 29) - (1 << 25) - (1 << 20));
        assert_eq!(target(half, BOUND, 1 << 29).unwrap().bytes, 0);
        assert_eq!(target(half, BOUND, (1 << 29) + 1), None, "it would not do");
        assert_eq!(target(used(0, 0), BOUND, 1), None, "nothing to give");
        let full = target(BOUND, BOUND, 1).unwrap();
        assert_eq!(
            Some(full),
            target(BOUND, BOUND, 0),
            "no more than for the bound"
        );
    }
}
