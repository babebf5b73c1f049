// SPDX-License-Identifier: Apache-2.0
//! A cache on disk survives a restart: no object is fetched again.

use sluice_tests::bucket::Bucket;
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Medium;
use sluice_tests::origin::{Origin, Reply};

const OBJECTS: u64 = 20;

#[tokio::test]
async fn a_warm_disk_cache_fetches_nothing_after_a_restart() {
    let bucket = Bucket::new().await;
    for n in 0..OBJECTS {
        bucket.put_stamped(&format!("o{n}"), n, 30_000).await;
    }
    let mut edge = Edge::bucket(&bucket).start().await;
    for n in 0..OBJECTS {
        let path = format!("/o{n}");
        sluice_tests::eventually("a hit", async || edge.get(&path).await.is_hit()).await;
    }
    let before = bucket.requests().total();
    edge.restart().await;
    for n in 0..OBJECTS {
        let path = format!("/o{n}");
        let response = edge.get(&path).await;
        assert_eq!(response.stamp(&path).sequence, n);
        assert!(response.is_hit(), "{response}");
    }
    assert_eq!(bucket.requests().total(), before);
}

#[tokio::test]
async fn control_a_cache_in_memory_is_cold_after_a_restart() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000));
    let mut edge = Edge::http(&origin).medium(Medium::Memory).start().await;
    let _ = edge.get("/a").await.stamp("/a");
    edge.restart().await;
    let _ = edge.get("/a").await.stamp("/a");
    assert_eq!(origin.count("/a"), 2);
}

#[tokio::test]
async fn two_edges_never_share_a_cache_folder() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(1000));
    let first = Edge::http(&origin).start().await;
    let folder = first.folder().join("cache").display().to_string();
    let refusal = Edge::http(&origin)
        .env("SLUICE_CACHE_DIR", &folder)
        .refused()
        .await;
    assert_ne!(refusal.code, Some(0));
    assert!(refusal.output.contains(&folder), "{}", refusal.output);
    assert_eq!(first.get("/a").await.status, 200);
}
