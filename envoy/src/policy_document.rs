// SPDX-License-Identifier: Apache-2.0
//! The filter's policy as a document: read from a file, completed with what the settings say, and checked.

use std::fmt;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use sluice_core::policy::Policy;

use crate::journal::Past;
use crate::origin::Origin;
use crate::settings::{AccessLog, Settings};

const BUCKET: &str = include_str!("../policies/bucket.yaml");
const HTTP: &str = include_str!("../policies/http.yaml");

/// The policies that come with the edge, by the names that `POLICY` takes.
const READY_MADE: [(&str, &str); 5] = [
    ("bucket", BUCKET),
    ("http", HTTP),
    ("spa", include_str!("../policies/spa.yaml")),
    ("downloads", include_str!("../policies/downloads.yaml")),
    (
        "versioned-assets",
        include_str!("../policies/versioned-assets.yaml"),
    ),
];

/// Where the policy comes from that a user has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyChoice {
    /// One that comes with the edge.
    ReadyMade(&'static str),
    /// A file.
    File(PathBuf),
}

impl PolicyChoice {
    /// The ready-made policy of that name.
    pub fn ready_made(name: &str) -> Option<Self> {
        let mut names = READY_MADE.iter().map(|(name, _)| *name);
        names.find(|known| *known == name).map(Self::ReadyMade)
    }
}

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
        let (source, text) = read(settings.policy.as_ref(), origin)?;
        Self::parse(&text, settings, origin)
            .map_err(|reason| PolicyDocumentError { source, reason })
    }

    /// Adds what is known of former processes.
    pub fn remember(&mut self, past: &Past) -> Result<(), PolicyDocumentError> {
        let Some(purges) = &past.purges else {
            return Ok(());
        };
        let records: Vec<&str> = purges.lines().collect();
        let recorded = past.socket.is_some();
        [
            ("journal", json!(records)),
            ("recorded", json!(recorded)),
            ("warm", json!(past.warm)),
        ]
        .into_iter()
        .try_for_each(|(field, value)| self.fill_purge(field, value))
    }

    /// Adds that messages of Amazon SNS are taken.
    pub fn take_sns(&mut self) -> Result<(), PolicyDocumentError> {
        self.fill_purge("sns", json!(true))
    }

    fn fill_purge(&mut self, field: &str, value: Value) -> Result<(), PolicyDocumentError> {
        fill(&mut self.json, "purge", field, value).map_err(|reason| PolicyDocumentError {
            source: "the policy".to_owned(),
            reason,
        })
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

fn read(
    choice: Option<&PolicyChoice>,
    origin: &Origin,
) -> Result<(String, String), PolicyDocumentError> {
    match (choice, origin) {
        (Some(PolicyChoice::ReadyMade(name)), _) => {
            let text = READY_MADE.iter().find(|(known, _)| known == name);
            let text = text.map(|(_, text)| *text).unwrap_or_default();
            Ok((format!("POLICY={name}"), text.into()))
        }
        (Some(PolicyChoice::File(path)), _) => {
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
    if let Some(token) = settings.purge.token {
        fill(document, "purge", "token_sha256", json!(token.to_hex()))?;
    }
    fill(
        document,
        "store",
        "max_object_bytes",
        json!(settings.cache.max_object_bytes),
    )?;
    let account = settings.access_log == AccessLog::Json || settings.tracing.is_some();
    fill(document, "response", "account", json!(account))?;
    fill(document, "hot", "max_bytes", json!(settings.hot.max_bytes))?;
    fill(
        document,
        "hot",
        "max_object_bytes",
        json!(settings.hot.max_object_bytes),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SettingsError;
    use sluice_core::policy::{self, QueryRule};
    use std::time::Duration;

    fn settings(origin: &str) -> Settings {
        let read: Result<_, SettingsError> =
            Settings::from_lookup(&|name| (name == "ORIGIN").then(|| origin.into()));
        read.unwrap()
    }

    fn parse(text: &str, origin: &str) -> Result<PolicyDocument, String> {
        let settings = settings(origin);
        PolicyDocument::parse(text, &settings, settings.origin.as_ref().unwrap())
    }

    #[test]
    fn the_built_in_policies_are_valid_for_their_kind_of_origin() {
        for (name, text) in READY_MADE {
            let origin = match name {
                "http" => "http://example.com",
                _ => "s3://site/a",
            };
            parse(text, origin).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    #[test]
    fn settings_fill_in_where_the_bucket_is() {
        let document = parse(BUCKET, "s3://site/a b").unwrap();
        let policy::Origin::Bucket(bucket) = document.policy.origin else {
            panic!("no bucket")
        };
        assert_eq!(bucket.authority, "site.s3.us-east-1.amazonaws.com");
        assert_eq!(bucket.path_prefix, "/a%20b");
        assert_eq!(
            document.json.pointer("/store/max_object_bytes"),
            Some(&json!(16 << 20))
        );
    }

    #[test]
    fn requests_are_accounted_for_where_the_access_log_or_traces_show_it() {
        for (variable, value, shown) in [
            ("ACCESS_LOG", "json", true),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318", true),
            ("ACCESS_LOG", "text", false),
            ("ACCESS_LOG", "off", false),
        ] {
            let lookup = |name: &str| match name {
                "ORIGIN" => Some("http://example.com".into()),
                name => (name == variable).then(|| value.into()),
            };
            let settings = Settings::from_lookup(&lookup).unwrap();
            let origin = settings.origin.as_ref().unwrap();
            let document = PolicyDocument::parse(HTTP, &settings, origin).unwrap();
            assert_eq!(
                document.policy.response.account, shown,
                "{variable}={value}"
            );
        }
    }

    #[test]
    fn a_file_that_contradicts_the_settings_is_refused() {
        for (text, origin, field) in [
            ("origin: {kind: http}", "s3://site", "origin.kind"),
            (
                "origin: {kind: bucket, bucket: other}",
                "s3://site",
                "origin.bucket",
            ),
            (
                "store: {max_object_bytes: 5}",
                "http://example.com",
                "store.max_object_bytes",
            ),
        ] {
            let error = parse(text, origin).unwrap_err();
            assert!(
                error.starts_with(field) && error.contains("contradicts"),
                "{error}"
            );
        }
    }

    #[test]
    fn json_is_read_too_and_statuses_need_no_quotes() {
        let json = parse(
            r#"{"key": {"query": {"mode": "drop", "allow": ["v"]}}}"#,
            "s3://site",
        )
        .unwrap();
        assert_eq!(
            json.policy.key.query,
            QueryRule::Drop {
                allow: vec!["v".into()]
            }
        );
        let yaml = parse("cache: {ttl: {200: 30d}}", "s3://site").unwrap();
        let days = Duration::from_secs(30 * 24 * 60 * 60);
        assert_eq!(
            yaml.policy.cache.default.ttl.exact.first(),
            Some(&(200, days))
        );
    }

    #[test]
    fn a_bad_document_is_refused_with_the_fields_path() {
        for (text, reason) in [
            ("cache: {tll: {}}", "cache.tll"),
            ("cache: {hit_for_miss: soon}", "cache.hit_for_miss"),
            ("- a\n- b", "the document"),
            ("cache: 5", "cache"),
            ("a: [", "did not find"),
            ("cache: {}\ncache: {}", "duplicate"),
        ] {
            let error = parse(text, "s3://site").unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
