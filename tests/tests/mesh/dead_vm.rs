// SPDX-License-Identifier: Apache-2.0
//! When a worker's VM dies in the gateway, no request is forwarded unchecked, and the next request gets a new VM.

use serde_json::json;
use sluice_tests::client::{Client, request};
use sluice_tests::eventually;
use sluice_tests::machine::tool::trap_module;
use sluice_tests::mesh::gateway::Gateway;
use sluice_tests::mesh::kustomize::GATEWAYS_ROLES;

#[tokio::test]
async fn nothing_unchecked_is_signed_when_a_vm_dies() {
    let code = json!({"local": {"filename": trap_module()}});
    let gateway = Gateway::builder("dead-vm").await;
    let gateway = gateway
        .with(|overlay| overlay.code(&GATEWAYS_ROLES, &code))
        .start()
        .await;
    gateway.bucket.put_stamped("a.bin", 1, 2_000).await;
    for role in ["edge", "origin"] {
        for round in 0..4 {
            let path = format!("/trap-{role}-{round}");
            let mut client = Client::connect(gateway.http()).await;
            let trap = request("GET", &path, &[("x-trap", role)]);
            // The trap may be answered in any way, or not at all.
            let _ = client.try_exchange(trap).await;
            for (method, path) in [
                ("DELETE", "/a.bin"),
                ("PUT", "/a.bin"),
                ("GET", "/a.bin?acl"),
                ("GET", "/?x"),
            ] {
                let _ = client
                    .try_exchange(request(method, path, &[("x-trap", role)]))
                    .await;
            }
        }
    }
    eventually("a new VM", async || {
        gateway.get("/a.bin").await.status == 200
    })
    .await;
    gateway.hit("/a.bin").await;
    assert!(gateway.pod.log().contains("wasm"), "no VM has died");
    for request in gateway.bucket.requests().all() {
        let line = format!("{} {}", request.method, request.target);
        assert!(
            ["GET", "HEAD"].contains(&request.method.as_str())
                || request.target.starts_with("/bucket"),
            "{line}"
        );
        assert!(!request.target.contains('?'), "{line}");
        assert!(!request.headers.any_with_prefix("x-trap"), "{line}");
        assert!(!request.headers.any_with_prefix("x-sluice-"), "{line}");
    }
}
