// SPDX-License-Identifier: Apache-2.0
//! The plan of a response that is made of slices. EDGE makes it, and the slicer carries it out.
//!
//! Its text form is `BYTES LENGTH SLICE_BYTES AHEAD`, and for several ranges ` BOUNDARY TYPE` behind it. BYTES is
//! `whole`, or ranges such as `0-9,20-29`. The type of the object is left out, with the space in front of it, if the
//! object has none.

use std::fmt;

use crate::http::conditional::range::Slice;
use crate::policy::MOST_AHEAD;
use crate::slices::grid::SliceGrid;
use crate::slices::multipart::Multipart;
use crate::slices::selection::{MOST_RANGES, Selection, ascend};

/// Longest type of an object that the parts of a multipart response name.
const MOST_TYPE_BYTES: usize = 256;

/// Plan of a response that is made of slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePlan {
    selection: Selection,
    grid: SliceGrid,
    ahead: usize,
    /// Present for several ranges.
    multipart: Option<Multipart>,
}

/// The parts of a response's body, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Text between the ranges of a multipart body.
    Text(String),
    /// Bytes of the object.
    Bytes(Slice),
}

impl SlicePlan {
    /// A plan for these bytes of an object. `boundary` and the object's `content_type` are for several ranges; a type
    /// that is too long or not printable is left out. `None` if the object does not have these bytes.
    pub fn new(
        selection: Selection,
        grid: SliceGrid,
        ahead: usize,
        boundary: u64,
        content_type: Option<&str>,
    ) -> Option<Self> {
        let is_plain = |text: &&str| {
            let is_printable = |byte| matches!(byte, b' '..=b'~');
            text.len() <= MOST_TYPE_BYTES && text.bytes().all(is_printable)
        };
        let content_type = content_type.map(str::trim);
        let content_type = content_type
            .filter(is_plain)
            .filter(|text| !text.is_empty());
        let multipart = matches!(selection, Selection::Ranges(_)).then(|| Multipart {
            boundary: format!("{boundary:016x}"),
            content_type: content_type.map(str::to_owned),
        });
        let plan = Self {
            selection,
            grid,
            ahead: ahead.min(MOST_AHEAD),
            multipart,
        };
        plan.is_of_object().then_some(plan)
    }

    /// Reads a field value; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(6, ' ');
        let selection = parse_selection(parts.next()?)?;
        let grid = SliceGrid::new(number(parts.next()?)?, number(parts.next()?)?)?;
        let ahead = usize::try_from(number(parts.next()?)?).ok()?;
        let multipart = match (&selection, parts.next(), parts.next()) {
            (Selection::Ranges(_), Some(boundary), content_type) => Some(Multipart {
                boundary: boundary.to_owned(),
                content_type: content_type.filter(|it| !it.is_empty()).map(str::to_owned),
            }),
            (Selection::Whole | Selection::Range(_), None, None) => None,
            _ => return None,
        };
        let plan = Self {
            selection,
            grid,
            ahead,
            multipart,
        };
        (ahead <= MOST_AHEAD && plan.is_of_object()).then_some(plan)
    }

    /// The division of the object.
    pub const fn grid(&self) -> SliceGrid {
        self.grid
    }

    /// Number of slices that may be requested ahead of the client.
    pub const fn ahead(&self) -> usize {
        self.ahead
    }

    /// Status of the response.
    pub const fn status(&self) -> u16 {
        match self.selection {
            Selection::Whole => 200,
            Selection::Range(_) | Selection::Ranges(_) => 206,
        }
    }

    /// The headers of the response that depend on the plan: `content-length`, and `content-range` or, for several
    /// ranges, `content-type`.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![("content-length", self.content_length().to_string())];
        if let Selection::Range(range) = &self.selection {
            headers.push(("content-range", range.content_range(self.grid.length())));
        }
        if let Some(multipart) = &self.multipart {
            headers.push(("content-type", multipart.response_type()));
        }
        headers
    }

    /// Length of the response's body in bytes.
    pub fn content_length(&self) -> u64 {
        let length = |segment| match segment {
            Segment::Text(text) => text.len() as u64,
            Segment::Bytes(range) => range.length(),
        };
        self.segments().map(length).sum()
    }

    /// The parts of the response's body, in their order.
    pub fn segments(&self) -> impl Iterator<Item = Segment> {
        let whole = self.grid.whole();
        let ranges = self.selection.ranges(whole.as_slice()).to_vec();
        let (length, multipart) = (self.grid.length(), self.multipart.as_ref());
        let end = multipart.map(|multipart| Segment::Text(multipart.end()));
        let parts = ranges.into_iter().enumerate();
        let parts = parts.flat_map(move |(number, range)| {
            let head = multipart.map(|multipart| multipart.head(range, length, number == 0));
            let head = head.map(Segment::Text).into_iter();
            head.chain([Segment::Bytes(range)])
        });
        parts.chain(end)
    }

    /// The first slice from number `from` on that the response needs; `None` if it needs none of them.
    pub fn next_slice(&self, from: u64) -> Option<u64> {
        let whole = self.grid.whole();
        let ranges = self.selection.ranges(whole.as_slice());
        ranges.iter().find_map(|range| {
            let first = self.grid.number_at(range.first());
            let last = self.grid.number_at(range.last());
            (last >= from).then(|| first.max(from))
        })
    }

    /// Whether the object has all the bytes, and the ranges are in order.
    fn is_of_object(&self) -> bool {
        let ranges = self.selection.ranges(&[]);
        let is_inside = |range: &Slice| range.last() < self.grid.length();
        let is_several =
            !matches!(&self.selection, Selection::Ranges(several) if several.len() < 2);
        is_several && ranges.len() <= MOST_RANGES && ranges.iter().all(is_inside) && ascend(ranges)
    }
}

