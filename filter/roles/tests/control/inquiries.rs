// SPDX-License-Identifier: Apache-2.0
//! Questions to the origin: one request, whose response is not stored.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use serde_json::{Value, json};
use sluice_core::coalescing::StoreRequest;
use sluice_fake::{Client, FakeEnvoy, FetchId, HeaderTexts as _};

use super::document;
use crate::support::{FIRST, KEY, admission, document as policy, envoy, live};

const QUESTION: &str = "/explain?host=edge.test&path=/7&online=1";

/// Asks the origin, which answers with these headers, and returns the origin's part of the answer.
fn ask(envoy: &mut FakeEnvoy, status: u16, headers: &[(&str, &str)]) -> Value {
    let client = envoy.inspect(0, QUESTION, &[]);
    let fetch = FetchId(envoy.fetches.len() - 1);
    assert_eq!(envoy.fetches[fetch.0].headers.get(":method"), Some("HEAD"));
    envoy.answer_with(fetch, status, headers, b"");
    envoy.end(fetch);
    answered(envoy, client)
}

fn answered(envoy: &FakeEnvoy, client: Client) -> Value {
    let (status, document) = document(envoy, client);
    assert_eq!(status, 200, "{document}");
    document["online"].clone()
}

#[test]
fn the_origin_is_asked_once_and_nothing_is_stored() {
    let mut envoy = envoy(1);
    let headers = [("cache-control", "max-age=60"), ("content-length", "9")];
    let online = ask(&mut envoy, 200, &headers);
    assert_eq!(online["status"], 200);
    assert_eq!(
        (&online["verdict"], &online["reasons"]),
        (&json!("stored"), &json!([]))
    );
    assert_eq!(
        (&online["ttl_ms"], &online["error"]),
        (&json!(60_000), &Value::Null)
    );
    assert_eq!(online["headers"]["cache-control"], "max-age=60");
    assert_eq!((envoy.fetches.len(), envoy.has(KEY)), (1, false));
    let client = envoy.get(0, KEY);
    assert_eq!(admission(&envoy, client), Some(StoreRequest::Lead));
    envoy.abort(client);
    envoy.tick(0);
    assert!(!envoy.tick(0), "no timer without work");
}

#[test]
fn the_verdict_is_the_one_on_the_response_to_a_get() {
    let answers: [(u16, &[(&str, &str)]); 10] = [
        (200, &[("cache-control", "max-age=60")]),
        (200, &[("cache-control", "private")]),
        (200, &[("cache-control", "no-store")]),
        (200, &[("cache-control", "max-age=0")]),
        (
            200,
            &[("cache-control", "max-age=60"), ("set-cookie", "a=secret")],
        ),
        (200, &[("cache-control", "max-age=60"), ("vary", "x-plan")]),
        (200, &[("cache-control", "max-age=60"), ("vary", "*")]),
        (200, &[]),
        (404, &[("cache-control", "max-age=60")]),
        (206, &[("cache-control", "max-age=60")]),
    ];
    for (status, headers) in answers {
        let mut envoy = FakeEnvoy::new(&policy(r#""response": {"account": true}"#), 1);
        let online = ask(&mut envoy, status, headers);
        let client = envoy.get(0, KEY);
        let fetch = FetchId(envoy.fetches.len() - 1);
        envoy.answer_with(fetch, status, headers, b"object");
        let reason = envoy.property(client, "sluice.uncacheable");
        envoy.end(fetch);
        envoy.commit(KEY);
        assert_eq!(online["verdict"] == "stored", envoy.has(KEY), "{online}");
        let told = online["reasons"][0].as_str();
        let told = told.and_then(|told| told.split(':').next());
        assert_eq!(told, reason.as_deref(), "{online}");
        assert!(!online.to_string().contains("secret"));
    }
}

#[test]
fn an_error_of_the_origin_is_told_with_its_status() {
    let mut envoy = envoy(1);
    let online = ask(&mut envoy, 503, &[]);
    assert_eq!(
        (&online["status"], &online["verdict"]),
        (&json!(503), &json!("not stored"))
    );
    let reason = online["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("server-error: "), "{reason}");
}

#[test]
fn an_origin_that_does_not_answer_leaves_an_answer_without_its_part() {
    let mut envoy = envoy(1);
    let client = envoy.inspect(0, QUESTION, &[]);
    live(&mut envoy, 5_000);
    assert_eq!(document(&envoy, client).0, 0, "it waits for the origin");
    live(&mut envoy, 7_000);
    let error = json!({"error": "the origin was not reached in time"});
    assert_eq!(answered(&envoy, client), error);
}

#[test]
fn a_request_that_is_refused_asks_no_origin() {
    let mut envoy = envoy(1);
    let path = "/explain?host=edge.test&path=/100%25&online=1";
    let client = envoy.inspect(0, path, &[]);
    let error = json!({"error": "the edge does not send this request to an origin"});
    assert_eq!(answered(&envoy, client), error);
    assert!(envoy.fetches.is_empty());
}

#[test]
fn the_headers_of_the_request_reach_the_origin() {
    let mut envoy = envoy(1);
    let headers = [
        ("x-explain-x-plan", "free"),
        ("x-explain-authorization", "Basic eA=="),
        ("x-explain-range", "bytes=0-1"),
    ];
    let client = envoy.inspect(0, QUESTION, &headers);
    let sent = &envoy.fetches[FIRST.0].headers;
    assert_eq!(sent.get("x-plan"), Some("free"));
    assert_eq!(sent.get("authorization"), Some("Basic eA=="));
    assert_eq!(sent.get("range"), None);
    let headers = [("cache-control", "max-age=60")];
    envoy.answer_with(FIRST, 200, &headers, b"");
    envoy.end(FIRST);
    let online = answered(&envoy, client);
    let reason = online["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("authorization: "), "{reason}");
}
