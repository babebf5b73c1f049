// SPDX-License-Identifier: Apache-2.0
//! The filter's policy as a document: read from a file, completed with what the settings say, and checked.

use std::fmt;
use std::path::Path;

use serde_json::{Map, Value, json};
use sluice_core::policy::Policy;

use crate::origin::Origin;
use crate::settings::Settings;

const BUCKET: &str = include_str!("../policies/bucket.yaml");
const HTTP: &str = include_str!("../policies/http.yaml");

/// Why a policy cannot be used: where it comes from, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDocumentError {
    source: String,
    reason: String,
}

impl fmt::Display for PolicyDocumentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.source, self.reason)
    }
}

impl std::error::Error for PolicyDocumentError {}

/// A policy, as text for the filter and as what that text means.
#[derive(Clone, Debug)]
pub struct PolicyDocument {
    /// The complete document.
    pub json: Value,
    /// Its meaning.
    pub policy: Policy,
}

impl PolicyDocument {
    /// The policy for `origin`: the user's file or the built-in one, complete.
    pub fn load(settings: &Settings, origin: &Origin) -> Result<Self, PolicyDocumentError> {
        let (source, text) = read(settings.policy.as_deref(), origin)?;
        Self::parse(&text, settings, origin)
            .map_err(|reason| PolicyDocumentError { source, reason })
    }

    fn parse(text: &str, settings: &Settings, origin: &Origin) -> Result<Self, String> {
        // JSON is YAML, so one reader does for both.
        let yaml: serde_yaml_ng::Value =
            serde_yaml_ng::from_str(text).map_err(|error| error.to_string())?;
        let mut json = serde_json::to_value(yaml).map_err(|error| error.to_string())?;
        complete(&mut json, settings, origin)?;
        let policy =
            Policy::parse(json.to_string().as_bytes()).map_err(|error| error.to_string())?;
        Ok(Self { json, policy })
    }
}

fn read(file: Option<&Path>, origin: &Origin) -> Result<(String, String), PolicyDocumentError> {
    match (file, origin) {
        (Some(path), _) => {
            let source = format!("POLICY={}", path.display());
            let text = std::fs::read_to_string(path);
            text.map(|text| (source.clone(), text))
                .map_err(|error| PolicyDocumentError {
                    source,
                    reason: error.to_string(),
                })
        }
        (None, Origin::Bucket(_)) => Ok(("the built-in policy for buckets".into(), BUCKET.into())),
        (None, Origin::Http(_)) => Ok(("the built-in policy for HTTP origins".into(), HTTP.into())),
    }
}

/// Fills in what the settings say; a document that says otherwise is refused.
fn complete(document: &mut Value, settings: &Settings, origin: &Origin) -> Result<(), String> {
    match origin {
        Origin::Bucket(bucket) => {
            fill(document, "origin", "kind", json!("bucket"))?;
            fill(document, "origin", "bucket", json!(bucket.name))?;
            fill(document, "origin", "prefix", json!(bucket.prefix))?;
            fill(
                document,
                "origin",
                "addressing",
                json!(bucket.addressing.name()),
            )?;
            fill(
                document,
                "origin",
                "authority",
                json!(bucket.endpoint.authority()),
            )?;
        }
        Origin::Http(_) => fill(document, "origin", "kind", json!("http"))?,
    }
    fill(
        document,
        "store",
        "version",
        json!(settings.store.version()),
    )?;
    fill(
        document,
        "store",
        "max_object_bytes",
        json!(settings.cache.max_object_bytes),
    )
}

fn fill(document: &mut Value, section: &str, field: &str, value: Value) -> Result<(), String> {
    let fields = object(document, "the document")?;
    let fields = object(
        fields
            .entry(section)
            .or_insert_with(|| Value::Object(Map::new())),
        section,
    )?;
    match fields.get(field) {
        Some(present) if *present != value => Err(format!(
            "{section}.{field}: {present} contradicts the edge's settings, which say {value}"
        )),
        _ => {
            fields.insert(field.to_owned(), value);
            Ok(())
        }
    }
}

fn object<'a>(value: &'a mut Value, name: &str) -> Result<&'a mut Map<String, Value>, String> {
    value
        .as_object_mut()
        .ok_or_else(|| format!("{name}: expected a mapping of fields"))
}
