// SPDX-License-Identifier: Apache-2.0
//! The README names the settings and the metrics that exist, and no others.

use sluice::setting_docs;
use sluice_core::metrics::Metric;
use sluice_tests::machine::tool::repository;

fn readme() -> String {
    std::fs::read_to_string(repository().join("README.md")).unwrap()
}

#[test]
fn the_readme_has_the_table_of_settings() {
    let readme = readme();
    for line in setting_docs::markdown_table(setting_docs::SETTINGS).lines() {
        assert!(readme.contains(line), "README.md lacks the line\n{line}");
    }
}

#[test]
fn the_readme_names_every_metric_and_what_it_counts() {
    let readme = readme();
    for metric in Metric::ALL {
        let mut lines = readme.lines().filter(|line| line.contains(metric.name()));
        assert!(
            lines.any(|line| line.contains(metric.help().trim_end_matches('.'))),
            "README.md lacks a line with\n{} and {}",
            metric.name(),
            metric.help()
        );
    }
}

#[test]
fn the_readme_names_no_metric_that_there_is_not() {
    let readme = readme();
    let words = readme.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    for word in words.filter(|word| {
        word.strip_prefix("sluice_")
            .is_some_and(|rest| !rest.is_empty())
    }) {
        // A histogram has series of its own names in Prometheus' format.
        let name = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| word.strip_suffix(suffix))
            .unwrap_or(word);
        let own = ["sluice_core", "sluice_filter", "sluice_tests"];
        assert!(
            own.contains(&name) || Metric::ALL.iter().any(|metric| metric.name() == name),
            "README.md: {word}"
        );
    }
}
