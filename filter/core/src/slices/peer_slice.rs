// SPDX-License-Identifier: Apache-2.0
//! A slice that an edge requests from the peer which owns it, and the two headers that name it.
//!
//! The key is the URL of the object, the values of request headers that the cache key has, and the number of the slice
//! (see [`qualifiers`]). It lacks the numbers of purges, because an edge may number its purges differently, and the owner
//! of a slice must be the same for all edges. The version is `LENGTH SLICE_BYTES ETAG`.

use crate::http::syntax::field_value::FieldValue;
use crate::key::qualifiers::{self, qualifiers};
use crate::key::{CanonicalTarget, target_of_url};
use crate::policy::{Policy, SlicesPolicy};
use crate::slices::grid::SliceGrid;
use crate::slices::index::{Described, IndexTimes, SliceIndex};
use crate::slices::plan;

/// A slice of one version of an object, as an edge names it to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerSlice {
    key: String,
    /// The number of the slice, from 0.
    number: u64,
    grid: SliceGrid,
    etag: String,
}

impl PeerSlice {
    /// The slice of that number of the object of `target`.
    pub fn new(target: &CanonicalTarget, number: u64, grid: SliceGrid, etag: &str) -> Self {
        let mut key = target.unqualified();
        for (name, value) in headers_of(target.cache_key()) {
            key.qualify(&name, value);
        }
        key.qualify(qualifiers::SLICE, number.to_string());
        Self {
            key: key.cache_key().to_owned(),
            number,
            grid,
            etag: etag.to_owned(),
        }
    }

    /// Reads the values of the two headers; `None` if one of them is malformed.
    pub fn parse(key: &str, version: &str) -> Option<Self> {
        let (name, number) = qualifiers(key).last()?;
        let number = String::from_utf8(number).ok()?;
        let number = (name == qualifiers::SLICE).then(|| plan::number(&number))??;
        let mut parts = version.splitn(3, ' ');
        let length = plan::number(parts.next()?)?;
        let grid = SliceGrid::new(length, plan::number(parts.next()?)?)?;
        grid.range_of(number)?;
        Some(Self {
            key: key.to_owned(),
            number,
            grid,
            etag: parts.next()?.to_owned(),
        })
    }

    /// Value of the header with the key, by which the peer is chosen.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Value of the header with the version.
    pub fn version(&self) -> String {
        let grid = self.grid;
        format!("{} {} {}", grid.length(), grid.slice_bytes(), self.etag)
    }

    /// The number of the slice, from 0.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The target of the object, without qualifiers. `None` if no client's request has its URL.
    pub fn target(&self, policy: &Policy) -> Option<CanonicalTarget> {
        let url = self.key.split('#').next()?;
        target_of_url(policy, url)
    }

    /// Adds the values of the request headers to the key of the object.
    pub fn qualify(&self, target: &mut CanonicalTarget) {
        for (name, value) in headers_of(&self.key) {
            target.qualify(&name, value);
        }
    }

    /// An index of the object that has no headers. `None` if this edge does not serve it in such slices.
    pub fn index(&self, policy: &SlicesPolicy) -> Option<SliceIndex> {
        let described = Described {
            status: 200,
            etag: Some(FieldValue::new(self.etag.as_bytes())),
            last_modified: None,
            length: Some(self.grid.length()),
            accepts_ranges: true,
        };
        let is_same = policy.is_on() && policy.bytes == self.grid.slice_bytes();
        let none = std::iter::empty();
        let index = SliceIndex::of(&described, none, policy.lengths, IndexTimes::default(), 0);
        index.filter(|_| is_same)
    }
}

/// The qualifiers of a cache key with values of request headers.
fn headers_of(cache_key: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
    qualifiers(cache_key).filter(|(name, _)| name.starts_with(qualifiers::VARY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        let policy = br#"{"origin": {"kind": "bucket", "bucket": "films", "prefix": "site", "addressing": "path",
            "authority": "s3.test"}, "store": {"slices": {"bytes": "1Mi"}}}"#;
        Policy::parse(policy).unwrap()
    }

    fn film() -> CanonicalTarget {
        target_of_url(&policy(), "s3.test/films/site/a%20b.mp4").unwrap()
    }

    fn grid() -> SliceGrid {
        SliceGrid::new(2_500, 1_000).unwrap()
    }

    #[test]
    fn what_is_written_is_read_and_names_the_same_key() {
        let mut target = film();
        target.qualify(qualifiers::GENERATION, "7");
        target.qualify("vary-x-a", "b;c");
        let slice = PeerSlice::new(&target, 2, grid(), "\"v 1\"");
        assert_eq!(
            slice.key(),
            "s3.test/films/site/a%20b.mp4#vary-x-a=b%3Bc;s=2"
        );
        let read = PeerSlice::parse(slice.key(), &slice.version()).unwrap();
        assert_eq!(read, slice);
        let mut object = read.target(&policy()).unwrap();
        assert_eq!(object, film());
        object.qualify(qualifiers::GENERATION, "7");
        read.qualify(&mut object);
        assert_eq!(object.cache_key(), target.cache_key());
    }

    #[test]
    fn the_owner_of_a_slice_does_not_depend_on_purges() {
        let mut purged = film();
        purged.qualify(qualifiers::GENERATION, "7");
        purged.qualify(qualifiers::DECLARED, "3");
        let key = |target| PeerSlice::new(target, 0, grid(), "\"1\"").key().to_owned();
        assert_eq!(key(&film()), key(&purged));
    }

    #[test]
    fn anything_else_is_refused() {
        for (key, version) in [
            ("s3.test/films/site/a#s=3", "2500 1000 \"1\""),
            ("s3.test/films/site/a#s=x", "2500 1000 \"1\""),
            ("s3.test/films/site/a#s=+1", "2500 1000 \"1\""),
            ("s3.test/films/site/a#s=1;g=2", "2500 1000 \"1\""),
            ("s3.test/films/site/a", "2500 1000 \"1\""),
            ("s3.test/films/site/a#s=1", "2500 0 \"1\""),
            ("s3.test/films/site/a#s=1", "2500 1000"),
            ("s3.test/films/site/a#s=1", "x 1000 \"1\""),
        ] {
            assert_eq!(PeerSlice::parse(key, version), None, "{key} {version}");
        }
    }

    #[test]
    fn a_url_that_no_client_can_request_has_no_target() {
        for url in [
            "s3.test/films/site/.sluice/purges",
            "s3.test/films/other/a",
            "s3.test/films/site/../a",
            "other.test/films/site/a",
            "s3.test/other/site/a",
            "s3.test",
        ] {
            let key = format!("{url}#s=0");
            let slice = PeerSlice::parse(&key, "2500 1000 \"1\"").unwrap();
            assert_eq!(slice.target(&policy()), None, "{url}");
        }
    }

    #[test]
    fn an_edge_with_another_size_of_slices_does_not_serve_it() {
        let policy = &policy().edge.slices;
        let slice = |length, bytes, etag| {
            let grid = SliceGrid::new(length, bytes).unwrap();
            PeerSlice::new(&film(), 0, grid, etag).index(policy)
        };
        let large = policy.lengths.above + 1;
        assert!(slice(large, policy.bytes, "\"1\"").is_some());
        assert!(slice(large, policy.bytes - 1, "\"1\"").is_none());
        assert!(slice(large - 1, policy.bytes, "\"1\"").is_none());
        assert!(slice(large, policy.bytes, "W/\"1\"").is_none());
    }
}
