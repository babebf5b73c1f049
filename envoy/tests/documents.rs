// SPDX-License-Identifier: Apache-2.0
//! The documents on settings, metrics, the policy, alerts and tests match the code.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use serde_json::Value;
use sluice::metrics::own_families;
use sluice::settings::{OTHER_NAMES, Settings, docs};
use sluice_core::freshness::UncacheableReason;
use sluice_core::metrics::{Family, FamilyMember, Metric, MetricKind};
use sluice_core::policy::sections::known_headers::{OVERRIDES, SELECTORS};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

/// Fails unless `page` has `table` between its marks of this name. With `UPDATE_DOCUMENTS`, writes the table to the
/// page.
fn assert_has_table(page: &str, name: &str, table: &str) {
    let (begin, end) = (
        format!("<!-- begin {name} -->\n"),
        format!("<!-- end {name} -->"),
    );
    let text = read(page);
    let (before, rest) = text.split_once(&begin).expect(&begin);
    let (found, after) = rest.split_once(&end).expect(&end);
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        let text = format!("{before}{begin}{table}{end}{after}");
        fs::write(repository().join(page), text).unwrap();
    } else {
        assert!(
            found == table,
            "the table `{name}` of {page} is not what the code says; to make it anew:\n\
             UPDATE_DOCUMENTS=1 cargo test -p sluice --test documents"
        );
    }
}

#[test]
fn the_settings_page_lists_every_setting() {
    let read = RefCell::new(BTreeSet::new());
    let nothing_set = |name: &str| {
        read.borrow_mut().insert(name.to_owned());
        None
    };
    Settings::from_lookup(&nothing_set).unwrap();
    let listed = docs::names().flat_map(docs::variables);
    assert_eq!(listed.collect::<BTreeSet<_>>(), read.into_inner());
}

/// A variable of a test that the entry point does not know would be refused as a misspelled setting.
#[test]
fn the_entry_point_knows_every_variable_with_its_prefix() {
    // Some tests have misspelled names.
    let files = [
        "Makefile",
        ".ci",
        "bench",
        "envoy",
        "filter",
        "mesh",
        "tests",
        ":!envoy/src/settings",
        ":!envoy/tests/secrets.rs",
    ];
    let named = Command::new("git")
        .args([
            "grep",
            "--untracked",
            "-ohE",
            "[$\"{ ]SLUICE_[A-Z][A-Z0-9_]*[\"=})]",
            "--",
        ])
        .args(files)
        .current_dir(repository())
        .output()
        .unwrap();
    let named = String::from_utf8(named.stdout).unwrap();
    let named = named
        .lines()
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()));
    let known: BTreeSet<_> = docs::names().flat_map(docs::variables).collect();
    let others = named
        .filter(|name| !known.contains(*name))
        .collect::<BTreeSet<_>>();
    assert_eq!(others, OTHER_NAMES.into_iter().collect());
}

#[test]
fn the_observability_page_names_every_metric_and_what_it_counts() {
    let mut table = String::from("| metric | kind | meaning |\n|---|---|---|\n");
    for (family, labels) in families() {
        let kind = format!("{:?}", family.kind).to_lowercase();
        let labels = labels.into_iter().map(|(name, values)| {
            let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
            format!(" `{name}`: {}.", values.join(", "))
        });
        let labels: String = labels.collect();
        let (name, help) = (family.name, family.help);
        let _ = writeln!(table, "| `{name}` | {kind} | {help}{labels} |");
    }
    assert_has_table("docs/observability.md", "metrics", &table);
}

/// Every family, by name, with the values of its label.
fn families() -> Vec<(Family, BTreeMap<&'static str, Vec<&'static str>>)> {
    let mut families: BTreeMap<_, (Family, BTreeMap<_, Vec<_>>)> = BTreeMap::new();
    for family in own_families() {
        families.insert(family.name, (family, BTreeMap::new()));
    }
    for metric in Metric::ALL {
        let member = metric.in_family();
        let (name, new) = (member.family.name, (member.family, BTreeMap::new()));
        let (_, labels) = families.entry(name).or_insert(new);
        if let Some((label, value)) = member.label {
            labels.entry(label).or_default().push(value);
        }
    }
    families.into_values().collect()
}

