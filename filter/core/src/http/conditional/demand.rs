// SPDX-License-Identifier: Apache-2.0
//! The parts of a request that ask for more than the object: preconditions and a range. Both are set aside while the
//! whole object is looked up or fetched. They then decide how it is delivered.

use crate::http::conditional::conditions::{
    CONDITIONS, Conditions, Outcome, Validators, append_line,
};
use crate::http::conditional::range::{ByteRange, Part, Slice};
use crate::http::syntax::field_value::FieldValue;

/// Conditions and range of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    conditions: Conditions,
    range: Option<Vec<u8>>,
}

/// Response that represents a whole object.
#[derive(Clone, Copy, Debug)]
pub struct WholeResponse<'a> {
    /// Status of the response.
    pub status: u16,
    /// Validators of the response.
    pub validators: Validators<'a>,
    /// Length of the body in bytes, if it is known.
    pub length: Option<u64>,
}

impl<'a> WholeResponse<'a> {
    /// The 200 of an object with these validators and this length.
    pub const fn of_object(etag: &'a str, last_modified: Option<&'a str>, length: u64) -> Self {
        Self {
            status: 200,
            validators: Validators {
                etag: Some(etag),
                last_modified,
                date: None,
            },
            length: Some(length),
        }
    }
}

/// Response that the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The response unchanged.
    Whole,
    /// A response with status 206.
    Part {
        /// Part of the body.
        slice: Slice,
        /// Length of the whole body in bytes.
        length: u64,
    },
    /// A response with status 304.
    NotModified,
    /// A response with status 412.
    PreconditionFailed,
    /// A response with status 416.
    Unsatisfiable {
        /// Length of the whole body in bytes.
        length: u64,
    },
}

impl Demand {
    /// Whether a header belongs to the demand; `name` is in lower case.
    pub fn concerns(name: &[u8]) -> bool {
        name == b"range" || CONDITIONS.iter().any(|known| name == known.as_bytes())
    }

    /// Adds a header; `name` is in lower case.
    pub fn observe(&mut self, name: &str, value: &[u8]) {
        if name == "range" {
            append_line(&mut self.range, value);
        } else {
            self.conditions.observe(name, value);
        }
    }

