// SPDX-License-Identifier: Apache-2.0
//! Files of the cache that were damaged while the edge was down are never served, and do not make Envoy crash.

use sluice_tests::bare::Bare;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::store::{Medium, Store};
use sluice_tests::edge::{Edge, MANIFEST_RECORD};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BYTES: usize = 30_000;
const LONG: u32 = 3_600;
/// The log line of an edge that has checked the stored objects.
const CHECKED: &str = "files of earlier runs";

async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(BYTES).max_age(LONG));
    origin
}

fn root(edge: &Edge) -> PathBuf {
    edge.folder().join("cache")
}

fn files(entries: &Path) -> BTreeSet<PathBuf> {
    let files = fs::read_dir(entries).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

/// Stores an object, and returns its file.
async fn store(edge: &Edge, path: &str) -> PathBuf {
    let entries = root(edge).join("entries");
    let before = files(&entries);
    eventually("a hit", async || edge.get(path).await.is_hit()).await;
    let after = files(&entries);
    let mut new = after.difference(&before);
    let (Some(file), None) = (new.next(), new.next()) else {
        panic!("{path}: not one file: {after:?}");
    };
    file.clone()
}

fn open(file: &Path) -> File {
    File::options().write(true).open(file).unwrap()
}

type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 8] = [
    ("shorter", |file| open(file).set_len(20_000).unwrap()),
    ("headers only", |file| open(file).set_len(100).unwrap()),
    ("empty", |file| open(file).set_len(0).unwrap()),
    ("overwritten", |file| {
        open(file).write_all_at(b"damage", 20_000).unwrap();
    }),
    ("wrong headers", |file| {
        open(file).write_all_at(&[0xff; 64], 0).unwrap();
    }),
    ("longer", |file| {
        let end = fs::metadata(file).unwrap().len();
        open(file).write_all_at(b"more", end).unwrap();
    }),
    ("zeros", |file| {
        let length = fs::metadata(file).unwrap().len();
        open(file).set_len(0).unwrap();
        open(file).set_len(length).unwrap();
    }),
    ("another's", |file| {
        let other = files(file.parent().unwrap());
        let other = other.iter().find(|other| *other != file).unwrap();
        fs::copy(other, file).unwrap();
    }),
];

#[tokio::test]
async fn damaged_objects_are_fetched_again_and_intact_ones_are_hits() {
    const INTACT: u64 = 5;
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let origin = origin().await;
        let mut edge = Edge::http(&origin).medium(Medium::Disk).start().await;
        let mut damaged = Vec::new();
        for n in 0..INTACT {
            store(&edge, &format!("/intact/{n}")).await;
        }
        for n in 0..DAMAGES.len() {
            damaged.push(store(&edge, &format!("/damaged/{n}")).await);
        }
        edge.wait_for_manifest(INTACT + DAMAGES.len() as u64).await;
        edge.end_by(edge.pid(), signal).await;
        for (file, (_, damage)) in damaged.iter().zip(DAMAGES) {
            damage(file);
        }
        let foreign = damaged[0].with_file_name("cache-7");
        fs::write(foreign, "nobody's").unwrap();
        edge.start_again().await;
        edge.wait_for_log(CHECKED).await;
        let said = edge.log_lines(CHECKED).pop().unwrap();
        assert!(
            said.contains("5 files") && said.contains("9 have been removed (8 damaged, 1 not"),
            "{said}"
        );
        for n in 0..INTACT {
            let path = format!("/intact/{n}");
            let response = edge.get(&path).await;
            let _ = response.stamp(&path);
            assert!(response.is_hit(), "{response}");
            assert_eq!(origin.count(&path), 1);
        }
        for (n, (what, _)) in DAMAGES.iter().enumerate() {
            let path = format!("/damaged/{n}");
            let _ = edge.get(&path).await.stamp(&path);
            assert_eq!(origin.count(&path), 2, "{what}");
            eventually("a hit", async || edge.get(&path).await.is_hit()).await;
        }
        edge.restart().await;
        edge.wait_for_log("13 files of earlier runs are whole")
            .await;
    }
}

#[tokio::test]
async fn control_bare_envoy_dies_of_a_file_that_is_cut_short() {
    let origin = origin().await;
    let mut bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    bare.get("/a").await;
    eventually("its file", async || files(bare.entries()).len() == 1).await;
    for file in files(bare.entries()) {
        open(&file).set_len(20_000).unwrap();
    }
    if let Ok(mut client) = Client::try_connect(bare.address()).await {
        let _ = client.try_exchange(request("GET", "/a", &[])).await;
    }
    eventually("its death", async || !bare.alive()).await;
    let log = bare.log();
    assert!(log.contains("Segmentation fault"), "{log}");
}

