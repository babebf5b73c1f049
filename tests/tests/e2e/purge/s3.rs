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
async fn an_object_that_was_written_is_stored_before_a_client_wants_it() {
    let purger = Purger::new();
    let minio = minio::notifying(purger.address(), TOKEN).await;
    let bucket = minio.bucket().await;
    bucket.put("silent", &[], b"one").await;
    bucket.notify().await;
    let edge = purger.open(Edge::bucket(&bucket)).workers(2);
    let policy = format!("{POLICY}purge: {{on_created: {{objects_per_minute: 2}}}}\n");
    let edge = edge.policy(&policy).start().await;
    let asks = async |path: &str| {
        let before = edge.counter("sluice_origin_fetches").await;
        let browser = [("accept-encoding", "gzip, deflate, br, zstd")];
        let response = edge.send("GET", path, &browser).await;
        assert_eq!(response.status, 200, "{path}: {response}");
        edge.counter("sluice_origin_fetches").await > before
    };
    for (fetched, key, path) in [
        (1, "a b+c.txt", "/a%20b%2Bc.txt"),
        (2, "docs/index.html", "/docs/"),
    ] {
        bucket.put(key, &[], b"two").await;
        edge.wait_for_counter("sluice_created_fetched", fetched)
            .await;
        assert!(!asks(path).await, "{path}");
    }
    bucket.put("third", &[], b"two").await;
    edge.wait_for_counter("sluice_created_skipped", 1).await;
    // Control: an object without a notification, and one beyond the bound.
    for path in ["/silent", "/third"] {
        assert!(asks(path).await, "{path}");
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
