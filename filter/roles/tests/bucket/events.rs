// SPDX-License-Identifier: Apache-2.0
//! Events of a bucket: events that change an object purge it, and all others are counted and logged.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::StoreRequest;
use sluice_core::metrics::Metric;
use sluice_fake::FakeEnvoy;

use crate::support::{FIRST, KEY, admission, fill};

/// An edge in front of a bucket, which accepts the bucket's events.
fn bucket(workers: usize) -> FakeEnvoy {
    let origin = r#""origin": {"kind": "bucket", "bucket": "edge", "addressing": "virtual_host", "authority": "edge.test"}"#;
    let limits = r#""limits": {"hints": 64, "varying_urls": 64}"#;
    let token = FakeEnvoy::token_hash();
    let purge = format!(r#""purge": {{"warm": false, "token_sha256": "{token}"}}"#);
    FakeEnvoy::new(&format!("{{{origin}, {limits}, {purge}}}"), workers)
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
