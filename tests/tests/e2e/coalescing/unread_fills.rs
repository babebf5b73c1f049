// SPDX-License-Identifier: Apache-2.0
//! A client that requests one byte, or a 304, of ever new URLs cannot make the origin send every object.

use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};

const SIZE: usize = 1_000_000;
const URLS: usize = 40;

/// Bytes that the origin sends, and bytes of bodies that clients get, for one request for each of [`URLS`] cold URLs
/// under these limits.
async fn attack(limits: &str, header: (&str, &str), expected: u16) -> (u64, u64) {
    let origin = Origin::start().ready().await;
    origin.on("/a*", Reply::ok(SIZE).max_age(600).etag("v1").ranges());
    let policy = format!("origin: {{kind: http}}\nlimits: {{{limits}}}\n");
    let edge = Edge::http(&origin).workers(1).policy(&policy).start().await;
    let mut got = 0;
    for url in 0..URLS {
        let response = edge.send("GET", &format!("/a?{url}"), &[header]).await;
        assert_eq!(response.status, expected, "{response}");
        got += response.body.len() as u64;
    }
    edge.wait_for_value("sluice_flights_now", 0).await;
    (origin.bytes_sent(), got)
}

async fn assert_bounded(header: (&str, &str), expected: u16) {
    let most = 5 * SIZE as u64;
    let (sent, got) = attack(&format!("unread_fill_bytes: {most}"), header, expected).await;
    // The budget is refilled over time, so the origin may send more than the bound.
    assert!(sent <= 2 * most, "{sent} bytes for {got}");
    let (sent, got) = attack("unread_fill_bytes: 1000000000", header, expected).await;
    assert!(
        sent >= (URLS * SIZE) as u64,
        "the control: {sent} for {got}"
    );
}

#[tokio::test]
async fn one_byte_of_ever_new_urls_costs_the_origin_no_more_than_the_bound() {
    assert_bounded(("range", "bytes=0-0"), 206).await;
}

#[tokio::test]
async fn conditions_on_ever_new_urls_cost_the_origin_no_more_than_the_bound() {
    assert_bounded(("if-none-match", "\"v1\""), 304).await;
}
