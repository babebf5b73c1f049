// SPDX-License-Identifier: Apache-2.0
//! When other processes fill the file system of the cache, nothing is stored until there is space again. Clients see
//! no other effect.

use sluice_tests::client::crowd::stampede;
use sluice_tests::client::{Response, until_hit};
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::store::Medium;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::machine::disk::Filling;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::requests::Request;
use std::time::Duration;
use test_case::test_case;

const DISK: u64 = 192 << 20;
const WORKERS: usize = 2;
const CROWD: usize = 20;
/// Sizes with and without a copy in memory.
const SMALL: usize = 10_000;
const LARGE: usize = 300_000;
/// Folders of objects, and whether the followers of one of their objects get a copy.
const FOLDERS: [(&str, bool); 4] = [
    ("/small/", true),
    ("/chunked/", true),
    ("/large/", false),
    ("/large-chunked/", false),
];
/// The log lines when the disk is full, and when it has space again.
const FULL: &str = "nothing is stored until there is more";
const STORES: &str = "responses are stored again";

async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    let reply = |size| {
        Reply::ok(size)
            .max_age(3_600)
            .delay(Duration::from_millis(20))
    };
    origin.on("/small/*", reply(SMALL));
    origin.on("/chunked/*", reply(SMALL).chunked());
    origin.on("/large/*", reply(LARGE));
    origin.on("/large-chunked/*", reply(LARGE).chunked());
    origin
}

fn edge(origin: &Origin) -> Builder {
    Edge::http(origin)
        .workers(WORKERS)
        .env("SLUICE_CACHE_MAX_BYTES", "128MiB")
        .disk(DISK)
}

/// Fills the disk, and waits until every worker knows that the store has no room. The log reports a full disk
/// earlier.
async fn fill(edge: &Edge) -> Filling {
    let filling = edge.disk().fill(0);
    edge.wait_for_log(FULL).await;
    let mut number = 0;
    eventually("a crowd that gets nothing from the store", async || {
        number += 1;
        let path = format!("/large/before-{number}");
        let crowd = stampede(edge.address(), CROWD, &path).await;
        let unstored = |response: &&Response| response.cache_status().ends_with("no-room");
        crowd.all(200).iter().all(unstored)
    })
    .await;
    edge.wait_for_value("sluice_flights_now", 0).await;
    filling
}

/// Counters of events that must not happen to followers.
async fn unwanted(edge: &Edge) -> Vec<(&str, u64)> {
    let mut counted = Vec::new();
    for name in [
        "sluice_wait_timeouts",
        "sluice_unshared",
        "sluice_hit_for_miss_marked",
    ] {
        counted.push((name, edge.counter(name).await));
    }
    counted
}

#[test_case(Medium::Disk; "on disk")]
#[test_case(Medium::Memory; "in memory")]
#[tokio::test]
async fn on_a_full_disk_all_responses_are_whole_and_storing_goes_on_with_the_space(medium: Medium) {
    let origin = origin().await;
    let edge = edge(&origin).medium(medium).start().await;
    until_hit(edge.address(), "/large/kept").await;
    let filling = fill(&edge).await;
    let before = unwanted(&edge).await;

    assert!(edge.get("/large/kept").await.is_hit(), "it is stored");
    for object in 0..5 {
        for (folder, coalesced) in FOLDERS {
            let path = format!("{folder}{object}");
            let crowd = stampede(edge.address(), CROWD, &path).await;
            for response in crowd.all(200) {
                let _ = response.stamp(&path);
            }
            let asked = origin.count(&path);
            assert!(asked <= WORKERS || !coalesced, "{path}: {asked}");
        }
    }
    for (name, least) in [
        ("sluice_fills_without_room", 20),
        ("sluice_requests_collapsed", 10),
    ] {
        assert!(edge.counter(name).await >= least, "{name}");
    }
    assert_eq!(unwanted(&edge).await, before);

    drop(filling);
    edge.wait_for_log(STORES).await;
    let stored = until_hit(edge.address(), "/large/0").await;
    let _ = stored.stamp("/large/0");
    for text in [FULL, STORES] {
        assert_eq!(edge.log_lines(text).len(), 1, "{text}");
    }
    for level in ["Z warning ", "Z error "] {
        assert_eq!(edge.log_lines(level), [""; 0]);
    }
}

