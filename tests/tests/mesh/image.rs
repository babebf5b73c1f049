// SPDX-License-Identifier: Apache-2.0
//! The filter's module as an image. The agent of a pod fetches only the image that the digest names.

use sluice_tests::client::{self, Client};
use sluice_tests::eventually;
use sluice_tests::image::container::unpack;
use sluice_tests::image::guard::Guard;
use sluice_tests::image::registry::Registry;
use sluice_tests::machine::tool::{entry_point, module};
use sluice_tests::mesh::gateway::Gateway;
use sluice_tests::mesh::pod::HEALTH_PORT;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Asserts that the gateway has the module: it serves an object, and stores it.
async fn assert_serves(gateway: &Gateway) {
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    let _ = gateway.get("/a.bin").await.stamp("/a.bin");
    gateway.hit("/a.bin").await;
    assert_eq!(gateway.fetches("a.bin"), 1);
}

#[tokio::test]
async fn a_pod_runs_the_module_of_the_image_that_its_digest_names() {
    let registry = Registry::start().await;
    let url = registry.url(&registry.push("filter"));
    let gateway = Gateway::builder("image").await.module(&url).start().await;
    assert_serves(&gateway).await;
}

#[tokio::test]
async fn an_image_of_another_digest_is_refused() {
    let registry = Registry::start().await;
    let digest = registry.push("filter");
    let other = format!("sha256:{}", "0".repeat(64));
    assert_ne!(digest, other);
    let url = registry.url(&other);
    let gateway = Gateway::builder("other-image").await.module(&url);
    let gateway = gateway.start_unready().await;
    eventually("the refusal", async || {
        let log = gateway.pod.log();
        log.contains("error in converting the wasm config to local")
    })
    .await;
    gateway.pod.accepts(gateway.http().port()).await;
    gateway.bucket.put_stamped("a.bin", 1, 2_000).await;
    let answer = gateway.get("/a.bin").await;
    assert_eq!(answer.status, 500, "{answer}");
    assert_eq!(gateway.fetches("a.bin"), 0);
}

/// Puts a guard in front of the registry with the module. Returns the guard, and the module's URL there.
fn guarded(registry: &Registry) -> (Guard, String) {
    let guard = Guard::before(registry);
    let url = guard.url(&registry.push("filter"));
    (guard, url)
}

#[tokio::test]
async fn a_registry_that_wants_credentials_is_shown_those_of_the_secret() {
    let namespace = "private-image";
    let registry = Registry::start().await;
    let (guard, url) = guarded(&registry);
    let gateway = Gateway::builder(namespace)
        .await
        .with(|overlay| overlay.component("registry-credentials"))
        .besides(guard.secret(namespace, "sluice-registry"))
        .module(&url)
        .start()
        .await;
    assert_serves(&gateway).await;
}

#[tokio::test]
async fn without_the_registrys_credentials_a_pod_does_not_become_ready() {
    let registry = Registry::start().await;
    let (_guard, url) = guarded(&registry);
    let gateway = Gateway::builder("no-credentials").await.module(&url);
    let gateway = gateway.start_unready().await;
    eventually("the refusal", async || {
        let log = gateway.pod.log();
        log.contains("401 Unauthorized")
    })
    .await;
    let health = gateway.pod.at(HEALTH_PORT);
    eventually("an answer to the probe", async || {
        Client::try_connect(health).await.is_ok()
    })
    .await;
    assert!(!client::is_healthy(health, "/healthz").await);
}

/// Asserts that a gateway with the module on a volume serves, and that the agent fetches nothing.
async fn assert_serves_from(component: &str, file: PathBuf) {
    let gateway = Gateway::builder(component)
        .await
        .module_volume(component, file)
        .start()
        .await;
    assert_serves(&gateway).await;
    assert!(
        !gateway.pod.log().contains("oci://"),
        "{}",
        gateway.pod.log()
    );
}

#[tokio::test]
async fn a_pod_runs_the_module_of_an_image_volume() {
    let registry = Registry::start().await;
    let digest = registry.push("filter");
    // The folder has the files of the image, which the kubelet would mount.
    let folder = TempDir::new().unwrap();
    let files = registry.ask(&["export"], &format!("filter@{digest}"));
    unpack(&files, folder.path());
    assert_serves_from("module-from-image", folder.path().join("plugin.wasm")).await;
}

#[tokio::test]
async fn a_pod_runs_the_module_that_an_init_container_copies() {
    // The command is the one of the init container, with the arguments of its manifest.
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("plugin.wasm");
    let copied = Command::new(entry_point())
        .arg("module")
        .arg(&file)
        .env("SLUICE_WASM", module())
        .status();
    assert!(copied.unwrap().success());
    assert_serves_from("module-from-init", file).await;
}
