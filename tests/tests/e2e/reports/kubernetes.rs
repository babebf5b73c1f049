// SPDX-License-Identifier: Apache-2.0
//! What Kubernetes does to a container: variables that it sets.

use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};

/// A Service named `metrics` in the namespace makes a pod's variables (sequin#2155, actualbudget#4920).
#[tokio::test]
async fn variables_of_a_service_are_no_settings() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1_000));
    let edge = Edge::http(&origin)
        .env("METRICS_SERVICE_HOST", "10.0.0.1")
        .env("METRICS_SERVICE_PORT", "80")
        .env("METRICS_PORT", "tcp://10.0.0.1:80")
        .env("METRICS_PORT_80_TCP_ADDR", "10.0.0.1")
        .env("PURGE_PORT", "tcp://[fd00::1]:8081")
        .start()
        .await;
    let _ = edge.get("/a").await.stamp("/a");
    for (name, service) in [("METRICS_PORT", "metrics"), ("PURGE_PORT", "purge")] {
        let told = format!("as Kubernetes has set it for the Service \"{service}\"");
        let lines = edge.log_lines(&told);
        assert!(lines.len() == 1 && lines[0].contains(name), "{lines:?}");
    }
    assert_eq!(edge.healthcheck(), Some(0));
    let wrong = Edge::http(&origin).env("METRICS_PORT", "tcp://metrics:80");
    let refusal = wrong.refused().await;
    assert!(
        refusal.output.contains("METRICS_PORT"),
        "{}",
        refusal.output
    );
}