#[tokio::test]
async fn a_lost_or_damaged_manifest_costs_only_the_objects_it_does_not_list() {
    let origin = origin().await;
    let mut edge = Edge::http(&origin).medium(Medium::Disk).start().await;
    for n in 0..4 {
        store(&edge, &format!("/{n}")).await;
    }
    edge.wait_for_manifest(4).await;
    edge.end_by(edge.pid(), libc::SIGKILL).await;
    let manifest = root(&edge).join("manifest");
    // The test damages the second record, and cuts the end of the last one.
    open(&manifest)
        .write_all_at(b"x", MANIFEST_RECORD + 3)
        .unwrap();
    open(&manifest).set_len(4 * MANIFEST_RECORD - 1).unwrap();
    edge.start_again().await;
    edge.wait_for_log("2 files of earlier runs are whole").await;
    for n in 0..4 {
        let path = format!("/{n}");
        let _ = edge.get(&path).await.stamp(&path);
    }
    assert_eq!(
        [0, 1, 2, 3].map(|n| origin.count(&format!("/{n}"))),
        [1, 2, 1, 2]
    );
    edge.wait_for_manifest(4).await;
    edge.end_by(edge.pid(), libc::SIGTERM).await;
    fs::remove_file(&manifest).unwrap();
    edge.start_again().await;
    edge.wait_for_log("0 files of earlier runs are whole").await;
    let _ = edge.get("/0").await.stamp("/0");
    assert_eq!(origin.count("/0"), 2);
}

#[tokio::test]
async fn a_large_cache_does_not_hold_up_the_start() {
    const MANY: u64 = 100_000;
    let origin = origin().await;
    origin.on("/first", Reply::ok(500).max_age(LONG));
    let start = Instant::now();
    let mut edge = Edge::http(&origin)
        .medium(Medium::Disk)
        .env("SLUICE_CACHE_MAX_ENTRIES", "1000000")
        .env("SLUICE_CACHE_MAX_BYTES", "1TiB")
        .start()
        .await;
    let empty = start.elapsed();
    let mut file = store(&edge, "/first").await;
    for n in 0..MANY {
        let next = file.with_file_name(format!("cache-{n}"));
        // A file cannot have as many hard links.
        if n % 10_000 == 0 {
            fs::copy(&file, &next).unwrap();
            file = next;
        } else {
            fs::hard_link(&file, next).unwrap();
        }
    }
    edge.wait_for_manifest(MANY + 1).await;
    edge.end_by(edge.pid(), libc::SIGKILL).await;
    let start = Instant::now();
    edge.start_again().await;
    let _ = edge.get("/new").await.stamp("/new");
    let took = start.elapsed();
    assert!(
        took < 2 * empty + Duration::from_secs(5),
        "{took:?}, empty {empty:?}"
    );
    edge.wait_for_log("100001 files of earlier runs are whole")
        .await;
    assert!(edge.get("/first").await.is_hit());
    assert_eq!(origin.count("/first"), 1);
}

#[tokio::test]
async fn a_cache_of_which_envoy_dies_twice_is_given_up() {
    let origin = origin().await;
    let mut edge = Edge::http(&origin).medium(Medium::Disk).start().await;
    store(&edge, "/a").await;
    edge.wait_for_manifest(1).await;
    edge.end_by(edge.envoy_pid(), libc::SIGKILL).await;
    edge.start_again().await;
    assert!(edge.get("/a").await.is_hit(), "one death keeps the cache");
    edge.end_by(edge.envoy_pid(), libc::SIGKILL).await;
    edge.start_again().await;
    edge.wait_for_log("died twice").await;
    edge.wait_for_log("0 files of earlier runs are whole").await;
    store(&edge, "/a").await;
    assert_eq!(origin.count("/a"), 2);
    edge.end_by(edge.envoy_pid(), libc::SIGKILL).await;
    edge.start_again().await;
    assert!(edge.get("/a").await.is_hit(), "a new count of deaths");
    assert_eq!(origin.count("/a"), 2);
}

#[tokio::test]
async fn an_orderly_stop_is_no_early_death() {
    let origin = origin().await;
    let mut edge = Edge::http(&origin).medium(Medium::Disk).start().await;
    store(&edge, "/a").await;
    edge.wait_for_manifest(1).await;
    for _ in 0..2 {
        edge.end_by(edge.envoy_pid(), libc::SIGKILL).await;
        edge.start_again().await;
        assert!(edge.get("/a").await.is_hit());
        edge.restart().await;
    }
    assert!(edge.get("/a").await.is_hit());
    assert_eq!(origin.count("/a"), 1);
}
