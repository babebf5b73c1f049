// SPDX-License-Identifier: Apache-2.0
//! The JSON Schema of the policy, made from the same definitions that read it.

mod described;

use serde_json::{Value, json};

use super::document::Document;
pub(super) use described::{Described, describe_field, describe_section};

/// The schema as it should be checked in.
fn schema() -> Value {
    let mut schema = Document::schema();
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Sluice policy");
    schema
}

#[test]
fn the_schema_is_of_this_version() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/policy.schema.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        std::fs::write(path, text).unwrap();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let checked_in: Value = serde_json::from_str(&text).unwrap_or_default();
    assert!(
        checked_in == schema(),
        "{path} is not what the policy's fields say; to regenerate it:\n\
         UPDATE_SCHEMA=1 cargo test -p sluice-core the_schema_is_of_this_version"
    );
}

#[test]
fn what_the_schema_calls_a_default_is_accepted() {
    fn check(schema: &Value, path: &str) {
        let Some(properties) = schema["properties"].as_object() else {
            return;
        };
        for (name, property) in properties {
            let path = format!("{path}.{name}");
            check(property, &path);
            let described = property["description"].as_str();
            assert!(described.is_some_and(|text| text.ends_with('.')), "{path}");
        }
    }
    let schema = schema();
    check(&schema, "");
    for section in [
        "store",
        "hot",
        "key",
        "request",
        "response",
        "website",
        "cache",
        "compression",
        "vary",
        "coalesce",
        "limits",
    ] {
        let properties = schema["properties"][section]["properties"]
            .as_object()
            .unwrap();
        let defaults = properties
            .iter()
            .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())));
        let spelled_out: serde_json::Map<String, Value> = defaults.collect();
        let document = json!({ "origin": { "kind": "http" }, section: spelled_out });
        let silent = json!({ "origin": { "kind": "http" } });
        let parse = |document: Value| super::Policy::parse(document.to_string().as_bytes());
        assert_eq!(parse(document), parse(silent), "{section}");
    }
}