    /// Returns the headers, for a request that is sent around the store.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let range = self.range.as_deref().map(|range| ("range", range));
        self.conditions.fields().chain(range)
    }

    /// Returns the range, if the request asks for exactly one range of bytes. A value that is not text is not a
    /// range.
    fn range(&self) -> Option<ByteRange> {
        let range = FieldValue::new(self.range.as_deref()?);
        ByteRange::parse(range.text().ok()?)
    }

    /// Returns the ranges, if the request asks for more than one, and `If-Range` lets them count for `candidate`.
    pub fn several_ranges(&self, candidate: &WholeResponse<'_>) -> Option<Vec<ByteRange>> {
        let range = FieldValue::new(self.range.as_deref()?).text().ok()?;
        let ranges = ByteRange::parse_all(range).filter(|ranges| ranges.len() > 1)?;
        self.conditions
            .allow_range(&candidate.validators)
            .then_some(ranges)
    }

    /// Whether the request asks for exactly one range of bytes.
    pub fn is_for_part(&self) -> bool {
        self.range().is_some()
    }

    /// Whether the request asks for a range of one version only (`If-Range`).
    pub fn has_if_range(&self) -> bool {
        self.conditions.has_if_range()
    }

    /// Whether the request asks for all bytes from a position to the end.
    pub fn reads_to_the_end(&self) -> bool {
        matches!(self.range(), Some(ByteRange::From { last: None, .. }))
    }

    /// Number of bytes of an object of `length` that the range leaves out.
    pub fn leaves_out(&self, length: u64) -> u64 {
        match self.range().map(|range| range.of(length)) {
            None | Some(Part::Whole) => 0,
            Some(Part::Slice(slice)) => length.saturating_sub(slice.length()),
            Some(Part::Nothing) => length,
        }
    }

    /// Whether the client has a copy and asks whether the object has changed.
    pub fn may_be_unchanged(&self) -> bool {
        self.conditions.may_be_unchanged()
    }

    /// Whether the response may be a 304 or a 412, without the object.
    pub fn may_be_bodiless(&self) -> bool {
        self.conditions.may_be_bodiless()
    }

    /// Decides how a response is delivered. Conditions apply only to responses of class 2xx (RFC 9110, 13.2.1). A
    /// range applies only to a 200 to GET (14.2).
    pub fn delivery(&self, candidate: &WholeResponse<'_>, head: bool) -> Delivery {
        if !(200..300).contains(&candidate.status) {
            return Delivery::Whole;
        }
        match self.conditions.evaluate(&candidate.validators) {
            Outcome::NotModified => Delivery::NotModified,
            Outcome::PreconditionFailed => Delivery::PreconditionFailed,
            Outcome::Send if head || candidate.status != 200 => Delivery::Whole,
            Outcome::Send => self.part(candidate),
        }
    }

    fn part(&self, candidate: &WholeResponse<'_>) -> Delivery {
        let (Some(range), Some(length)) = (self.range(), candidate.length) else {
            return Delivery::Whole;
        };
        if !self.conditions.allow_range(&candidate.validators) {
            return Delivery::Whole;
        }
        match range.of(length) {
            Part::Whole => Delivery::Whole,
            Part::Slice(slice) => Delivery::Part { slice, length },
            Part::Nothing => Delivery::Unsatisfiable { length },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::http::conditional::demand::*;

    const OBJECT: WholeResponse<'_> = WholeResponse {
        status: 200,
        validators: Validators {
            etag: Some("\"v1\""),
            last_modified: None,
            date: None,
        },
        length: Some(100),
    };

    fn demand(fields: &[(&str, &str)]) -> Demand {
        let mut demand = Demand::default();
        for (name, value) in fields {
            assert!(Demand::concerns(name.as_bytes()));
            demand.observe(name, value.as_bytes());
        }
        demand
    }

    fn name(delivery: Delivery) -> &'static str {
        match delivery {
            Delivery::Whole => "whole",
            Delivery::Part { .. } => "part",
            Delivery::NotModified => "304",
            Delivery::PreconditionFailed => "412",
            Delivery::Unsatisfiable { .. } => "416",
        }
    }

    #[test]
    fn conditions_come_before_ranges() {
        const RANGE: (&str, &str) = ("range", "bytes=0-9");
        const BEHIND: (&str, &str) = ("range", "bytes=100-");
        const SAME: (&str, &str) = ("if-none-match", "\"v1\"");
        for (fields, expected) in [
            (&[][..], "whole"),
            (&[RANGE], "part"),
            (&[BEHIND], "416"),
            (&[RANGE, SAME], "304"),
            (&[BEHIND, SAME], "304"),
            (&[BEHIND, ("if-match", "\"v0\"")], "412"),
            (&[RANGE, ("if-range", "\"v1\"")], "part"),
            (&[RANGE, ("if-range", "\"v0\"")], "whole"),
            (&[BEHIND, ("if-range", "\"v0\"")], "whole"),
            (&[RANGE, RANGE], "whole"),
            (&[("range", "bytes=0-9,20-29")], "whole"),
        ] {
            assert_eq!(
                name(demand(fields).delivery(&OBJECT, false)),
                expected,
                "{fields:?}"
            );
        }
    }

    #[test]
    fn only_a_known_whole_object_is_cut() {
        let cut = demand(&[("range", "bytes=0-9")]);
        let with = |status, length| WholeResponse {
            status,
            length,
            ..OBJECT
        };
        assert_eq!(name(cut.delivery(&OBJECT, true)), "whole", "HEAD");
        assert_eq!(name(cut.delivery(&with(200, None), false)), "whole");
        for status in [201, 203, 204, 206, 301, 404, 416, 503] {
            assert_eq!(
                name(cut.delivery(&with(status, Some(100)), false)),
                "whole",
                "{status}"
            );
        }
    }

    #[test]
    fn conditions_are_about_what_succeeds() {
        let same = demand(&[("if-none-match", "*")]);
        for (status, expected) in [
            (200, "304"),
            (204, "304"),
            (302, "whole"),
            (404, "whole"),
            (503, "whole"),
        ] {
            let found = same.delivery(&WholeResponse { status, ..OBJECT }, true);
            assert_eq!(name(found), expected, "{status}");
        }
    }

    #[test]
    fn who_asks_for_changes_has_the_object() {
        for (name, has) in [
            ("if-none-match", true),
            ("if-modified-since", true),
            ("if-match", false),
            ("if-unmodified-since", false),
            ("if-range", false),
        ] {
            let demand = demand(&[(name, "\"a\"")]);
            assert_eq!(demand.may_be_unchanged(), has, "{name}");
            assert_eq!(demand.may_be_bodiless(), name != "if-range", "{name}");
        }
    }

    #[test]
    fn a_range_leaves_out_what_is_not_in_it() {
        for (range, left_out, to_the_end) in [
            ("bytes=0-", 0, true),
            ("bytes=90-", 90, true),
            ("bytes=0-0", 99, false),
            ("bytes=0-999", 0, false),
            ("bytes=-10", 90, false),
            ("bytes=100-", 100, true),
            ("bytes=0-0,2-3", 0, false),
        ] {
            let demand = demand(&[("range", range)]);
            assert_eq!(demand.leaves_out(100), left_out, "{range}");
            assert_eq!(demand.reads_to_the_end(), to_the_end, "{range}");
        }
    }

    #[test]
    fn headers_come_back_as_they_were() {
        let fields = [
            ("if-match", "\"a\""),
            ("if-range", "\"b\""),
            ("range", "bytes=0-1"),
        ];
        let bytes = fields.map(|(name, value)| (name, value.as_bytes()));
        assert!(demand(&fields).fields().eq(bytes));
        assert!(!Demand::concerns(b"accept"));
    }
}
