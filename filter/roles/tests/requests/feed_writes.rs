// SPDX-License-Identifier: Apache-2.0
//! Purges that an edge also writes to the purge feed, by the entry point.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::{Value, json};
use sluice_core::metrics::Metric;
use sluice_fake::{Client, FakeEnvoy, Stage};

/// An edge in front of a bucket, which reads the purge feed, and writes it or not.
fn edge(writes: bool) -> FakeEnvoy {
    let token = FakeEnvoy::token_hash();
    let policy = format!(
        r#"{{"origin": {{"kind": "bucket", "bucket": "site", "authority": "s3.test"}},
        "purge": {{"warm": false, "token_sha256": "{token}", "writes_feed": {writes}, "feed": {{"every": "2s"}}}}}}"#
    );
    FakeEnvoy::new(&policy, 1)
}

fn answer(envoy: &FakeEnvoy, client: Client) -> (u16, Value) {
    let record = &envoy.clients[client.0];
    let document = serde_json::from_slice(record.body());
    (record.status(), document.unwrap_or_default())
}

/// A notification that the object `a b` was written.
const EVENT: &str = r#"{"Records": [{"eventName": "ObjectCreated:Put", "s3": {
    "bucket": {"name": "site"}, "object": {"key": "a%20b", "sequencer": "17F3"}}}]}"#;

#[test]
fn a_purge_is_in_the_feed_before_its_receipt_goes_out() {
    let mut envoy = edge(true);
    let calls = [
        (r#"{"url": "/a"}"#, "url /a\n"),
        (r#"{"prefix": "/d/", "soft": true}"#, "soft prefix /d/\n"),
        (r#"{"surrogate_keys": ["x", "y"]}"#, "keys - x y\n"),
        (r#"{"everything": true}"#, "everything\n"),
    ];
    for (number, (order, line)) in (1..).zip(calls) {
        let purge = envoy.purge(0, order);
        assert_eq!(envoy.outside_calls(0), [line.as_bytes()], "{order}");
        assert_eq!(envoy.stage(purge), Stage::Parked);
        envoy.answer_outside_call_with(0, 200, &[], format!("{}", 121 + number).as_bytes());
        let (status, mut receipt) = answer(&envoy, purge);
        let by = receipt.as_object_mut().unwrap().remove("by");
        assert!(by.unwrap().as_str().unwrap().ends_with('Z'));
        let expected = json!({"number": number, "workers": 1, "feed": 121 + number});
        assert_eq!((status, receipt), (200, expected));
    }
    assert_eq!(envoy.counter(Metric::FeedWritten), 4);
}

#[test]
fn the_events_of_a_message_are_lines_with_their_numbers() {
    let mut envoy = edge(true);
    let event = envoy.notify(0, EVENT);
    // The key may be encoded or not.
    let lines = b"url s3://site/a%20b#17F3\nurl s3://site/a%2520b#17F3\n";
    assert_eq!(envoy.outside_calls(0), [lines]);
    envoy.answer_outside_call_with(0, 200, &[], b"7");
    assert_eq!(answer(&envoy, event).1["feed"], 7);
    assert_eq!(envoy.counter(Metric::FeedWritten), 2);
}

#[test]
fn a_purge_that_the_feed_does_not_get_is_in_force_here_and_says_why() {
    let mut envoy = edge(true);
    let failures = [
        (Some(502), "status 403: allow it", 502),
        (Some(503), "too many purges", 503),
        (Some(200), "no number", 502),
        (None, "no answer in time", 503),
    ];
    for (number, (failure, reason, expected)) in (1..).zip(failures) {
        let purge = envoy.purge(0, r#"{"url": "/a"}"#);
        match failure {
            Some(status) => envoy.answer_outside_call_with(0, status, &[], reason.as_bytes()),
            None => envoy.fail_outside_call(0),
        }
        let (status, receipt) = answer(&envoy, purge);
        assert_eq!((status, &receipt["number"]), (expected, &json!(number)));
        let error = receipt["error"].as_str().unwrap();
        let here = "in force on this edge only, because the purge feed was not written";
        assert_eq!(error, format!("{here}: {reason}; purge again"));
        assert_eq!(envoy.counter(Metric::FeedUnwritten), number);
    }
    assert_eq!(envoy.counter(Metric::Purges), 4);
}

#[test]
fn a_purge_that_no_line_can_have_is_refused_where_lines_are_written() {
    let order = r#"{"surrogate_keys": ["a\nb"]}"#;
    for (writes, status) in [(true, 400), (false, 200)] {
        let mut envoy = edge(writes);
        let purge = envoy.purge(0, order);
        assert_eq!(answer(&envoy, purge).0, status);
        assert!(envoy.outside_calls(0).is_empty());
    }
}

#[test]
fn control_an_edge_that_does_not_write_the_feed_answers_without_it() {
    let mut envoy = edge(false);
    let purge = envoy.purge(0, r#"{"url": "/a"}"#);
    assert_eq!(
        answer(&envoy, purge),
        (200, json!({"number": 1, "workers": 1}))
    );
    envoy.notify(0, EVENT);
    // The operator's command has its own way to write the feed.
    let mut writer = edge(true);
    writer.control(0, "POST", "/purge", &[], Some(r#"{"url": "/a"}"#));
    assert!(envoy.outside_calls(0).is_empty() && writer.outside_calls(0).is_empty());
}
