// SPDX-License-Identifier: Apache-2.0
//! Policies from documents in the form that operators write.

use serde_json::{Value, json};
use sluice_core::policy::{CorsPolicy, Policy, PolicyError};

/// The policy of a document. The document must be accepted.
pub fn parse(document: &Value) -> Policy {
    Policy::parse(document.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// The error for a document. The document must be refused.
pub fn refusal(document: &Value) -> String {
    let error = Policy::parse(document.to_string().as_bytes()).expect_err("it should be refused");
    assert!(error.to_string().starts_with(error.path()), "{error}");
    error.to_string()
}

/// The document of a bucket `site`, with these fields in its origin.
pub fn bucket_at(origin: Value) -> Value {
    let mut document = json!({
        "origin": { "kind": "bucket", "bucket": "site", "authority": "s3.test:9000" },
    });
    merge(&mut document["origin"], origin);
    document
}

/// The document of a bucket `site` with `sections`.
pub fn bucket_document(sections: Value) -> Value {
    let mut document = bucket_at(json!({}));
    merge(&mut document, sections);
    document
}

/// The document of an HTTP origin with `sections`.
pub fn http_document(sections: Value) -> Value {
    let mut document = json!({ "origin": { "kind": "http" } });
    merge(&mut document, sections);
    document
}

/// Adds the fields of one object to another.
pub fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => into.extend(from),
        (_, Value::Null) => {}
        _ => panic!("only objects are merged"),
    }
}

fn bucket_with(sections: &str) -> Result<Policy, PolicyError> {
    let document = bucket_document(serde_saphyr::from_str(sections).unwrap());
    Policy::parse(document.to_string().as_bytes())
}

fn http_with(sections: &str) -> Result<Policy, PolicyError> {
    let document = http_document(serde_saphyr::from_str(sections).unwrap());
    Policy::parse(document.to_string().as_bytes())
}

/// The policy of a bucket `site` with these sections, in YAML.
pub fn bucket_policy(sections: &str) -> Policy {
    bucket_with(sections).unwrap_or_else(|error| panic!("{sections}: {error}"))
}

/// The policy of an HTTP origin with these sections, in YAML.
pub fn http_policy(sections: &str) -> Policy {
    http_with(sections).unwrap_or_else(|error| panic!("{sections}: {error}"))
}

/// The error for a bucket's policy with these sections.
pub fn bucket_refusal(sections: &str) -> String {
    bucket_with(sections).expect_err(sections).to_string()
}

/// The error for an HTTP origin's policy with these sections.
pub fn http_refusal(sections: &str) -> String {
    http_with(sections).expect_err(sections).to_string()
}

/// Cross-origin resource sharing with these fields, in YAML.
pub fn cors(fields: &str) -> CorsPolicy {
    let fields: Value = serde_saphyr::from_str(fields).unwrap();
    let sections = json!({ "website": { "cors": fields } }).to_string();
    http_policy(&sections).website.cors.unwrap()
}
