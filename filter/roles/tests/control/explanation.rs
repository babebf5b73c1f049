// SPDX-License-Identifier: Apache-2.0
//! The explanation of a request.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use serde_json::{Value, json};
use sluice_core::coalescing::StoreRequest;
use sluice_core::inspection::Parameters;
use sluice_fake::{Answer, Client, FakeEnvoy, FetchId, HeaderTexts as _};

use super::{answer_of, inspect};
use crate::support::{FIRST, KEY, admission, document, envoy, fill};

/// A GET, without method and scheme.
type Get<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

fn explain(envoy: &mut FakeEnvoy, seat: usize, (host, path, headers): Get<'_>) -> Value {
    let mut question = "/explain".to_owned();
    for (name, value) in [("host", host), ("path", path), ("scheme", "http")] {
        Parameters::append(&mut question, name, value);
    }
    let headers = headers.iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| (format!("x-explain-{name}"), *value))
        .collect();
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    inspect(envoy, seat, &question, &headers)
}

/// Explains the usual GET.
fn explain_key(envoy: &mut FakeEnvoy, seat: usize) -> Value {
    explain(envoy, seat, ("edge.test", "/7", &[]))
}

fn send(envoy: &mut FakeEnvoy, (host, path, headers): Get<'_>) -> Client {
    let mut lines = vec![(":authority", host), (":path", path)];
    lines.extend(headers);
    envoy.request(0, "GET", 0, &lines)
}

/// Checks that EDGE decides about a request as it was explained just now.
fn assert_as_explained(envoy: &mut FakeEnvoy, get: Get<'_>) {
    let document = explain(envoy, 0, get);
    let decision = &document["decision"];
    let fetches = envoy.fetches.len();
    let client = send(envoy, get);
    // A range, and a request with credentials, wait until the store has been asked.
    envoy.answer_lookup(0);
    let (admission, fetch) = (admission(envoy, client), envoy.fetches.get(fetches));
    let response = envoy.clients[client.0].response.as_ref();
    match decision["admission"].as_str().unwrap() {
        "cached" => {
            assert!(
                matches!(admission, Some(StoreRequest::Lead) | None),
                "{decision}"
            );
            let stored = json!(fetch.unwrap().cache_key);
            assert_eq!(decision["store_key"], stored, "{get:?}");
            let asked = json!(fetch.unwrap().headers.get(":path"));
            assert_eq!(decision["bucket_path"], asked, "{get:?}");
        }
        "passed" => assert_eq!(admission, Some(StoreRequest::Bypass), "{decision}"),
        "redirected" => {
            let location = response.unwrap().headers.get("location");
            assert_eq!(decision["reason"], json!(location), "{get:?}");
        }
        _ => {
            let status = json!(response.unwrap().headers.status());
            assert_eq!(decision["status"], status, "{decision}");
            assert!(fetch.is_none(), "{decision}");
        }
    }
}

const REQUESTS: [Get<'static>; 14] = [
    ("edge.test", "/7", &[]),
    (
        "EDGE.test:80",
        "/a/../7?b=2&a=1",
        &[("accept-encoding", "br, gzip")],
    ),
    ("edge.test", "/x%2Fy", &[]),
    ("edge.test", "/../x", &[]),
    ("edge.test", "/100%", &[]),
    ("edge test", "/7", &[]),
    ("edge.test", "/8", &[("authorization", "Basic eA==")]),
    ("edge.test", "/8", &[("cookie", "a=b")]),
    ("edge.test", "/8", &[("cache-control", "no-store")]),
    ("edge.test", "/8", &[("upgrade", "websocket")]),
    ("edge.test", "/8", &[("x-plan", "free")]),
    (
        "edge.test",
        "/8?utm_source=x&page=2",
        &[("x-plan", "a b;c")],
    ),
    ("edge.test", "/dir/", &[("accept", "text/html")]),
    ("edge.test", "/8", &[("range", "bytes=0-9")]),
];

#[test]
fn edge_decides_about_each_request_as_it_was_explained() {
    let policies = [
        "",
        r#""key": {"headers": ["x-plan"], "query": {"remove": ["utm_*"]}}"#,
        r#""request": {"cache_control": "obey", "cookies": "pass", "authorization": "pass"}"#,
        r#""key": {"strip_prefix": "/dir"}"#,
    ];
    for policy in policies {
        for get in REQUESTS {
            let mut envoy = FakeEnvoy::new(&document(policy), 1);
            assert_as_explained(&mut envoy, get);
        }
    }
}

