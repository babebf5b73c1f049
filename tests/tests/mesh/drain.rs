// SPDX-License-Identifier: Apache-2.0
//! A pod that is deleted finishes the responses that it has begun, and Envoy never gets a SIGTERM.

use sluice_tests::client::{Client, request};
use sluice_tests::eventually;
use sluice_tests::mesh::gateway::Gateway;
use std::time::Duration;

#[tokio::test]
async fn a_fill_under_way_is_finished_before_the_pod_ends() {
    let mut gateway = Gateway::builder("draining").await.start().await;
    gateway.bucket.put_stamped("held.bin", 1, 200_000).await;
    let gate = gateway.bucket.proxy().hold("/held.bin");
    let mut client = Client::connect(gateway.http()).await;
    client.send(request("GET", "/held.bin", &[])).await.unwrap();
    gate.wait_reached(1).await;
    let started = std::time::Instant::now();
    gateway.pod.begin_termination();
    eventually("draining", async || {
        gateway
            .pod
            .log()
            .contains("then waiting for active connections")
    })
    .await;
    // The drain lasts longer than the shortest one, because it waits for this client.
    eventually("the wait", async || {
        gateway
            .pod
            .log()
            .contains("There are still 1 active connections")
    })
    .await;
    assert!(started.elapsed() >= Duration::from_secs(4));
    gate.open();
    let response = client.response().await.unwrap();
    let _ = response.stamp("/held.bin");
    drop(client);
    assert!(
        gateway.pod.terminate().await.success(),
        "{}",
        gateway.pod.log()
    );
    let log = gateway.pod.log();
    assert!(
        log.contains("There are no more active connections"),
        "{log}"
    );
    for crash in [
        "Caught Segmentation fault",
        "Caught Aborted",
        "assert failure",
    ] {
        assert!(!log.contains(crash), "{log}");
    }
}
