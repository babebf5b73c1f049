// SPDX-License-Identifier: Apache-2.0
//! The chart has the rules, the alerts and the dashboard of `envoy/observability`.

use crate::sets::least_with;
use serde_json::{Value, json};
use sluice_tests::chart::{manifests, objects};
use sluice_tests::machine::tool::repository;

fn read(name: &str) -> String {
    std::fs::read_to_string(repository().join("envoy/observability").join(name)).unwrap()
}

#[test]
fn rules_alerts_and_dashboard_are_those_of_the_repository() {
    let values = least_with(&json!({
        "prometheusRule": {"enabled": true, "runbooks": "https://wiki.example.com/alerts#"},
        "dashboard": {"enabled": true},
    }));
    let objects = objects(&manifests("edges", &values).unwrap());
    let of_kind = |kind: &str, suffix: &str| {
        let mut all = objects.iter().filter(|object| object["kind"] == kind);
        let named = all.find(|object| {
            object["metadata"]["name"]
                .as_str()
                .unwrap()
                .ends_with(suffix)
        });
        named.unwrap().clone()
    };
    for name in ["rules", "alerts"] {
        let text = read(&format!("{name}.yaml"));
        let text = text.replace("docs/alerts.md#", "https://wiki.example.com/alerts#");
        let file: Value = serde_saphyr::from_str(&text).unwrap();
        assert!(file["groups"][0]["rules"].is_array());
        let rule = of_kind("PrometheusRule", &format!("-{name}"));
        assert_eq!(rule["spec"]["groups"], file["groups"]);
    }

    let dashboard = of_kind("ConfigMap", "-dashboard");
    assert_eq!(
        dashboard["data"]["sluice.json"]
            .as_str()
            .unwrap()
            .trim_end(),
        read("dashboard.json").trim_end()
    );
}
