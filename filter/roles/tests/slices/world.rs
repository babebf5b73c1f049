// SPDX-License-Identifier: Apache-2.0
//! A fake Envoy with an origin that has one large object.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use sluice_core::coalescing::StoreRequest;
use sluice_fake::{Client, FakeEnvoy, FetchId, FetchPhase, HeaderTexts as _};

use crate::support::{await_lookup, document};

/// Path of the object.
pub const KEY: u64 = 7;

/// Size of a slice, and of the largest object that is stored as a whole.
pub const SLICE: usize = 256 << 10;
/// Length of the object: two slices and a short one.
pub const LENGTH: usize = 2 * SLICE + 100;

/// A digest of the object. It is valid for each of its parts (RFC 9530, 3).
pub const REPR_DIGEST: &str = "sha-256=:BBBB:";

/// An object at the origin.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    pub etag: &'static str,
    pub length: usize,
    pub control: &'static str,
}

pub const OBJECT: Object = Object {
    etag: "\"v1\"",
    length: LENGTH,
    control: "max-age=60",
};

impl Object {
    /// All bytes: letters that differ between positions and versions.
    pub fn body(&self) -> Vec<u8> {
        let seed = usize::from(self.etag.as_bytes()[2]);
        let letter = |at: usize| b'a' + ((at / 7 + at % 5 + seed) % 26) as u8;
        (0..self.length).map(letter).collect()
    }

    /// Bytes of the object.
    pub fn part(&self, first: usize, last: usize) -> Vec<u8> {
        self.body()[first..=last].to_vec()
    }
}

/// Workers under a policy with slices. `known` is a pattern of paths that are asked for by HEAD first.
pub fn workers_that_know(count: usize, known: &str, ahead: usize) -> FakeEnvoy {
    let store = format!(
        r#""store": {{"max_object_bytes": {SLICE}, "slices": {{"bytes": {SLICE}, "ahead": {ahead}, "known": ["{known}"]}}}}"#
    );
    let mut envoy = FakeEnvoy::new(&document(&store), count);
    for seat in 0..count {
        // A worker hears of others' objects from its first request on.
        let client = envoy.get(seat, 1);
        envoy.abort(client);
    }
    envoy
}

/// Workers that know no path to be large.
pub fn workers(count: usize) -> FakeEnvoy {
    workers_that_know(count, "/none", 0)
}

/// Answers an open request to the origin as its present object, and sends the whole body.
pub fn answer_as(envoy: &mut FakeEnvoy, fetch: FetchId, object: &Object) {
    let headers = envoy.fetches[fetch.0].headers.clone();
    let matches = headers.get("if-match").is_none_or(|tag| tag == object.etag);
    let length = object.length.to_string();
    let common = [
        ("etag", object.etag),
        ("cache-control", object.control),
        ("accept-ranges", "bytes"),
        ("content-type", "video/mp4"),
        ("content-md5", "digest"),
        ("content-digest", "sha-256=:AAAA:"),
        ("x-amz-checksum-crc32", "AAAA"),
        ("repr-digest", REPR_DIGEST),
    ];
    if !matches {
        envoy.answer_with(fetch, 412, &[], b"changed");
    } else if headers.get(":method") == Some("HEAD") {
        let length = [("content-length", length.as_str())];
        let headers: Vec<_> = common.into_iter().chain(length).collect();
        envoy.answer_head(fetch, 200, &headers);
    } else if let Some(range) = headers.get("range") {
        let (first, last) = bounds(range, object.length);
        let range = format!("bytes {first}-{last}/{length}");
        let range = [("content-range", range.as_str())];
        let headers: Vec<_> = common.into_iter().chain(range).collect();
        envoy.answer_with(fetch, 206, &headers, &object.part(first, last));
    } else {
        envoy.answer_with(fetch, 200, &common, &object.body());
    }
    envoy.end(fetch);
}

/// Answers the oldest open request to the origin.
pub fn answer_first(envoy: &mut FakeEnvoy, object: &Object) {
    let first = envoy.open_fetches()[0];
    answer_as(envoy, first, object);
}

fn bounds(range: &str, length: usize) -> (usize, usize) {
    let (first, last) = range
        .strip_prefix("bytes=")
        .unwrap()
        .split_once('-')
        .unwrap();
    let last = last.parse().unwrap_or(length - 1);
    (first.parse().unwrap(), last.min(length - 1))
}

/// Answers everything that the origin and the store are asked, until no request is open.
pub fn serve(envoy: &mut FakeEnvoy, object: &Object) {
    for _ in 0..100 {
        for fetch in envoy.open_fetches() {
            if envoy.fetches[fetch.0].phase == FetchPhase::Sent {
                answer_as(envoy, fetch, object);
            }
        }
        envoy.commit(KEY);
        for seat in 0..envoy.workers() {
            await_lookup(envoy, seat);
            envoy.answer_lookup(seat);
        }
        envoy.deliver_all();
        envoy.close_all();
        if envoy.open_fetches().is_empty() && envoy.open_clients().is_empty() {
            return;
        }
    }
    panic!("requests are left: {:?}", envoy.open_clients());
}

/// A GET without further headers.
pub fn get(envoy: &mut FakeEnvoy, seat: usize) -> Client {
    envoy.request(seat, "GET", KEY, &[])
}

/// A GET of these bytes.
pub fn get_range(envoy: &mut FakeEnvoy, seat: usize, range: &str) -> Client {
    envoy.request(seat, "GET", KEY, &[("range", range)])
}

/// Makes the workers know the object, without any of its slices.
pub fn introduce(envoy: &mut FakeEnvoy, object: &Object) {
    get(envoy, 0);
    serve(envoy, object);
}

/// The ranges of the slices that the origin was asked for, in order.
pub fn ranges(envoy: &FakeEnvoy) -> Vec<String> {
    let ranges = envoy.fetches.iter().filter_map(|fetch| {
        let pinned = fetch.headers.has("if-match");
        fetch
            .headers
            .get("range")
            .filter(|_| pinned)
            .map(str::to_owned)
    });
    ranges.collect()
}

/// Number of requests to the origin for headers alone.
pub fn heads(envoy: &FakeEnvoy) -> usize {
    let fetches = envoy.fetches.iter();
    fetches
        .filter(|fetch| fetch.headers.get(":method") == Some("HEAD"))
        .count()
}

/// Checks that a client has all of the object.
pub fn assert_whole(envoy: &FakeEnvoy, client: Client, object: &Object) {
    let record = &envoy.clients[client.0];
    assert_eq!(record.status(), 200);
    assert!(record.body() == object.body(), "{record:?}");
}

/// Whether a request was sent to the slicer.
pub fn is_sliced(envoy: &FakeEnvoy, client: Client) -> bool {
    envoy.clients[client.0].request == Some(StoreRequest::Slice)
}
