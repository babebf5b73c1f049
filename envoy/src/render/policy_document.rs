// SPDX-License-Identifier: Apache-2.0
//! The filter's policy as a document: the user's or a built-in one, completed from the settings, and checked.

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};
use sluice_core::policy::Policy;

use crate::origin::Origin;
use crate::settings::Settings;
use crate::sites::{Site, maintenance_page};

/// A site's policy as a document for the filter, and in parsed form.
#[derive(Clone, Debug)]
pub struct PolicyDocument {
    /// The document. For a named site it does not have the sections of the edge.
    pub json: Value,
    /// The policy, parsed from the document with the sections of the edge.
    pub policy: Policy,
}

impl PolicyDocument {
    /// Completes the policy of a site. `edge` has the sections of the edge.
    ///
    /// # Errors
    /// The policy is not valid, or contradicts the settings.
    pub fn complete(site: &Site, edge: &Value, settings: &Settings) -> anyhow::Result<Self> {
        let complete = || -> anyhow::Result<Self> {
            let mut json = site.policy.clone();
            ensure!(
                json.get("access").is_none(),
                "access: expected in the file of SLUICE_ACCESS, and not in the policy"
            );
            if let (Some(access), Some(sections)) = (&site.access, json.as_object_mut()) {
                sections.insert("access".to_owned(), access.section.clone());
            }
            maintenance_page::insert(&mut json)?;
            fill(&mut json, &decided(settings, &site.origin))?;
            let mut whole = json.clone();
            fill(&mut whole, edge)?;
            let policy = Policy::parse(whole.to_string().as_bytes())?;
            ensure!(
                policy.website.listing.is_none() || site.failover.is_none(),
                "website.listing: expected none, because the site has a failover: the listings of two buckets differ"
            );
            let json = if site.name.is_empty() { whole } else { json };
            Ok(Self { json, policy })
        };
        complete().with_context(|| site.policy_name.clone())
    }
}

/// The sections of the edge as the user has written them, completed from the settings.
///
/// # Errors
/// The sections contradict the settings.
pub fn edge_sections(written: &Value, settings: &Settings) -> anyhow::Result<Value> {
    let hot = &settings.hot;
    let mut edge = written.clone();
    let decided = json!({
        "store": {
            "max_object_bytes": settings.cache.max_object_bytes,
            "slices": settings.slices.policy_section(),
        },
        "hot": {"max_bytes": hot.max_bytes, "max_object_bytes": hot.max_object_bytes},
    });
    fill(&mut edge, &decided)?;
    if settings.decisions > 0 {
        let decisions = json!({"limits": {"decisions": settings.decisions}});
        fill(&mut edge, &decisions)?;
    }
    if let Some(token) = settings.purge.token {
        let token = json!({"purge": {"token_sha256": token.to_hex()}});
        fill(&mut edge, &token)?;
    }
    Ok(edge)
}

/// The fields that the settings set in every policy.
fn decided(settings: &Settings, origin: &Origin) -> Value {
    let is_logged = settings.access_log.needs_account(settings.sites.is_some());
    let account = is_logged || settings.tracing.is_some();
    json!({"origin": origin.policy_section(), "response": {"account": account}})
}

/// Fills in the fields of `sections`, and of the sections within them. Refuses a document with another value in such a
/// field.
///
/// # Errors
/// The document has another value, or is not an object.
pub fn fill(document: &mut Value, sections: &Value) -> anyhow::Result<()> {
    fill_within(document, sections, "")
}