/// Parses digits.
pub(super) fn number(digits: &str) -> Option<u64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

fn parse_selection(text: &str) -> Option<Selection> {
    if text == "whole" {
        return Some(Selection::Whole);
    }
    let range = |text: &str| {
        let (first, last) = text.split_once('-')?;
        Slice::new(number(first)?, number(last)?)
    };
    let ranges: Vec<Slice> = text.split(',').map(range).collect::<Option<_>>()?;
    match ranges.as_slice() {
        [one] => Some(Selection::Range(*one)),
        _ => Some(Selection::Ranges(ranges)),
    }
}

impl fmt::Display for SlicePlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Selection::Whole = self.selection {
            out.write_str("whole")?;
        }
        for (number, range) in self.selection.ranges(&[]).iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(out, "{comma}{}-{}", range.first(), range.last())?;
        }
        let grid = self.grid;
        write!(
            out,
            " {} {} {}",
            grid.length(),
            grid.slice_bytes(),
            self.ahead
        )?;
        match &self.multipart {
            Some(multipart) => {
                // NB: HTTP/1.1 does not keep a space at the end of a field value.
                write!(out, " {}", multipart.boundary)?;
                let mut content_type = multipart.content_type.iter();
                content_type.try_for_each(|it| write!(out, " {it}"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::slices::plan::*;
    use proptest::prelude::*;

    fn plan(text: &str) -> SlicePlan {
        SlicePlan::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn the_headers_tell_the_bytes() {
        let length = |bytes: &str| ("content-length", bytes.to_owned());
        let whole = plan("whole 2500 1000 3");
        assert_eq!(
            (whole.status(), whole.headers()),
            (200, vec![length("2500")])
        );
        let range = plan("10-1009 2500 1000 3");
        let content_range = ("content-range", "bytes 10-1009/2500".to_owned());
        assert_eq!(
            (range.status(), range.headers()),
            (206, vec![length("1000"), content_range])
        );
        let several = plan("0-9,20-29 2500 1000 3 b video/mp4; a=\"x y\"");
        let body: String = several
            .segments()
            .map(|segment| match segment {
                Segment::Text(text) => text,
                Segment::Bytes(range) => "x".repeat(range.length() as usize),
            })
            .collect();
        let content_type = "multipart/byteranges; boundary=b".to_owned();
        assert_eq!(
            several.headers(),
            [
                length(&body.len().to_string()),
                ("content-type", content_type)
            ]
        );
        assert_eq!(
            body,
            "--b\r\nContent-Type: video/mp4; a=\"x y\"\r\nContent-Range: bytes 0-9/2500\r\n\r\nxxxxxxxxxx\
             \r\n--b\r\nContent-Type: video/mp4; a=\"x y\"\r\nContent-Range: bytes 20-29/2500\r\n\r\nxxxxxxxxxx\
             \r\n--b--\r\n"
        );
    }

    #[test]
    fn a_plan_needs_only_the_slices_with_its_bytes() {
        for (text, slices) in [
            ("whole 2500 1000 0", vec![0, 1, 2]),
            ("999-1000 2500 1000 0", vec![0, 1]),
            ("1000-1999 2500 1000 0", vec![1]),
            ("0-0,10-10,2400-2499 2500 1000 0 b", vec![0, 2]),
            ("0-1500,1600-2000 2500 1000 0 b", vec![0, 1, 2]),
        ] {
            let plan = plan(text);
            let next = |number: &u64| plan.next_slice(number + 1);
            let numbers: Vec<u64> = std::iter::successors(plan.next_slice(0), next).collect();
            assert_eq!(numbers, slices, "{text}");
        }
    }

    #[test]
    fn a_malformed_plan_is_refused() {
        for text in [
            "",
            "whole",
            "whole 2500 1000",
            "whole 2500 1000 9",
            "whole 2500 0 3",
            "whole 0 1000 3",
            "whole 2500 1000 3 b",
            "whole 2500 1000 3 b type",
            "whole -1 1000 3",
            "whole 2500 1000 3 ",
            "0-2500 2500 1000 3",
            "9-0 2500 1000 3",
            "0-+9 2500 1000 3",
            "0- 2500 1000 3",
            "0-9,20-29 2500 1000 3",
            "20-29,0-9 2500 1000 3 b",
            "0-9,9-29 2500 1000 3 b",
            "0-0,2-2,4-4,6-6,8-8,10-10,12-12,14-14,16-16 2500 1000 3 b",
        ] {
            assert_eq!(SlicePlan::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_type_that_is_not_printable_is_left_out() {
        let ranges = [(0, 0), (2, 2)].map(|(first, last)| Slice::new(first, last).unwrap());
        let grid = SliceGrid::new(10, 4).unwrap();
        let long = "a".repeat(300);
        for (content_type, shown) in [
            (Some("a/b"), "a/b"),
            (Some("a/b\r\nx: y"), ""),
            (Some("a/\u{e9}"), ""),
            (Some(long.as_str()), ""),
            (None, ""),
        ] {
            let selection = Selection::Ranges(ranges.to_vec());
            let plan = SlicePlan::new(selection, grid, 20, 10, content_type).unwrap();
            let expected = format!("0-0,2-2 10 4 8 000000000000000a {shown}");
            assert_eq!(plan.to_string(), expected.trim_end());
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            positions in prop::collection::btree_set(0..10_000_u64, 0..=16),
            slice_bytes in 1..4_000_u64,
            ahead in 0..=MOST_AHEAD,
            boundary: u64,
            content_type in prop::option::of("[!-~][ -~]{0,20}"),
        ) {
            let positions: Vec<u64> = positions.into_iter().collect();
            let ranges: Vec<Slice> = positions
                .chunks_exact(2)
                .map(|pair| Slice::new(pair[0], pair[1]).unwrap())
                .collect();
            let selection = match ranges.as_slice() {
                [] => Selection::Whole,
                [one] => Selection::Range(*one),
                _ => Selection::Ranges(ranges),
            };
            let grid = SliceGrid::new(10_000, slice_bytes).unwrap();
            let plan =
                SlicePlan::new(selection, grid, ahead, boundary, content_type.as_deref()).unwrap();
            prop_assert_eq!(SlicePlan::parse(&plan.to_string()), Some(plan));
        }

        #[test]
        fn no_text_panics(text in "\\PC*|(whole|[0-9,-]{0,12}) [0-9]{0,20} [0-9]{0,20} [0-9]( b .{0,5})?") {
            if let Some(plan) = SlicePlan::parse(&text) {
                prop_assert!(plan.content_length() > 0);
                prop_assert!(plan.next_slice(0).is_some());
            }
        }
    }
}
