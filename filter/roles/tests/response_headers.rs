// SPDX-License-Identifier: Apache-2.0
//! What a client sees of the headers of an origin's response, from the origin and from the store.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use sluice_core::link::CONNECTION_HEADER;
use sluice_fake::FakeEnvoy;
use support::{FIRST, KEY, envoy, fill};

/// What the clients of a miss and of a hit see of those headers.
fn seen(sent: &[(&str, &str)], names: &[&str]) -> [Vec<Option<String>>; 2] {
    let mut envoy: FakeEnvoy = envoy(1);
    let miss = envoy.get(0, KEY);
    envoy.answer_with(FIRST, 203, sent, b"an object");
    fill(&mut envoy, FIRST);
    let hit = envoy.get(0, KEY);
    assert_eq!(envoy.fetches.len(), 1);
    [miss, hit].map(|client| {
        let client = &envoy.clients[client.0];
        let value = |name: &&str| client.header(name).map(str::to_owned);
        names.iter().map(value).collect()
    })
}

#[test]
fn fields_that_connection_names_are_neither_stored_nor_sent_on() {
    let sent = [
        ("cache-control", "max-age=60"),
        (CONNECTION_HEADER, "keep-alive, X-Hop,b, cache-control"),
        ("keep-alive", "timeout=5"),
        ("proxy-authenticate", "Basic"),
        ("x-hop", "1"),
        ("b", "2"),
        ("c", "3"),
    ];
    let names = [
        "x-hop",
        "b",
        "keep-alive",
        CONNECTION_HEADER,
        "c",
        "cache-control",
    ];
    for seen in seen(&sent, &names) {
        let kept = [Some("3".to_owned()), Some("max-age=60".to_owned())];
        assert_eq!(seen[..4], [const { None }; 4]);
        assert_eq!(seen[4..], kept);
    }
}

#[test]
fn directives_that_envoy_has_joined_are_parted_as_the_origins_lines() {
    let sent = [("cache-control", "max-age=3600,s-maxage=60")];
    for seen in seen(&sent, &["cache-control"]) {
        assert_eq!(seen[0].as_deref(), Some("max-age=3600, s-maxage=60"));
    }
}
