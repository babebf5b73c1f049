// SPDX-License-Identifier: Apache-2.0
//! The filter's policy as a document: chosen by the user or built in, completed from the settings, and checked.

use serde_json::{Map, Value, json};
use sluice_core::policy::Policy;
use thiserror::Error;

use crate::cache::EarlierRuns;
use crate::origin::Origin;
use crate::settings::{AccessLog, BUCKET, HTTP, PolicyChoice, Settings};

/// Why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{document}: {reason}")]
pub struct PolicyDocumentError {
    document: String,
    reason: String,
}

/// A policy as a document for the filter, and as what the document means.
#[derive(Clone, Debug)]
pub struct PolicyDocument {
    /// The complete document.
    pub json: Value,
    /// The policy that the document means.
    pub policy: Policy,
}

impl PolicyDocument {
    /// Loads and completes the policy for `origin`: the one that the user has chosen, or the built-in one.
    ///
    /// # Errors
    /// The file cannot be read, is no valid policy, or contradicts the settings.
    pub fn load(settings: &Settings, origin: &Origin) -> Result<Self, PolicyDocumentError> {
        let (document, text) = read(settings.policy.as_ref(), origin)?;
        Self::parse(&text, settings, origin)
            .map_err(|reason| PolicyDocumentError { document, reason })
    }

    /// Adds what the filter must know of earlier runs.
    ///
    /// # Errors
    /// The document says otherwise.
    pub fn add_earlier_runs(&mut self, runs: &EarlierRuns) -> Result<(), PolicyDocumentError> {
        let Some(purges) = &runs.purges else {
            return Ok(());
        };
        let records: Vec<&str> = purges.lines().collect();
        let recorded = runs.socket.is_some();
        [
            ("journal", json!(records)),
            ("recorded", json!(recorded)),
            ("warm", json!(runs.warm)),
        ]
        .into_iter()
        .try_for_each(|(field, value)| self.fill_purge(field, value))
    }

    /// Adds that the filter takes messages of Amazon SNS.
    ///
    /// # Errors
    /// The document says otherwise.
    pub fn enable_sns(&mut self) -> Result<(), PolicyDocumentError> {
        self.fill_purge("sns", json!(true))
    }

    fn fill_purge(&mut self, field: &str, value: Value) -> Result<(), PolicyDocumentError> {
        fill(&mut self.json, "purge", field, value).map_err(|reason| PolicyDocumentError {
            document: "the policy".to_owned(),
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
        (Some(PolicyChoice::ReadyMade(name, text)), _) => {
            Ok((format!("POLICY={name}"), (*text).into()))
        }
        (Some(PolicyChoice::File(path)), _) => {
            let document = format!("POLICY={}", path.display());
            match std::fs::read_to_string(path) {
                Ok(text) => Ok((document, text)),
                Err(error) => {
                    let reason = error.to_string();
                    Err(PolicyDocumentError { document, reason })
                }
            }
        }
        (None, Origin::Bucket(_)) => Ok(("the built-in policy for buckets".into(), BUCKET.into())),
        (None, Origin::Http(_)) => Ok(("the built-in policy for HTTP origins".into(), HTTP.into())),
    }
}

/// Fills in the fields that the settings decide. A document that says otherwise is refused.
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
    use crate::settings::{READY_MADE, SettingsError};
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
        assert_eq!(yaml.policy.cache.default.ttl.lifetime(200), days);
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
