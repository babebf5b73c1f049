// SPDX-License-Identifier: Apache-2.0
//! How much the cache may hold, and when and how much of it has to go.

/// What a cache holds, or may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of all files.
    pub bytes: u64,
    /// How many there are.
    pub files: u64,
}

/// Room is made when the cache comes within this part of its bound: for what is stored while the folder is read.
const SLACK: u64 = 64;
/// Then so much of the bound goes at least, as the whole folder is read for it.
const BATCH: u64 = 16;

impl Usage {
    /// This and another file.
    #[must_use]
    pub const fn with(self, bytes: u64) -> Self {
        Self {
            bytes: self.bytes.saturating_add(bytes),
            files: self.files.saturating_add(1),
        }
    }

    /// This without one of its files.
    #[must_use]
    pub const fn without(self, bytes: u64) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(bytes),
            files: self.files.saturating_sub(1),
        }
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            files: self.files.saturating_add(other.files),
        }
    }

    /// Whether this is no more than `bound`, by bytes and by number.
    pub const fn is_within(self, bound: Self) -> bool {
        self.bytes <= bound.bytes && self.files <= bound.files
    }

    /// All but one `part`-th of it.
    const fn less(self, part: u64) -> Self {
        Self {
            bytes: self.bytes - self.bytes / part,
            files: self.files - self.files / part,
        }
    }
}

/// What of `used` may stay in a cache that may hold `bound`, on a disk that lacks `shortage` bytes; `None`: all of it.
/// A cache that holds less than what is lacking would not end the shortage, so it keeps what it has.
pub fn kept(used: Usage, bound: Usage, shortage: u64) -> Option<Usage> {
    let high = bound.less(SLACK);
    let low = high.less(BATCH);
    if (1..=used.bytes).contains(&shortage) {
        // More than is asked for, so that the folder is not read again for each of many small shortages.
        let left = used.less(BATCH).bytes.saturating_sub(shortage);
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
            assert_eq!(kept(full, BOUND, 0), None, "{full:?}");
        }
        for fuller in [used(0, 6_301), used(most.bytes + 1, 0)] {
            assert_eq!(kept(fuller, BOUND, 0), Some(low), "{fuller:?}");
        }
    }

    #[test]
    fn a_small_cache_holds_as_many_as_it_may() {
        let bound = used(1 << 30, 10);
        assert_eq!(kept(used(0, 10), bound, 0), None);
        assert_eq!(kept(used(0, 11), bound, 0).map(|low| low.files), Some(10));
        let one = used(1 << 30, 1);
        assert_eq!(kept(used(0, 2), one, 0).map(|low| low.files), Some(1));
    }

    #[test]
    fn a_cache_gives_way_on_a_disk_that_lacks_space() {
        let half = used(1 << 29, 1_000);
        let left = kept(half, BOUND, 1 << 20).unwrap();
        assert_eq!(left.bytes, (1 << 29) - (1 << 25) - (1 << 20));
        assert_eq!(kept(half, BOUND, 1 << 29).unwrap().bytes, 0);
        assert_eq!(kept(half, BOUND, (1 << 29) + 1), None, "it would not do");
        assert_eq!(kept(used(0, 0), BOUND, 1), None, "nothing to give");
        let full = kept(BOUND, BOUND, 1).unwrap();
        assert_eq!(
            Some(full),
            kept(BOUND, BOUND, 0),
            "no more than for the bound"
        );
    }
}
