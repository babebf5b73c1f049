// SPDX-License-Identifier: Apache-2.0
//! The guides are correct: each provider's settings are valid, and each policy, setting and field that they name
//! exists.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sluice::origin::{Addressing, Origin};
use sluice::settings::{Settings, docs};

/// The guides for users of other software.
const GUIDES: [&str; 3] = ["from-nginx-s3-gateway", "from-varnish", "from-cloudfront"];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn page(name: &str) -> String {
    fs::read_to_string(repository().join("docs").join(format!("{name}.md"))).unwrap()
}

/// The cells of each row of a page's tables.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect())
}

/// The texts between backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn each_row_of_the_providers_is_accepted_as_settings() {
    let page = page("providers");
    let (_, table) = page.split_once("<!-- begin providers -->").unwrap();
    let (table, _) = table.split_once("<!-- end providers -->").unwrap();
    let mut found = 0;
    for cells in rows(table).skip(1) {
        let value = |cell: &str| code(cell).next().map(str::to_owned);
        let [endpoint, addressing, region] = [cells[1], cells[2], cells[3]].map(value);
        let variable = |name: &str| match name {
            "SLUICE_ORIGIN" => Some("s3://site/prefix".to_owned()),
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("key".to_owned()),
            "SLUICE_S3_ENDPOINT" => endpoint.clone(),
            "SLUICE_S3_ADDRESSING" => addressing.clone(),
            "AWS_REGION" => region.clone(),
            _ => None,
        };
        let settings = Settings::from_lookup(&|name| variable(name).map(OsString::from));
        let settings = settings.unwrap_or_else(|error| panic!("{cells:?}: {error:#}"));
        let Some(Origin::Bucket(bucket)) = settings.origin else {
            panic!("{cells:?}")
        };
        assert_eq!(Some(&bucket.region), region.as_ref(), "{cells:?}");
        let by_host = addressing.as_deref() == Some("virtual_host") || endpoint.is_none();
        assert_eq!(bucket.addressing == Addressing::VirtualHost, by_host);
        let host = endpoint.map_or_else(
            || format!("s3.{}.amazonaws.com", bucket.region),
            |endpoint| endpoint.split_once("://").unwrap().1.to_ascii_lowercase(),
        );
        let name = if by_host { "site." } else { "" };
        assert_eq!(bucket.endpoint.authority(), format!("{name}{host}"));
        found += 1;
    }
    assert!(found >= 19, "{found} providers");
}

#[test]
fn each_policy_of_the_guides_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    for guide in GUIDES {
        let text = page(guide);
        let blocks = text.split("```yaml\n").skip(1);
        let blocks: Vec<_> = blocks.map(|it| it.split_once("```").unwrap().0).collect();
        assert_ne!(blocks, [""; 0], "{guide}");
        for block in blocks {
            fs::write(&policy, block).unwrap();
            let kind = block.contains("kind: http");
            let origin = if kind {
                "http://127.0.0.1:3000"
            } else {
                "s3://site"
            };
            let output = Command::new(env!("CARGO_BIN_EXE_sluice"))
                .arg("check")
                .env_clear()
                .env("SLUICE_ORIGIN", origin)
                .env("SLUICE_POLICY", &policy)
                .current_dir(folder.path())
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{guide}: {told}{block}");
        }
    }
}

#[test]
fn the_guides_name_settings_that_there_are() {
    let tables = docs::tables();
    let known: BTreeSet<_> = rows(&tables)
        .flat_map(|cells| code(cells[0]).map(str::to_owned).collect::<Vec<_>>())
        .collect();
    for guide in GUIDES {
        let text = page(guide);
        let mut named = 0;
        for cells in rows(&text).filter(|cells| cells.len() > 2) {
            for word in code(cells[1]).map(|word| word.split('=').next().unwrap()) {
                let capital = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
                if word
                    .bytes()
                    .all(|byte| capital(byte) || byte.is_ascii_digit())
                {
                    assert!(known.contains(word), "docs/{guide}.md: {word}");
                    named += 1;
                }
            }
        }
        assert!(named >= 8, "docs/{guide}.md: {named} settings");
    }
}

#[test]
fn no_page_names_a_field_of_the_policy_that_there_is_not() {
    let schema = fs::read_to_string(repository().join("filter/core/policy.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut fields = BTreeSet::new();
    add_fields(&schema, "", &mut fields);
    let mut named = 0;
    for entry in fs::read_dir(repository().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // Blocks of code have backticks too.
        let prose: String = text.split("```").step_by(2).collect();
        for word in code(&prose) {
            let field = word.split(':').next().unwrap();
            let (section, rest) = field.split_once('.').unwrap_or_default();
            let letters = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '.' | '[' | ']');
            let is_field = !rest.is_empty() && rest.chars().all(letters) && rest != "yaml";
            // A function of Varnish.
            if !fields.contains(section) || !is_field || word == "purge.soft" {
                continue;
            }
            assert!(fields.contains(field), "{}: {word}", path.display());
            named += 1;
        }
    }
    assert!(named > 100, "{named} fields");
}

/// Adds the path of each field, as the reference writes them.
fn add_fields(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        let (within, prefix) = match field["type"].as_str() {
            Some("array") => (&field["items"], format!("{path}[].")),
            _ => (field, format!("{path}.")),
        };
        found.insert(path);
        found.insert(prefix.trim_end_matches('.').to_owned());
        add_fields(within, &prefix, found);
        for form in field["oneOf"].as_array().into_iter().flatten() {
            add_fields(form, &prefix, found);
        }
    }
}

#[test]
fn no_page_names_an_alert_that_there_is_not() {
    let alerts = repository().join("envoy/observability/alerts.yaml");
    let alerts = fs::read_to_string(alerts).unwrap();
    let text = page("troubleshooting");
    let named: BTreeSet<_> = code(&text)
        .filter(|word| word.starts_with("Sluice"))
        .collect();
    for alert in &named {
        assert!(alerts.contains(&format!("- alert: {alert}\n")), "{alert}");
    }
    assert!(named.len() >= 6, "{named:?}");
}

#[test]
fn the_lines_of_a_bucket_that_a_page_quotes_are_those_that_are_told() {
    let sources = [
        "filter/core/src/bucket_error.rs",
        "envoy/src/check/bucket_answer.rs",
    ];
    let told = sources.map(|path| fs::read_to_string(repository().join(path)).unwrap());
    // A message may span several lines of the source.
    let told = told.concat().replace("\\\n", " ");
    let told: Vec<_> = told.split_whitespace().collect();
    let told = told.join(" ");
    for name in ["troubleshooting", "operations"] {
        let text = page(name);
        let mut quoted = 0;
        for line in code(&text) {
            let line = line.split(" (").next().unwrap();
            let is_message = ["the bucket ", "the clock ", "there is no such bucket"];
            if !is_message.iter().any(|start| line.starts_with(start)) {
                continue;
            }
            let known = line.split("the region ").next().unwrap();
            assert!(told.contains(known), "docs/{name}.md: {line}");
            quoted += 1;
        }
        assert!(quoted >= 6, "docs/{name}.md: {quoted} lines");
    }
}
