// SPDX-License-Identifier: Apache-2.0
//! Ranges that begin far ahead of the fill of their object are sent to the origin alone.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::{NextStep, StoreRequest};
use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::Metric;
use sluice_fake::{Answer, Client, Ending, FakeEnvoy, FetchId, HeaderTexts as _, Kind, Stage};

use crate::support::{FIRST, KEY, admission, assert_all_over, document, fill, release};

/// A range far into an object of 1,024 bytes.
const FAR: (&str, &str) = ("range", "bytes=900-909");

/// Workers whose ranges wait if they begin at most `range_ahead` bytes ahead. If it is 0, all ranges wait.
fn workers(workers: usize, range_ahead: u64) -> FakeEnvoy {
    let section = format!(r#""coalesce": {{"range_ahead": {range_ahead}}}"#);
    FakeEnvoy::new(&document(&section), workers)
}

fn envoy(count: usize) -> FakeEnvoy {
    workers(count, 100)
}

/// A range of `length` bytes far into the object.
fn far_range(envoy: &mut FakeEnvoy, seat: usize, length: usize) -> Client {
    let range = format!("bytes=900-{}", 899 + length);
    envoy.request(seat, "GET", KEY, &[("range", &range)])
}

fn requests(envoy: &FakeEnvoy) -> Vec<StoreRequest> {
    envoy.fetches.iter().map(|fetch| fetch.request).collect()
}

/// Checks that the range is sent to the origin unchanged, and for this version only.
fn assert_asked(envoy: &FakeEnvoy, client: Client) -> FetchId {
    let asked = |id: &FetchId| envoy.fetches[id.0].client == client;
    let mut fetches = envoy.open_fetches().into_iter().filter(asked);
    let id = fetches.next().unwrap();
    let fetch = &envoy.fetches[id.0];
    assert_eq!(fetch.request, StoreRequest::Ahead);
    assert!(
        fetch
            .headers
            .get("range")
            .unwrap()
            .starts_with("bytes=900-")
    );
    assert_eq!(fetch.headers.get("if-range"), Some("\"v1\""));
    id
}

/// Checks that the client gets the range while the fill is under way.
fn assert_served(envoy: &mut FakeEnvoy, client: Client, fetch: FetchId) {
    envoy.answer(fetch, Answer::Storable);
    envoy.end(fetch);
    let record = &envoy.clients[client.0];
    assert_eq!((record.status(), record.body().len()), (206, 10));
    assert_eq!(
        record.header("cache-status"),
        Some("sluice; fwd=uri-miss; fwd-status=206; detail=range-ahead")
    );
    assert!(!envoy.fetches[fetch.0].fills, "the store gets no part");
    envoy.close(client);
}

#[test]
fn first_range_far_into_a_cold_object_goes_ahead_of_a_fill_that_leads_for_it() {
    let mut envoy = envoy(1);
    let range = envoy.far_range(0, KEY);
    envoy.answer_lookup(0);
    envoy.answer(FIRST, Answer::Storable);
    assert_eq!(envoy.stage(range), Stage::Parked);
    envoy.answer(FetchId(1), Answer::Storable);
    assert_eq!(
        release(&envoy, range),
        Some(NextStep::Send(StoreRequest::Ahead))
    );
    let expected = [StoreRequest::Size, StoreRequest::Lead, StoreRequest::Ahead];
    assert_eq!(requests(&envoy), expected);
    let ahead = assert_asked(&envoy, range);
    assert_served(&mut envoy, range, ahead);
    assert_eq!(envoy.counter(Metric::RangesAhead), 1);
    fill(&mut envoy, FetchId(1));
    let later = envoy.far_range(0, KEY);
    assert_eq!(admission(&envoy, later), Some(StoreRequest::Fresh));
    assert_eq!(envoy.clients[later.0].brought_by(), Some(FetchId(1)));
    envoy.close_all();
    assert_all_over(&mut envoy);
}

#[test]
fn first_range_leads_where_it_is_near_or_none_goes_ahead() {
    for (range_ahead, range) in [
        (100, "bytes=100-109"),
        (100, "bytes=-924"),
        (900, FAR.1),
        (0, FAR.1),
    ] {
        let mut envoy = workers(1, range_ahead);
        let client = envoy.request(0, "GET", KEY, &[("range", range)]);
        envoy.answer_lookup(0);
        envoy.answer(FIRST, Answer::Storable);
        assert_eq!(
            release(&envoy, client),
            Some(NextStep::Send(StoreRequest::Lead)),
            "{range}"
        );
        fill(&mut envoy, FetchId(1));
        assert_eq!(requests(&envoy), [StoreRequest::Size, StoreRequest::Lead]);
        assert_eq!(envoy.counter(Metric::RangesAhead), 0);
        assert_all_over(&mut envoy);
    }
}

#[test]
fn range_of_what_the_store_has_asks_the_origin_nothing_though_the_worker_does_not_know_it() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.kill(0);
    envoy.revive(0);
    let range = envoy.far_range(0, KEY);
    envoy.answer_lookup(0);
    envoy.close_all();
    assert_eq!(envoy.clients[range.0].status(), 206);
    assert_eq!(envoy.clients[range.0].brought_by(), Some(FIRST));
    assert_eq!(requests(&envoy), [StoreRequest::Lead]);
}

