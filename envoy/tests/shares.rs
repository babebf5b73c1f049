// SPDX-License-Identifier: Apache-2.0
//! Sites share the files that Envoy has written according to their weights.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;

use rustix::process::Signal;
use sluice::cache::{CacheFolder, Keeper, MostVariants, ReportDesk, SharedState, Shares, Shortage};
use sluice::settings::{Cache, Medium, Reserve};
use support::edge::Variables;
use support::modules::APPROVING;
use support::origin::Origin;
use support::{PATIENCE, eventually};

/// The sites and their numbers of objects: one site fills the cache first, and the other one scans after it.
const OBJECTS: [(&str, u64); 2] = [("quiet", 40), ("scanning", 260)];

/// Lets an edge's Envoy store the objects of both sites in `cache`, and returns the size of an object in bytes.
fn fill(cache: &Path) -> u64 {
    let variables = Variables::new(&Origin::start().url(), APPROVING);
    let mut edge = variables
        .set("SLUICE_CACHE_DIR", cache.to_str().unwrap())
        .start();
    for (site, count) in OBJECTS {
        for object in 0..count {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, edge.port)).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let host = format!("{site}!edge.test");
            write!(
                stream,
                "GET /{object:03} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
            )
            .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }
    let stored: u64 = OBJECTS.iter().map(|(_, count)| *count).sum();
    eventually("all are stored", || count(cache) == stored);
    let bytes = fs::read_dir(cache.join("entries")).unwrap();
    let bytes: u64 = bytes
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    edge.signal(Signal::TERM);
    edge.end();
    bytes / stored
}

/// The number of files.
fn count(cache: &Path) -> u64 {
    fs::read_dir(cache.join("entries")).unwrap().count() as u64
}

/// The number of files of a site. NB: this reads the files, which counts as a use.
fn count_of(cache: &Path, site: &str) -> u64 {
    let files = fs::read_dir(cache.join("entries")).unwrap();
    let of_site = files.filter(|file| {
        let bytes = fs::read(file.as_ref().unwrap().path()).unwrap();
        String::from_utf8_lossy(&bytes).contains(&format!("{site}!edge.test"))
    });
    of_site.count() as u64
}

/// The number of files of each site after the keeper has evicted half of the bytes.
fn evict_half(shares: Shares) -> [u64; 2] {
    let folder = tempfile::TempDir::new().unwrap();
    let root = folder.path().join("cache");
    let object_bytes = fill(&root);
    let settings = Cache {
        medium: Medium::Disk,
        dir: root.clone(),
        max_bytes: 1 << 30,
        max_entries: 1_000,
        max_object_bytes: 1 << 20,
        reserve: Reserve::Bytes(0),
    };
    let cache = CacheFolder::open(&settings).unwrap();
    let shortage = Shortage::default();
    let _keeper = Keeper::start(
        &settings,
        &cache,
        shortage.clone(),
        SharedState {
            shares,
            most_variants: MostVariants::new(usize::MAX),
            reports: ReportDesk::default(),
        },
        PATIENCE,
    )
    .unwrap();
    eventually("the files are in use again", || count(&root) == 300);
    shortage.publish(object_bytes * 150);
    eventually("the eviction", || shortage.bytes() == 0);
    OBJECTS.map(|(site, _)| count_of(&root, site))
}

#[test]
fn a_scan_takes_no_files_of_a_site_within_its_share() {
    let [quiet, scanning] = evict_half(Shares::new(OBJECTS.map(|(site, _)| (site, 1))));
    assert_eq!(quiet, 40);
    assert!((60..=110).contains(&scanning), "{scanning}");
}

#[test]
fn without_sites_the_oldest_files_go() {
    let [quiet, scanning] = evict_half(Shares::default());
    assert_eq!(quiet, 0);
    assert!((100..=150).contains(&scanning), "{scanning}");
}
