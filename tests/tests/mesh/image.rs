// SPDX-License-Identifier: Apache-2.0
//! The filter's module as an image: the agent of a pod fetches what the digest names, and nothing else.

use sluice_tests::eventually;
use sluice_tests::image::registry::Registry;
use sluice_tests::mesh::gateway::Gateway;

#[tokio::test]
async fn a_pod_runs_the_module_of_the_image_that_its_digest_names() {
    let registry = Registry::start().await;
    let url = registry.url(&registry.push("filter"));
    let gateway = Gateway::builder("image").await.module(&url).start().await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    let _ = gateway.get("/a.bin").await.stamp("/a.bin");
    gateway.hit("/a.bin").await;
    assert_eq!(gateway.fetches("a.bin"), 1);
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
