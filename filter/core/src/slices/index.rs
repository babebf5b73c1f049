// SPDX-License-Identifier: Apache-2.0
//! The index of a sliced object: its version, its length, its times, and the headers of its responses.

mod bytes;

use std::fmt;

use crate::freshness::Lifetime;
use crate::http::conditional::demand::{Demand, WholeResponse};
use crate::http::conditional::entity_tag::EntityTag;
use crate::http::syntax::field_value::FieldValue;
use crate::internal_headers::INTERNAL_PREFIX;
use crate::key::secret::StoreSecret;
use crate::policy::SlicedLengths;
use crate::slices::grid::SliceGrid;
use crate::slices::plan::SlicePlan;
use crate::slices::selection::{Selection, SlicedDelivery};
use crate::workers::Millis;

/// Headers of an object that its sliced responses do not have: the length, which the plan gives; the age, which the
/// index gives; digests, which would be of other bytes than a part has; and fields of one connection.
const DROPPED: [&str; 12] = [
    "age",
    "cache-status",
    "connection",
    "content-digest",
    "content-length",
    "content-md5",
    "content-range",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "trailer",
    "upgrade",
];
/// Beginning of the names of the digests of Amazon S3.
const CHECKSUMS: &str = "x-amz-checksum-";

/// The parts of a response to GET or HEAD that decide whether the object is sliced.
#[derive(Clone, Copy, Debug, Default)]
pub struct Described<'a> {
    /// Status of the response.
    pub status: u16,
    /// `ETag`.
    pub etag: Option<FieldValue<'a>>,
    /// `Last-Modified`.
    pub last_modified: Option<FieldValue<'a>>,
    /// `Content-Length`.
    pub length: Option<u64>,
    /// Whether the origin sends ranges of the object: it is a bucket, or says `Accept-Ranges: bytes`.
    pub accepts_ranges: bool,
}

impl Described<'_> {
    /// The strong entity tag and the length, if the object is sliced: it needs a 200, a strong `ETag`, a length within
    /// the bounds, and an origin that sends ranges.
    fn version(&self, lengths: SlicedLengths) -> Option<(&str, u64)> {
        let etag = self.etag?.text().ok()?.trim();
        let is_strong = EntityTag::parse(etag).is_some_and(|tag| !tag.weak);
        let is_long = |length: &u64| *length > lengths.above && *length <= lengths.most;
        let length = self.length.filter(is_long)?;
        (self.status == 200 && self.accepts_ranges && is_strong).then_some((etag, length))
    }

    /// Whether the object is sliced.
    pub fn is_sliced(&self, lengths: SlicedLengths) -> bool {
        self.version(lengths).is_some()
    }
}

/// The times of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexTimes {
    /// Time at which the origin has sent or validated the headers.
    pub validated: Millis,
    /// Age of the headers at that time, in seconds.
    pub age: u64,
    /// The times for which the object may be served.
    pub lifetime: Lifetime,
}

/// Version of an object and size of its slices, as keys of slices have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceVersion(u64);

impl SliceVersion {
    /// The version for that strong entity tag and size of slices.
    pub fn new(secret: &StoreSecret, etag: &str, slice_bytes: u64) -> Self {
        let bytes = [&slice_bytes.to_le_bytes()[..], etag.as_bytes()].concat();
        Self(secret.hash(&bytes))
    }
}

impl fmt::Display for SliceVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

/// Index of a sliced object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceIndex {
    etag: String,
    last_modified: Option<String>,
    length: u64,
    headers: Vec<(String, Vec<u8>)>,
    /// The times for which it is valid.
    pub times: IndexTimes,
    /// Number of the last purge of the object when the index was made.
    pub purge_number: u64,
    /// The part of the policy by which the headers were made ([`Policy::presentation`](crate::policy::Policy)).
    pub presentation: u64,
}

impl SliceIndex {
    /// Bound on the bytes of the headers of a sliced object, names and values. It bounds the memory for an index.
    pub const MOST_HEADER_BYTES: usize = 8 << 10;

