// SPDX-License-Identifier: Apache-2.0
//! Edges that are one cache: FRONT, the port for peers, and the lines of the purge feed that peers tell each other.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod feed;
mod front;
mod port;
mod tiers;

use sluice_core::internal_headers::{PEER_HEADER, PURGES_HEADER};
use sluice_core::policy::purge::TokenHash;
use sluice_fake::{Client, FakeEnvoy, HeaderMap, HeaderTexts as _};

use crate::support::KEY;

/// The secret of the peers.
const SECRET: &str = "peers-secret-of-the-tests";
/// The identity of the purge feed.
const FEED: &str = "9f2c41d0";
/// The route of a request that another edge may answer too, and of one that no other edge may.
const FROM_PEER: &str = "peers";
const OWN: &str = "own";

/// A policy with peers, a purge feed, and these further settings of purges.
fn document(purge: &str) -> String {
    let secret = TokenHash::of(SECRET.as_bytes()).to_hex();
    let token = FakeEnvoy::token_hash();
    let purge = format!(
        r#"{{"warm": false, "token_sha256": "{token}", "feed": {{"every": "2s"}}{purge}}}"#
    );
    format!(
        r#"{{"origin": {{"kind": "http"}}, "purge": {purge}, "peers": {{"secret_sha256": "{secret}"}},
        "limits": {{"hints": 64, "varying_urls": 64}}}}"#
    )
}

/// An edge with peers whose first worker reads the purge feed, and has read this many lines.
fn edge(workers: usize, lines: u64) -> FakeEnvoy {
    let mut envoy = FakeEnvoy::new(&document(""), workers);
    envoy.tick_all();
    answer_feed(&mut envoy, lines);
    envoy
}

/// The position of this line in the feed.
fn line(number: u64) -> String {
    format!("{FEED}.{number}")
}

/// Answers the reading that is under way with a feed of this many lines. No line concerns an object of the tests.
fn answer_feed(envoy: &mut FakeEnvoy, lines: u64) {
    let fetch = envoy.send_reading(0);
    let path = envoy.fetches[fetch.0].headers.get(":path");
    assert_eq!(path, Some("/.sluice/purges"));
    let lines = (1..=lines).map(|number| {
        format!("{number} 2026-11-25T07:31:02Z url http://edge.test/purged-{number}\n")
    });
    let feed = format!(
        "sluice-purges/1 {FEED}\nbase 0 0\n{}",
        lines.collect::<String>()
    );
    envoy.answer_with(fetch, 200, &[], feed.as_bytes());
    envoy.end(fetch);
    envoy.deliver_all();
}

/// A peer's request, whose sender has applied these purges.
fn of_peer(method: &str, purges: Option<&str>) -> HeaderMap {
    let path = format!("/{KEY}");
    let mut headers = HeaderMap::of(&[
        (":method", method),
        (":scheme", "http"),
        (":authority", "edge.test"),
        (":path", &path),
        (PEER_HEADER, SECRET),
    ]);
    if let Some(purges) = purges {
        headers.add(PURGES_HEADER, purges);
    }
    headers
}

/// Sends a peer's GET to a worker. Its sender has applied this line of the feed.
fn ask(envoy: &mut FakeEnvoy, seat: usize, number: u64) -> Client {
    let purges = format!("{} 0 0", line(number));
    envoy.at_peers_port(seat, FROM_PEER, of_peer("GET", Some(&purges)))
}
