// SPDX-License-Identifier: Apache-2.0
//! The metrics, rules, alerts and the dashboard of `envoy/observability`, with the real Prometheus in front of a real
//! edge.

use serde_json::Value;
use sluice::metrics::own_families;
use sluice::settings::Runtime;
use sluice_core::metrics::Metric;
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::{self, request};
use sluice_tests::edge::Edge;
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::machine::tool::runtime;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::prometheus::{
    Prometheus, metrics_named_in, observability, promtool, promtool_on,
};
use sluice_tests::server::gate::Gate;
use std::collections::BTreeSet;
use std::process::Command;

/// Upper bound on the number of statistics of an edge with two listeners and a cache, by default.
const FEW: usize = 400;

fn read(name: &str) -> String {
    let path = observability().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The titles and queries of the dashboard, as Grafana sends them.
fn dashboard_queries() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().unwrap();
            let query = query.replace("$__rate_interval", "1m");
            let query = query.replace("$job", ".+").replace("$instance", ".+");
            let query = query.replace("$site", ".*");
            assert!(!query.contains('$'), "{query}");
            queries.push((panel["title"].as_str().unwrap().to_owned(), query));
        }
    }
    queries
}

/// Causes hits, misses, waits, errors, and all other visible results.
async fn load(edge: &Edge, origin: &Origin) {
    let gate = Gate::new();
    origin.on("/slow", Reply::ok(5_000).hold(&gate));
    origin.on("/fails", Reply::status(503));
    origin.on(
        "/private",
        Reply::ok(100).header("cache-control", "private"),
    );
    origin.on("/large.iso", Reply::ok(20 << 20).version(1).max_age(600));
    let followers = 20;
    let crowd = Crowd::connect(edge.address(), followers).await;
    let leader = tokio::spawn(client::get(edge.address(), "/slow"));
    gate.wait_reached(1).await;
    let flight = crowd.fire("/slow");
    edge.wait_for_value("sluice_parked_now", followers as u64)
        .await;
    gate.open();
    assert_eq!(flight.land().await.all(200).len(), followers);
    assert_eq!(leader.await.unwrap().status, 200);
    for number in 0..5 {
        for path in ["/slow", "/fails", "/private", "/%ff%00"] {
            let _ = edge.get(path).await;
        }
        let _ = edge.get(&format!("/miss-{number}")).await;
        assert_eq!(edge.get("/large.iso").await.status, 200);
        let _ = edge.send("POST", "/slow", &[("content-length", "0")]).await;
    }
}

#[test]
fn promtool_accepts_the_configuration_and_every_rule_and_alert_does_what_its_tests_say() {
    for arguments in [
        vec!["check", "config", "prometheus.yaml"],
        vec!["check", "config", "prometheus-istio.yaml"],
        vec!["check", "config", "prometheus-compose.yaml"],
        vec![
            "check",
            "rules",
            "--lint=all",
            "--lint-fatal",
            "rules.yaml",
            "rules-istio.yaml",
            "alerts.yaml",
            "alerts-istio.yaml",
            "slo.yaml",
        ],
        vec![
            "test",
            "rules",
            "tests/rules.yaml",
            "tests/alerts.yaml",
            "tests/alerts-istio.yaml",
            "tests/slo.yaml",
        ],
    ] {
        let output = promtool(&arguments);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success(), "{arguments:?}\n{said}");
    }
}

#[tokio::test]
async fn every_rule_and_alert_has_a_test_and_every_alert_a_runbook() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).metrics().start().await;
    let prometheus = Prometheus::scraping(edge.metrics()).await;
    let tests = read("tests/rules.yaml") + &read("tests/alerts.yaml");
    let rules = prometheus.rules().await;
    assert!(rules.len() > 20, "{rules:?}");
    for rule in rules {
        let name = rule["name"].as_str().unwrap();
        assert!(tests.contains(name), "no test of {name}");
        if rule["type"] == "alerting" {
            let annotation = |name: &str| rule["annotations"][name].as_str().unwrap_or_default();
            let description = annotation("description");
            assert!(description.len() > 100, "{name}: {description:?}");
            assert!(!annotation("summary").is_empty(), "{name}");
            let section = format!("docs/alerts.md#{}", name.to_lowercase());
            assert_eq!(annotation("runbook_url"), section);
        }
    }
}

#[test]
fn rules_alerts_and_dashboard_name_no_metric_of_the_filter_that_there_is_not() {
    let of_filter = Metric::ALL.iter().map(|metric| metric.in_family().family);
    let families = of_filter.chain(own_families()).map(|family| family.name);
    let families: BTreeSet<_> = families.collect();
    let files = [
        "rules.yaml",
        "alerts.yaml",
        "dashboard.json",
        "tests/rules.yaml",
        "tests/alerts.yaml",
    ];
    for file in files {
        let named = metrics_named_in(&read(file));
        let own: Vec<_> = named
            .iter()
            .filter(|name| name.starts_with("sluice_"))
            .collect();
        assert!(!own.is_empty(), "{file}");
        for name in own {
            let plain = name.trim_end_matches("_bucket");
            assert!(families.contains(plain), "{file}: {name}");
        }
    }
}

#[test]
fn the_dashboard_is_what_its_source_says() {
    let script = observability().join("dashboard.py");
    let output = Command::new("python3").arg(script).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let made = String::from_utf8(output.stdout).unwrap();
    assert!(
        made == read("dashboard.json"),
        "run dashboard.py > dashboard.json"
    );
}

