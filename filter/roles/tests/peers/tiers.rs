// SPDX-License-Identifier: Apache-2.0
//! An edge behind FRONT of another proxy, as in a fleet of the mesh.

use sluice_core::internal_headers::{FRONTS_PURGES_HEADER, PURGES_HEADER};
use sluice_fake::{Answer, Client, FakeEnvoy, FetchId};

use crate::support::{KEY, fill};

/// An edge that has stored the object under number 41 of the policy.
fn edge(peers: &str) -> (FakeEnvoy, FetchId) {
    let policy = format!(
        r#"{{"origin": {{"kind": "http"}}, "peers": {peers},
        "purge": {{"warm": false, "declared": [{{"prefix": "/", "number": 41}}]}}}}"#
    );
    let mut envoy = FakeEnvoy::new(&policy, 1);
    envoy.tick_all();
    envoy.get(0, KEY);
    fill(&mut envoy, FetchId(0));
    envoy.close_all();
    (envoy, FetchId(0))
}

/// Sends a GET with the purges that FRONT has applied.
fn ask(envoy: &mut FakeEnvoy, purges: &str) -> Client {
    envoy.request(0, "GET", KEY, &[(FRONTS_PURGES_HEADER, purges)])
}

#[test]
fn an_edge_asks_the_origin_while_it_lacks_a_purge_that_front_has_applied() {
    let (mut envoy, stored) = edge(r#"{"behind_front": true}"#);
    let same = ask(&mut envoy, "- 41 0");
    assert_eq!(envoy.clients[same.0].brought_by(), Some(stored));
    envoy.close_all();
    for number in 1..=2 {
        let newer = ask(&mut envoy, "- 42 0");
        let around = FetchId(number);
        let sent = &envoy.fetches[around.0].headers;
        assert!(!sent.has(FRONTS_PURGES_HEADER) && !sent.has(PURGES_HEADER));
        envoy.answer(around, Answer::Storable);
        envoy.end(around);
        assert_eq!(envoy.clients[newer.0].brought_by(), Some(around));
        assert!(!envoy.fetches[around.0].fills);
        envoy.close_all();
    }
    let same = ask(&mut envoy, "- 41 0");
    assert_eq!(envoy.clients[same.0].brought_by(), Some(stored));
}

#[test]
fn an_edge_that_has_no_front_does_not_listen_to_clients() {
    let (mut envoy, stored) = edge("{}");
    let client = ask(&mut envoy, "- 42 0");
    assert_eq!(envoy.clients[client.0].brought_by(), Some(stored));
}