#[test]
fn the_observability_page_names_every_metric_of_envoy_that_has_another_name() {
    let mut table = String::from("| in Envoy | metric |\n|---|---|\n");
    for metric in Metric::ALL {
        let member = metric.in_family();
        let label = member
            .label
            .map(|(name, value)| format!("{{{name}=\"{value}\"}}"));
        let (raw, name) = (metric.name(), member.family.name);
        let _ = writeln!(table, "| `{raw}` | `{name}{}` |", label.unwrap_or_default());
    }
    assert_has_table("docs/observability.md", "names", &table);
}

#[test]
fn the_rules_of_the_mesh_record_every_metric_under_its_name() {
    let mut rules = String::new();
    for metric in Metric::ALL {
        let FamilyMember { family, label, .. } = metric.in_family();
        if family.kind == MetricKind::Histogram {
            // A rule cannot divide the label `le`. The rules below record the quantiles.
            continue;
        }
        let _ = writeln!(rules, "  - record: {}", family.name);
        if let Some((name, value)) = label {
            let _ = writeln!(rules, "    labels: {{{name}: {value}}}");
        }
        let _ = writeln!(rules, "    expr: {}", metric.name());
    }
    let (path, mark) = (
        "envoy/observability/rules-istio.yaml",
        "  # Made from the code.\n",
    );
    let text = read(path);
    let (before, found) = text.split_once(mark).unwrap();
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        fs::write(repository().join(path), format!("{before}{mark}{rules}")).unwrap();
    } else {
        assert!(
            found == rules,
            "{path}: run UPDATE_DOCUMENTS=1 cargo test -p sluice --test documents"
        );
    }
}

#[test]
fn the_observability_page_names_every_reason_not_to_store_and_what_helps() {
    let mut table = String::from("| reason | the response | what helps |\n|---|---|---|\n");
    for reason in UncacheableReason::ALL {
        let (name, meaning, remedy) = (reason.name(), reason.meaning(), reason.remedy());
        let _ = writeln!(table, "| `{name}` | {meaning} | {remedy} |");
    }
    assert_has_table("docs/observability.md", "reasons", &table);
}

#[test]
fn the_page_of_the_policy_lists_the_headers_that_change_responses() {
    for (name, headers) in [("overrides", OVERRIDES), ("selectors", SELECTORS)] {
        let mut table =
            String::from("| request headers | what they change | source |\n|---|---|---|\n");
        for known in headers {
            let names: Vec<_> = known.names.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            let _ = writeln!(table, "| {names} | {} | {} |", known.meaning, known.source);
        }
        assert_has_table("docs/policy.md", name, &table);
    }
}

#[test]
fn the_policy_reference_lists_every_field() {
    let schema = serde_json::from_str(&read("filter/core/policy.schema.json")).unwrap();
    let mut table = String::from("| field | default | meaning |\n|---|---|---|\n");
    add_fields(&schema, "", &mut table);
    assert_has_table("docs/policy-reference.md", "policy", &table);
}

#[test]
fn the_page_of_sites_lists_every_field() {
    let schema: Value = serde_json::from_str(&read("envoy/sites.schema.json")).unwrap();
    let mut table = String::from("| field | default | meaning |\n|---|---|---|\n");
    let site = &schema["properties"]["sites"]["items"];
    add_site_fields(site, "", &mut table);
    assert_has_table("docs/sites.md", "site", &table);
}

/// Adds a row for each field of a site. The meaning ends with the default, unless the field is required.
fn add_site_fields(schema: &Value, path: &str, table: &mut String) {
    let required = schema["required"].as_array();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        let meaning = field["description"].as_str().unwrap();
        let (meaning, default) = match meaning.split_once(" Default: ") {
            Some((meaning, default)) => (meaning, default.trim_end_matches('.')),
            None => (meaning, "required"),
        };
        let is_required = required.is_some_and(|names| names.contains(&name.as_str().into()));
        assert_eq!(is_required, default == "required", "{path}");
        let meaning = meaning.replace('*', "\\*").replace('|', "\\|");
        let _ = writeln!(table, "| `{path}` | {default} | {meaning} |");
        add_site_fields(field, &format!("{path}."), table);
        for form in field["oneOf"].as_array().into_iter().flatten() {
            add_site_fields(form, &format!("{path}."), table);
        }
    }
}

