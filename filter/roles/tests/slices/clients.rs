// SPDX-License-Identifier: Apache-2.0
//! The responses to clients of a large object, and their cost for the origin.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_fake::{Ending, HeaderTexts as _, Kind, Stage};

use super::world::*;
use crate::support::{assert_all_over, release};

#[test]
fn a_large_object_is_fetched_slice_by_slice_once() {
    let mut envoy = workers(2);
    introduce(&mut envoy, &OBJECT);
    let clients = [0, 1, 0, 1].map(|seat| get(&mut envoy, seat));
    serve(&mut envoy, &OBJECT);
    for client in clients {
        assert!(is_sliced(&envoy, client));
        assert_whole(&envoy, client, &OBJECT);
    }
    let mut asked = ranges(&envoy);
    asked.sort_unstable();
    let last = format!("bytes={}-{}", 2 * SLICE, LENGTH - 1);
    let second = format!("bytes={SLICE}-{}", 2 * SLICE - 1);
    assert_eq!(asked, [format!("bytes=0-{}", SLICE - 1), second, last]);
    assert_eq!(envoy.counter(Metric::SlicedRequests), 4);
    assert_eq!(envoy.counter(Metric::SlicesMissed), 3);
    assert_all_over(&mut envoy);
}

#[test]
fn followers_of_a_large_cold_object_leave_as_sliced_when_its_headers_come() {
    let mut envoy = workers(2);
    let clients = [0, 0, 1, 1].map(|seat| get(&mut envoy, seat));
    serve(&mut envoy, &OBJECT);
    assert_eq!(envoy.counter(Metric::SlicedPassed), 1);
    for follower in &clients[1..] {
        assert_eq!(
            release(&envoy, *follower),
            Some(NextStep::Send(StoreRequest::Slice))
        );
        assert_whole(&envoy, *follower, &OBJECT);
    }
    assert_whole(&envoy, clients[0], &OBJECT);
    assert_eq!(ranges(&envoy).len(), 3, "each slice once");
    assert_all_over(&mut envoy);
}

#[test]
fn a_far_range_costs_its_slice_and_the_next_one_nothing() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    let first = 2 * SLICE + 10;
    for cost in [1, 0] {
        let before = envoy.fetches.len();
        let client = get_range(&mut envoy, 0, &format!("bytes={first}-{}", first + 9));
        serve(&mut envoy, &OBJECT);
        let record = &envoy.clients[client.0];
        assert_eq!(record.status(), 206);
        assert_eq!(record.body(), OBJECT.part(first, first + 9));
        assert_eq!(envoy.fetches.len() - before, cost);
    }
    assert_all_over(&mut envoy);
}

#[test]
fn the_first_range_of_an_unknown_object_costs_a_head_and_its_slice() {
    let mut envoy = workers(1);
    let client = get_range(&mut envoy, 0, &format!("bytes={SLICE}-{}", SLICE + 4));
    serve(&mut envoy, &OBJECT);
    let part = OBJECT.part(SLICE, SLICE + 4);
    assert_eq!(envoy.clients[client.0].body(), part);
    assert_eq!((heads(&envoy), ranges(&envoy).len()), (1, 1));
    assert_all_over(&mut envoy);
}

#[test]
fn a_range_of_a_large_object_that_cannot_be_sliced_fetches_no_more_than_its_bytes() {
    let mut envoy = workers(1);
    let object = Object {
        etag: "W/\"v1\"",
        ..OBJECT
    };
    let client = get_range(&mut envoy, 0, "bytes=10-14");
    serve(&mut envoy, &object);
    assert_eq!(
        release(&envoy, client),
        Some(NextStep::HitForMiss(UncacheableReason::TooLarge))
    );
    assert_eq!(envoy.clients[client.0].body(), object.part(10, 14));
    let asked = envoy.fetches.last().unwrap();
    assert_eq!(asked.headers.get("range"), Some("bytes=10-14"));
    assert_all_over(&mut envoy);
}

