// SPDX-License-Identifier: Apache-2.0
//! An edge that lacks a purge answers no request with an older object after a peer has told it.

use super::world::World;
use serde_json::json;
use sluice_tests::bucket::proxy::Proxy;
use sluice_tests::bucket::{Bucket, minio};
use sluice_tests::edge::purger::Purger;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use std::time::{Duration, Instant};

const FEED: &str = ".sluice/purges";
const OBJECTS: usize = 20;

/// A policy under which an edge reads the feed so often.
fn policy(every: &str) -> String {
    format!(
        "origin: {{kind: bucket}}\ncache: {{ttl: {{default: 1h}}}}\npurge: {{feed: {{every: {every}}}}}\n"
    )
}

/// Writes a version of every object.
async fn write(bucket: &Bucket, version: &str) {
    for object in 0..OBJECTS {
        bucket
            .put(&object.to_string(), &[], version.as_bytes())
            .await;
    }
}

/// The versions that an edge serves.
async fn versions(edge: &Edge) -> Vec<String> {
    let mut versions = Vec::new();
    for object in 0..OBJECTS {
        let response = edge.get(&format!("/{object}")).await;
        assert_eq!(response.status, 200, "{response}");
        assert!(
            response.headers.get("x-sluice-purges").is_none(),
            "{response}"
        );
        versions.push(String::from_utf8_lossy(&response.body).into_owned());
    }
    versions
}

#[tokio::test]
async fn no_edge_serves_an_object_that_was_purged_while_one_cannot_read_the_feed() {
    let bucket = minio::shared().await.bucket().await;
    let (purger, world) = (Purger::new(), World::new().await);
    let proxy = Proxy::start(bucket.server().address());
    let endpoint = format!("http://{}", proxy.address());
    let edge = || Edge::bucket(&bucket).policy(&policy("500ms")).workers(1);
    let writer = |edge: Builder| purger.open(edge).env("SLUICE_PURGE_FEED_WRITE", "on");
    let (first, second, third) = tokio::join!(
        world.member(0, writer(edge())).start(),
        world.member(1, edge()).start(),
        world
            .member(2, edge().env("SLUICE_S3_ENDPOINT", endpoint))
            .start(),
    );
    let edges = [first, second, third];
    for edge in &edges {
        super::world::wait_for_members(edge, 3).await;
    }
    write(&bucket, "old").await;
    for edge in &edges {
        assert!(versions(edge).await.iter().all(|version| version == "old"));
    }
    let cut_off = proxy.hold(&bucket.target(FEED));
    cut_off.wait_reached(1).await;
    write(&bucket, "new").await;
    let receipt = purger.purge(json!({"everything": true})).await;
    assert_eq!(receipt["feed"], 1, "{receipt}");
    for edge in &edges[..2] {
        edge.wait_for_value("sluice_purge_feed_number", 1).await;
    }
    // The third edge serves old objects to its own clients, until a peer has told it of the purge.
    for edge in &edges {
        for _ in 0..2 {
            let found = versions(edge).await;
            let port = edge.address().port();
            assert!(
                found.iter().all(|version| version == "new"),
                "{port}: {found:?}"
            );
        }
    }
    assert!(
        edges[2]
            .counter("sluice_peer_requests_lacking_purges")
            .await
            > 0
    );
    assert_eq!(edges[2].counter("sluice_purge_feed_number").await, 0);

    // The third edge takes its keys back once it has read the feed.
    cut_off.open();
    edges[2].wait_for_value("sluice_purge_feed_number", 1).await;
    let lacking = edges[2]
        .counter("sluice_peer_requests_lacking_purges")
        .await;
    eventually("all objects in the cache", async || {
        let before: u64 = edges[2].counter("sluice_requests_hit").await;
        versions(&edges[0]).await;
        edges[2].counter("sluice_requests_hit").await > before
    })
    .await;
    assert_eq!(
        edges[2]
            .counter("sluice_peer_requests_lacking_purges")
            .await,
        lacking
    );
}

#[tokio::test]
async fn a_line_that_one_edge_has_written_is_read_by_its_peers_as_soon_as_they_hear_of_it() {
    let bucket = minio::shared().await.bucket().await;
    let (purger, world) = (Purger::new(), World::new().await);
    // No edge reads the feed in its interval during this test, except at its start.
    let edge = || Edge::bucket(&bucket).policy(&policy("10m")).workers(2);
    let writer = purger.open(edge()).env("SLUICE_PURGE_FEED_WRITE", "on");
    let (first, second, third, alone) = tokio::join!(
        world.member(0, writer).start(),
        world.member(1, edge()).start(),
        world.member(2, edge()).start(),
        edge().start(),
    );
    let edges = [first, second, third];
    for edge in &edges {
        super::world::wait_for_members(edge, 3).await;
    }
    for edge in edges.iter().chain([&alone]) {
        edge.wait_for_counter("sluice_purge_feed_reads", 1).await;
    }
    for (number, version) in (1..).zip(["new", "newer", "newest"]) {
        write(&bucket, version).await;
        let receipt = purger.purge(json!({"everything": true})).await;
        assert_eq!(receipt["feed"], number, "{receipt}");
        // The edge that has written the line reads it without any request, and the others hear of it by requests.
        let purged = Instant::now();
        for edge in [&edges[0], &edges[2], &edges[1]] {
            let mut read = false;
            while !read {
                versions(&edges[1]).await;
                read = edge.counter("sluice_purge_feed_number").await == number;
                assert!(purged.elapsed() < Duration::from_secs(10), "{number}");
            }
        }
        println!("all edges have read the line after {:?}", purged.elapsed());
        for edge in &edges {
            assert_eq!(versions(edge).await, [version; OBJECTS]);
        }
        versions(&alone).await;
        assert_eq!(alone.counter("sluice_purge_feed_number").await, 0);
    }
}
