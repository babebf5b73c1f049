// SPDX-License-Identifier: Apache-2.0
//! The bytes of a sliced object that a client gets.

use crate::http::conditional::demand::{Delivery, Demand, WholeResponse};
use crate::http::conditional::range::{ByteRange, Part, Slice};

/// Greatest number of ranges of one response.
pub const MOST_RANGES: usize = 8;

/// Bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All bytes, with a 200.
    Whole,
    /// One range, with a 206.
    Range(Slice),
    /// Several ranges, with a 206 of type `multipart/byteranges`. They ascend and do not overlap.
    Ranges(Vec<Slice>),
}

/// Response to a request for a sliced object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlicedDelivery {
    /// Bytes of the object.
    Bytes(Selection),
    /// A response with status 304.
    NotModified,
    /// A response with status 412.
    PreconditionFailed,
    /// A response with status 416.
    Unsatisfiable,
}

impl SlicedDelivery {
    /// Decides how a GET is answered. `object` has a length.
    ///
    /// Several ranges are a multipart response if they ascend, do not overlap and are at most [`MOST_RANGES`]. Other
    /// lists of ranges are unsatisfiable (RFC 9110, 14.2 and 17.15), because the whole object would cost too much.
    pub fn of(demand: &Demand, object: &WholeResponse<'_>) -> Self {
        match demand.delivery(object, false) {
            Delivery::NotModified => Self::NotModified,
            Delivery::PreconditionFailed => Self::PreconditionFailed,
            Delivery::Unsatisfiable { .. } => Self::Unsatisfiable,
            Delivery::Part { slice, .. } => Self::Bytes(Selection::Range(slice)),
            Delivery::Whole => match demand.several_ranges(object).zip(object.length) {
                Some((ranges, length)) => {
                    Selection::several(&ranges, length).map_or(Self::Unsatisfiable, Self::Bytes)
                }
                None => Self::Bytes(Selection::Whole),
            },
        }
    }
}

impl Selection {
    /// Several ranges of an object of `length` bytes. A range that begins behind its end is left out. `None` if no
    /// range is left, if they are too many, or if they do not ascend.
    fn several(ranges: &[ByteRange], length: u64) -> Option<Self> {
        if ranges.len() > MOST_RANGES {
            return None;
        }
        let mut slices = Vec::with_capacity(ranges.len());
        for range in ranges {
            match range.of(length) {
                Part::Slice(slice) => slices.push(slice),
                Part::Nothing => {}
                Part::Whole => return None,
            }
        }
        match slices.as_slice() {
            [] => None,
            [one] => Some(Self::Range(*one)),
            several => ascend(several).then_some(Self::Ranges(slices)),
        }
    }

    /// The ranges, in ascending order; `whole` is the range of all bytes.
    pub(super) fn ranges<'a>(&'a self, whole: &'a [Slice]) -> &'a [Slice] {
        match self {
            Self::Whole => whole,
            Self::Range(range) => std::slice::from_ref(range),
            Self::Ranges(ranges) => ranges,
        }
    }
}

/// Whether the ranges ascend and do not overlap.
pub(super) fn ascend(ranges: &[Slice]) -> bool {
    ranges
        .iter()
        .zip(ranges.iter().skip(1))
        .all(|(one, next)| one.last() < next.first())
}

#[cfg(test)]
mod tests {
    use crate::http::conditional::conditions::Validators;
    use crate::slices::selection::*;
    use proptest::prelude::*;

    const OBJECT: WholeResponse<'_> = WholeResponse {
        status: 200,
        validators: Validators {
            etag: Some("\"v1\""),
            last_modified: None,
            date: None,
        },
        length: Some(1_000),
    };

    fn delivery(fields: &[(&str, &str)]) -> SlicedDelivery {
        let mut demand = Demand::default();
        for (name, value) in fields {
            demand.observe(name, value.as_bytes());
        }
        SlicedDelivery::of(&demand, &OBJECT)
    }

    fn range(first: u64, last: u64) -> Slice {
        Slice::new(first, last).unwrap()
    }

    #[test]
    fn one_range_is_a_part_and_none_is_the_whole() {
        let whole = SlicedDelivery::Bytes(Selection::Whole);
        assert_eq!(delivery(&[]), whole);
        assert_eq!(delivery(&[("range", "items=0-9,20-29")]), whole);
        assert_eq!(
            delivery(&[("range", "bytes=0-")]),
            SlicedDelivery::Bytes(Selection::Range(range(0, 999)))
        );
        assert_eq!(
            delivery(&[("range", "bytes=1000-")]),
            SlicedDelivery::Unsatisfiable
        );
    }

    #[test]
    fn several_ranges_that_ascend_are_a_multipart_response() {
        for (value, ranges) in [
            ("bytes=0-9,20-29", vec![range(0, 9), range(20, 29)]),
            ("bytes=0-9,10-19", vec![range(0, 9), range(10, 19)]),
            ("bytes=0-0,-1", vec![range(0, 0), range(999, 999)]),
            ("bytes=0-1,2-3,4000-4001", vec![range(0, 1), range(2, 3)]),
        ] {
            let expected = SlicedDelivery::Bytes(Selection::Ranges(ranges));
            assert_eq!(delivery(&[("range", value)]), expected, "{value}");
        }
        assert_eq!(
            delivery(&[("range", "bytes=0-9,1000-1009")]),
            SlicedDelivery::Bytes(Selection::Range(range(0, 9)))
        );
    }

    #[test]
    fn ranges_that_would_cost_more_than_the_object_are_refused() {
        for value in [
            "bytes=0-9,9-19",
            "bytes=20-29,0-9",
            "bytes=0-,0-",
            "bytes=-1,0-0",
            "bytes=1000-,2000-",
            "bytes=0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16",
        ] {
            assert_eq!(
                delivery(&[("range", value)]),
                SlicedDelivery::Unsatisfiable,
                "{value}"
            );
        }
    }

    #[test]
    fn conditions_decide_first() {
        const RANGES: (&str, &str) = ("range", "bytes=20-29,0-9");
        let with = |condition| delivery(&[RANGES, condition]);
        let whole = SlicedDelivery::Bytes(Selection::Whole);
        assert_eq!(
            with(("if-none-match", "\"v1\"")),
            SlicedDelivery::NotModified
        );
        assert_eq!(
            with(("if-match", "\"v0\"")),
            SlicedDelivery::PreconditionFailed
        );
        assert_eq!(with(("if-range", "\"v0\"")), whole);
        assert_eq!(with(("if-range", "\"v1\"")), SlicedDelivery::Unsatisfiable);
    }

    proptest! {
        #[test]
        fn several_ranges_are_never_longer_than_the_object(
            bounds in prop::collection::vec((0..1_200_u64, prop::option::of(0..1_200_u64)), 2..10),
        ) {
            let ranges = bounds.iter().map(|(first, more)| match more {
                Some(more) => format!("{first}-{}", first + more),
                None => format!("{first}-"),
            });
            let value = format!("bytes={}", ranges.collect::<Vec<_>>().join(","));
            if let SlicedDelivery::Bytes(Selection::Ranges(ranges)) = delivery(&[("range", &value)]) {
                let bytes: u64 = ranges.iter().map(|range| range.length()).sum();
                prop_assert!(bytes <= 1_000 && ranges.len() <= MOST_RANGES);
            }
        }
    }
}