#[test]
fn every_range_across_slices_is_the_same_bytes() {
    let mut envoy = workers_that_know(1, "/none", 3);
    introduce(&mut envoy, &OBJECT);
    let last = LENGTH - 1;
    for (range, first, end) in [
        ("bytes=0-".to_owned(), 0, last),
        (format!("bytes={}-{SLICE}", SLICE - 1), SLICE - 1, SLICE),
        (format!("bytes={SLICE}-{LENGTH}"), SLICE, last),
        ("bytes=-1".to_owned(), last, last),
        ("bytes=-500".to_owned(), LENGTH - 500, last),
    ] {
        let client = get_range(&mut envoy, 0, &range);
        serve(&mut envoy, &OBJECT);
        let record = &envoy.clients[client.0];
        assert!(record.body() == OBJECT.part(first, end), "{range}");
        let told = format!("bytes {first}-{end}/{LENGTH}");
        assert_eq!(record.header("content-range"), Some(&*told));
    }
    assert_eq!(ranges(&envoy).len(), 3);
}

#[test]
fn several_ranges_are_parts_of_one_response_and_too_many_are_refused() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    let several = get_range(&mut envoy, 0, &format!("bytes=0-4,{SLICE}-{}", SLICE + 4));
    let overlapping = get_range(&mut envoy, 0, "bytes=0-4,3-8");
    let many = (0..9).map(|number| format!("{number}-{number}"));
    let many = format!("bytes={}", many.collect::<Vec<_>>().join(","));
    let many = get_range(&mut envoy, 0, &many);
    serve(&mut envoy, &OBJECT);
    let record = &envoy.clients[several.0];
    assert_eq!(record.status(), 206);
    let content_type = record.header("content-type").unwrap();
    assert!(content_type.starts_with("multipart/byteranges; boundary="));
    let body = String::from_utf8(record.body().to_vec()).unwrap();
    for part in [OBJECT.part(0, 4), OBJECT.part(SLICE, SLICE + 4)] {
        assert!(body.contains(&String::from_utf8(part).unwrap()));
    }
    for refused in [overlapping, many] {
        assert_eq!(envoy.clients[refused.0].status(), 416);
    }
    assert_eq!(ranges(&envoy).len(), 2);
}

#[test]
fn conditions_of_a_sliced_object_need_no_body() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    let before = envoy.fetches.len();
    for (headers, status) in [
        (&[("if-none-match", OBJECT.etag)][..], 304),
        (&[("if-match", "\"v0\"")], 412),
        (&[("range", "bytes=9000000-")], 416),
    ] {
        let client = envoy.request(0, "GET", KEY, headers);
        serve(&mut envoy, &OBJECT);
        let record = &envoy.clients[client.0];
        assert_eq!((record.status(), record.body().len()), (status, 0));
    }
    assert_eq!(envoy.fetches.len(), before);
    assert_all_over(&mut envoy);
}

#[test]
fn a_sliced_response_has_the_headers_of_the_object_and_no_digest_of_a_part() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    envoy.advance(5_000);
    let client = get(&mut envoy, 0);
    serve(&mut envoy, &OBJECT);
    let record = &envoy.clients[client.0];
    let length = LENGTH.to_string();
    for (name, value) in [
        ("etag", Some(OBJECT.etag)),
        ("content-type", Some("video/mp4")),
        ("content-length", Some(&*length)),
        ("cache-control", Some("max-age=60")),
        ("age", Some("5")),
        ("repr-digest", Some(REPR_DIGEST)),
        ("content-md5", None),
        ("content-digest", None),
        ("x-amz-checksum-crc32", None),
        ("content-range", None),
        ("x-sluice-slice-state", None),
    ] {
        assert_eq!(record.header(name), value, "{name}");
    }
    let status = "sluice; fwd=uri-miss; fwd-status=206; stored; ttl=55; detail=slices:3";
    assert_eq!(record.header("cache-status"), Some(status));
    let again = get(&mut envoy, 0);
    serve(&mut envoy, &OBJECT);
    let told = envoy.clients[again.0].header("cache-status").unwrap();
    assert!(told.starts_with("sluice; hit; ttl="), "{told}");
    assert!(told.ends_with("; detail=slices:3"), "{told}");
}

