// SPDX-License-Identifier: Apache-2.0
//! A large object, an edge that slices it, and the requests that the origin received.

use sluice_tests::client::Response;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::http::body;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::requests::{Request, Requests, State};
use std::collections::BTreeMap;
use std::ops::Range;

/// Size of the object: 24 slices of 1 MiB, and a short one.
pub const OBJECT: usize = (24 << 20) + 12_345;
/// Size of a slice.
pub const SLICE: usize = 1 << 20;
/// Number of slices of the object.
pub const SLICES: usize = OBJECT.div_ceil(SLICE);
/// Path of an object that is sliced for its first client.
pub const KNOWN: &str = "/large.iso";
/// Path whose size is not known before its first response.
pub const UNKNOWN: &str = "/large";

/// A version of the object.
pub fn object(version: u64) -> Reply {
    Reply::ok(OBJECT).version(version).max_age(600)
}

/// Starts an origin with one version of the object on both paths.
pub async fn origin(reply: &Reply) -> Origin {
    let origin = Origin::start().ready().await;
    origin.on(KNOWN, reply.clone()).on(UNKNOWN, reply.clone());
    origin
}

/// An edge in front of the origin. Slices are on by default.
pub fn edge(origin: &Origin) -> Builder {
    Edge::http(origin).origin_decides()
}

/// Checks that a response has all bytes of this version of the object.
pub fn assert_whole(response: &Response, path: &str, version: u64) {
    assert_eq!(response.status, 200, "{response}");
    let stamp = response.stamp(path);
    assert_eq!((stamp.size, stamp.sequence), (OBJECT, version));
}

/// Checks that a response has exactly these bytes of version 1 of the object.
pub fn assert_part(response: &Response, path: &str, bytes: Range<usize>) {
    assert_eq!(response.status, 206, "{response}");
    let range = format!("bytes {}-{}/{OBJECT}", bytes.start, bytes.end - 1);
    assert_eq!(response.header("content-range"), range, "{response}");
    let same = response.body == body::part(path, 1, OBJECT, bytes);
    assert!(same, "{response}");
}

/// The requests for one object that an origin has received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Requests for its headers.
    pub heads: usize,
    /// Requests for the whole object.
    pub wholes: usize,
    /// Requests for slices, by the number of the slice.
    pub slices: BTreeMap<usize, usize>,
}

impl Asked {
    /// The requests for `target`, which has the object's length.
    pub fn of(requests: &Requests, target: &str) -> Self {
        Self::of_length(requests, target, OBJECT)
    }

    /// The requests for `target`, which has this length.
    pub fn of_length(requests: &Requests, target: &str, length: usize) -> Self {
        let mut asked = Self::default();
        for request in requests.of(target) {
            match number(&request, length) {
                Some(number) => *asked.slices.entry(number).or_default() += 1,
                None if request.method == "HEAD" => asked.heads += 1,
                None => asked.wholes += 1,
            }
        }
        asked
    }

    /// Number of all requests.
    pub fn total(&self) -> usize {
        self.heads + self.wholes + self.slices.values().sum::<usize>()
    }

    /// Checks that each slice of the object was requested once.
    pub fn assert_each_slice_once(&self) {
        self.assert_each_once(SLICES);
    }

    /// Checks that each of this many slices was requested once.
    pub fn assert_each_once(&self, slices: usize) {
        let once: BTreeMap<_, _> = (0..slices).map(|number| (number, 1)).collect();
        assert_eq!(self.slices, once);
    }
}

/// The number of the slice of an object of this length that a request asks for.
fn number(request: &Request, length: usize) -> Option<usize> {
    let range = request.headers.get("range")?.strip_prefix("bytes=")?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    assert_eq!(first % SLICE, 0, "{range}");
    assert_eq!(last, (first + SLICE).min(length) - 1, "{range}");
    assert!(request.headers.get("if-match").is_some(), "{range}");
    Some(first / SLICE)
}

/// Waits until no request is under way.
pub async fn settle(origin: &Origin) {
    let requests = origin.requests();
    let ended = |seen: &[Request]| seen.iter().all(|request| request.state != State::Open);
    requests.wait_until("the end of all requests", ended).await;
}
