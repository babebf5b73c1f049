// SPDX-License-Identifier: Apache-2.0
//! Events of a bucket: events that change an object purge it, and all others are counted and logged.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::StoreRequest;
use sluice_core::metrics::Metric;
use sluice_fake::FakeEnvoy;

use crate::support::{FIRST, KEY, admission, fill};

/// An edge in front of a bucket, which accepts the bucket's events.
fn bucket(workers: usize) -> FakeEnvoy {
    bucket_with("", "", workers)
}

/// Such an edge with more in the section `purge`, and with more sections.
fn bucket_with(purge: &str, sections: &str, workers: usize) -> FakeEnvoy {
    let origin = r#""origin": {"kind": "bucket", "bucket": "edge", "addressing": "virtual_host", "authority": "edge.test"}"#;
    let limits = r#""limits": {"hints": 64, "varying_urls": 64}"#;
    let token = FakeEnvoy::token_hash();
    let purge = format!(r#""purge": {{"warm": false, "token_sha256": "{token}"{purge}}}"#);
    let document = format!("{{{origin}, {limits}, {purge}{sections}}}");
    FakeEnvoy::new(&document, workers)
}

fn event(name: &str, key: &str) -> String {
    format!(
        r#"{{"Records": [{{"eventName": "{name}", "s3": {{"bucket": {{"name": "edge"}}, "object": {{"key": "{key}"}}}}}}]}}"#
    )
}

/// Sends an event, and returns the status and the body of the response.
fn notify(envoy: &mut FakeEnvoy, seat: usize, event: &str) -> (u16, String) {
    let call = envoy.notify(seat, event);
    envoy.deliver_all();
    let client = &envoy.clients[call.0];
    let body = String::from_utf8_lossy(client.body()).into_owned();
    (client.status(), body)
}

fn lines(envoy: &FakeEnvoy) -> usize {
    let log = envoy.log();
    let told = log
        .iter()
        .filter(|line| line.contains("have purged nothing"));
    told.count()
}

#[test]
fn events_of_reads_purge_nothing_and_the_log_is_told_once_a_minute() {
    let mut envoy = bucket(2);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.close_all();
    for round in 0..5 {
        let read = event("s3:ObjectAccessed:Get", &KEY.to_string());
        let answer = notify(&mut envoy, round % 2, &read);
        assert_eq!(answer, (200, "{\"ignored\":1}\n".to_owned()));
    }
    let hit = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, hit), Some(StoreRequest::Fresh));
    envoy.close_all();
    let of = |envoy: &FakeEnvoy, metric| envoy.counter(metric);
    assert_eq!(of(&envoy, Metric::EventsRead), 5);
    assert_eq!(of(&envoy, Metric::Purges), 0);
    assert_eq!(lines(&envoy), 1, "{:?}", envoy.log());
    envoy.advance(60_000);
    for (seat, event, metric) in [
        (
            0,
            event("s3:ObjectTagging:Put", "7"),
            Metric::EventsUnchanged,
        ),
        (1, event("s3:ObjectNew:\\n", "7"), Metric::EventsUnknown),
        (
            0,
            event("ObjectCreated:Put", "7").replace("edge", "other"),
            Metric::EventsElsewhere,
        ),
    ] {
        assert_eq!(notify(&mut envoy, seat, &event).0, 200, "{event}");
        assert_eq!(of(&envoy, metric), 1, "{event}");
    }
    assert_eq!(lines(&envoy), 2, "{:?}", envoy.log());
    assert_eq!(of(&envoy, Metric::PurgesRefused), 0);
    assert_eq!(notify(&mut envoy, 0, "{").0, 400);
    assert_eq!(of(&envoy, Metric::PurgesRefused), 1);
}

#[test]
fn an_event_of_a_change_purges_among_events_of_reads() {
    let mut envoy = bucket(1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    envoy.close_all();
    let (read, changed) = (
        event("s3:ObjectAccessed:Get", "8"),
        event("s3:ObjectCreated:Put", &KEY.to_string()),
    );
    let (status, body) = notify(&mut envoy, 0, &format!("[{read}, {changed}]"));
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("\"number\":1"), "{body}");
    let miss = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, miss), Some(StoreRequest::Lead));
}

const ON_CREATED: &str = r#", "on_created": {"fetch": true}"#;

