// SPDX-License-Identifier: Apache-2.0
//! A gateway has the metrics that the rules, the alerts and the dashboard of the standalone edge need.

use sluice_tests::mesh::gateway::Gateway;
use sluice_tests::prometheus::{Prometheus, metrics_named_in, observability};

/// Istio's Envoy has neither an overload manager nor statistics of clusters, and its certificates last a day. The
/// mesh has no entry point, Istio verifies tokens, and a rule cannot divide the bounds of buckets.
const NOT_IN_ISTIO: [&str; 9] = [
    "envoy_http_jwt_authn_",
    "envoy_overload_",
    "envoy_cluster_",
    "envoy_server_days_",
    "sluice_config_",
    "sluice_cache_evictions_total",
    "sluice_coalescing_wait_seconds",
    "sluice_first_byte_seconds",
    "sluice_origin_first_byte_seconds",
];

#[tokio::test]
async fn prometheus_finds_in_a_gateway_what_rules_alerts_and_dashboard_use() {
    let gateway = Gateway::builder("metrics").await.start().await;
    let prometheus = Prometheus::scraping_in_istio(gateway.pod.admin()).await;
    prometheus
        .wait_for("sluice_requests_total{result=\"hit\"}", |hits| hits == 0.0)
        .await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    let _ = gateway.get("/a.bin").await.stamp("/a.bin");
    for _ in 0..9 {
        gateway.hit("/a.bin").await;
    }
    // The edge has sent the object ten times, and the bucket has sent it once.
    prometheus
        .wait_for("sluice:byte_hit_ratio:rate5m", |ratio| ratio > 0.7)
        .await;
    prometheus
        .wait_for("sluice:hit_ratio:rate5m", |ratio| ratio > 0.7)
        .await;
    for ratio in [
        "sluice:error_ratio:rate5m",
        "sluice:origin_error_ratio:rate5m",
    ] {
        prometheus.wait_for(ratio, |ratio| ratio == 0.0).await;
    }
    for time in [
        "sluice:first_byte_seconds:p99_5m{result=\"hit\"}",
        "sluice:origin_first_byte_seconds:p99_5m",
    ] {
        prometheus
            .wait_for(time, |seconds| (0.0..5.0).contains(&seconds))
            .await;
    }
    let there = prometheus.metric_names().await;
    for file in ["rules.yaml", "alerts.yaml", "dashboard.json"] {
        let text = std::fs::read_to_string(observability().join(file)).unwrap();
        let wanted = metrics_named_in(&text)
            .into_iter()
            .filter(|name| !NOT_IN_ISTIO.iter().any(|part| name.starts_with(part)));
        for name in wanted {
            assert!(there.contains(&name), "{file}: {name}");
        }
    }
}