#[test]
fn range_goes_ahead_of_a_fill_under_way_if_it_begins_further_than_that_comes_soon() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    let early = far_range(&mut envoy, 0, 1);
    assert_eq!(envoy.stage(early), Stage::Parked, "no headers have come");
    envoy.answer(FIRST, Answer::Storable);
    assert_eq!(
        release(&envoy, early),
        Some(NextStep::Send(StoreRequest::Ahead))
    );
    let late = far_range(&mut envoy, 0, 2);
    assert_eq!(admission(&envoy, late), Some(StoreRequest::Ahead));
    let near = envoy.range(0, KEY);
    // 300 bytes arrive in the first second, so 600 bytes are expected in the next two.
    (0..300).for_each(|_| envoy.progress(FIRST));
    let reached = far_range(&mut envoy, 0, 3);
    for client in [early, late] {
        let ahead = assert_asked(&envoy, client);
        assert_served(&mut envoy, client, ahead);
    }
    for client in [near, reached] {
        assert_eq!(envoy.stage(client), Stage::Parked);
    }
    fill(&mut envoy, FIRST);
    for client in [near, reached] {
        assert_eq!(
            release(&envoy, client),
            Some(NextStep::Send(StoreRequest::Collapsed))
        );
    }
    assert_all_over(&mut envoy);
}

#[test]
fn range_goes_ahead_of_another_workers_fill_once_the_origin_has_described_the_object() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    let ranges = [1, 2].map(|length| far_range(&mut envoy, 1, length));
    let near = envoy.range(1, KEY);
    assert_eq!(requests(&envoy), [StoreRequest::Lead, StoreRequest::Size]);
    envoy.answer(FetchId(1), Answer::Storable);
    for range in ranges {
        assert_eq!(
            release(&envoy, range),
            Some(NextStep::Send(StoreRequest::Ahead))
        );
        let ahead = assert_asked(&envoy, range);
        assert_served(&mut envoy, range, ahead);
    }
    assert_eq!(envoy.stage(near), Stage::Parked);
    fill(&mut envoy, FIRST);
    assert_eq!(
        release(&envoy, near),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_all_over(&mut envoy);
}

#[test]
fn ranges_of_a_cold_object_on_two_workers_at_once_all_go_ahead_of_one_fill() {
    let mut envoy = envoy(2);
    let ranges = [envoy.far_range(0, KEY), envoy.far_range(1, KEY)];
    [0, 1]
        .into_iter()
        .for_each(|seat| envoy.answer_lookup(seat));
    for _ in 0..4 {
        for fetch in envoy.open_fetches() {
            if envoy.fetches[fetch.0].request == StoreRequest::Size {
                envoy.answer(fetch, Answer::Storable);
            }
        }
        envoy.deliver_all();
    }
    let leads = |id: &FetchId| envoy.fetches[id.0].request == StoreRequest::Lead;
    let fills: Vec<_> = envoy.open_fetches().into_iter().filter(leads).collect();
    assert_eq!(fills.len(), 1);
    envoy.answer(fills[0], Answer::Storable);
    for range in ranges {
        let ahead = assert_asked(&envoy, range);
        assert_served(&mut envoy, range, ahead);
    }
    fill(&mut envoy, fills[0]);
    assert_all_over(&mut envoy);
}

