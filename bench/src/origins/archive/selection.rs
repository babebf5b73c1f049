// SPDX-License-Identifier: Apache-2.0
//! The part of an object that a request selects (RFC 9110, sections 13 and 14).

use crate::origins::archive::Object;
use sluice_tests::http::message::Headers;
use std::ops::Range;

/// Status of a response, and the bytes of the object in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// 200, 206, 304, 412 or 416.
    pub status: u16,
    /// The bytes; empty unless the status is 200 or 206.
    pub bytes: Range<u64>,
}

impl Selection {
    /// Selects by `If-Match`, `If-None-Match`, `If-Range` and a single range; several ranges select the whole.
    pub fn of(request: &Headers, object: &Object) -> Self {
        let tag = object.tag();
        let names = |field: &str| {
            let tags = request.get(field)?;
            Some(tags == "*" || tags.split(',').any(|known| known.trim() == tag))
        };
        if names("if-match") == Some(false) {
            return Self::without_bytes(412);
        }
        if names("if-none-match") == Some(true) {
            return Self::without_bytes(304);
        }
        let whole = Self {
            status: 200,
            bytes: 0..object.size,
        };
        let applies = request.get("if-range").is_none_or(|known| known == tag);
        let range = request.get("range").filter(|_| applies);
        match range.and_then(|range| part(range, object.size)) {
            None => whole,
            Some(bytes) if bytes.is_empty() => Self::without_bytes(416),
            Some(bytes) => Self { status: 206, bytes },
        }
    }

    const fn without_bytes(status: u16) -> Self {
        Self {
            status,
            bytes: 0..0,
        }
    }
}

/// The bytes of `bytes=A-B`, `bytes=A-` or `bytes=-N`, empty if the object has none of them; `None` for other ranges.
fn part(range: &str, size: u64) -> Option<Range<u64>> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    if from.is_empty() {
        let last: u64 = to.parse().ok()?;
        return Some(size.saturating_sub(last)..size);
    }
    let from: u64 = from.parse().ok()?;
    let to = match to {
        "" => size,
        to => to.parse::<u64>().ok().filter(|to| *to >= from)? + 1,
    };
    Some(from.min(size)..to.min(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(fields: &[(&str, &str)]) -> (u16, Range<u64>) {
        let object = Object::new("a", 1_000);
        let fields = fields.iter().map(|(name, value)| {
            let value = value.replace("TAG", &object.tag());
            ((*name).to_owned(), value)
        });
        let selection = Selection::of(&Headers(fields.collect()), &object);
        (selection.status, selection.bytes)
    }

    #[test]
    fn a_single_range_selects_its_bytes() {
        for (range, bytes) in [
            ("bytes=0-0", 0..1),
            ("bytes=10-19", 10..20),
            ("bytes=990-2000", 990..1_000),
            ("bytes=990-", 990..1_000),
            ("bytes=-10", 990..1_000),
            ("bytes=-2000", 0..1_000),
        ] {
            assert_eq!(selected(&[("range", range)]), (206, bytes), "{range}");
        }
        for range in ["bytes=1000-", "bytes=1000-1001", "bytes=-0"] {
            assert_eq!(selected(&[("range", range)]), (416, 0..0), "{range}");
        }
    }

    #[test]
    fn other_ranges_select_the_whole() {
        for range in ["", "bytes=", "bytes=5-4", "bytes=0-1,4-5", "items=0-1"] {
            assert_eq!(selected(&[("range", range)]), (200, 0..1_000), "{range}");
        }
    }

    #[test]
    fn a_range_of_another_version_is_refused_or_the_whole() {
        let range = ("range", "bytes=0-9");
        assert_eq!(selected(&[range, ("if-match", "TAG")]), (206, 0..10));
        assert_eq!(selected(&[range, ("if-match", "\"b\", TAG")]), (206, 0..10));
        assert_eq!(selected(&[range, ("if-match", "\"b\"")]), (412, 0..0));
        assert_eq!(selected(&[range, ("if-range", "TAG")]), (206, 0..10));
        assert_eq!(selected(&[range, ("if-range", "\"b\"")]), (200, 0..1_000));
    }

    #[test]
    fn a_known_version_is_not_sent_again() {
        assert_eq!(selected(&[("if-none-match", "TAG")]), (304, 0..0));
        assert_eq!(selected(&[("if-none-match", "\"b\"")]), (200, 0..1_000));
    }
}
