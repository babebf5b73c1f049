// SPDX-License-Identifier: Apache-2.0
//! Effects of Kubernetes on a container: variables that Kubernetes sets, and files that it changes.

use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::machine::kubelet;
use sluice_tests::origin::{Origin, Reply};
use tempfile::TempDir;

/// A Service named `metrics` in the namespace adds variables to a pod (sequin#2155, actualbudget#4920).
#[tokio::test]
async fn variables_of_a_service_are_no_settings() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1_000));
    let edge = Edge::http(&origin)
        .env("METRICS_SERVICE_HOST", "10.0.0.1")
        .env("METRICS_SERVICE_PORT", "80")
        .env("SLUICE_METRICS_PORT", "tcp://10.0.0.1:80")
        .env("METRICS_PORT_80_TCP_ADDR", "10.0.0.1")
        .env("SLUICE_PURGE_PORT", "tcp://[fd00::1]:8081")
        .start()
        .await;
    let _ = edge.get("/a").await.stamp("/a");
    for (name, service) in [
        ("SLUICE_METRICS_PORT", "sluice-metrics"),
        ("SLUICE_PURGE_PORT", "sluice-purge"),
    ] {
        let told = format!("as Kubernetes has set it for the Service \"{service}\"");
        let lines = edge.log_lines(&told);
        assert!(lines.len() == 1 && lines[0].contains(name), "{lines:?}");
    }
    assert_eq!(edge.healthcheck(), Some(0));
    let wrong = Edge::http(&origin).env("SLUICE_METRICS_PORT", "tcp://metrics:80");
    let refusal = wrong.refused().await;
    assert!(
        refusal.output.contains("SLUICE_METRICS_PORT"),
        "{}",
        refusal.output
    );
}

/// An edge whose cache is on a volume that a kubelet mounts. The kubelet mounts it again for the next pod.
async fn on_a_volume(policy: Option<&str>) -> (Edge, Origin, TempDir) {
    let volume = TempDir::new().unwrap();
    kubelet::mount(volume.path(), policy);
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1_000).max_age(600));
    let folder = volume.path().join("cache").display().to_string();
    let edge = Edge::http(&origin).env("SLUICE_CACHE_DIR", folder);
    let mut edge = edge.start().await;
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    edge.end_by(edge.pid(), libc::SIGTERM).await;
    kubelet::mount(volume.path(), policy);
    edge.start_again().await;
    (edge, origin, volume)
}

#[tokio::test]
async fn a_volume_with_fs_group_on_root_mismatch_is_a_warm_cache() {
    let (edge, origin, _volume) = on_a_volume(Some("OnRootMismatch")).await;
    assert!(edge.get("/a").await.is_hit(), "{}", edge.log());
    assert_eq!(origin.count("/a"), 1);
}

/// The kubelet has made the cache's secret readable for the group, so that others may foresee the names of files.
#[tokio::test]
async fn control_a_volume_with_fs_group_alone_is_an_empty_cache_and_the_log_says_what_to_set() {
    let (edge, _origin, _volume) = on_a_volume(None).await;
    assert!(!edge.get("/a").await.is_hit());
    let told = edge.log_lines("starting empty");
    let remedy = "fsGroupChangePolicy: OnRootMismatch";
    assert!(told.len() == 1 && told[0].contains(remedy), "{told:?}");
}

/// Envoy's name for the instance metadata service of EC2.
const METADATA: &str = "ec2_instance_metadata_server_internal";

/// An edge with a file of sites, with one bucket that uses credentials of the standard chain.
fn of_sites(folder: &TempDir) -> Builder {
    let file = folder.path().join("sites.yaml");
    let site = "sites:\n- {name: a, origin: 's3://site', endpoint: 'http://127.0.0.1:9'}\n";
    std::fs::write(&file, site).unwrap();
    Builder::new().env("SLUICE_SITES", file.display().to_string())
}

async fn knows_the_metadata_service(edge: &Edge) -> bool {
    let clusters = edge.admin_get("/clusters").await;
    String::from_utf8_lossy(&clusters.body).contains(METADATA)
}

/// Where credentials come from elsewhere, the pod does not use a role of the node.
#[tokio::test]
async fn envoy_asks_an_instance_for_credentials_only_where_there_are_no_others() {
    let folder = TempDir::new().unwrap();
    let keys = of_sites(&folder)
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret");
    let edge = keys.start().await;
    assert!(!knows_the_metadata_service(&edge).await);
    drop(edge);
    let asks = of_sites(&folder).allow_log("metadata").start().await;
    assert!(knows_the_metadata_service(&asks).await);
}
