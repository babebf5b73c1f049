// SPDX-License-Identifier: Apache-2.0
//! An edge that hears of a later line of the purge feed reads the feed at once, and no more often than it must.

use sluice_core::internal_headers::PURGES_HEADER;
use sluice_core::metrics::Metric;
use sluice_fake::{Client, FakeEnvoy, FetchId};

use super::{FROM_PEER, answer_feed, ask, document, edge, line, of_peer};
use crate::support::{KEY, fill};

/// Whether the edge answers a request itself, by its cache or the origin.
fn answers(envoy: &mut FakeEnvoy, seat: usize) -> bool {
    let client = envoy.at_peers_port(seat, FROM_PEER, of_peer("GET", None));
    let answers = envoy.clients[client.0].status() != 503;
    envoy.abort(client);
    answers
}

/// Lets time pass, with a feed that has this many lines. Returns the number of readings.
fn readings(envoy: &mut FakeEnvoy, millis: u64, lines: u64) -> usize {
    let mut readings = 0;
    for _ in 0..millis / 10 {
        envoy.advance(10);
        envoy.tick_all();
        envoy.deliver_all();
        if envoy.readings(0) > 0 {
            answer_feed(envoy, lines);
            readings += 1;
        }
    }
    readings
}

#[test]
fn a_line_that_any_worker_hears_of_is_read_at_once_and_all_workers_wait_for_it() {
    for hearing in [0, 1, 2] {
        let mut envoy = edge(3, 1);
        (0..3).for_each(|seat| assert!(answers(&mut envoy, seat)));
        let told = ask(&mut envoy, hearing, 2);
        assert_eq!(envoy.clients[told.0].status(), 503);
        envoy.deliver_all();
        assert_eq!(envoy.readings(0), 1, "no time has passed");
        for seat in 0..3 {
            assert!(!answers(&mut envoy, seat), "worker {seat}, {hearing} heard");
        }
        answer_feed(&mut envoy, 2);
        (0..3).for_each(|seat| assert!(answers(&mut envoy, seat)));
    }
}

#[test]
fn the_first_line_of_a_feed_is_read_at_once_by_a_worker_that_has_served_no_request() {
    let mut envoy = FakeEnvoy::new(&document(""), 2);
    envoy.tick_all();
    let missing = envoy.send_reading(0);
    envoy.answer_with(missing, 404, &[], b"");
    envoy.end(missing);
    assert!(answers(&mut envoy, 1));
    ask(&mut envoy, 1, 1);
    envoy.deliver_all();
    answer_feed(&mut envoy, 1);
    assert!(answers(&mut envoy, 1));
}

#[test]
fn a_line_that_an_owner_tells_is_read_at_once() {
    let mut envoy = edge(2, 1);
    let client = envoy.at_front(1, "GET", KEY, &[]);
    envoy.answer_front(client, 200, &[(PURGES_HEADER, &line(2))]);
    envoy.deliver_all();
    assert_eq!(envoy.readings(0), 1);
    answer_feed(&mut envoy, 2);
    assert!(answers(&mut envoy, 0) && answers(&mut envoy, 1));
}

#[test]
fn control_lines_that_are_known_and_other_feeds_cause_no_reading() {
    let mut envoy = edge(2, 5);
    for told in [
        line(5),
        line(4),
        "00000001.9".to_owned(),
        "no line".to_owned(),
    ] {
        let client = envoy.at_front(1, "GET", KEY, &[]);
        envoy.answer_front(client, 200, &[(PURGES_HEADER, &told)]);
        envoy.deliver_all();
        assert_eq!(envoy.readings(0), 0, "{told}");
        assert!(answers(&mut envoy, 0) && answers(&mut envoy, 1));
    }
}

#[test]
fn a_line_that_the_feed_does_not_have_costs_four_readings() {
    const MINUTE: u64 = 60_000;
    let mut alone = edge(2, 1);
    let ordinary = readings(&mut alone, MINUTE, 1);
    assert!((27..=34).contains(&ordinary), "{ordinary}");

    let mut told = edge(2, 1);
    let mut seen = 0;
    for number in 0..MINUTE / 100 {
        // Later lines, which the feed does not have either.
        ask(&mut told, 1, 1_000 + number);
        seen += readings(&mut told, 100, 1);
    }
    assert!(
        seen <= ordinary + 4,
        "{seen} readings, {ordinary} ordinary ones"
    );
    assert!(seen > ordinary, "{seen} readings, {ordinary} ordinary ones");
    assert!(!answers(&mut told, 0));
}

