// SPDX-License-Identifier: Apache-2.0
//! Byte ranges (RFC 9110, 14): the range that a client asks for, and the bytes of a passing body that it selects.

use std::ops::Range;

use crate::http::syntax::field_value::FieldValue;

/// Whether a value of `Accept-Ranges` says that the server sends ranges of bytes (RFC 9110, 14.3).
pub fn accepts_bytes(accept_ranges: FieldValue<'_>) -> bool {
    let unit = accept_ranges.bytes().trim_ascii();
    unit.eq_ignore_ascii_case(b"bytes")
}

/// Single range of a `Range` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// `first-last` or `first-`, positions of bytes.
    From {
        /// Position of the first byte.
        first: u64,
        /// Position of the last byte; `None` for the end of the body.
        last: Option<u64>,
    },
    /// `-length`, the last bytes of the body.
    Suffix {
        /// Number of bytes.
        length: u64,
    },
}

/// Part of a body, such as the one that a range selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole body, because a part cannot be expressed: the last bytes of an empty body.
    Whole,
    /// Bytes that the body has.
    Slice(Slice),
    /// None of the body.
    Nothing,
}

/// Part of a body with at least one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    first: u64,
    last: u64,
}

impl ByteRange {
    /// Reads a field value; `None` if the client gets the whole body: for another unit, several ranges, or a
    /// malformed value (RFC 9110, 14.2).
    pub fn parse(value: &str) -> Option<Self> {
        let mut ranges = ranges_of(value)?;
        let range = ranges.next()?;
        match ranges.next() {
            None => Self::parse_one(range),
            Some(_) => None,
        }
    }

    /// Reads a field value with any number of ranges; `None` for another unit or a malformed value.
    pub fn parse_all(value: &str) -> Option<Vec<Self>> {
        ranges_of(value)?.map(Self::parse_one).collect()
    }

    /// Reads one range, without its unit.
    fn parse_one(range: &str) -> Option<Self> {
        match range.split_once('-')? {
            ("", length) => Some(Self::Suffix {
                length: position(length)?,
            }),
            (first, "") => Some(Self::From {
                first: position(first)?,
                last: None,
            }),
            (first, last) => {
                let (first, last) = (position(first)?, position(last)?);
                (first <= last).then_some(Self::From {
                    first,
                    last: Some(last),
                })
            }
        }
    }

    /// Returns the part that the range selects of a body of `length` bytes.
    pub fn of(self, length: u64) -> Part {
        let end = length.checked_sub(1);
        match (self, end) {
            (Self::Suffix { length: 0 }, _) | (Self::From { .. }, None) => Part::Nothing,
            (Self::Suffix { .. }, None) => Part::Whole,
            (Self::Suffix { length: wanted }, Some(last)) => Part::Slice(Slice {
                first: length.saturating_sub(wanted),
                last,
            }),
            (Self::From { first, .. }, Some(end)) if first > end => Part::Nothing,
            (Self::From { first, last }, Some(end)) => Part::Slice(Slice {
                first,
                last: last.map_or(end, |last| last.min(end)),
            }),
        }
    }
}

/// Iterates over the ranges of a field value; `None` for another unit than bytes.
fn ranges_of(value: &str) -> Option<impl Iterator<Item = &str>> {
    let (unit, set) = value.trim().split_once('=')?;
    let ranges = set
        .split(',')
        .map(|range| range.trim_matches([' ', '\t']))
        .filter(|range| !range.is_empty());
    unit.eq_ignore_ascii_case("bytes").then_some(ranges)
}

/// Parses digits. A number that is too large becomes a position behind the end of every body.
fn position(digits: &str) -> Option<u64> {
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    number.then(|| digits.parse().unwrap_or(u64::MAX))
}

impl Slice {
    /// The bytes from position `first` to position `last`; `None` if there are none.
    pub const fn new(first: u64, last: u64) -> Option<Self> {
        if first <= last && last < u64::MAX {
            Some(Self { first, last })
        } else {
            None
        }
    }

    /// Returns these bytes of a whole `body`.
    pub fn cut_from(self, body: &[u8]) -> &[u8] {
        let position = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let end = position(self.last).saturating_add(1).min(body.len());
        body.get(position(self.first)..end).unwrap_or_default()
    }

    /// Position of the first byte.
    pub const fn first(self) -> u64 {
        self.first
    }

    /// Position of the last byte.
    pub const fn last(self) -> u64 {
        self.last
    }

    /// Number of bytes.
    pub const fn length(self) -> u64 {
        self.last - self.first + 1
    }

    /// Returns the value of `Content-Range` for a body of `length` bytes.
    pub fn content_range(self, length: u64) -> String {
        format!("bytes {}-{}/{length}", self.first, self.last)
    }
}

/// Returns the value of `Content-Range` for a 416, for a body of `length` bytes.
pub fn unsatisfied_range(length: u64) -> String {
    format!("bytes */{length}")
}

/// Cuts a part out of a body that is received in pieces.
#[derive(Clone, Copy, Debug)]
pub struct Slicer {
    /// The part.
    pub part: Part,
    passed: u64,
}

impl Slicer {
    /// Creates a slicer at the start of a body.
    pub const fn new(part: Part) -> Self {
        Self { part, passed: 0 }
    }

    /// Returns the bytes to keep of the next piece, which has `size` bytes.
    pub fn keep(&mut self, size: usize) -> Range<usize> {
        let within = |position: u64| {
            let offset = position.saturating_sub(self.passed);
            usize::try_from(offset).map_or(size, |offset| offset.min(size))
        };
        let kept = match self.part {
            Part::Whole => 0..size,
            Part::Slice(slice) => within(slice.first)..within(slice.last.saturating_add(1)),
            Part::Nothing => 0..0,
        };
        self.passed = self.passed.saturating_add(size as u64);
        kept
    }
}