/// End of the description of a field that no user writes.
const FILLED_IN: &str = "The entry point fills this in.";

/// Adds a row for each field of `schema` that a user may write, and for the fields within it.
fn add_fields(schema: &Value, path: &str, table: &mut String) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let description = field["description"].as_str().unwrap_or_default();
        if !field["const"].is_null() || description.ends_with(FILLED_IN) {
            continue;
        }
        let path = format!("{path}{name}");
        let (within, prefix) = match field["type"].as_str() {
            Some("array") => (&field["items"], format!("{path}[].")),
            _ => (field, format!("{path}.")),
        };
        let default = match &field["default"] {
            _ if within["properties"].is_object() => String::new(),
            Value::Null => "–".to_owned(),
            Value::String(text) => format!("`{text}`"),
            value => format!("`{value}`").replace(',', ", "),
        };
        add_row(&path, &default, field, table);
        add_fields(within, &prefix, table);
        for kind in field["oneOf"].as_array().into_iter().flatten() {
            if let Some(name) = kind["properties"]["kind"]["const"].as_str() {
                add_row(&format!("{path}.kind: {name}"), "", kind, table);
                add_fields(kind, &prefix, table);
            }
        }
    }
}

fn add_row(path: &str, default: &str, field: &Value, table: &mut String) {
    let meaning = field["description"].as_str().unwrap();
    let meaning = meaning.replace('*', "\\*").replace('|', "\\|");
    let _ = writeln!(table, "| `{path}` | {default} | {meaning} |");
}

#[test]
fn the_observability_page_names_every_alert_and_no_other() {
    let files = ["alerts.yaml", "alerts-istio.yaml"];
    let alerts = files
        .map(|file| read(&format!("envoy/observability/{file}")))
        .concat();
    let there: BTreeSet<_> = alerts
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    let page = read("docs/observability.md");
    let named: BTreeSet<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `Sluice")?.split_once('`'))
        .map(|(rest, _)| format!("Sluice{rest}"))
        .collect();
    assert_eq!(
        named,
        there
            .into_iter()
            .map(ToOwned::to_owned)
            .collect::<BTreeSet<_>>()
    );
}

#[test]
fn the_alert_for_untested_proxies_knows_the_versions_that_the_mesh_matches() {
    let settings = read("mesh/base/settings.env");
    let mut lines = settings.lines();
    let version = lines.find_map(|line| line.strip_prefix("PROXY_VERSION=^"));
    let (version, _) = version.unwrap().split_once('(').unwrap();
    let expected = format!("version!~\"{}([-.].*)?\"", version.replace('\\', "\\\\"));
    let alerts = read("envoy/observability/alerts-istio.yaml");
    assert!(alerts.contains(&expected), "{expected}");
}

#[test]
fn the_page_of_alerts_has_the_description_of_each() {
    let mut sections: Vec<(String, String)> = Vec::new();
    for file in ["alerts.yaml", "alerts-istio.yaml", "slo.yaml"] {
        let text = read(&format!("envoy/observability/{file}"));
        let rules: Value = serde_saphyr::from_str(&text).unwrap();
        for rule in rules["groups"][0]["rules"].as_array().unwrap() {
            let Some(name) = rule["alert"].as_str() else {
                continue;
            };
            let annotation = |name: &str| rule["annotations"][name].as_str().unwrap();
            let address = format!("docs/alerts.md#{}", name.to_lowercase());
            assert_eq!(annotation("runbook_url"), address);
            let description = wrapped(annotation("description"));
            if sections.iter().all(|(known, _)| known != name) {
                sections.push((name.to_owned(), description));
            }
        }
    }
    let sections = sections.iter();
    let page: String = sections
        .map(|(name, description)| format!("\n## {name}\n\n{description}\n"))
        .collect();
    assert_has_table("docs/alerts.md", "alerts", &format!("{page}\n"));
}

