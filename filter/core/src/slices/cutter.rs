// SPDX-License-Identifier: Apache-2.0
//! The response's bytes in the bytes of the slices, which arrive in ascending order.

use std::collections::VecDeque;
use std::ops::Range;

use crate::slices::plan::{Segment, SlicePlan};

/// A piece of the response's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text of a multipart body.
    Text(String),
    /// Bytes of the data that have just been given.
    Given(Range<usize>),
}

/// Cuts the response's body out of the slices.
#[derive(Debug)]
pub struct Cutter {
    left: VecDeque<Segment>,
}

impl Cutter {
    /// A cutter at the beginning of the response.
    pub fn new(plan: &SlicePlan) -> Self {
        Self {
            left: plan.segments().collect(),
        }
    }

    /// Returns the pieces of the body in the `size` bytes of the object from `position` on. Each call has a greater
    /// position than the last one.
    pub fn cut(&mut self, position: u64, size: usize) -> Vec<Piece> {
        let end = position.saturating_add(size as u64);
        let mut pieces = Vec::new();
        while let Some(segment) = self.left.pop_front() {
            let range = match segment {
                Segment::Text(text) => {
                    pieces.push(Piece::Text(text));
                    continue;
                }
                Segment::Bytes(range) => range,
            };
            let offset = |at: u64| {
                let offset = at.saturating_sub(position);
                usize::try_from(offset).map_or(size, |offset| offset.min(size))
            };
            let given = offset(range.first())..offset(range.last().saturating_add(1));
            if !given.is_empty() {
                pieces.push(Piece::Given(given));
            }
            if range.last() >= end {
                self.left.push_front(Segment::Bytes(range));
                break;
            }
        }
        pieces
    }

    /// Whether all bytes of the response have been cut.
    pub fn is_at_end(&self) -> bool {
        self.left.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use crate::http::conditional::range::Slice;
    use crate::slices::cutter::*;
    use crate::slices::grid::SliceGrid;
    use crate::slices::selection::Selection;
    use proptest::prelude::*;

    /// The body that the segments of a plan describe.
    fn body_of(plan: &SlicePlan, object: &[u8]) -> Vec<u8> {
        let bytes = |segment| match segment {
            Segment::Text(text) => text.into_bytes(),
            Segment::Bytes(range) => range.cut_from(object).to_vec(),
        };
        plan.segments().flat_map(bytes).collect()
    }

    proptest! {
        #[test]
        fn the_pieces_of_any_plan_make_up_exactly_its_bytes(
            length in 1..3_000_usize,
            cuts in prop::collection::btree_set(0..3_000_u64, 0..=16),
            slice_bytes in 1..900_u64,
            chunk in 1..500_usize,
        ) {
            let object: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
            let cuts: Vec<u64> = cuts.into_iter().filter(|at| *at < length as u64).collect();
            let ranges: Vec<Slice> =
                cuts.chunks_exact(2).map(|pair| Slice::new(pair[0], pair[1]).unwrap()).collect();
            let selection = match ranges.as_slice() {
                [] => Selection::Whole,
                [one] => Selection::Range(*one),
                _ => Selection::Ranges(ranges),
            };
            let grid = SliceGrid::new(length as u64, slice_bytes).unwrap();
            let plan = SlicePlan::new(selection, grid, 0, 1, Some("a/b")).unwrap();
            let (mut cutter, mut body) = (Cutter::new(&plan), Vec::new());
            let mut next = plan.next_slice(0);
            while let Some(number) = next {
                let range = grid.range_of(number).unwrap();
                let mut position = range.first();
                for chunk in range.cut_from(&object).chunks(chunk) {
                    for piece in cutter.cut(position, chunk.len()) {
                        match piece {
                            Piece::Text(text) => body.extend(text.into_bytes()),
                            Piece::Given(given) => body.extend(&chunk[given]),
                        }
                    }
                    position += chunk.len() as u64;
                }
                next = plan.next_slice(number + 1);
            }
            prop_assert!(cutter.is_at_end());
            prop_assert_eq!(&body, &body_of(&plan, &object));
            prop_assert_eq!(body.len() as u64, plan.content_length());
        }
    }
}
