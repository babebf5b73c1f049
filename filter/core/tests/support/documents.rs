// SPDX-License-Identifier: Apache-2.0
//! Policies from documents, as people write them.

use serde_json::{Value, json};
use sluice_core::policy::{CorsPolicy, Policy, PolicyError};

fn parse(origin: Value, sections: &str) -> Result<Policy, PolicyError> {
    let sections: Value = serde_yaml_ng::from_str(sections).unwrap();
    let mut document = json!({ "origin": origin });
    if let (Value::Object(document), Value::Object(sections)) = (&mut document, sections) {
        document.extend(sections);
    }
    Policy::parse(document.to_string().as_bytes())
}

fn bucket_with(sections: &str) -> Result<Policy, PolicyError> {
    let origin = json!({ "kind": "bucket", "bucket": "site", "authority": "s3.test:9000" });
    parse(origin, sections)
}

fn http_with(sections: &str) -> Result<Policy, PolicyError> {
    parse(json!({ "kind": "http" }), sections)
}

/// The policy of a bucket `site` with these sections, in YAML.
pub fn bucket_policy(sections: &str) -> Policy {
    bucket_with(sections).unwrap_or_else(|error| panic!("{sections}: {error}"))
}

/// The policy of an HTTP origin with these sections, in YAML.
pub fn http_policy(sections: &str) -> Policy {
    http_with(sections).unwrap_or_else(|error| panic!("{sections}: {error}"))
}

/// Why a bucket's policy with these sections is refused.
pub fn bucket_refusal(sections: &str) -> String {
    bucket_with(sections).expect_err(sections).to_string()
}

/// Why an HTTP origin's policy with these sections is refused.
pub fn http_refusal(sections: &str) -> String {
    http_with(sections).expect_err(sections).to_string()
}

/// Cross-origin resource sharing with these fields, in YAML.
pub fn cors(fields: &str) -> CorsPolicy {
    let fields: Value = serde_yaml_ng::from_str(fields).unwrap();
    let sections = json!({ "site": { "cors": fields } }).to_string();
    http_policy(&sections).site.cors.unwrap()
}
