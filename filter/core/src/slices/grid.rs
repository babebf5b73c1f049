// SPDX-License-Identifier: Apache-2.0
//! The division of an object into slices. All slices have the same size, except that the last one may be shorter.

use crate::http::conditional::range::Slice;

/// Division of an object into slices, which are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceGrid {
    length: u64,
    slice_bytes: u64,
}

impl SliceGrid {
    /// A division of `length` bytes into slices of `slice_bytes`; `None` if one of them is 0.
    pub const fn new(length: u64, slice_bytes: u64) -> Option<Self> {
        if length == 0 || length == u64::MAX || slice_bytes == 0 {
            return None;
        }
        Some(Self {
            length,
            slice_bytes,
        })
    }

    /// Length of the object in bytes.
    pub const fn length(self) -> u64 {
        self.length
    }

    /// Size in bytes of each slice except the last one.
    pub const fn slice_bytes(self) -> u64 {
        self.slice_bytes
    }

    /// The bytes of a slice; `None` if the object has no slice of that number.
    pub fn range_of(self, number: u64) -> Option<Slice> {
        let first = number.checked_mul(self.slice_bytes)?;
        let last = first.saturating_add(self.slice_bytes - 1);
        Slice::new(first, last.min(self.length - 1))
    }

    /// The number of the slice with the byte at `position`.
    pub const fn number_at(self, position: u64) -> u64 {
        position / self.slice_bytes
    }

    /// All bytes of the object.
    pub fn whole(self) -> Option<Slice> {
        Slice::new(0, self.length - 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::slices::grid::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_slice_may_be_shorter() {
        let grid = SliceGrid::new(2_500, 1_000).unwrap();
        assert_eq!(grid.range_of(0), Slice::new(0, 999));
        assert_eq!(grid.range_of(2), Slice::new(2_000, 2_499));
        assert_eq!(grid.range_of(3), None);
        assert_eq!(grid.range_of(u64::MAX), None);
    }

    #[test]
    fn nothing_is_not_divided() {
        for (length, slice_bytes) in [(0, 1), (1, 0), (u64::MAX, 1)] {
            assert_eq!(SliceGrid::new(length, slice_bytes), None);
        }
    }

    proptest! {
        #[test]
        fn slices_follow_each_other_and_make_up_the_object(
            length in 1..5_000_u64, slice_bytes in 1..700_u64,
        ) {
            let grid = SliceGrid::new(length, slice_bytes).unwrap();
            let mut next = 0;
            for number in 0.. {
                let Some(range) = grid.range_of(number) else { break };
                prop_assert_eq!(range.first(), next);
                prop_assert!(range.length() <= slice_bytes);
                prop_assert_eq!(grid.number_at(range.first()), number);
                prop_assert_eq!(grid.number_at(range.last()), number);
                next = range.last() + 1;
            }
            prop_assert_eq!(next, length);
        }
    }
}
