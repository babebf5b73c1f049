// SPDX-License-Identifier: Apache-2.0
//! The standalone edge, run from its image.

use sluice_tests::bucket::Bucket;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::image::container::Container;
use std::os::unix::fs::MetadataExt as _;

async fn edge_of(bucket: &Bucket) -> Builder {
    Edge::bucket(bucket).contained(Container::edge().await)
}

#[tokio::test]
async fn it_serves_a_private_bucket_as_its_own_user_from_a_read_only_file_system() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a", 1, 1000).await;
    let edge = edge_of(&bucket).await.start().await;
    for _ in 0..2 {
        let _ = edge.get("/a").await.stamp("/a");
    }
    assert_eq!(bucket.count("a"), 1);
    assert_eq!(edge.healthcheck(), Some(0));
    let envoy = format!("/proc/{}", edge.envoy_pid());
    assert_eq!(std::fs::metadata(&envoy).unwrap().uid(), 65532);
    let mounts = std::fs::read_to_string(format!("{envoy}/mounts")).unwrap();
    let mut fields = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let root = fields.find(|mount| mount[1] == "/").unwrap();
    assert!(root[3].split(',').any(|option| option == "ro"), "{root:?}");
}

#[tokio::test]
async fn its_cache_survives_a_restart_with_its_volume() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a", 1, 1000).await;
    let mut edge = edge_of(&bucket).await.start().await;
    let _ = edge.get("/a").await.stamp("/a");
    edge.restart().await;
    let _ = edge.get("/a").await.stamp("/a");
    assert_eq!(bucket.count("a"), 1);
}

#[tokio::test]
async fn a_ready_made_policy_needs_no_file() {
    let bucket = Bucket::new().await;
    bucket.put("index.html", &[], b"<h1>app</h1>").await;
    let page = [("accept", "text/html,*/*;q=0.8")];
    for (policy, status) in [("spa", 200), ("bucket", 404)] {
        let edge = edge_of(&bucket)
            .await
            .env("SLUICE_POLICY", policy)
            .start()
            .await;
        let route = edge.send("GET", "/users/42", &page).await;
        assert_eq!(route.status, status, "{policy}: {route}");
    }
}

#[tokio::test]
async fn a_wrong_setting_stops_it_with_the_settings_name() {
    let bucket = Bucket::new().await;
    let refusal = edge_of(&bucket)
        .await
        .env("SLUICE_CACHE", "tape")
        .refused()
        .await;
    assert_eq!(refusal.code, Some(1), "{refusal:?}");
    assert!(refusal.output.contains("SLUICE_CACHE"), "{refusal:?}");
}

#[tokio::test]
async fn it_serves_without_a_vm_as_well() {
    let bucket = Bucket::new().await;
    bucket.put_stamped("a", 1, 1000).await;
    let edge = edge_of(&bucket).await.env("SLUICE_RUNTIME", "native");
    let edge = edge.start().await;
    for _ in 0..2 {
        let _ = edge.get("/a").await.stamp("/a");
    }
    assert_eq!(bucket.count("a"), 1);
}

#[tokio::test]
async fn it_has_no_shell() {
    let container = Container::edge().await;
    let root = container.root();
    assert!(root.join("usr/local/bin/envoy").is_file());
    for shell in ["bin/sh", "usr/bin/sh", "bin/bash", "usr/bin/dpkg"] {
        assert!(!root.join(shell).exists(), "{shell}");
    }
}