#[test]
fn at_most_eight_ranges_of_an_object_go_ahead_on_one_worker() {
    let mut envoy = envoy(2);
    envoy.get(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    let ranges: Vec<_> = (1..10).map(|n| far_range(&mut envoy, 0, n)).collect();
    for range in &ranges[..8] {
        assert_eq!(admission(&envoy, *range), Some(StoreRequest::Ahead));
    }
    assert_eq!(envoy.stage(ranges[8]), Stage::Parked);
    envoy.get(0, KEY + 1);
    envoy.answer(envoy.open_fetches()[9], Answer::Storable);
    let other = envoy.far_range(0, KEY + 1);
    assert_eq!(
        admission(&envoy, other),
        Some(StoreRequest::Ahead),
        "its own"
    );
    // One client leaves, and one is served. There is room for the waiting range, and for another one.
    envoy.abort(ranges[0]);
    assert_eq!(
        release(&envoy, ranges[8]),
        Some(NextStep::Send(StoreRequest::Ahead))
    );
    let ahead = assert_asked(&envoy, ranges[1]);
    assert_served(&mut envoy, ranges[1], ahead);
    for (length, expected) in [(11, Some(StoreRequest::Ahead)), (12, None)] {
        let range = far_range(&mut envoy, 0, length);
        assert_eq!(admission(&envoy, range), expected);
    }
}

#[test]
fn equal_ranges_share_what_the_first_gets() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    let early = [envoy.far_range(0, KEY), envoy.far_range(0, KEY)];
    envoy.answer(FIRST, Answer::Storable);
    let ahead = assert_asked(&envoy, early[0]);
    assert_eq!(envoy.stage(early[1]), Stage::Parked);
    envoy.answer(ahead, Answer::Storable);
    envoy.progress(ahead);
    let late = envoy.far_range(0, KEY);
    let other = far_range(&mut envoy, 0, 20);
    assert_eq!(admission(&envoy, late), None);
    assert_eq!(admission(&envoy, other), Some(StoreRequest::Ahead));
    envoy.end(ahead);
    for client in [early[1], late] {
        let record = &envoy.clients[client.0];
        assert_eq!(record.stage, Stage::Over(Ending::Served));
        assert_eq!((record.status(), record.brought_by()), (206, Some(ahead)));
        assert_eq!(
            record.header("cache-status"),
            Some("sluice; fwd=uri-miss; fwd-status=206; collapsed; detail=range-ahead")
        );
        assert_eq!(record.header("content-range"), Some("bytes 900-909/1024"));
    }
    assert_eq!(envoy.fetches.len(), 3, "the fill, and two ranges");
    // The part is not kept: the next request is sent to the origin again.
    let next = envoy.far_range(0, KEY);
    assert_eq!(admission(&envoy, next), Some(StoreRequest::Ahead));
}

#[test]
fn equal_range_asks_for_itself_where_the_first_has_nothing_to_share() {
    let part = ("content-range", "bytes 900-909/1024");
    for (status, headers) in [
        (206, [("etag", "\"v1\""), part, ("set-cookie", "a=b")]),
        (
            206,
            [("etag", "\"v1\""), part, ("cache-control", "private")],
        ),
        (206, [("etag", "\"v2\""), part, ("x-a", "b")]),
        (503, [("x-a", "b"), ("x-b", "c"), ("x-c", "d")]),
    ] {
        let mut envoy = envoy(1);
        envoy.get(0, KEY);
        envoy.answer(FIRST, Answer::Storable);
        let ranges = [0, 1].map(|_| envoy.far_range(0, KEY));
        let ahead = assert_asked(&envoy, ranges[0]);
        assert_eq!(envoy.stage(ranges[1]), Stage::Parked);
        envoy.answer_with(ahead, status, &headers, b"0123456789");
        assert_eq!(
            release(&envoy, ranges[1]),
            Some(NextStep::Send(StoreRequest::Ahead)),
            "{headers:?}"
        );
    }
}

