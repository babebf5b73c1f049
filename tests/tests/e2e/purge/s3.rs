// SPDX-License-Identifier: Apache-2.0
//! The bucket of a real MinIO notifies the edge: a changed object is served at once.

use sluice_tests::bucket::minio;
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::{Purger, TOKEN};
use sluice_tests::eventually;

/// A policy under which stored objects stay fresh for longer than the test takes.
const POLICY: &str = "key: {index_document: index.html}\ncache: {ttl: {default: 1h}}\n";

#[tokio::test]
async fn a_new_version_of_an_object_is_served_soon() {
    let purger = Purger::new();
    let minio = minio::notifying(purger.address(), TOKEN).await;
    let bucket = minio.bucket().await;
    bucket.notify().await;
    let edge = purger.open(Edge::bucket(&bucket)).workers(2);
    let edge = edge.policy(POLICY).start().await;
    for (key, path) in [
        ("a b+c.txt", "/a%20b%2Bc.txt"),
        ("docs/index.html", "/docs/"),
    ] {
        assert_eq!(edge.get(path).await.status, 404);
        eventually("a hit", async || edge.get(path).await.is_hit()).await;
        for content in ["one", "two", "three"] {
            bucket.put(key, &[], content.as_bytes()).await;
            eventually("the new version", async || {
                edge.get(path).await.body == content.as_bytes()
            })
            .await;
            eventually("a hit", async || edge.get(path).await.is_hit()).await;
        }
        bucket.delete(key).await;
        eventually("gone", async || edge.get(path).await.status == 404).await;
    }
}

#[tokio::test]
async fn control_without_notifications_the_old_version_stays() {
    let bucket = minio::shared().await.bucket().await;
    let edge = Edge::bucket(&bucket).policy(POLICY).start().await;
    bucket.put("a", &[], b"one").await;
    assert_eq!(edge.get("/a").await.body, b"one");
    bucket.put("a", &[], b"two").await;
    eventually("a hit", async || edge.get("/a").await.is_hit()).await;
    assert_eq!(edge.get("/a").await.body, b"one");
}