#[test]
fn readings_that_fail_become_no_more_frequent() {
    let mut envoy = edge(1, 1);
    ask(&mut envoy, 0, 2);
    let mut failed = 0;
    for _ in 0..1_000 {
        if envoy.readings(0) > 0 {
            let fetch = envoy.send_reading(0);
            envoy.answer_with(fetch, 503, &[], b"");
            envoy.end(fetch);
            failed += 1;
        }
        envoy.advance(10);
        envoy.tick_all();
    }
    assert!((5..=4 + 6).contains(&failed), "{failed} readings in 10 s");
    assert_eq!(readings(&mut envoy, 2_500, 2), 1);
    assert!(answers(&mut envoy, 0));
}

#[test]
fn lines_that_come_one_by_one_are_each_read_within_a_fifth_of_a_second() {
    let mut envoy = edge(2, 1);
    for number in 2..20 {
        ask(&mut envoy, 1, number);
        assert_eq!(readings(&mut envoy, 210, number), 1);
        assert!(answers(&mut envoy, 0) && answers(&mut envoy, 1));
    }
}

#[test]
fn a_line_that_is_told_during_a_reading_is_read_after_it() {
    let mut envoy = edge(1, 1);
    ask(&mut envoy, 0, 2);
    assert_eq!(envoy.readings(0), 1);
    ask(&mut envoy, 0, 3);
    assert_eq!(envoy.readings(0), 1);
    answer_feed(&mut envoy, 2);
    assert!(!answers(&mut envoy, 0));
    assert_eq!(readings(&mut envoy, 400, 3), 1);
    assert!(answers(&mut envoy, 0));
}

#[test]
fn a_worker_that_begins_to_serve_later_waits_for_the_line_too() {
    let mut envoy = edge(2, 1);
    ask(&mut envoy, 0, 2);
    assert!(!answers(&mut envoy, 1));
    answer_feed(&mut envoy, 2);
    assert!(answers(&mut envoy, 1));
}

#[test]
fn a_line_that_is_lacking_counts_until_it_is_read_whatever_other_feeds_there_are() {
    let mut envoy = edge(1, 1);
    ask(&mut envoy, 0, 2);
    envoy.at_peers_port(0, FROM_PEER, of_peer("GET", Some("00000001.9 0 0")));
    assert!(!answers(&mut envoy, 0));
    answer_feed(&mut envoy, 2);
    assert!(answers(&mut envoy, 0));
}

/// An edge that writes the feed, and has purged a URL on its second worker.
fn writer() -> (FakeEnvoy, Client) {
    let mut envoy = FakeEnvoy::new(&document(r#", "writes_feed": true"#), 2);
    envoy.tick_all();
    answer_feed(&mut envoy, 1);
    let stored = ask(&mut envoy, 0, 1);
    let fetch = FetchId(envoy.fetches.len() - 1);
    fill(&mut envoy, fetch);
    assert_eq!(envoy.clients[stored.0].brought_by(), Some(fetch));
    // Meanwhile it was time for a reading.
    answer_feed(&mut envoy, 1);
    let purge = envoy.purge(1, r#"{"url": "http://edge.test/another"}"#);
    (envoy, purge)
}

#[test]
fn an_edge_that_has_written_a_line_reads_it_at_once_and_serves_meanwhile() {
    let (mut envoy, purge) = writer();
    envoy.deliver_all();
    assert_eq!(envoy.readings(0), 0);
    envoy.answer_outside_call_with(1, 200, &[], b"2");
    envoy.deliver_all();
    assert_eq!(envoy.clients[purge.0].status(), 200);
    assert_eq!(envoy.readings(0), 1);
    assert!(answers(&mut envoy, 0) && answers(&mut envoy, 1));
    let hits = envoy.counter(Metric::RequestsHit);
    ask(&mut envoy, 0, 1);
    assert_eq!(envoy.counter(Metric::RequestsHit), hits + 1);
    answer_feed(&mut envoy, 2);
    let client = ask(&mut envoy, 0, 1);
    assert_eq!(
        envoy.clients[client.0].header(PURGES_HEADER),
        Some(&*line(2))
    );
}

#[test]
fn control_a_line_that_was_not_written_causes_no_reading() {
    let (mut envoy, purge) = writer();
    envoy.deliver_all();
    envoy.answer_outside_call_with(1, 502, &[], b"status 403");
    envoy.deliver_all();
    assert_eq!(envoy.clients[purge.0].status(), 502);
    assert_eq!(envoy.readings(0), 0);
}
