// SPDX-License-Identifier: Apache-2.0
//! Ranges that begin far ahead of a fill, and need not wait for it.
//!
//! Such a range can be fetched from the origin beside the fill if both are parts of the same bytes. That is known if
//! the representation has a strong entity tag (RFC 9110, 8.8.1) and the origin accepts ranges of it (14.3).

use crate::http::conditional::demand::{Delivery, Demand, WholeResponse};
use crate::http::conditional::entity_tag::EntityTag;
use crate::http::conditional::range::{ByteRange, Slice, accepts_bytes};
use crate::http::syntax::field_value::FieldValue;
use crate::workers::Millis;

/// Time over which the fill's rate is extrapolated. A range that the fill reaches within it waits for the fill.
const REACH_MILLIS: u64 = 2_000;
/// Shortest time over which a rate is computed, because the first bytes arrive together.
const LEAST_MILLIS: Millis = 1_000;

/// Headers of a 200, or of the response to its HEAD, that decide whether ranges can be requested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Described<'a> {
    /// `ETag`.
    pub etag: Option<FieldValue<'a>>,
    /// `Last-Modified`.
    pub last_modified: Option<FieldValue<'a>>,
    /// `Content-Length`.
    pub length: Option<u64>,
    /// `Accept-Ranges`.
    pub accept_ranges: Option<FieldValue<'a>>,
}

/// A representation whose origin accepts range requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Representation {
    etag: String,
    last_modified: Option<String>,
    length: u64,
}

impl Representation {
    /// Returns the representation of a response, or `None` if ranges of it must wait. A validator that is not text
    /// counts as missing.
    pub fn of(described: Described<'_>) -> Option<Self> {
        let etag = described.etag?.text().ok()?;
        let strong = EntityTag::parse(etag).is_some_and(|tag| !tag.weak);
        let takes_ranges = described.accept_ranges.is_some_and(accepts_bytes);
        let last_modified = described.last_modified.and_then(|date| date.text().ok());
        (strong && takes_ranges).then_some(Self {
            etag: etag.to_owned(),
            last_modified: last_modified.map(str::to_owned),
            length: described.length?,
        })
    }

    /// Entity tag of the representation.
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Returns the part that `demand` selects, or `None` if `demand` does not select exactly one part.
    pub fn part(&self, demand: &Demand) -> Option<Slice> {
        let candidate =
            WholeResponse::of_object(&self.etag, self.last_modified.as_deref(), self.length);
        match demand.delivery(&candidate, false) {
            Delivery::Part { slice, .. } => Some(slice),
            _ => None,
        }
    }

    /// Whether `demand` selects a range that begins behind the first `reach` bytes.
    pub fn is_asked_beyond(&self, reach: u64, demand: &Demand) -> bool {
        self.part(demand).is_some_and(|part| part.first() > reach)
    }
}

/// Progress of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillProgress {
    /// Time at which its response began.
    pub begun: Millis,
    /// Bytes of its body that have arrived.
    pub bytes: u64,
}

impl FillProgress {
    /// Returns the offset up to which ranges wait for the fill: `range_ahead` bytes ahead of its present position, or
    /// the position that it reaches within two seconds at its rate so far, whichever is further.
    pub fn reach(self, range_ahead: u64, now: Millis) -> u64 {
        let elapsed = now.saturating_sub(self.begun).max(LEAST_MILLIS);
        let soon = self.bytes.saturating_mul(REACH_MILLIS) / elapsed;
        self.bytes.saturating_add(soon.max(range_ahead))
    }
}

/// Whether a range of an object of unknown length may begin behind `reach`. A suffix may begin anywhere.
pub fn may_begin_beyond(range: ByteRange, reach: u64) -> bool {
    match range {
        ByteRange::From { first, .. } => first > reach,
        ByteRange::Suffix { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::coalescing::beside::ahead::*;

    const STRONG: Described<'_> = Described {
        etag: Some(FieldValue::new(b"\"v1\"")),
        last_modified: None,
        length: Some(1_000),
        accept_ranges: Some(FieldValue::new(b"bytes")),
    };

    fn demand(fields: &[(&str, &str)]) -> Demand {
        let mut demand = Demand::default();
        for (name, value) in fields {
            demand.observe(name, value.as_bytes());
        }
        demand
    }

    #[test]
    fn ranges_are_asked_for_of_what_has_a_strong_tag_a_length_and_ranges() {
        assert!(Representation::of(STRONG).is_some());
        for described in [
            Described {
                etag: None,
                ..STRONG
            },
            Described {
                etag: Some("W/\"v1\"".into()),
                ..STRONG
            },
            Described {
                etag: Some("v1".into()),
                ..STRONG
            },
            Described {
                etag: Some(FieldValue::new(b"\"\xff\"")),
                ..STRONG
            },
            Described {
                length: None,
                ..STRONG
            },
            Described {
                accept_ranges: None,
                ..STRONG
            },
            Described {
                accept_ranges: Some("none".into()),
                ..STRONG
            },
        ] {
            assert_eq!(Representation::of(described), None, "{described:?}");
        }
    }

    #[test]
    fn a_range_is_beyond_where_it_begins_behind_the_reach() {
        const RANGE: (&str, &str) = ("range", "bytes=501-600");
        let representation = Representation::of(STRONG).unwrap();
        for (fields, beyond) in [
            (&[RANGE][..], true),
            (&[("range", "bytes=501-")], true),
            (&[("range", "bytes=500-")], false),
            (&[("range", "bytes=-499")], true),
            (&[("range", "bytes=-500")], false),
            (&[("range", "bytes=1000-")], false),
            (&[("range", "bytes=600-601,700-701")], false),
            (&[RANGE, ("if-range", "\"v1\"")], true),
            (&[RANGE, ("if-range", "\"v0\"")], false),
            (&[RANGE, ("if-none-match", "\"v1\"")], false),
            (&[RANGE, ("if-none-match", "\"v0\"")], true),
            (&[RANGE, ("if-match", "\"v0\"")], false),
        ] {
            let asked = representation.is_asked_beyond(500, &demand(fields));
            assert_eq!(asked, beyond, "{fields:?}");
        }
    }

    #[test]
    fn the_reach_is_what_two_seconds_bring_and_range_ahead_at_least() {
        const MIB: u64 = 1 << 20;
        for (bytes, elapsed, reach) in [
            (0, 0, 8 * MIB),
            (MIB, 1_000, 9 * MIB),
            // At 10 MiB a second.
            (100 * MIB, 10_000, 120 * MIB),
            // The first bytes arrive together.
            (MIB, 1, 9 * MIB),
            (u64::MAX, 1, u64::MAX),
        ] {
            let progress = FillProgress { begun: 5, bytes };
            assert_eq!(progress.reach(8 * MIB, 5 + elapsed), reach, "{bytes}");
        }
    }

    #[test]
    fn the_last_bytes_may_be_anywhere() {
        let may = |value| may_begin_beyond(ByteRange::parse(value).unwrap(), 500);
        assert!(may("bytes=501-"));
        assert!(!may("bytes=500-"));
        assert!(may("bytes=-1"));
    }
}