#[tokio::test]
async fn on_a_full_disk_parts_headers_and_conditions_are_answered() {
    let origin = origin().await;
    origin.on(
        "/tagged",
        Reply::ok(SMALL).max_age(3_600).etag("a").ranges(),
    );
    let edge = edge(&origin).start().await;
    let _filling = fill(&edge).await;
    for _ in 0..2 {
        let part = edge
            .send("GET", "/tagged", &[("range", "bytes=10-19")])
            .await;
        assert_eq!((part.status, part.body.len()), (206, 10), "{part}");
        let head = edge.send("HEAD", "/tagged", &[]).await;
        assert_eq!(head.header("content-length"), SMALL.to_string(), "{head}");
        let same = edge
            .send("GET", "/tagged", &[("if-none-match", "\"a\"")])
            .await;
        assert_eq!(same.status, 304, "{same}");
        let whole = edge.get("/tagged").await;
        assert_eq!(whole.status, 200, "{whole}");
        let _ = whole.stamp("/tagged");
    }
}

#[tokio::test]
async fn on_a_full_disk_stored_objects_are_revalidated_and_changed_ones_are_passed_on() {
    let origin = origin().await;
    let brief = |tag| Reply::ok(LARGE).max_age(1).etag(tag);
    origin.on("/same", brief("a"));
    origin.on_each("/changing", [brief("a"), brief("b")]);
    let edge = edge(&origin).start().await;
    for path in ["/same", "/changing"] {
        until_hit(edge.address(), path).await;
    }
    let stored = origin.count("/same");
    let _filling = fill(&edge).await;
    for path in ["/same", "/changing"] {
        let asked = origin.count(path);
        let expired = async || {
            let response = edge.get(path).await;
            let _ = response.stamp(path);
            origin.count(path) >= asked + 2
        };
        eventually("two trips to the origin", expired).await;
    }
    let asked = origin.requests().of("/same");
    let is_revalidation = |request: &Request| request.headers.get("if-none-match").is_some();
    assert!(
        asked[stored..].iter().all(is_revalidation),
        "the store keeps it"
    );
    let changed = edge.get("/changing").await;
    assert_eq!(changed.header("etag"), "\"b\"", "{changed}");
    assert!(
        changed.cache_status().ends_with("; detail=no-room"),
        "{changed}"
    );
}

/// Envoy runs without the entry point, which watches the disk.
#[tokio::test]
async fn control_unwatched_followers_wait_in_vain_on_a_full_disk() {
    let origin = origin().await;
    let edge = edge(&origin)
        .policy("origin: {kind: http}\ncoalesce: {max_wait: 500ms}\n")
        .direct(Direct::default())
        .start()
        .await;
    let _filling = edge.disk().fill(0);
    let crowd = stampede(edge.address(), CROWD, "/small/0").await;
    for response in crowd.all(200) {
        let _ = response.stamp("/small/0");
    }
    assert!(edge.counter("sluice_unshared").await > 0);
    assert!(crowd.first_byte(1.0) > Duration::from_millis(500));
}

#[tokio::test]
async fn a_reserve_of_more_than_half_of_the_disk_is_refused() {
    let origin = origin().await;
    let refusal = edge(&origin)
        .env("SLUICE_CACHE_RESERVE", "192MiB")
        .refused()
        .await;
    assert_ne!(refusal.code, Some(0));
    let expected = "SLUICE_CACHE_RESERVE=192MiB: expected at most 96MiB";
    assert!(refusal.output.contains(expected), "{}", refusal.output);
}