    /// Whether an index has room for these `headers`, of lower-case names.
    pub fn has_room_for<'a>(headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> bool {
        let kept = headers.filter(|(name, _)| is_kept(name));
        let bytes = kept.map(|(name, value)| name.len() + value.len());
        bytes.sum::<usize>() <= Self::MOST_HEADER_BYTES
    }

    /// Creates the index of an object from a response to GET or HEAD with these `headers`, of lower-case names. `None`
    /// if the object cannot be sliced: it needs a 200, a strong `ETag`, a length within the bounds, and an origin that
    /// sends ranges. A validator that is not text counts as missing.
    pub fn of<'a>(
        described: &Described<'_>,
        headers: impl Iterator<Item = (&'a str, &'a [u8])>,
        lengths: SlicedLengths,
        times: IndexTimes,
        purge_number: u64,
    ) -> Option<Self> {
        let (etag, length) = described.version(lengths)?;
        let last_modified = described.last_modified.and_then(|date| date.text().ok());
        let headers = headers.filter(|(name, _)| is_kept(name));
        Some(Self {
            etag: etag.to_owned(),
            last_modified: last_modified.map(str::to_owned),
            length,
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.to_vec()))
                .collect(),
            times,
            purge_number,
            presentation: 0,
        })
    }

    /// The index with headers that were made by this part of the policy.
    #[must_use]
    pub fn presented_by(self, presentation: u64) -> Self {
        Self {
            presentation,
            ..self
        }
    }

    /// The strong entity tag.
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// Length of the object in bytes.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The headers of a sliced response, except the headers that its plan and its age give.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> + Clone {
        let headers = self.headers.iter();
        headers.map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Whether `other` is an index of the same bytes, so that all slices stay valid.
    pub fn is_same_version(&self, other: &Self) -> bool {
        self.etag == other.etag && self.length == other.length
    }

    /// Age in seconds, which a response at `now` has.
    pub const fn age(&self, now: Millis) -> u64 {
        let seconds = now.saturating_sub(self.times.validated) / 1_000;
        self.times.age.saturating_add(seconds)
    }

    /// Whether the object is served without a request to the origin.
    pub fn is_fresh(&self, now: Millis) -> bool {
        self.age(now) < self.times.lifetime.ttl
    }

    /// Whether the object is served while it is validated.
    pub fn is_servable_meanwhile(&self, now: Millis) -> bool {
        self.age(now) < self.times.lifetime.unasked()
    }

    /// Whether the object is served if its validation fails.
    pub fn is_servable_after_error(&self, now: Millis) -> bool {
        self.age(now) < self.times.lifetime.servable()
    }

    /// Decides how a GET of the object is answered.
    pub fn delivery(&self, demand: &Demand) -> SlicedDelivery {
        let object =
            WholeResponse::of_object(&self.etag, self.last_modified.as_deref(), self.length);
        SlicedDelivery::of(demand, &object)
    }

    /// The plan of a response with these bytes. `None` if the object does not have them.
    pub fn plan(
        &self,
        selection: Selection,
        secret: &StoreSecret,
        slice_bytes: u64,
        ahead: usize,
    ) -> Option<SlicePlan> {
        let mut headers = self.headers();
        let content_type = headers.find(|(name, _)| *name == "content-type");
        let content_type = content_type.and_then(|(_, value)| std::str::from_utf8(value).ok());
        // Another hash than the version, which the names of stored slices show.
        let boundary = secret.hash(&["boundary ".as_bytes(), self.etag.as_bytes()].concat());
        let grid = SliceGrid::new(self.length, slice_bytes)?;
        SlicePlan::new(selection, grid, ahead, boundary, content_type)
    }
}

/// Whether sliced responses have that header of the object.
fn is_kept(name: &str) -> bool {
    let is_dropped = name.starts_with(':')
        || name.starts_with(INTERNAL_PREFIX)
        || name.starts_with(CHECKSUMS)
        || DROPPED.contains(&name);
    !is_dropped
}

#[cfg(test)]
mod tests {
    use crate::slices::index::*;

