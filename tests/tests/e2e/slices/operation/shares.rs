// SPDX-License-Identifier: Apache-2.0
//! Slices are objects of the store and of their site's share. If the cache is full, slices that clients do not read go first.

use crate::slices::world::{
    Asked, KNOWN, SLICE, SLICES, assert_part, assert_whole, object, origin,
};
use sluice_tests::client::send;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use std::fs;
use std::time::Duration;
use tempfile::TempDir;

/// An edge whose cache has room for two objects and a half.
fn small(edge: Builder) -> Builder {
    edge.env("SLUICE_CACHE_MAX_BYTES", "64MiB").metrics()
}

/// Waits until the cache has evicted entries. `label` is the site's label, if there is one.
async fn wait_for_eviction(edge: &Edge, label: &str) {
    let evicted = format!("sluice_cache_evictions_total{{reason=\"limit\"{label}}} ");
    eventually("an eviction", async || {
        let document = edge.metrics_document().await;
        let mut lines = document.lines();
        let number = lines.find_map(|line| line.strip_prefix(&evicted));
        number.is_some_and(|number| number != "0")
    })
    .await;
}

#[tokio::test]
async fn a_tail_that_no_client_reads_is_evicted_and_the_head_stays() {
    let origin = origin(&object(1)).await;
    let edge = small(Edge::http(&origin).origin_decides()).start().await;
    let head = async || {
        let response = edge.send("GET", KNOWN, &[("range", "bytes=0-99")]).await;
        assert_part(&response, KNOWN, 0..100);
    };
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    head().await;
    for other in ["/other-1.iso", "/other-2.iso"] {
        origin.on(other, object(1));
        assert_whole(&edge.get(other).await, other, 1);
    }
    wait_for_eviction(&edge, "").await;
    head().await;
    assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    let asked = Asked::of(origin.requests(), KNOWN);
    let again = asked.slices.values().filter(|times| **times > 1);
    assert!(again.count() > 0 && asked.slices[&0] == 1, "{asked:?}");
}

/// Small objects, and their size in bytes.
const SMALL: usize = 100;
const SMALL_BYTES: usize = 200_000;
/// Size of an object that is a quarter larger than the cache.
const HUGE_BYTES: usize = 80 << 20;

/// Reads all small objects. Returns the number of requests for them that the origin has received since the start.
async fn read_small(origin: &Origin, edge: &Edge) -> usize {
    for number in 0..SMALL {
        let response = edge.get(&format!("/small/{number}")).await;
        assert_eq!(response.body.len(), SMALL_BYTES, "{response}");
    }
    (0..SMALL)
        .map(|number| origin.count(&format!("/small/{number}")))
        .sum()
}

/// Starts an edge whose cache has the small objects.
async fn start_with_small(origin: &Origin) -> Edge {
    origin.on("/small/*", Reply::ok(SMALL_BYTES).max_age(3_600));
    let edge = small(Edge::http(origin).origin_decides()).start().await;
    assert_eq!(read_small(origin, &edge).await, SMALL);
    assert_eq!(read_small(origin, &edge).await, SMALL);
    edge
}

#[tokio::test]
async fn an_object_larger_than_the_cache_displaces_no_small_object() {
    let origin = Origin::start().ready().await;
    let huge = Reply::ok(HUGE_BYTES).version(1).max_age(3_600);
    // A build without optimizations takes its time to check the bytes of stored files.
    origin.on("/huge.iso", huge.pace(64 << 10, Duration::from_millis(20)));
    let edge = start_with_small(&origin).await;
    let response = edge.get("/huge.iso").await;
    assert_eq!(response.body.len(), HUGE_BYTES, "{response}");
    wait_for_eviction(&edge, "").await;
    assert_eq!(read_small(&origin, &edge).await, SMALL);
    assert_eq!(origin.count("/huge.iso"), 1 + HUGE_BYTES / SLICE);
}

#[tokio::test]
async fn control_as_many_bytes_of_whole_objects_displace_the_small_ones() {
    let origin = Origin::start().ready().await;
    origin.on("/whole/*", Reply::ok(SLICE).max_age(3_600));
    let edge = start_with_small(&origin).await;
    for number in 0..HUGE_BYTES / SLICE {
        edge.get(&format!("/whole/{number}")).await;
    }
    wait_for_eviction(&edge, "").await;
    assert!(read_small(&origin, &edge).await > SMALL);
}

/// A site in front of an origin.
fn site(name: &str, origin: &Origin) -> String {
    format!(
        "- name: {name}\n  hosts: [{name}.test]\n  origin: {}\n",
        origin.url()
    )
}

#[tokio::test]
async fn slices_count_for_the_share_of_their_site() {
    let origin = origin(&object(1)).await;
    let folder = TempDir::with_prefix("sluice-sites-").unwrap();
    let path = folder.path().join("sites.yaml");
    let sites = format!("sites:\n{}{}", site("one", &origin), site("two", &origin));
    fs::write(&path, sites).unwrap();
    let edge = Builder::new().env("SLUICE_SITES", path.to_str().unwrap());
    let edge = small(edge).start().await;
    let response = send(edge.address(), "GET", KNOWN, &[("host", "one.test")]).await;
    assert_whole(&response, KNOWN, 1);
    // The slices, and the headers of the object.
    let objects = format!("sluice_cache_objects{{site=\"one\"}} {}", SLICES + 1);
    edge.wait_for_metric(&objects).await;
    edge.wait_for_metric("sluice_cache_objects{site=\"two\"} 0")
        .await;
}