#[test]
fn a_slice_that_is_under_way_is_stored_after_its_client_has_left() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    let client = get(&mut envoy, 0);
    let fetch = envoy.open_fetches()[0];
    envoy.answer_with(
        fetch,
        206,
        &[
            ("etag", OBJECT.etag),
            ("cache-control", "max-age=60"),
            ("content-range", &format!("bytes 0-{}/{LENGTH}", SLICE - 1)),
        ],
        &OBJECT.part(0, SLICE - 1),
    );
    envoy.progress(fetch);
    envoy.abort(client);
    envoy.end(fetch);
    envoy.close_all();
    let first = format!("bytes=0-{}", SLICE - 1);
    assert_eq!(ranges(&envoy), [first], "no second fetch");
    let later = get(&mut envoy, 0);
    serve(&mut envoy, &OBJECT);
    assert_whole(&envoy, later, &OBJECT);
    assert_eq!(ranges(&envoy).len(), 3, "the first slice is stored");
    assert_eq!(envoy.counter(Metric::SlicedCut), 0);
    assert_all_over(&mut envoy);
}

#[test]
fn a_slice_that_fails_before_the_response_is_its_status_and_a_later_one_cuts() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    let refused = get(&mut envoy, 0);
    let first = envoy.open_fetches()[0];
    envoy.answer_with(first, 503, &[], b"busy");
    envoy.end(first);
    envoy.close_all();
    assert_eq!(envoy.clients[refused.0].status(), 503);
    envoy.advance(20_000);
    let cut = get(&mut envoy, 0);
    answer_first(&mut envoy, &OBJECT);
    envoy.commit(KEY);
    let second = envoy.open_fetches()[0];
    envoy.answer_with(second, 503, &[], b"busy");
    assert_eq!(envoy.stage(cut), Stage::Over(Ending::Truncated));
    assert_eq!(envoy.clients[cut.0].body().len(), SLICE);
    assert_eq!(envoy.counter(Metric::SlicedCut), 1);
}

#[test]
fn a_forged_slice_request_is_handled_like_any_request() {
    let mut envoy = workers(1);
    introduce(&mut envoy, &OBJECT);
    let plan = format!("0-9 {LENGTH} {SLICE} 0");
    let link = "0123456789abcdef0123456789abcdefn0000000100000001";
    for headers in [
        [("x-sluice-slices", &*plan), ("x-sluice-slice", "0")],
        [("x-sluice-link", link), ("x-sluice-slice", "again")],
    ] {
        let client = envoy.request(0, "GET", KEY, &headers);
        serve(&mut envoy, &OBJECT);
        assert_whole(&envoy, client, &OBJECT);
    }
    let own = envoy
        .clients
        .iter()
        .filter(|client| client.kind == Kind::Slice);
    assert_eq!(own.count(), 6, "three for each");
}

#[test]
fn without_slices_a_large_object_passes_as_before() {
    let store = format!(r#""store": {{"max_object_bytes": {SLICE}}}"#);
    let document = crate::support::document(&store);
    let mut envoy = sluice_fake::FakeEnvoy::new(&document, 1);
    let clients = [0; 3].map(|seat| get(&mut envoy, seat));
    serve(&mut envoy, &OBJECT);
    for client in clients {
        assert!(!is_sliced(&envoy, client));
        assert_whole(&envoy, client, &OBJECT);
    }
    assert_eq!(envoy.fetches.len(), 3);
}