#[test]
fn equal_range_asks_for_itself_when_the_client_of_the_first_leaves() {
    for begun in [false, true] {
        let mut envoy = envoy(1);
        envoy.get(0, KEY);
        envoy.answer(FIRST, Answer::Storable);
        let ranges = [0, 1].map(|_| envoy.far_range(0, KEY));
        let ahead = assert_asked(&envoy, ranges[0]);
        if begun {
            envoy.answer(ahead, Answer::Storable);
            envoy.progress(ahead);
        }
        envoy.abort(ranges[0]);
        assert_eq!(
            release(&envoy, ranges[1]),
            Some(NextStep::Send(StoreRequest::Ahead))
        );
        let ahead = assert_asked(&envoy, ranges[1]);
        assert_served(&mut envoy, ranges[1], ahead);
        fill(&mut envoy, FIRST);
        assert_all_over(&mut envoy);
    }
}

#[test]
fn range_waits_where_another_part_could_be_of_other_bytes_or_nothing_of_it_is_wanted() {
    let strong = [("etag", "\"v1\""), ("accept-ranges", "bytes")];
    let weak = [("etag", "W/\"v1\""), ("accept-ranges", "bytes")];
    let whole = [("etag", "\"v1\""), ("accept-ranges", "none")];
    let none = ("x-a", "b");
    for (headers, condition, goes) in [
        (strong, none, true),
        (strong, ("if-range", "\"v1\""), true),
        (strong, ("if-none-match", "\"v0\""), true),
        (weak, none, false),
        (whole, none, false),
        (strong, ("if-range", "\"v0\""), false),
        (strong, ("if-none-match", "\"v1\""), false),
        (strong, ("if-match", "\"v0\""), false),
        (strong, ("range", "bytes=950-959"), false),
        (strong, ("range", "bytes=2000-"), false),
    ] {
        let mut envoy = envoy(1);
        envoy.get(0, KEY);
        let headers = [("cache-control", "max-age=60"), headers[0], headers[1]];
        envoy.answer_with(FIRST, 200, &headers, &[b'.'; 1_024]);
        let range = envoy.request(0, "GET", KEY, &[FAR, condition]);
        let expected = goes.then_some(StoreRequest::Ahead);
        assert_eq!(
            admission(&envoy, range),
            expected,
            "{headers:?} {condition:?}"
        );
        let head = envoy.request(0, "HEAD", KEY, &[FAR]);
        assert_ne!(admission(&envoy, head), Some(StoreRequest::Ahead));
    }
}

#[test]
fn range_of_what_the_edge_compresses_waits() {
    let sections = r#""coalesce": {"range_ahead": 100}, "compression": {"enabled": true}"#;
    for (coding, goes) in [("br", false), ("identity", true)] {
        let mut envoy = FakeEnvoy::new(&document(sections), 1);
        let encoding = ("accept-encoding", coding);
        envoy.request(0, "GET", KEY, &[encoding]);
        envoy.answer(FIRST, Answer::Storable);
        let range = envoy.request(0, "GET", KEY, &[FAR, encoding]);
        let expected = goes.then_some(StoreRequest::Ahead);
        assert_eq!(admission(&envoy, range), expected, "{coding}");
    }
}

