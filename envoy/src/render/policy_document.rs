// SPDX-License-Identifier: Apache-2.0
//! The filter's policy as a document: chosen by the user or built in, completed from the settings, and checked.

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};
use sluice_core::policy::Policy;

use crate::cache::EarlierRuns;
use crate::origin::Origin;
use crate::settings::{AccessLog, BUCKET, HTTP, Settings};

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
    /// The policy is not valid, or contradicts the settings.
    pub fn load(settings: &Settings, origin: &Origin) -> anyhow::Result<Self> {
        let (name, text) = match (&settings.policy, origin) {
            (Some(chosen), _) => (format!("POLICY={}", chosen.name), chosen.text.as_str()),
            (None, Origin::Bucket(_)) => ("the built-in policy for buckets".into(), BUCKET),
            (None, Origin::Http(_)) => ("the built-in policy for HTTP origins".into(), HTTP),
        };
        Self::parse(text, settings, origin).context(name)
    }

    /// Adds what the filter must know of earlier runs.
    ///
    /// # Errors
    /// The document says otherwise.
    pub fn add_earlier_runs(&mut self, runs: &EarlierRuns) -> anyhow::Result<()> {
        let Some(purges) = &runs.purges else {
            return Ok(());
        };
        let records: Vec<&str> = purges.lines().collect();
        let (recorded, warm) = (runs.socket.is_some(), runs.warm);
        self.fill(&json!({"purge": {"journal": records, "recorded": recorded, "warm": warm}}))
    }

    /// Adds fields that the entry point decides at this start.
    ///
    /// # Errors
    /// The document says otherwise.
    pub fn fill(&mut self, sections: &Value) -> anyhow::Result<()> {
        fill(&mut self.json, sections).context("the policy")
    }

    fn parse(text: &str, settings: &Settings, origin: &Origin) -> anyhow::Result<Self> {
        // JSON is YAML, so one reader does for both.
        let yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(text)?;
        let mut json = serde_json::to_value(yaml)?;
        fill(&mut json, &decided(settings, origin))?;
        if let Some(token) = settings.purge.token {
            fill(
                &mut json,
                &json!({"purge": {"token_sha256": token.to_hex()}}),
            )?;
        }
        let policy = Policy::parse(json.to_string().as_bytes())?;
        Ok(Self { json, policy })
    }
}

/// The fields that the settings decide in every policy.
fn decided(settings: &Settings, origin: &Origin) -> Value {
    let origin = match origin {
        Origin::Bucket(bucket) => json!({
            "kind": "bucket",
            "bucket": bucket.name,
            "prefix": bucket.prefix,
            "addressing": bucket.addressing,
            "authority": bucket.endpoint.authority(),
        }),
        Origin::Http(_) => json!({"kind": "http"}),
    };
    let account = settings.access_log == AccessLog::Json || settings.tracing.is_some();
    let hot = &settings.hot;
    json!({
        "origin": origin,
        "store": {"max_object_bytes": settings.cache.max_object_bytes},
        "response": {"account": account},
        "hot": {"max_bytes": hot.max_bytes, "max_object_bytes": hot.max_object_bytes},
    })
}

/// Fills in the fields of `sections`. A document that says otherwise is refused.
fn fill(document: &mut Value, sections: &Value) -> anyhow::Result<()> {
    for (section, fields) in sections.as_object().into_iter().flatten() {
        let present = object(document, "the document")?
            .entry(section)
            .or_insert_with(|| json!({}));
        let present = object(present, section)?;
        for (field, value) in fields.as_object().into_iter().flatten() {
            let found = present.entry(field).or_insert_with(|| value.clone());
            ensure!(
                found == value,
                "{section}.{field}: {found} contradicts the edge's settings, which say {value}"
            );
        }
    }
    Ok(())
}

fn object<'a>(value: &'a mut Value, name: &str) -> anyhow::Result<&'a mut Map<String, Value>> {
    let fields = value.as_object_mut();
    fields.with_context(|| format!("{name}: expected a mapping of fields"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::READY_MADE;
    use sluice_core::policy::{self, QueryRule, Ttl};
    use std::time::Duration;

    fn settings(origin: &str) -> Settings {
        Settings::from_lookup(&|name| (name == "ORIGIN").then(|| origin.into())).unwrap()
    }

    fn parse(text: &str, origin: &str) -> Result<PolicyDocument, String> {
        let settings = settings(origin);
        let document = PolicyDocument::parse(text, &settings, settings.origin.as_ref().unwrap());
        document.map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn the_built_in_policies_are_valid_for_their_kind_of_origin() {
        for (name, text) in READY_MADE {
            let origin = match name {
                "http" | "microcache" => "http://example.com",
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
        let days = Ttl::Fixed(Duration::from_secs(30 * 24 * 60 * 60));
        assert_eq!(yaml.policy.cache.default.ttl.of(200), days);
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