/// An event about an object of that size that was written.
fn written(key: &str, size: u64) -> String {
    let event = event("ObjectCreated:Put", key);
    let key = format!(r#""key": "{key}""#);
    event.replace(&key, &format!(r#"{key}, "size": {size}"#))
}

#[test]
fn a_written_object_is_fetched_once_and_the_next_client_gets_it_from_the_store() {
    for (on_created, fetches) in [(ON_CREATED, 1), ("", 0)] {
        let mut envoy = bucket_with(on_created, "", 2);
        assert_eq!(notify(&mut envoy, 0, &written("7", 100)).0, 200);
        assert_eq!(envoy.fetches.len(), fetches, "{on_created}");
        if fetches == 0 {
            continue;
        }
        fill(&mut envoy, FIRST);
        assert_eq!(envoy.counter(Metric::CreatedFetched), 1);
        assert_eq!(envoy.counter(Metric::CreatedFailed), 0);
        assert!(envoy.has(KEY));
        for seat in 0..2 {
            let browser = [("accept-encoding", "gzip, deflate, br, zstd")];
            let hit = envoy.request(seat, "GET", KEY, &browser);
            assert_eq!(envoy.fetches.len(), 1, "{:?}", envoy.clients[hit.0]);
            assert_eq!(envoy.clients[hit.0].status(), 200);
        }
    }
}

#[test]
fn a_written_object_is_fetched_in_its_new_version() {
    let mut envoy = bucket_with(ON_CREATED, "", 1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    assert_eq!(notify(&mut envoy, 0, &written("7", 100)).0, 200);
    assert_eq!(envoy.fetches.len(), 2);
}

#[test]
fn an_object_that_was_not_written_or_is_of_another_bucket_is_not_fetched() {
    let mut envoy = bucket_with(ON_CREATED, "", 1);
    let elsewhere = written("7", 1).replace(r#""edge""#, r#""other""#);
    for event in [event("ObjectRemoved:Delete", "7"), elsewhere] {
        assert_eq!(notify(&mut envoy, 0, &event).0, 200);
    }
    assert_eq!(envoy.fetches.len(), 0);
    assert_eq!(envoy.counter(Metric::CreatedSkipped), 0);
}

#[test]
fn the_bounds_are_for_all_workers_together_and_return_with_time() {
    let bounds = r#", "on_created": {"objects_per_minute": 2, "bytes_per_minute": 1000}"#;
    let mut envoy = bucket_with(bounds, "", 2);
    for (seat, key, size) in [(0, "7", 600), (1, "8", 600), (1, "9", 400), (0, "10", 0)] {
        assert_eq!(notify(&mut envoy, seat, &written(key, size)).0, 200);
    }
    assert_eq!(envoy.fetches.len(), 2);
    assert_eq!(envoy.counter(Metric::CreatedSkipped), 2);
    envoy.advance(60_000);
    assert_eq!(notify(&mut envoy, 0, &written("8", 600)).0, 200);
    assert_eq!(envoy.fetches.len(), 3);
}

#[test]
fn an_object_that_no_client_would_find_in_the_store_is_not_fetched() {
    let largest = r#", "store": {"max_object_bytes": 1000}"#;
    let access = r#", "access": {"allow": ["10.0.0.0/8"]}"#;
    for (sections, skipped) in [(largest, 1), (access, 0)] {
        let mut envoy = bucket_with(ON_CREATED, sections, 1);
        assert_eq!(notify(&mut envoy, 0, &written("7", 1_001)).0, 200);
        assert_eq!(envoy.fetches.len(), 0, "{sections}");
        assert_eq!(envoy.counter(Metric::CreatedSkipped), skipped, "{sections}");
    }
}

#[test]
fn an_object_that_the_bucket_does_not_give_counts_as_failed() {
    let mut envoy = bucket_with(ON_CREATED, "", 1);
    assert_eq!(notify(&mut envoy, 0, &written("7", 100)).0, 200);
    envoy.answer_with(FIRST, 404, &[("cache-control", "max-age=5")], b"missing");
    envoy.end(FIRST);
    envoy.commit(KEY);
    envoy.deliver_all();
    envoy.close_all();
    assert_eq!(envoy.counter(Metric::CreatedFailed), 1);
    assert_eq!(envoy.counter(Metric::CreatedFetched), 0);
}

#[test]
fn written_objects_wait_for_each_other() {
    let mut envoy = bucket_with(ON_CREATED, "", 1);
    let events: Vec<_> = (0..12).map(|key| written(&key.to_string(), 1)).collect();
    assert_eq!(
        notify(&mut envoy, 0, &format!("[{}]", events.join(", "))).0,
        200
    );
    assert_eq!(envoy.fetches.len(), 8);
    fill(&mut envoy, FIRST);
    assert_eq!(envoy.fetches.len(), 9);
}
