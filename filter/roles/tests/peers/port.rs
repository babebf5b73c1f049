// SPDX-License-Identifier: Apache-2.0
//! The port for peers: which requests it takes, and which it sends back.

use sluice_core::internal_headers::{
    CLIENT_HEADER, KEY_HEADER, PEER_HEADER, PEER_REFUSED_HEADER, PURGES_HEADER,
};
use sluice_core::metrics::Metric;
use sluice_fake::{Answer, Client, FakeEnvoy, FetchId};

use super::{FROM_PEER, OWN, SECRET, answer_feed, ask, document, edge, line, of_peer};
use crate::support::{self, KEY, fill};

/// Whether a request was sent back, so that its sender asks elsewhere.
fn is_sent_back(envoy: &FakeEnvoy, client: Client) -> bool {
    let client = &envoy.clients[client.0];
    let refused = client.header(PEER_REFUSED_HEADER);
    assert_eq!(refused, (client.status() == 503).then_some("1"));
    refused.is_some()
}

/// Requests the object, and lets the origin fill the store. Returns the fetch.
fn fetch(envoy: &mut FakeEnvoy, seat: usize, number: u64) -> FetchId {
    let client = ask(envoy, seat, number);
    let fetch = FetchId(envoy.fetches.len() - 1);
    fill(envoy, fetch);
    assert_eq!(envoy.clients[client.0].brought_by(), Some(fetch));
    fetch
}

#[test]
fn a_request_without_the_secret_is_refused_whatever_it_carries() {
    let mut envoy = edge(1, 0);
    let fetches = envoy.fetches.len();
    for shown in [None, Some("another-secret-of-no-peer"), Some("")] {
        for method in ["GET", "POST", "OPTIONS"] {
            let mut headers = of_peer(method, None);
            headers.remove(PEER_HEADER);
            if let Some(shown) = shown {
                headers.add(PEER_HEADER, shown);
            }
            for route in [FROM_PEER, OWN] {
                let client = envoy.at_peers_port(0, route, headers.clone());
                let client = &envoy.clients[client.0];
                assert_eq!(client.status(), 403, "{shown:?} {method}");
                assert_eq!(client.header(PEER_REFUSED_HEADER), Some("1"));
                assert_eq!(client.header("cache-control"), Some("no-store"));
                assert_eq!(client.body(), b"This port is for peers.\n");
            }
        }
    }
    assert_eq!(envoy.counter(Metric::PeersRefused), 18);
    assert_eq!(envoy.fetches.len(), fetches);
}

#[test]
fn an_edge_without_peers_has_no_secret_that_a_request_could_show() {
    let mut envoy = support::envoy(1);
    for secret in [SECRET, ""] {
        let mut headers = of_peer("GET", None);
        headers.set(PEER_HEADER, secret);
        let client = envoy.at_peers_port(0, FROM_PEER, headers);
        assert_eq!(envoy.clients[client.0].status(), 403, "{secret}");
    }
}

#[test]
fn a_peer_gets_the_response_of_a_client_and_the_origin_sees_no_header_of_the_peer() {
    let mut envoy = edge(1, 2);
    let mut headers = of_peer("GET", Some(&format!("{} 0 0", line(2))));
    headers.add(KEY_HEADER, "edge.test/7");
    headers.add(CLIENT_HEADER, "192.0.2.1");
    headers.add("x-own", "1");
    let client = envoy.at_peers_port(0, FROM_PEER, headers);
    let fetch = FetchId(envoy.fetches.len() - 1);
    let sent = &envoy.fetches[fetch.0].headers;
    assert!(sent.has("x-own"));
    for name in [KEY_HEADER, CLIENT_HEADER, PEER_HEADER, PURGES_HEADER] {
        assert!(!sent.has(name), "{name}");
    }
    fill(&mut envoy, fetch);
    assert_eq!(envoy.clients[client.0].brought_by(), Some(fetch));
    let hit = ask(&mut envoy, 0, 2);
    assert_eq!(envoy.clients[hit.0].brought_by(), Some(fetch));
    assert_eq!(envoy.counter(Metric::RequestsHit), 1);
}

#[test]
fn a_response_tells_the_last_line_to_peers_and_to_no_client() {
    let mut envoy = edge(1, 2);
    let fetched = fetch(&mut envoy, 0, 2);
    let told = |envoy: &FakeEnvoy, client: Client| {
        let client = &envoy.clients[client.0];
        assert_eq!(client.brought_by(), Some(fetched));
        client.header(PURGES_HEADER).map(str::to_owned)
    };
    for method in ["GET", "GET", "GET"] {
        let hit = envoy.at_peers_port(0, FROM_PEER, of_peer(method, None));
        assert_eq!(told(&envoy, hit), Some(line(2)));
        envoy.close_all();
    }
    let own = envoy.get(0, KEY);
    assert_eq!(told(&envoy, own), None);
}

#[test]
fn an_edge_that_lacks_lines_or_declares_other_numbers_sends_a_request_back() {
    let declared = r#", "declared": [{"prefix": "/", "number": 41}]"#;
    let mut envoy = FakeEnvoy::new(&document(declared), 1);
    envoy.tick_all();
    answer_feed(&mut envoy, 2);
    for (purges, expected) in [
        ("9f2c41d0.2 41 0", false),
        ("9f2c41d0.1 41 0", false),
        ("- 41 0", false),
        ("9f2c41d0.2 42 0", true),
        ("9f2c41d0.2 40 0", true),
        ("9f2c41d0.2 41 1", true),
        ("00000001.1 41 0", true),
        // From here on the edge knows that it lacks a line.
        ("9f2c41d0.3 41 0", true),
        ("9f2c41d0.2 41 0", true),
    ] {
        let client = envoy.at_peers_port(0, FROM_PEER, of_peer("GET", Some(purges)));
        assert_eq!(is_sent_back(&envoy, client), expected, "{purges}");
        let asked = envoy.fetches.last().unwrap().client == client;
        assert_eq!(asked, !expected, "{purges}: the origin");
        envoy.abort(client);
    }
    assert_eq!(envoy.counter(Metric::PeersLacking), 6);
}

#[test]
fn a_request_that_no_other_edge_may_answer_bypasses_the_cache_while_lines_are_lacking() {
    let mut envoy = edge(1, 1);
    let stored = fetch(&mut envoy, 0, 1);
    let purges = format!("{} 0 0", line(2));
    for number in 1..=2 {
        let client = envoy.at_peers_port(0, OWN, of_peer("GET", Some(&purges)));
        let around = FetchId(stored.0 + number);
        envoy.answer(around, Answer::Storable);
        envoy.end(around);
        assert_eq!(envoy.clients[client.0].brought_by(), Some(around));
        assert!(!envoy.fetches[around.0].fills);
        envoy.close_all();
    }
    assert_eq!(envoy.counter(Metric::PeersLacking), 0);
    answer_feed(&mut envoy, 2);
    let hit = envoy.at_peers_port(0, OWN, of_peer("GET", Some(&purges)));
    assert_eq!(envoy.clients[hit.0].brought_by(), Some(stored));
}

#[test]
fn a_request_that_changes_something_is_not_sent_back() {
    let mut envoy = edge(1, 1);
    let fetches = envoy.fetches.len();
    let purges = format!("{} 0 0", line(2));
    let client = envoy.at_peers_port(0, FROM_PEER, of_peer("DELETE", Some(&purges)));
    assert_eq!(envoy.clients[client.0].status(), 0);
    assert_eq!(envoy.fetches.len(), fetches + 1);
}
