// SPDX-License-Identifier: Apache-2.0
//! Another release starts with the cache of the former release. Intact objects are served without a fetch, purged
//! objects stay purged, and an entry in a format that the release does not know is never served.

use serde_json::json;
use sluice_tests::edge::purger::Purger;
use sluice_tests::edge::{Edge, Release};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use std::fs;
use std::path::PathBuf;

const LONG: u32 = 3_600;
/// The log line of a start that has checked the stored objects.
const CHECKED: &str = "files of earlier runs";
const KEPT: [&str; 3] = ["/kept", "/large", "/blue"];
const PURGED: [&str; 4] = ["/url", "/css/site", "/soft", "/red"];

async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(3_000).max_age(LONG));
    origin.on("/large", Reply::ok(1_000_000).max_age(LONG));
    for color in ["red", "blue"] {
        let tagged = Reply::ok(3_000).max_age(LONG);
        origin.on(&format!("/{color}"), tagged.header("Surrogate-Key", color));
    }
    origin
}

/// Stores all objects, then purges some of them. Returns the number of the last purge.
async fn fill_and_purge(edge: &Edge, purger: &Purger) -> u64 {
    for path in KEPT.iter().chain(&PURGED) {
        eventually("a hit", async || edge.get(path).await.is_hit()).await;
    }
    let stored = (KEPT.len() + PURGED.len()) as u64;
    edge.wait_for_manifest(stored).await;
    let orders = [
        json!({"url": "http://edge.test/url"}),
        json!({"prefix": "http://edge.test/css/"}),
        json!({"url": "http://edge.test/soft", "soft": true}),
        json!({"surrogate_keys": ["red"]}),
    ];
    let mut last = 0;
    for order in orders {
        last = purger.purge(order).await["number"].as_u64().unwrap();
    }
    last
}

/// The file with the format of the cache's entries.
fn format_file(edge: &Edge) -> PathBuf {
    edge.folder().join("cache/format")
}

/// Lets an edge of one release fill its cache, ends it by a signal, and starts an edge of another release in its
/// place.
async fn replace(old: Release, new: Release, signal: i32) {
    let (origin, purger) = (origin().await, Purger::new());
    let edge = purger.open(Edge::http(&origin)).release(old);
    let mut edge = edge.start().await;
    let last = fill_and_purge(&edge, &purger).await;
    edge.end_by(edge.pid(), signal).await;
    let format = fs::read_to_string(format_file(&edge)).unwrap();
    edge.start_again_as(new).await;
    let is_same_format = fs::read_to_string(format_file(&edge)).unwrap() == format;
    let notices = edge.log_lines("starting empty");
    assert_eq!(notices.is_empty(), is_same_format, "{notices:?}");
    edge.wait_for_log(CHECKED).await;
    for path in KEPT {
        let response = edge.get(path).await;
        let _ = response.stamp(path);
        assert_eq!(response.is_hit(), is_same_format, "{path}: {response}");
        assert_eq!(origin.count(path) == 1, is_same_format, "{path}");
    }
    for path in PURGED {
        let response = edge.get(path).await;
        assert_eq!(origin.count(path), 2, "{path}: {response}");
    }
    for path in KEPT.iter().chain(&PURGED) {
        eventually("a hit", async || edge.get(path).await.is_hit()).await;
    }
    let next = purger.purge(json!({"url": "http://edge.test/kept"})).await;
    assert!(!is_same_format || next["number"].as_u64().unwrap() > last);
    let fetched = origin.count("/kept");
    edge.get("/kept").await;
    assert_eq!(origin.count("/kept"), fetched + 1);
}

#[tokio::test]
async fn an_upgrade_keeps_what_is_stored_and_brings_back_nothing_that_was_purged() {
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        replace(Release::Former, Release::Current, signal).await;
    }
}

#[tokio::test]
async fn a_downgrade_does_no_harm() {
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        replace(Release::Current, Release::Former, signal).await;
    }
}

#[tokio::test]
async fn entries_of_another_format_are_never_served_and_the_log_says_so_once() {
    let (origin, purger) = (origin().await, Purger::new());
    let mut edge = purger.open(Edge::http(&origin)).start().await;
    fill_and_purge(&edge, &purger).await;
    edge.end_by(edge.pid(), libc::SIGTERM).await;
    fs::write(format_file(&edge), "sluice cache 1000000\n").unwrap();
    for starts in 1..=2 {
        edge.start_again().await;
        for path in KEPT.iter().chain(&PURGED) {
            let response = edge.get(path).await;
            assert_eq!(origin.count(path), 2, "start {starts}: {path}: {response}");
            eventually("a hit", async || edge.get(path).await.is_hit()).await;
        }
        edge.end_by(edge.pid(), libc::SIGTERM).await;
    }
    let notices = edge.log_lines("another format");
    assert_eq!(notices.len(), 1, "{notices:?}");
    edge.start_again().await;
}
