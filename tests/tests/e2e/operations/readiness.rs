// SPDX-License-Identifier: Apache-2.0
//! A worker answers the health check, and the entry point ends in order with all of its child processes.

use sluice_tests::edge::Edge;
use sluice_tests::machine::process::descendants;
use sluice_tests::origin::{Origin, Reply};

#[tokio::test]
async fn health_is_answered_by_a_worker_and_never_cached() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000));
    let edge = Edge::http(&origin).start().await;
    for method in ["GET", "HEAD"] {
        let response = edge.send(method, "/healthz", &[]).await;
        assert_eq!(response.status, 200, "{method}: {response}");
        assert!(!response.is_hit());
    }
    assert_eq!(origin.requests().total(), 0);
}

#[tokio::test]
async fn health_path_is_configurable() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000));
    let edge = Edge::http(&origin).env("SLUICE_HEALTH_PATH", "/healthz/live");
    // The harness itself waits for `/healthz`, which the origin serves here.
    let edge = edge.start().await;
    assert_eq!(edge.get("/healthz/live").await.status, 200);
    assert_eq!(origin.count("/healthz/live"), 0);
    assert!(origin.count("/healthz") >= 1);
}

#[tokio::test]
async fn the_admin_interface_says_ready_and_has_the_metrics() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).start().await;
    assert_eq!(edge.admin_get("/ready").await.status, 200);
    let metrics = edge.admin_get("/stats/prometheus").await;
    let text = String::from_utf8_lossy(&metrics.body);
    assert!(
        text.contains("sluice_requests_hit"),
        "{}",
        sluice_tests::edge::log::tail(&text, 20)
    );
}

#[tokio::test]
async fn sigterm_ends_the_edge_and_all_that_it_started() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000));
    let edge = Edge::http(&origin).start().await;
    let _ = edge.get("/a").await.stamp("/a");
    let envoy = edge.envoy_pid();
    let address = edge.address();
    let (code, log) = edge.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(
        !descendants(std::process::id()).contains_key(&envoy),
        "Envoy still runs"
    );
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
