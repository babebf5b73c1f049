// SPDX-License-Identifier: Apache-2.0
//! Headers for the origin: their names, and the places of their values.

use serde_json::{Value, json};
use sluice_core::policy::{HeaderSource, SetHeader};

use crate::support::documents::{bucket_document, http_document, parse, refusal};

fn document(headers: &Value) -> Value {
    http_document(json!({ "request": { "set_headers": headers } }))
}

#[test]
fn a_header_for_the_origin_has_its_value_in_a_variable_or_a_file() {
    let headers = json!({ "X-Origin-Secret": { "env": "ORIGIN_SECRET" }, "Authorization": { "file": "/run/token" } });
    let policy = parse(&document(&headers));
    let expected = [
        ("authorization", HeaderSource::File("/run/token".to_owned())),
        (
            "x-origin-secret",
            HeaderSource::Environment("ORIGIN_SECRET".to_owned()),
        ),
    ];
    let expected = expected.map(|(name, source)| SetHeader {
        name: name.to_owned(),
        source,
    });
    let mut found = policy.request.set_headers;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    assert_eq!(found, expected);
    assert!(
        policy
            .response
            .ignore_vary
            .contains(&"x-origin-secret".to_owned())
    );
}

#[test]
fn a_header_that_is_not_the_operators_to_set_is_refused() {
    for name in [
        "Host",
        "host",
        "Connection",
        "TE",
        "Transfer-Encoding",
        "Keep-Alive",
        "Upgrade",
        "Expect",
        "Content-Length",
        "X-Sluice-Proof",
        "X-Envoy-Original-Path",
        "Range",
        "If-None-Match",
        "Accept-Encoding",
        "CDN-Loop",
        "Via",
        "a b",
        ":path",
    ] {
        let refused = refusal(&document(&json!({ name: { "env": "A" } })));
        let expected = format!(
            "request.set_headers.{name}: expected a header that an origin may simply be given"
        );
        assert!(refused.starts_with(&expected), "{refused}");
    }
    let twice = refusal(&document(
        &json!({ "x-a": { "env": "A" }, "X-A": { "env": "A" } }),
    ));
    assert!(
        twice.contains("an origin may simply be given, once"),
        "{twice}"
    );
    let keyed = http_document(json!({
        "key": { "headers": ["X-Plan"] },
        "request": { "set_headers": { "x-plan": { "env": "A" } } },
    }));
    let expected = "request.set_headers.x-plan: expected a header that is not one of key.headers";
    assert_eq!(refusal(&keyed), expected);
    let bucket =
        bucket_document(json!({ "request": { "set_headers": { "x-a": { "env": "A" } } } }));
    let expected = "request.set_headers: expected no headers for a bucket, which gets the signed headers alone";
    assert_eq!(refusal(&bucket), expected);
}

/// A value in the policy may be the secret itself.
#[test]
fn a_value_in_the_policy_is_refused_and_not_shown() {
    for value in [
        json!("hunter2"),
        json!({ "value": "hunter2" }),
        json!({ "env": "hunter2 " }),
        json!({ "file": "hunter2" }),
        json!({ "env": ["hunter2"] }),
        json!({ "env": "A", "file": "/hunter2" }),
        json!({}),
    ] {
        let refused = refusal(&document(&json!({ "x-a": value.clone() })));
        assert!(
            refused.starts_with("request.set_headers.x-a"),
            "{value}: {refused}"
        );
        assert!(
            !refused.contains("hunter2") && refused.contains("expected "),
            "{value}: {refused}"
        );
    }
}
