// SPDX-License-Identifier: Apache-2.0
//! Request headers on their way to an HTTP origin: the headers in the key, and the headers that may affect a shared
//! response.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice_core::coalescing::StoreRequest;
use sluice_fake::{Answer, Client, FakeEnvoy, FetchId, HeaderTexts as _, Kind};

use crate::support::{FIRST, KEY, document, envoy, fill, live};

const SCHEME: &str = "x-forwarded-proto";

/// A request with this scheme.
fn by(envoy: &mut FakeEnvoy, method: &str, scheme: &str, more: &[(&str, &str)]) -> Client {
    let headers = [&[(SCHEME, scheme)], more].concat();
    envoy.request(0, method, KEY, &headers)
}

/// Schemes of the origin's requests.
fn schemes(envoy: &FakeEnvoy) -> Vec<Option<&str>> {
    let asked = envoy.fetches.iter();
    asked.map(|fetch| fetch.headers.get(SCHEME)).collect()
}

/// Redirects requests without TLS to HTTPS, and answers all others.
fn answer_by_scheme(envoy: &mut FakeEnvoy, fetch: FetchId) {
    match envoy.fetches[fetch.0].headers.get(SCHEME) {
        Some("https") => envoy.answer(fetch, Answer::Storable),
        _ => {
            let headers = [
                ("location", "https://edge.test/7"),
                ("cache-control", "max-age=60"),
            ];
            envoy.answer_with(fetch, 301, &headers, b"");
        }
    }
    fill(envoy, fetch);
}

#[test]
fn a_redirect_to_https_is_not_served_to_those_who_came_by_it() {
    let mut envoy = envoy(1);
    let plain = by(&mut envoy, "GET", "http", &[]);
    answer_by_scheme(&mut envoy, FIRST);
    assert_eq!(envoy.clients[plain.0].status(), 301);
    let safe = by(&mut envoy, "GET", "https", &[]);
    answer_by_scheme(&mut envoy, FetchId(1));
    assert_eq!(envoy.clients[safe.0].status(), 200);
    for (scheme, status) in [("https", 200), ("http", 301), ("HTTPS", 200)] {
        let client = by(&mut envoy, "GET", scheme, &[]);
        assert_eq!(envoy.clients[client.0].status(), status, "{scheme}");
    }
    assert_eq!(schemes(&envoy), [Some("http"), Some("https")]);
}

#[test]
fn a_vary_that_names_the_scheme_costs_nothing_more() {
    let mut envoy = envoy(1);
    for fetch in [FIRST, FetchId(1)] {
        let scheme = ["http", "https"][fetch.0];
        by(&mut envoy, "GET", scheme, &[]);
        let varying = [
            ("cache-control", "max-age=60"),
            ("vary", "X-Forwarded-Proto"),
        ];
        envoy.answer_with(fetch, 200, &varying, b"one of two");
        fill(&mut envoy, fetch);
        let hit = by(&mut envoy, "GET", scheme, &[]);
        let hit = &envoy.clients[hit.0];
        assert_eq!(hit.header("vary"), Some("X-Forwarded-Proto"));
    }
    assert_eq!(envoy.fetches.len(), 2);
}