#[test]
fn range_of_what_is_not_stored_goes_around_the_store_as_it_is() {
    let mut envoy = envoy(1);
    let range = envoy.far_range(0, KEY);
    envoy.answer_lookup(0);
    envoy.answer(FIRST, Answer::Storable);
    envoy.answer(FetchId(1), Answer::Uncacheable);
    assert_eq!(
        release(&envoy, range),
        Some(NextStep::HitForMiss(UncacheableReason::Private))
    );
    let fetch = envoy.fetches.last().unwrap();
    assert_eq!(fetch.headers.get("range"), Some(FAR.1));
    assert_eq!(fetch.headers.get("if-range"), None);
}

/// A range, with one more header, that has gone ahead of a fill, and the origin's request for it.
fn gone_ahead(more: (&str, &str)) -> (FakeEnvoy, Client, FetchId) {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    envoy.answer(FIRST, Answer::Storable);
    let range = envoy.request(0, "GET", KEY, &[FAR, more]);
    let fetch = assert_asked(&envoy, range);
    (envoy, range, fetch)
}

#[test]
fn range_is_cut_out_of_the_whole_where_the_origin_has_another_version_by_now() {
    let (mut envoy, range, fetch) = gone_ahead(("x-a", "b"));
    let mut object = vec![b'.'; 1_024];
    object[900..910].copy_from_slice(b"0123456789");
    envoy.answer_with(fetch, 200, &[("etag", "\"v2\"")], &object);
    envoy.end(fetch);
    let record = &envoy.clients[range.0];
    assert_eq!((record.status(), record.body()), (206, &b"0123456789"[..]));
    assert_eq!(record.header("content-range"), Some("bytes 900-909/1024"));
    assert_eq!(record.header("etag"), Some("\"v2\""));
}

#[test]
fn client_with_a_part_of_one_version_gets_no_part_of_another() {
    let if_range = ("if-range", "\"v1\"");
    let (mut envoy, range, fetch) = gone_ahead(if_range);
    envoy.answer_with(fetch, 200, &[("etag", "\"v2\"")], &[b'.'; 1_024]);
    envoy.end(fetch);
    let record = &envoy.clients[range.0];
    assert_eq!((record.status(), record.body().len()), (200, 1_024));

    // The origin ignores `If-Range`.
    let part = [("etag", "\"v2\""), ("content-range", "bytes 900-909/1024")];
    let (mut envoy, range, fetch) = gone_ahead(if_range);
    envoy.answer_with(fetch, 206, &part, b"0123456789");
    assert_eq!(envoy.stage(range), Stage::Over(Ending::Failed(502)));

    // A client without a part of the object may have the other version.
    let (mut envoy, range, fetch) = gone_ahead(("x-a", "b"));
    envoy.answer_with(fetch, 206, &part, b"0123456789");
    envoy.end(fetch);
    let record = &envoy.clients[range.0];
    assert_eq!((record.status(), record.body()), (206, &b"0123456789"[..]));
}

#[test]
fn error_for_a_range_ahead_is_its_own_clients() {
    let (mut envoy, range, fetch) = gone_ahead(("x-a", "b"));
    let follower = envoy.get(0, KEY);
    envoy.answer(fetch, Answer::Failed(503));
    envoy.end(fetch);
    assert_eq!(envoy.clients[range.0].status(), 503);
    fill(&mut envoy, FIRST);
    assert_eq!(
        release(&envoy, follower),
        Some(NextStep::Send(StoreRequest::Collapsed))
    );
    assert_all_over(&mut envoy);
}

#[test]
fn fill_for_a_range_ahead_goes_on_when_its_client_leaves() {
    let mut envoy = envoy(1);
    let range = envoy.far_range(0, KEY);
    envoy.answer_lookup(0);
    envoy.answer(FIRST, Answer::Storable);
    envoy.answer(FetchId(1), Answer::Storable);
    assert_eq!(
        release(&envoy, range),
        Some(NextStep::Send(StoreRequest::Ahead))
    );
    envoy.abort(range);
    let leader = envoy.fetches[1].client;
    assert_eq!(envoy.clients[leader.0].kind, Kind::Background);
    fill(&mut envoy, FetchId(1));
    let later = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, later), Some(StoreRequest::Fresh));
    envoy.close_all();
    assert_all_over(&mut envoy);
}
