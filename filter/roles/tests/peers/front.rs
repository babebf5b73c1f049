// SPDX-License-Identifier: Apache-2.0
//! FRONT names the key and the purges of a request that it sends to a peer, and the reasons to send it again.

use sluice_core::internal_headers::{KEY_HEADER, LARGE_HEADER, OWN_HEADER, PURGES_HEADER};
use sluice_core::metrics::Metric;
use sluice_fake::{FakeEnvoy, HeaderMap, HeaderTexts as _};

use super::{FROM_PEER, ask, document, edge, line, of_peer};
use crate::support::{self, KEY};

/// The headers with which FRONT sends on a GET for this path.
fn sent_on(envoy: &mut FakeEnvoy, path: &str, headers: &[(&str, &str)]) -> HeaderMap {
    let mut headers = headers.to_vec();
    headers.push((":path", path));
    let client = envoy.at_front(0, "GET", KEY, &headers);
    envoy.sent_on(client).expect("a request that goes on")
}

#[test]
fn all_spellings_of_a_url_have_one_key() {
    let mut envoy = edge(1, 0);
    for path in ["/a/7", "/a/b/../7", "/a/%37", "/a/./7"] {
        for forged in [&[][..], &[(KEY_HEADER, "edge.test/other")]] {
            let sent = sent_on(&mut envoy, path, forged);
            assert_eq!(sent.get(KEY_HEADER), Some("edge.test/a/7"), "{path}");
            assert_eq!(sent.get(":path"), Some(path), "the owner decides on it");
        }
    }
    let other = sent_on(&mut envoy, "/a/8", &[]);
    assert_eq!(other.get(KEY_HEADER), Some("edge.test/a/8"));
}

#[test]
fn only_a_read_may_be_sent_again_after_an_edge_has_received_it() {
    let mut envoy = edge(1, 0);
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let client = envoy.at_front(0, method, KEY, &[]);
        let sent = envoy.sent_on(client).unwrap();
        let expected = matches!(method, "GET" | "HEAD").then_some("reset");
        assert_eq!(sent.get("x-envoy-retry-on"), expected, "{method}");
        assert!(sent.has(KEY_HEADER), "{method}");
    }
}

#[test]
fn a_request_carries_the_purges_that_its_edge_has_applied() {
    let mut envoy = edge(1, 3);
    let sent = sent_on(&mut envoy, "/7", &[]);
    assert_eq!(sent.get(PURGES_HEADER), Some(&*format!("{} 0 0", line(3))));

    let declared = r#", "declared": [{"prefix": "/", "number": 41}, {"prefix": "/b", "number": 5, "soft": true}]"#;
    let mut envoy = FakeEnvoy::new(&document(declared), 1);
    for (path, expected) in [("/7", "- 41 0"), ("/b", "- 0 5")] {
        let sent = sent_on(&mut envoy, path, &[]);
        assert_eq!(sent.get(PURGES_HEADER), Some(expected), "{path}");
    }
}

#[test]
fn an_edge_without_purges_tells_none_of_its_own() {
    let mut envoy = support::envoy(1);
    let sent = sent_on(&mut envoy, "/7", &[]);
    assert!(!sent.has(PURGES_HEADER));
}

#[test]
fn a_url_that_no_edge_serves_goes_to_none() {
    let mut envoy = edge(1, 0);
    for path in ["/%zz", "/a%00"] {
        let client = envoy.at_front(0, "GET", KEY, &[(":path", path)]);
        assert_eq!(envoy.clients[client.0].status(), 400, "{path}");
        assert_eq!(envoy.sent_on(client), None, "{path}");
    }
    assert_eq!(envoy.counter(Metric::RequestsRejected), 2);
}

#[test]
fn a_directory_goes_to_any_edge_because_one_may_redirect_it() {
    let policy = r#"{"origin": {"kind": "bucket", "bucket": "site", "authority": "s3.test"}}"#;
    let mut envoy = FakeEnvoy::new(policy, 1);
    let sent = sent_on(&mut envoy, "/", &[]);
    assert!(!sent.has(KEY_HEADER));
    let object = sent_on(&mut envoy, "/7", &[]);
    assert!(object.has(KEY_HEADER));
}

#[test]
fn a_client_does_not_see_the_line_that_the_owner_tells() {
    let mut envoy = edge(1, 1);
    for told in [line(1), line(9), "no line".to_owned()] {
        let client = envoy.at_front(0, "GET", KEY, &[]);
        envoy.answer_front(client, 200, &[(PURGES_HEADER, &told), ("x-own", "1")]);
        let client = &envoy.clients[client.0];
        assert_eq!((client.status(), client.header("x-own")), (200, Some("1")));
        assert_eq!(client.header(PURGES_HEADER), None);
    }
}

#[test]
fn an_edge_that_hears_of_a_later_line_from_an_owner_answers_from_no_cache() {
    let mut envoy = edge(1, 1);
    for (told, status) in [(line(1), 0), ("no line".to_owned(), 0), (line(2), 503)] {
        let client = envoy.at_front(0, "GET", KEY, &[]);
        envoy.answer_front(client, 200, &[(PURGES_HEADER, &told)]);
        let asked = ask(&mut envoy, 0, 1);
        // A request that the edge answers itself waits for the origin.
        assert_eq!(envoy.clients[asked.0].status(), status, "{told}");
        envoy.abort(asked);
    }
    let read = envoy.at_peers_port(0, FROM_PEER, of_peer("GET", None));
    assert_eq!(envoy.clients[read.0].status(), 503);
}

#[test]
fn reads_of_an_object_that_its_owner_serves_in_slices_stay_at_this_edge() {
    let mut envoy = edge(1, 0);
    for (told, stays) in [(&[][..], None), (&[(LARGE_HEADER, "1")], Some("1"))] {
        let client = envoy.at_front(0, "GET", KEY, &[]);
        envoy.answer_front(client, 200, told);
        assert_eq!(envoy.clients[client.0].header(LARGE_HEADER), None);
        for (method, key, expected) in [
            ("GET", KEY, stays),
            ("HEAD", KEY, stays),
            ("DELETE", KEY, None),
            ("GET", KEY + 1, None),
        ] {
            let client = envoy.at_front(0, method, key, &[]);
            let sent = envoy.sent_on(client).unwrap();
            assert_eq!(sent.get(OWN_HEADER), expected, "{method} {key}");
            envoy.abort(client);
        }
    }
}