    const DESCRIBED: Described<'_> = Described {
        status: 200,
        etag: Some(FieldValue::new(b"\"v1\"")),
        last_modified: None,
        length: Some(5_000),
        accepts_ranges: true,
    };
    const LENGTHS: SlicedLengths = SlicedLengths {
        above: 1_000,
        most: 9_000,
    };
    const SECRET: StoreSecret = StoreSecret::new([1, 2]);
    const HEADERS: [(&str, &[u8]); 9] = [
        (":status", b"200"),
        ("etag", b"\"v1\""),
        ("content-type", b"video/mp4"),
        ("content-length", b"5000"),
        ("content-md5", b"x"),
        ("content-digest", b"x"),
        ("x-amz-checksum-crc32", b"x"),
        ("x-amz-meta-a", b"b"),
        ("x-sluice-anything", b"x"),
    ];

    fn index(described: Described<'_>) -> Option<SliceIndex> {
        let times = IndexTimes {
            validated: 10_000,
            age: 5,
            lifetime: Lifetime {
                ttl: 60,
                stale_while_revalidate: 30,
                stale_if_error: 90,
            },
        };
        SliceIndex::of(&described, HEADERS.into_iter(), LENGTHS, times, 7)
    }

    #[test]
    fn an_index_needs_a_strong_tag_a_length_and_ranges() {
        let value = |text| Some(FieldValue::new(text));
        assert!(index(DESCRIBED).is_some());
        for described in [
            Described {
                status: 206,
                ..DESCRIBED
            },
            Described {
                etag: None,
                ..DESCRIBED
            },
            Described {
                etag: value(b"W/\"v1\""),
                ..DESCRIBED
            },
            Described {
                etag: value(b"v1"),
                ..DESCRIBED
            },
            Described {
                etag: value(b"\"\xff\""),
                ..DESCRIBED
            },
            Described {
                length: None,
                ..DESCRIBED
            },
            Described {
                length: Some(1_000),
                ..DESCRIBED
            },
            Described {
                length: Some(9_001),
                ..DESCRIBED
            },
            Described {
                accepts_ranges: false,
                ..DESCRIBED
            },
        ] {
            assert_eq!(index(described), None, "{described:?}");
        }
    }

    #[test]
    fn responses_have_the_objects_headers_and_no_digest_of_a_part() {
        let index = index(DESCRIBED).unwrap();
        let names: Vec<_> = index.headers().map(|(name, _)| name).collect();
        assert_eq!(names, ["etag", "content-type", "x-amz-meta-a"]);
    }

    #[test]
    fn an_index_has_room_for_the_headers_of_most_objects_and_no_more() {
        let name = "x-amz-meta-a";
        let most = vec![b'm'; SliceIndex::MOST_HEADER_BYTES - name.len()];
        let has_room = |bytes: &[u8]| SliceIndex::has_room_for([(name, bytes)].into_iter());
        assert!(has_room(&most));
        assert!(!has_room(&[&most[..], b"m"].concat()));
        let dropped = ("content-md5", &most[..]);
        let headers = [(name, &most[..]), dropped];
        assert!(SliceIndex::has_room_for(headers.into_iter()));
    }

    #[test]
    fn the_bytes_of_the_headers_bound_those_of_an_index() {
        // The shortest lines take the most room beside their bytes: a name of one letter without a value.
        let lines = vec![("a", &b""[..]); 200];
        let index = SliceIndex::of(
            &DESCRIBED,
            lines.into_iter(),
            LENGTHS,
            IndexTimes::default(),
            0,
        );
        let encoded = index.unwrap().encode().len();
        assert!(encoded < SliceIndex::MOST_HEADER_BYTES, "{encoded}");
    }

    #[test]
    fn the_age_counts_from_the_validation() {
        let index = index(DESCRIBED).unwrap();
        for (now, age, fresh, meanwhile, after_error) in [
            (10_000, 5, true, true, true),
            (64_999, 59, true, true, true),
            (65_000, 60, false, true, true),
            (95_000, 90, false, false, true),
            (155_000, 150, false, false, false),
            (0, 5, true, true, true),
        ] {
            assert_eq!(index.age(now), age);
            assert_eq!(index.is_fresh(now), fresh, "{now}");
            assert_eq!(index.is_servable_meanwhile(now), meanwhile, "{now}");
            assert_eq!(index.is_servable_after_error(now), after_error, "{now}");
        }
    }

    #[test]
    fn another_tag_or_size_of_slices_is_another_version() {
        let version = |etag, slice_bytes| SliceVersion::new(&SECRET, etag, slice_bytes);
        assert_eq!(version("\"a\"", 1), version("\"a\"", 1));
        assert_ne!(version("\"a\"", 1), version("\"b\"", 1));
        assert_ne!(version("\"a\"", 1), version("\"a\"", 2));
        assert_eq!(version("\"a\"", 1).to_string().len(), 16);
    }

    #[test]
    fn the_same_tag_with_another_length_is_another_version() {
        let one = index(DESCRIBED).unwrap();
        let mut other = one.clone();
        other.times.validated += 1;
        assert!(one.is_same_version(&other));
        let longer = index(Described {
            length: Some(5_001),
            ..DESCRIBED
        });
        assert!(!one.is_same_version(&longer.unwrap()));
    }

    #[test]
    fn a_plan_is_made_from_the_demand() {
        let index = index(DESCRIBED).unwrap();
        let mut demand = Demand::default();
        demand.observe("range", b"bytes=0-9,20-29");
        let SlicedDelivery::Bytes(selection) = index.delivery(&demand) else {
            panic!("no bytes")
        };
        let plan = index
            .plan(selection, &SECRET, 1_000, 3)
            .unwrap()
            .to_string();
        assert!(plan.starts_with("0-9,20-29 5000 1000 3 "), "{plan}");
        assert!(plan.ends_with(" video/mp4"), "{plan}");
        let whole = index.plan(Selection::Whole, &SECRET, 1_000, 3).unwrap();
        assert_eq!(whole.to_string(), "whole 5000 1000 3");
    }
}