#[test]
fn each_worker_tells_its_own_facts_of_the_key_and_the_decision_is_told_once() {
    let mut envoy = FakeEnvoy::new(&document(r#""hot": {"max_bytes": 100000}"#), 2);
    envoy.get(0, KEY);
    let other = envoy.get(1, 8);
    envoy.abort(other);
    fill(&mut envoy, FIRST);
    envoy.get(0, KEY);
    envoy.close_all();
    envoy.advance(1_000);
    let document = explain_key(&mut envoy, 1);
    let decision = &document["decision"];
    assert_eq!(decision["site"], "");
    assert_eq!(decision["admission"], "cached");
    assert_eq!(decision["key"], "edge.test/7");
    assert_eq!(decision["bucket_path"], "/7");
    assert_eq!(decision["policy_rule"], Value::Null);
    let here = answer_of(&envoy, &document, 0);
    assert_eq!(here["hot"]["bytes"], 1_024);
    assert_eq!(here["hot"]["stored_ms_ago"], 1_000);
    assert!(here["hot"]["fresh_ms_left"].as_u64() > Some(3_000_000));
    assert_eq!(here["learnt"]["kind"], "fresh");
    assert_eq!(here["flight"], Value::Null);
    let there = answer_of(&envoy, &document, 1);
    assert_eq!(
        (&there["hot"], &there["learnt"]),
        (&Value::Null, &Value::Null)
    );
    let nothing = json!({"hard": null, "soft": null, "changed": null, "revalidates": false});
    assert_eq!(there["purges"], nothing);
}

#[test]
fn a_flight_and_a_hit_for_miss_are_explained() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    envoy.get(0, KEY);
    envoy.advance(250);
    let document = explain_key(&mut envoy, 0);
    let flight = &answer_of(&envoy, &document, 0)["flight"];
    assert_eq!(
        (&flight["since_ms"], &flight["waiting"]),
        (&json!(250), &json!(1))
    );
    for fetch in [FIRST, FetchId(1)] {
        envoy.answer(fetch, Answer::Uncacheable);
        envoy.end(fetch);
        envoy.close_all();
    }
    let document = explain_key(&mut envoy, 0);
    let learnt = &answer_of(&envoy, &document, 0)["learnt"];
    assert_eq!(learnt["kind"], "hit_for_miss");
    assert_eq!(learnt["reason"], "private");
    assert!(learnt["left_ms"].as_u64() > Some(0));
}

#[test]
fn the_purges_of_a_url_are_explained() {
    let mut envoy = envoy(1);
    envoy.get(0, KEY);
    fill(&mut envoy, FIRST);
    for order in [
        r#"{"url": "http://edge.test/7"}"#,
        r#"{"prefix": "http://edge.test/", "soft": true}"#,
    ] {
        envoy.purge(0, order);
    }
    let document = explain_key(&mut envoy, 0);
    let expected = json!({"hard": 1, "soft": 2, "changed": null, "revalidates": true});
    assert_eq!(answer_of(&envoy, &document, 0)["purges"], expected);
    assert_eq!(document["decision"]["key"], "edge.test/7#g=1");
}

#[test]
fn an_explanation_changes_nothing_for_the_next_request() {
    let mut envoy = envoy(2);
    let other = envoy.get(1, 8);
    envoy.abort(other);
    let fetches = envoy.fetches.len();
    for seat in [0, 1] {
        explain_key(&mut envoy, seat);
    }
    assert_eq!(envoy.fetches.len(), fetches);
    let client = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Lead));
    let document = explain_key(&mut envoy, 1);
    let stored = &document["decision"]["store_key"];
    assert_eq!(*stored, envoy.fetches[fetches].cache_key);
}

#[test]
fn the_rule_of_a_path_and_a_refusal_are_named() {
    let rules = r#""rules": [{"match": ["/x/*", "*.css"], "ttl": "1h"}]"#;
    let mut envoy = FakeEnvoy::new(&document(rules), 1);
    let document = explain(&mut envoy, 0, ("edge.test", "/a.css?b", &[]));
    assert_eq!(document["decision"]["policy_rule"], "*.css");
    let document = explain(&mut envoy, 0, ("edge.test", "/100%", &[]));
    let decision = &document["decision"];
    assert_eq!(
        (&decision["admission"], &decision["status"]),
        (&json!("refused"), &json!(400))
    );
    let reason = decision["reason"].as_str().unwrap();
    assert!(reason.contains("not followed by two hexadecimal digits"));
    assert_eq!(decision["key"], Value::Null);
    let number = super::number(&envoy, 0);
    assert_eq!(document["workers"], json!([{"worker": number}]));
}
