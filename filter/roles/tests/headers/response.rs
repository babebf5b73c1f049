// SPDX-License-Identifier: Apache-2.0
//! Response headers that a client gets, from the origin and from the store.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::internal_headers::CONNECTION_HEADER;
use sluice_fake::{FakeEnvoy, FetchId, HeaderTexts as _};

use crate::support::{FIRST, KEY, document, envoy, fill};

/// Values of these headers that the clients of a miss and of a hit get.
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

/// The second client's response after a first client with this cookie: the fetch of its body, and its `Set-Cookie`.
fn second_of(policy: &str, control: &str, cookie: &str) -> (usize, Option<String>) {
    let mut envoy = FakeEnvoy::new(&document(policy), 1);
    let cookies: &[(&str, &str)] = if cookie.is_empty() {
        &[]
    } else {
        &[("cookie", cookie)]
    };
    let first = envoy.request(0, "GET", KEY, cookies);
    assert_eq!(envoy.fetches[0].headers.get("cookie").unwrap_or(""), cookie);
    let sent = [("cache-control", control), ("set-cookie", "id=1")];
    let sent = if cookie.is_empty() {
        &sent[..]
    } else {
        &sent[..1]
    };
    envoy.answer_with(FIRST, 203, sent, b"an object");
    fill(&mut envoy, FIRST);
    assert_eq!(envoy.clients[first.0].status(), 203);
    let second = envoy.request(0, "GET", KEY, &[("cookie", "id=2")]);
    let set = envoy.clients[second.0].header("set-cookie");
    (envoy.fetches.len(), set.map(str::to_owned))
}

#[test]
fn a_set_cookie_is_stored_for_all_only_where_policy_and_origin_say_so() {
    let store = r#""cache": {"set_cookie": "store"}, "request": {"cookies": "ignore"}"#;
    let set = Some("id=1".to_owned());
    assert_eq!(second_of(store, "public, max-age=60", ""), (1, set.clone()));
    assert_eq!(second_of(store, "s-maxage=60", ""), (1, set));
    assert_eq!(second_of(store, "max-age=60", ""), (2, None));
    let pass = r#""request": {"cookies": "ignore"}"#;
    assert_eq!(second_of(pass, "public, max-age=60", ""), (2, None));
}

#[test]
fn the_response_to_a_cookie_is_stored_for_all_only_where_policy_and_origin_say_so() {
    let ignore = r#""request": {"cookies": "ignore"}"#;
    assert_eq!(second_of(ignore, "public, max-age=60", "id=1"), (1, None));
    assert_eq!(second_of(ignore, "max-age=60", "id=1"), (2, None));
    assert_eq!(second_of("", "public, max-age=60", "id=1"), (2, None));
}

#[test]
fn a_request_in_the_background_has_nobodys_cookie() {
    let policy = r#""request": {"cookies": "ignore"}, "cache": {"stale_while_revalidate": "60s"}"#;
    let mut envoy = FakeEnvoy::new(&document(policy), 1);
    envoy.get(0, KEY);
    envoy.answer_with(FIRST, 203, &[("cache-control", "max-age=10")], b"an object");
    fill(&mut envoy, FIRST);
    envoy.advance(20_000);
    envoy.request(0, "GET", KEY, &[("cookie", "id=2")]);
    envoy.close_all();
    envoy.tick(0);
    assert_eq!(envoy.fetches.len(), 2);
    assert_eq!(envoy.fetches[1].headers.get("cookie"), None);
}

#[test]
fn cache_status_says_the_key_where_the_policy_wants_it() {
    let policy = r#""response": {"cache_status_key": true}, "hot": {"max_bytes": 100000}"#;
    let mut envoy = FakeEnvoy::new(&document(policy), 1);
    let miss = envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    let mut clients = vec![miss];
    for _ in 0..4 {
        clients.push(envoy.get(0, KEY));
        envoy.close_all();
    }
    for client in clients {
        let said = envoy.clients[client.0].header("cache-status").unwrap();
        assert!(said.contains("; key=\"edge.test/7"), "{said}");
    }
}

#[test]
fn a_miss_of_a_variant_is_not_said_to_be_a_miss_of_the_url() {
    let mut envoy = envoy(1);
    let said = |envoy: &FakeEnvoy, client: sluice_fake::Client| {
        let said = envoy.clients[client.0].header("cache-status");
        said.unwrap().split(';').nth(1).unwrap().trim().to_owned()
    };
    let varying = [("cache-control", "max-age=60"), ("vary", "accept")];
    let mut forwards = Vec::new();
    for accept in ["text/html", "text/html", "text/plain"] {
        let fetch = FetchId(envoy.fetches.len());
        let client = envoy.request(0, "GET", KEY, &[("accept", accept)]);
        if envoy.fetches.len() > fetch.0 {
            envoy.answer_with(fetch, 203, &varying, b"one of several");
            fill(&mut envoy, fetch);
        }
        forwards.push(said(&envoy, client));
    }
    assert_eq!(forwards, ["fwd=uri-miss", "hit", "fwd=miss"]);
}

/// Answers with `lines` header lines that are fresh for a minute. Returns the status and the first of these lines that
/// the client got.
fn of_lines(lines: usize) -> (FakeEnvoy, u16, Option<String>) {
    let mut envoy: FakeEnvoy = envoy(1);
    let client = envoy.get(0, KEY);
    let names: Vec<_> = (1..lines).map(|line| format!("x-{line}")).collect();
    let lines = names.iter().map(|name| (name.as_str(), "1"));
    let sent: Vec<_> = [("cache-control", "max-age=60")]
        .into_iter()
        .chain(lines)
        .collect();
    envoy.answer_with(FIRST, 203, &sent, b"an object");
    envoy.end(FIRST);
    let client = &envoy.clients[client.0];
    let (status, first) = (client.status(), client.header("x-1").map(str::to_owned));
    (envoy, status, first)
}

#[test]
fn a_response_with_too_many_header_lines_is_502_and_not_stored() {
    let (mut envoy, status, first) = of_lines(200);
    assert_eq!((status, first.as_deref()), (203, Some("1")));
    envoy.get(0, KEY);
    assert_eq!(envoy.fetches.len(), 1);
    let (mut envoy, status, first) = of_lines(300);
    assert_eq!((status, first.as_deref()), (502, None));
    let status = envoy.clients[0].header("cache-status").unwrap();
    assert!(status.contains("detail=response-headers"), "{status}");
    envoy.get(0, KEY);
    assert_eq!(envoy.fetches.len(), 2);
    let log = envoy.log();
    let says = |line: &String| line.contains("more headers than 200 lines or 96 KiB");
    assert!(log.iter().any(says), "{log:?}");
}