#[cfg(test)]
mod tests {
    use crate::http::conditional::range::*;
    use proptest::prelude::*;

    const fn slice(first: u64, last: u64) -> Part {
        Part::Slice(Slice { first, last })
    }

    /// Returns the field value that asks for a range.
    fn asking_for(range: ByteRange) -> String {
        match range {
            ByteRange::From { first, last: None } => format!("bytes={first}-"),
            ByteRange::From {
                first,
                last: Some(last),
            } => format!("bytes={first}-{last}"),
            ByteRange::Suffix { length } => format!("bytes=-{length}"),
        }
    }

    #[test]
    fn a_range_is_a_part_of_what_there_is() {
        for (value, length, part) in [
            ("bytes=0-9", 100, slice(0, 9)),
            ("bytes=90-99", 100, slice(90, 99)),
            ("bytes=99-99", 100, slice(99, 99)),
            ("bytes=90-200", 100, slice(90, 99)),
            ("bytes=90-99999999999999999999999", 100, slice(90, 99)),
            ("bytes=0-", 100, slice(0, 99)),
            ("bytes=99-", 100, slice(99, 99)),
            ("bytes=100-", 100, Part::Nothing),
            ("bytes=100-200", 100, Part::Nothing),
            ("bytes=99999999999999999999999-", 100, Part::Nothing),
            ("bytes=-1", 100, slice(99, 99)),
            ("bytes=-100", 100, slice(0, 99)),
            ("bytes=-1000", 100, slice(0, 99)),
            ("bytes=-0", 100, Part::Nothing),
            ("bytes=0-", 0, Part::Nothing),
            ("bytes=0-0", 0, Part::Nothing),
            ("bytes=-5", 0, Part::Whole),
            ("Bytes=0-9", 100, slice(0, 9)),
            ("bytes= 0-9 ", 100, slice(0, 9)),
            ("bytes=,0-9, ,", 100, slice(0, 9)),
            ("bytes=00-009", 100, slice(0, 9)),
            ("bytes=0-", u64::MAX, slice(0, u64::MAX - 1)),
        ] {
            assert_eq!(
                ByteRange::parse(value).unwrap().of(length),
                part,
                "{value} of {length}"
            );
        }
    }

    #[test]
    fn what_is_not_one_range_of_bytes_asks_for_the_whole() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=1",
            "bytes=9-0",
            "bytes=+1-2",
            "bytes=0x1-2",
            "bytes=1-2-3",
            "bytes=--1",
            "bytes=0 -9",
            "bytes =0-9",
            "bytes=0-9,20-29",
            "bytes=0-0,-1",
            "bytes=0-9;20",
            "items=0-9",
            "0-9",
            "bytes:0-9",
            "bytes=\u{661}-\u{662}",
        ] {
            assert_eq!(ByteRange::parse(value), None, "{value}");
        }
    }

    #[test]
    fn a_list_of_ranges_is_read_whole_or_not_at_all() {
        for (value, number) in [
            ("bytes=0-9", Some(1)),
            ("bytes=0-9, ,20-29,-5", Some(3)),
            ("Bytes=", Some(0)),
            ("bytes=0-9,9-0", None),
            ("bytes=0-9;20-29", None),
            ("items=0-9,20-29", None),
        ] {
            let ranges = ByteRange::parse_all(value);
            assert_eq!(ranges.map(|ranges| ranges.len()), number, "{value}");
        }
    }

    #[test]
    fn a_slice_says_what_it_is() {
        let Part::Slice(slice) = slice(10, 19) else {
            unreachable!()
        };
        assert_eq!(slice.length(), 10);
        assert_eq!(slice.content_range(100), "bytes 10-19/100");
        assert_eq!(unsatisfied_range(100), "bytes */100");
    }

    proptest! {
        #[test]
        fn pieces_make_up_the_slice_of_the_whole(
            pieces in prop::collection::vec(0..40_usize, 0..12),
            first in 0..300_u64,
            more in 0..300_u64,
        ) {
            let body: Vec<u8> = (0..pieces.iter().sum::<usize>()).map(|n| n as u8).collect();
            let range = ByteRange::From { first, last: Some(first + more) };
            let length = body.len() as u64;
            if let Part::Slice(slice) = range.of(length) {
                let mut slicer = Slicer::new(Part::Slice(slice));
                let (mut kept, mut at) = (Vec::new(), 0);
                for size in pieces {
                    kept.extend_from_slice(&body[at..at + size][slicer.keep(size)]);
                    at += size;
                }
                let (first, last) = (first as usize, (first + more).min(length - 1) as usize);
                prop_assert_eq!(&kept, &body[first..=last]);
                prop_assert_eq!(kept.len() as u64, slice.length());
            } else {
                prop_assert!(first >= length);
            }
        }

        #[test]
        fn what_is_written_reads_back(first: u64, last: Option<u64>, length: u64) {
            let last = last.map(|last| last.max(first));
            for range in [ByteRange::From { first, last }, ByteRange::Suffix { length }] {
                prop_assert_eq!(ByteRange::parse(&asking_for(range)), Some(range));
            }
        }

        #[test]
        fn no_value_panics(value in "\\PC*|bytes=[-0-9, ]{0,12}", length: u64) {
            if let Some(range) = ByteRange::parse(&value)
                && let Part::Slice(slice) = range.of(length)
            {
                prop_assert!(slice.length() >= 1 && slice.length() <= length);
            }
        }
    }
}