fn fill_within(present: &mut Value, sections: &Value, path: &str) -> anyhow::Result<()> {
    let name = if path.is_empty() {
        "the document"
    } else {
        path
    };
    let present = object(present, name)?;
    for (field, value) in sections.as_object().into_iter().flatten() {
        let path = match path {
            "" => field.clone(),
            path => format!("{path}.{field}"),
        };
        if value.is_object() {
            let section = present.entry(field).or_insert_with(|| json!({}));
            fill_within(section, value, &path)?;
            continue;
        }
        let found = present.entry(field).or_insert_with(|| value.clone());
        ensure!(
            found == value,
            "{path}: {found} contradicts the edge's settings, which say {value}"
        );
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
    use crate::render::one_site;
    use crate::settings::{BUCKET, HTTP, PolicyChoice, READY_MADE};
    use sluice_core::policy::{self, QueryRule, Ttl};
    use std::time::Duration;

    fn settings(origin: &str) -> Settings {
        Settings::from_lookup(&|name| (name == "SLUICE_ORIGIN").then(|| origin.into())).unwrap()
    }

    fn parse(text: &str, origin: &str) -> Result<PolicyDocument, String> {
        complete(text, settings(origin)).map_err(|error| format!("{error:#}"))
    }

    fn complete(text: &str, mut settings: Settings) -> anyhow::Result<PolicyDocument> {
        settings.policy = Some(PolicyChoice {
            name: "test".to_owned(),
            text: text.to_owned(),
        });
        let sites = one_site(&settings, settings.origin.as_ref().unwrap())?;
        let edge = edge_sections(&sites.edge, &settings)?;
        PolicyDocument::complete(&sites.sites[0], &edge, &settings)
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
    fn a_site_with_a_second_bucket_has_no_listings() {
        let listed = "key: {index_document: i}\nwebsite: {listing: {prefixes: [/*]}}";
        let of = |second: Option<&str>| {
            let lookup = |name: &str| match name {
                "SLUICE_ORIGIN" => Some("s3://site".into()),
                "SLUICE_FAILOVER_ORIGIN" => second.map(Into::into),
                _ => None,
            };
            complete(listed, Settings::from_lookup(&lookup).unwrap())
        };
        assert!(of(None).is_ok());
        let error = format!("{:#}", of(Some("s3://copy")).unwrap_err());
        let expected = "website.listing: expected none, because the site has a failover";
        assert!(error.contains(expected), "{error}");
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
            ("SLUICE_ACCESS_LOG", "json", true),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318", true),
            ("SLUICE_ACCESS_LOG_HITS", "0.5", true),
            (
                "SLUICE_ACCESS_LOG_FORMAT",
                "%FILTER_STATE(wasm.sluice.result)%",
                true,
            ),
            ("SLUICE_ACCESS_LOG_FORMAT", "%REQ(:PATH)%", false),
            ("SLUICE_ACCESS_LOG", "text", false),
            ("SLUICE_ACCESS_LOG", "combined", false),
            ("SLUICE_ACCESS_LOG", "off", false),
        ] {
            let lookup = |name: &str| match name {
                "SLUICE_ORIGIN" => Some("http://example.com".into()),
                name => (name == variable).then(|| value.into()),
            };
            let settings = Settings::from_lookup(&lookup).unwrap();
            let document = complete(HTTP, settings).unwrap();
            assert_eq!(
                document.policy.response.account, shown,
                "{variable}={value}"
            );
        }
    }

    #[test]
    fn the_setting_for_decisions_reaches_the_filter() {
        for (value, kept) in [(None, 0), (Some("0"), 0), (Some("4096"), 4_096)] {
            let lookup = |name: &str| match name {
                "SLUICE_ORIGIN" => Some("http://example.com".into()),
                "SLUICE_DECISIONS" => value.map(Into::into),
                _ => None,
            };
            let settings = Settings::from_lookup(&lookup).unwrap();
            let document = complete(HTTP, settings).unwrap();
            assert_eq!(document.policy.edge.limits.decisions, kept, "{value:?}");
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
                "store: {slices: {bytes: 1Mi}}",
                "http://example.com",
                "store.slices.bytes",
            ),
            (
                "store: {max_object_bytes: 5}",
                "http://example.com",
                "store.max_object_bytes",
            ),
        ] {
            let error = parse(text, origin).unwrap_err();
            assert!(
                error.starts_with(&format!("SLUICE_POLICY=test: {field}"))
                    && error.contains("contradicts"),
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
            ("a: [", "line 1"),
            ("cache: {}\ncache: {}", "duplicate"),
        ] {
            let error = parse(text, "s3://site").unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
