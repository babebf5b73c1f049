// SPDX-License-Identifier: Apache-2.0
//! The store of a gateway survives clients that leave, and the end of its pod.

use serde_json::Value;
use sluice_tests::client::{Client, request};
use sluice_tests::machine::kubelet;
use sluice_tests::mesh::gateway::Gateway;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
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

/// Returns the `fsGroupChangePolicy` of the pods that have the cache on a volume.
fn volume_policy(gateway: &Gateway) -> Option<String> {
    let manifests = gateway.overlay.clone().component("cache-on-volume").build();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&manifests).unwrap();
    let pods = documents
        .iter()
        .find(|document| document["kind"] == "StatefulSet");
    let context = &pods.unwrap()["spec"]["template"]["spec"]["securityContext"];
    assert!(context["fsGroup"].is_u64(), "{context}");
    context["fsGroupChangePolicy"].as_str().map(str::to_owned)
}

/// Time of the last change of each file of the folder, in nanoseconds.
fn changes(folder: &Path) -> BTreeMap<String, i64> {
    let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let changed = files.map(|file| {
        let about = file.metadata().unwrap();
        let at = about.ctime() * 1_000_000_000 + about.ctime_nsec();
        (file.file_name().into_string().unwrap(), at)
    });
    changed.collect()
}

/// The store removes the oldest files, by their times. Without a policy the kubelet changes the times of all files.
#[tokio::test]
async fn a_mount_of_a_kept_volume_leaves_its_files_as_they_were() {
    let mut gateway = Gateway::builder("mounted").await.start().await;
    let policy = volume_policy(&gateway);
    let policy = policy.as_deref();
    kubelet::mount(&gateway.pod.cache(), policy);
    for key in ["a.bin", "b.bin"] {
        gateway.bucket.put_stamped(key, 1, 20_000).await;
        gateway.hit(&format!("/{key}")).await;
    }
    let mount = |volume: &Path| {
        let before = changes(volume);
        assert!(before.len() >= 2, "{before:?}");
        kubelet::mount(volume, policy);
        assert_eq!(changes(volume), before);
    };
    gateway.pod.restart_after(mount).await;
    assert!(gateway.get("/a.bin").await.is_hit());
    assert_eq!(gateway.fetches("a.bin"), 1);
}