#[test]
fn a_purge_by_url_takes_the_responses_of_all_schemes() {
    let mut envoy = envoy(1);
    for fetch in 0..2 {
        by(&mut envoy, "GET", ["http", "https"][fetch], &[]);
        fill(&mut envoy, FetchId(fetch));
    }
    let purge = envoy.purge(0, r#"{"url": "http://edge.test/7"}"#);
    envoy.deliver_all();
    assert_eq!(envoy.clients[purge.0].status(), 200);
    for scheme in ["http", "https"] {
        by(&mut envoy, "GET", scheme, &[]);
    }
    assert_eq!(envoy.fetches.len(), 4);
}

#[test]
fn what_the_filter_asks_by_itself_is_asked_with_the_scheme_of_the_key() {
    for (method, more, kind) in [
        ("GET", ("range", "bytes=0-9"), Kind::Size),
        ("GET", ("if-none-match", "\"v1\""), Kind::Background),
        ("HEAD", ("accept", "*/*"), Kind::Other),
    ] {
        let mut envoy = envoy(1);
        by(&mut envoy, method, "HTTPS", &[more]);
        // A HEAD looks in the store first.
        envoy.answer_lookup(0);
        let asker = envoy.fetches[0].client;
        assert_eq!(envoy.clients[asker.0].kind, kind);
        assert_eq!(schemes(&envoy), [Some("https")], "{kind:?}");
    }
}

#[test]
fn a_refresh_is_asked_with_the_scheme_of_the_key() {
    let stale = document(r#""cache": {"stale_while_revalidate": "600s"}"#);
    let mut envoy = FakeEnvoy::new(&stale, 1);
    by(&mut envoy, "GET", "https", &[]);
    fill(&mut envoy, FIRST);
    let lifetime = 1_000 * (envoy.ttl + 2);
    live(&mut envoy, lifetime);
    by(&mut envoy, "GET", "https", &[]);
    assert_eq!(envoy.fetches[1].request, StoreRequest::Refresh);
    assert_eq!(schemes(&envoy), [Some("https"), Some("https")]);
}

#[test]
fn a_background_fill_whose_url_proves_to_vary_keeps_the_scheme() {
    let mut envoy = envoy(1);
    by(&mut envoy, "GET", "https", &[("accept", "text/one")]);
    let conditional = [("accept", "text/other"), ("if-none-match", "\"v1\"")];
    by(&mut envoy, "GET", "https", &conditional);
    envoy.answer(FIRST, Answer::Varying);
    envoy.end(FIRST);
    envoy.deliver_all();
    let asked = schemes(&envoy);
    assert!(asked.len() > 1);
    assert!(
        asked.iter().all(|scheme| *scheme == Some("https")),
        "{asked:?}"
    );
}

#[test]
fn a_header_that_changes_responses_reaches_the_origin_with_what_is_not_shared_alone() {
    let aimed = ("x-http-path-override", "/secret");
    for (method, more) in [
        ("GET", ("accept", "*/*")),
        ("HEAD", ("accept", "*/*")),
        ("GET", ("if-none-match", "\"v1\"")),
        // The size also decides for other clients whether the object is stored.
        ("GET", ("range", "bytes=0-9")),
    ] {
        let mut envoy = envoy(1);
        by(&mut envoy, method, "https", &[more, aimed]);
        envoy.answer_lookup(0);
        assert!(!envoy.fetches[0].headers.has(aimed.0), "{method} {more:?}");
    }
    let mut envoy = envoy(1);
    by(&mut envoy, "POST", "https", &[aimed]);
    assert_eq!(envoy.fetches[0].headers.get(aimed.0), Some(aimed.1));
}

#[test]
fn the_response_to_a_request_with_credentials_is_its_clients_alone() {
    let mut envoy = envoy(1);
    let key = [("x-api-key", "alice")];
    let clients = [(); 2].map(|()| by(&mut envoy, "GET", "https", &key));
    let other = by(&mut envoy, "GET", "https", &[]);
    assert_eq!(envoy.fetches.len(), 3, "no request waits for another");
    for (fetch, client) in clients.into_iter().enumerate() {
        envoy.answer_with(FetchId(fetch), 200, &[], b"Hello, Alice");
        envoy.end(FetchId(fetch));
        assert_eq!(envoy.clients[client.0].status(), 200);
        assert_eq!(envoy.fetches[fetch].headers.get("x-api-key"), Some("alice"));
        assert!(!envoy.fetches[fetch].fills);
    }
    assert_eq!(envoy.fetches[2].request, StoreRequest::Lead);
    fill(&mut envoy, FetchId(2));
    assert_eq!(envoy.clients[other.0].body().len(), 1_024);
}

#[test]
fn credentials_that_the_policy_strips_reach_the_origin_with_no_response_that_is_shared() {
    let strips = document(r#""request": {"authorization": "strip"}"#);
    let mut envoy = FakeEnvoy::new(&strips, 1);
    let key = [("x-api-key", "alice")];
    by(&mut envoy, "GET", "https", &key);
    fill(&mut envoy, FIRST);
    by(&mut envoy, "GET", "https", &[]);
    assert_eq!(envoy.fetches.len(), 1);
    assert!(!envoy.fetches[0].headers.has("x-api-key"));
}

/// Envoy signs a tab unchanged, and S3 signs a space in its place, so the bucket would refuse the signature.
#[test]
fn a_bucket_gets_header_values_in_the_form_that_s3_signs() {
    let mut envoy = FakeEnvoy::new(
        r#"{"origin": {"kind": "bucket", "bucket": "site", "authority": "s3.test"}, "purge": {"warm": false},
        "request": {"forward_headers": ["x-note"]}, "key": {"headers": ["x-kind"]}}"#,
        1,
    );
    let headers = [("x-note", "a\tb  c"), ("x-kind", "d\t e"), ("x-other", "f")];
    envoy.request(0, "GET", KEY, &headers);
    let sent = &envoy.fetches[0].headers;
    assert_eq!(sent.get("x-note"), Some("a b c"));
    assert_eq!(sent.get("x-kind"), Some("d e"));
    assert_eq!(sent.get("x-other"), None);
}

/// An edge in an environment with these variables.
fn named(variables: &[(&str, &str)]) -> FakeEnvoy {
    FakeEnvoy::in_environment(&document(""), 1, variables)
}

#[test]
fn each_origin_is_told_the_name_of_the_cache_by_cdn_loop_and_via() {
    let mut envoy = named(&[("SLUICE_CACHE_NAME", "edge.example")]);
    let theirs = [("cdn-loop", "other;x"), ("via", "1.0 proxy")];
    envoy.request(0, "GET", KEY, &theirs);
    envoy.request(0, "POST", KEY, &[]);
    let told = |fetch: usize, name: &str| {
        let lines = envoy.fetches[fetch].headers.iter();
        let lines = lines.filter(|(line, _)| *line == name);
        let lines: Vec<_> = lines
            .map(|(_, value)| String::from_utf8_lossy(value))
            .collect();
        lines.join(", ")
    };
    assert_eq!(told(0, "cdn-loop"), "other;x, edge.example");
    assert_eq!(told(0, "via"), "1.0 proxy, 1.1 edge.example");
    assert_eq!(told(1, "cdn-loop"), "edge.example");
    assert_eq!(told(1, "via"), "1.1 edge.example");
}

#[test]
fn via_is_left_out_where_it_is_off() {
    let mut envoy = named(&[("SLUICE_VIA", "FALSE")]);
    envoy.request(0, "GET", KEY, &[]);
    let fetch = &envoy.fetches[0];
    assert_eq!(fetch.headers.get("via"), None);
    let told = fetch.headers.get("cdn-loop").unwrap();
    assert!(told.starts_with("sluice;id="), "{told}");
}

#[test]
fn a_request_that_has_come_back_is_refused_and_reaches_nobody() {
    let mut envoy = envoy(2);
    envoy.request(0, "GET", KEY, &[]);
    let told = envoy.fetches[0].headers.get("cdn-loop").unwrap().to_owned();
    fill(&mut envoy, FIRST);
    for (seat, method) in [(0, "GET"), (1, "GET"), (0, "HEAD"), (1, "POST")] {
        let back = envoy.request(
            seat,
            method,
            KEY,
            &[("cdn-loop", "other"), ("cdn-loop", &told)],
        );
        let back = &envoy.clients[back.0];
        assert_eq!(back.status(), 508, "{method}");
        assert_eq!(back.header("cache-control"), Some("no-store"));
    }
    let other = [("cdn-loop", "sluice;id=00000000, sluice")];
    let other = envoy.request(0, "GET", KEY, &other);
    assert_eq!(envoy.clients[other.0].status(), 200);
    assert_eq!(envoy.fetches.len(), 1);
}