/// The text in lines of at most 120 characters.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        if line.chars().count() + 1 + word.chars().count() > 120 {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// Every page that a user reads.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<_> = ["README.md", "CONTRIBUTING.md", "mesh/README.md"]
        .map(|page| repository().join(page))
        .into();
    let docs = fs::read_dir(repository().join("docs")).unwrap();
    pages.extend(docs.map(|entry| entry.unwrap().path()));
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages
}

#[test]
fn no_page_names_a_metric_that_there_is_not() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| {
            word.strip_prefix("sluice_")
                .is_some_and(|rest| !rest.is_empty())
        }) {
            // In Prometheus' format a histogram has several series, with these suffixes.
            let name = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| word.strip_suffix(suffix))
                .unwrap_or(word);
            let is_raw = Metric::ALL.iter().any(|metric| metric.name() == name);
            let has_raw = ["mesh/README.md", "observability.md"]
                .iter()
                .any(|raw| page.ends_with(raw));
            let is_known = families().iter().any(|(family, _)| family.name == name);
            assert!(is_known || is_raw && has_raw, "{}: {word}", page.display());
        }
    }
}

#[test]
fn the_map_of_the_code_names_what_there_is() {
    let map = read("docs/code.md");
    let paths = map.split('`').skip(1).step_by(2);
    for path in paths.filter(|path| path.contains('/')) {
        assert!(repository().join(path).exists(), "docs/code.md: {path}");
    }
}

#[test]
fn every_test_that_a_table_names_exists() {
    let mut known = BTreeSet::new();
    for folder in ["filter", "tests/tests", "envoy"] {
        add_tests(&repository().join(folder), &mut known);
    }
    for (page, least) in [
        ("filter/RFC9111.md", 40),
        ("docs/envoy.md", 40),
        ("docs/threat-model.md", 40),
    ] {
        let text = read(page);
        let mut named = 0;
        for row in text.lines().filter(|line| line.starts_with("| ")) {
            let tests = row.trim_matches('|').split(" | ").last().unwrap();
            for name in tests.split('`').skip(1).step_by(2) {
                // The column also has metrics and commands.
                if name.starts_with("sluice_") {
                    continue;
                }
                assert!(
                    known.contains(name),
                    "{page}: no test {name}, but a row: {row}"
                );
                named += 1;
            }
        }
        assert!(named > least, "{page}: {named} tests named");
    }
}

/// Adds the names of all tests below `folder`: functions after an attribute `test`, or within `proptest!`.
fn add_tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(path).unwrap();
            let attributed = text.split("test]\n").skip(1);
            let names = attributed.filter_map(|after| after.split_once("fn ")?.1.split_once('('));
            found.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
}

#[test]
fn every_place_that_names_the_version_names_this_one() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = read("CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## ["));
    let (newest, _) = newest.unwrap().split_once(']').unwrap();
    assert_eq!(newest, version, "CHANGELOG.md");
    let named = Command::new("git")
        .args(["grep", "--untracked", "--only-matching", "-E"])
        .arg(
            "(sluice:|/edge:|/filter:|appVersion: |targetRevision: |tag: )[0-9]+[.][0-9]+[.][0-9]+",
        )
        .current_dir(repository())
        .output()
        .unwrap();
    let named = String::from_utf8(named.stdout).unwrap();
    for place in ["docs/quick-start.md:sluice:", "Chart.yaml:appVersion:"] {
        assert!(named.contains(place), "{place}: {named}");
    }
    for place in named.lines() {
        let (_, found) = place.rsplit_once([':', ' ']).unwrap();
        assert_eq!(found, version, "{place}");
    }
    let chart = read("envoy/chart/Chart.yaml");
    assert!(
        chart.contains(&format!("\nversion: {version}\n")),
        "{chart}"
    );
}

#[test]
fn the_changelog_has_a_link_for_each_version_and_no_line_twice() {
    let changelog = read("CHANGELOG.md");
    let headings = changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## ["));
    for version in headings.filter_map(|heading| heading.split_once(']')) {
        let link = format!("[{0}]: ../../releases/tag/v{0}", version.0);
        assert!(changelog.lines().any(|line| line == link), "{link}");
    }
    let mut seen = BTreeSet::new();
    for line in changelog.lines().filter(|line| !line.is_empty()) {
        assert!(seen.insert(line), "twice: {line}");
    }
}
