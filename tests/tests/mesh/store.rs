// SPDX-License-Identifier: Apache-2.0
//! What the store of a gateway survives: clients that leave, and its pod.

use sluice_tests::client::{Client, request};
use sluice_tests::mesh::gateway::Gateway;
use tokio::task::JoinSet;

#[tokio::test]
async fn clients_that_leave_in_the_middle_of_a_fill_do_not_end_envoy() {
    let gateway = Gateway::builder("leaving").await.start().await;
    let before = gateway.pod.envoy_pid();
    for round in 0..10 {
        let key = format!("large{round}.bin");
        gateway.bucket.put_stamped(&key, 1, 2_000_000).await;
        let mut clients = JoinSet::new();
        for number in 0..20 {
            let (address, path) = (gateway.http(), format!("/{key}"));
            clients.spawn(async move {
                let mut client = Client::connect_narrow(address).await;
                client.send(request("GET", &path, &[])).await.unwrap();
                let _ = client.some(1 + number * 5_000).await;
                client.reset();
            });
        }
        clients.join_all().await;
        let _ = gateway
            .get(&format!("/{key}"))
            .await
            .stamp(&format!("/{key}"));
    }
    assert!(before.is_some());
    assert_eq!(gateway.pod.envoy_pid(), before, "{}", gateway.pod.log());
}

#[tokio::test]
async fn a_volume_that_is_kept_is_a_warm_cache() {
    let mut gateway = Gateway::builder("kept").await.start().await;
    gateway.bucket.put_stamped("a.bin", 1, 20_000).await;
    gateway.hit("/a.bin").await;
    gateway.restart().await;
    assert!(gateway.get("/a.bin").await.is_hit());
    assert_eq!(gateway.fetches("a.bin"), 1);
}