#[tokio::test]
async fn prometheus_has_data_for_every_rule_and_every_panel_of_the_dashboard() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(5_000).max_age(600));
    let (edge, port) = (Edge::http(&origin), free_port());
    let edge = edge
        .env("SLUICE_METRICS_PORT", port.to_string())
        .env("SLUICE_SLICE_BYTES", "1MiB")
        .start()
        .await;
    let prometheus = Prometheus::scraping(loopback(port)).await;
    prometheus
        .wait_for("sluice_requests_total{result=\"hit\"}", |hits| hits == 0.0)
        .await;
    load(&edge, &origin).await;
    // The rules are updated last.
    prometheus
        .wait_for("sluice:hit_ratio:rate5m", |ratio| ratio > 0.0)
        .await;
    prometheus
        .wait_for("sluice:origin_error_ratio:rate5m", |ratio| ratio > 0.0)
        .await;
    prometheus
        .wait_for("sluice:coalescing_wait_seconds:p99_5m", |wait| wait > 0.0)
        .await;
    prometheus
        .wait_for("sluice:slice_hit_ratio:rate5m", |ratio| ratio > 0.0)
        .await;
    for result in [
        "hit",
        "miss",
        "collapsed",
        "hit_for_miss",
        "passed",
        "rejected",
    ] {
        let query = format!("sluice:requests:rate5m{{result=\"{result}\"}}");
        prometheus.wait_for(&query, |rate| rate > 0.0).await;
    }
    let mut queries = dashboard_queries();
    assert!(queries.len() > 40, "{queries:?}");
    for rule in prometheus.rules().await {
        assert_eq!(rule["health"], "ok", "{rule}");
        if rule["type"] == "recording" {
            let name = rule["name"].as_str().unwrap().to_owned();
            // The load causes no refresh.
            if name != "sluice:refresh_failure_ratio:rate5m" {
                queries.push((name.clone(), name));
            }
        }
    }
    for (title, query) in queries.into_iter().filter(|(_, query)| is_there(query)) {
        let values = prometheus.query(&query).await;
        assert!(!values.is_empty(), "{title}: no data for {query}");
    }
}

#[tokio::test]
async fn promtool_finds_no_fault_with_the_metrics_of_sluice() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).metrics().start().await;
    let _ = edge.get("/a").await;
    let document = edge.metrics_document().await;
    let findings = promtool_on(&["check", "metrics"], &document);
    let ours = |findings: &str| findings.matches("\nsluice_").count();
    assert_eq!(ours(&format!("\n{findings}")), 0, "{findings}");
    // The control: promtool finds faults with Envoy's own names of the same metrics.
    let raw = client::get(edge.metrics(), "/stats/prometheus").await;
    let raw = String::from_utf8_lossy(&raw.body).into_owned();
    let findings = promtool_on(&["check", "metrics"], &raw);
    assert!(ours(&findings) > 50, "{findings}");
}

/// Whether the statistics of a query can exist: without VMs there are none of VMs, and without the scheme jwt none of
/// tokens.
fn is_there(query: &str) -> bool {
    let is_of_vms = query.contains("envoy_wasm_");
    let is_of_tokens = query.contains("envoy_http_jwt_authn_");
    (runtime() == Runtime::Wasm || !is_of_vms) && !is_of_tokens
}

#[tokio::test]
async fn the_default_statistics_are_few_and_all_that_rules_alerts_and_dashboard_use() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100));
    let few = Edge::http(&origin).metrics().start().await;
    let all = Edge::http(&origin).env("SLUICE_STATS", "all").metrics();
    let all = all.start().await;
    let mut sizes = Vec::new();
    for edge in [&few, &all] {
        let _ = edge.get("/a").await;
        let text = edge.metrics_document().await;
        let series: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        sizes.push(series.len());
        for file in ["rules.yaml", "alerts.yaml", "dashboard.json"] {
            for name in metrics_named_in(&read(file))
                .into_iter()
                .filter(|name| is_there(name))
            {
                assert!(text.contains(&name), "{file}: {name}");
            }
        }
        for metric in Metric::ALL {
            let name = metric.in_family().family.name;
            assert!(text.contains(name), "{name}");
        }
    }
    let [few, all] = sizes[..] else {
        panic!("{sizes:?}")
    };
    assert!(few <= FEW && all > 3 * FEW, "{sizes:?}");
}

#[tokio::test]
async fn the_listener_for_metrics_has_nothing_else_of_the_admin_interface() {
    let origin = Origin::start().ready().await;
    let metrics = loopback(free_port());
    let edge = Edge::http(&origin).env("SLUICE_METRICS_PORT", metrics.port().to_string());
    let mut edge = edge.start().await;
    let answer = client::get(metrics, "/stats/prometheus").await;
    assert_eq!(answer.status, 200, "{answer}");
    assert!(String::from_utf8_lossy(&answer.body).contains("sluice_requests_hit"));
    let answer = client::get(metrics, "/metrics?a=b").await;
    assert_eq!(answer.status, 200, "{answer}");
    let kind = answer.headers.get("content-type");
    assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
    for (method, target) in [
        ("GET", "/stats"),
        ("GET", "/config_dump"),
        ("GET", "/stats/prometheus?usedonly"),
        ("GET", "/stats/prometheus/../../config_dump"),
        ("GET", "//stats/prometheus"),
        ("GET", "/metrics/"),
        ("POST", "/metrics"),
        ("POST", "/stats/prometheus"),
        ("POST", "/quitquitquit"),
        ("POST", "/reset_counters"),
    ] {
        let mut client = client::Client::connect(metrics).await;
        let answer = client
            .exchange(request(method, target, &[("content-length", "0")]))
            .await;
        assert!(
            matches!(answer.status, 400 | 404 | 405),
            "{method} {target}: {answer}"
        );
    }
    assert!(edge.alive());
    // The control: the refused page exists on the admin interface.
    assert_eq!(edge.admin_get("/config_dump").await.status, 200);
}
