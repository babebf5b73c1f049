// SPDX-License-Identifier: Apache-2.0
//! The v2 store is renewed while Envoy runs, so that any number of objects is cached although few may be open. (The
//! control is `open_keys.rs`: a store that is not renewed, and turns away what is beyond that.)

use super::open_keys::{is_overflow, path, without_copies};
use super::slow_readers::SlowReader;
use serde_json::json;
use sluice_tests::client::{Client, Response};
use sluice_tests::crowd::Crowd;
use sluice_tests::edge::Edge;
use sluice_tests::eventually;
use sluice_tests::gate::Gate;
use sluice_tests::matrix::Store;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::purger::Purger;
use sluice_tests::standstill::unless_the_machine_stands_still;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinSet;

/// All instances together; each is renewed after half of its quarter.
pub const MOST: usize = 400;
const STORES: [Store; 2] = [Store::V2_DISK, Store::V2_MEMORY];
/// One more than renewals: the start counts too.
const RENEWALS: &str = "extension_config_discovery.http_filter.sluice.edge.update_success";
pub const REFUSALS: &str = "extension_config_discovery.http_filter.cache.update_rejected";
/// What no socket on the way takes in while its client does not read.
const LARGE: usize = 24_000_000;

async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(3_000).max_age(3_600));
    origin
}

async fn start(origin: &Origin, store: Store) -> Edge {
    let edge = without_copies(origin, store).env("CACHE_MAX_OPEN_KEYS", MOST.to_string());
    edge.start().await
}

/// The files of the store that Envoy has open.
fn open_files(edge: &Edge) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", edge.envoy_pid())).unwrap();
    let targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    let entries = targets.filter(|target| {
        let name = target.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("cache-")
    });
    entries.count()
}

/// How often the store was renewed.
pub async fn renewals(edge: &Edge) -> u64 {
    edge.counter(RENEWALS).await - 1
}

/// Asks until the store has answered, as a client does that comes again after the store had no room.
async fn ask_until(client: &mut Client, path: &str, test: impl Fn(&Response) -> bool) -> Response {
    let mut last = None;
    eventually(path, async || {
        let response = client.get(path).await;
        let passes = test(&response);
        last = Some(response);
        passes
    })
    .await;
    last.unwrap()
}

/// Opens keys that nobody has asked for, from `next` on, until the store has been renewed.
pub async fn renew(edge: &Edge, next: &mut usize) {
    let before = renewals(edge).await;
    let mut client = Client::connect(edge.address()).await;
    eventually("a renewal", async || {
        for _ in 0..10 {
            assert_eq!(client.get(&path(*next)).await.status, 200);
            *next += 1;
        }
        renewals(edge).await > before
    })
    .await;
}

#[tokio::test]
async fn any_number_of_objects_is_stored_and_few_are_open() {
    const OBJECTS: usize = 1_000;
    for store in STORES {
        let origin = origin().await;
        let edge = start(&origin, store).await;
        let mut client = Client::connect(edge.address()).await;
        let mut asked = HashMap::new();
        for number in 0..OBJECTS {
            let path = path(number);
            let response = ask_until(&mut client, &path, |got| !is_overflow(got)).await;
            let _ = response.stamp(&path);
            asked.insert(path, response);
            assert!(open_files(&edge) <= MOST, "{store}");
        }
        assert!(renewals(&edge).await >= 10, "{store}");
        // From now on whatever comes is from the store.
        origin.on("*", Reply::status(500));
        for path in asked.keys() {
            let response = ask_until(&mut client, path, Response::is_hit).await;
            let _ = response.stamp(path);
        }
        assert!(open_files(&edge) <= MOST, "{store}");
        assert_eq!(edge.counter("sluice_unexpected_misses").await, 0, "{store}");
        assert_eq!(edge.counter("sluice_host_errors").await, 0, "{store}");
    }
}

#[tokio::test]
async fn a_long_download_goes_on_through_many_renewals() {
    for store in STORES {
        let origin = origin().await;
        origin.on("/large", Reply::ok(LARGE).max_age(3_600));
        let edge = start(&origin, store).await;
        let _ = edge.get("/large").await.stamp("/large");
        let reader = SlowReader::begin(edge.address(), "/large").await;
        let mut next = 0;
        for _ in 0..8 {
            renew(&edge, &mut next).await;
        }
        assert!(edge.counter(REFUSALS).await > 0, "{store}: all were free");
        assert!(open_files(&edge) <= MOST, "{store}");
        let _ = reader.rest().await.unwrap().stamp("/large");
        assert_eq!(origin.count("/large"), 1, "{store}");
    }
}

#[tokio::test]
async fn while_each_instance_is_in_use_the_store_is_not_renewed_and_that_is_said() {
    let origin = origin().await;
    origin.on("/large*", Reply::ok(LARGE).max_age(3_600));
    let edge = start(&origin, Store::V2_DISK).await;
    let (mut next, mut readers) = (0, Vec::new());
    for number in 0..4 {
        if number > 0 {
            renew(&edge, &mut next).await;
        }
        let large = format!("/large{number}");
        readers.push(SlowReader::begin(edge.address(), &large).await);
    }
    let mut client = Client::connect(edge.address()).await;
    let known = ask_until(&mut client, "/known", Response::is_hit).await;
    eventually("the store is full", async || {
        next += 1;
        is_overflow(&client.get(&path(next)).await)
    })
    .await;
    edge.wait_for_log("the store cannot be renewed").await;
    assert!(open_files(&edge) <= MOST);
    let response = client.get("/known").await;
    assert!(response.is_hit(), "{response}");
    assert_eq!(response.body, known.body);
    readers.clear();
    let response = ask_until(&mut client, &path(next), Response::is_hit).await;
    let _ = response.stamp(&path(next));
}

/// The store is another one by then, and has room; the filter has still to be told.
#[tokio::test]
async fn where_the_filter_cannot_be_told_at_once_it_is_told_later() {
    let origin = origin().await;
    let edge = start(&origin, Store::V2_DISK).await;
    let files = format!("state/envoy-{}", edge.address().port());
    let in_the_way = edge.folder().join(files).join("sluice.edge.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let mut client = Client::connect(edge.address()).await;
    let mut next = 0;
    eventually("the store is full", async || {
        next += 1;
        is_overflow(&client.get(&path(next)).await)
    })
    .await;
    edge.wait_for_log("the store could not be renewed").await;
    assert_eq!(renewals(&edge).await, 0);
    std::fs::remove_dir(&in_the_way).unwrap();
    eventually("it is told", async || renewals(&edge).await > 0).await;
    let response = client.get("/new").await;
    assert!(!is_overflow(&response), "{response}");
}

#[tokio::test]
async fn those_who_wait_for_one_object_get_it_through_a_renewal() {
    for store in STORES {
        let origin = origin().await;
        let edge = start(&origin, store).await;
        let mut next = 0;
        for round in 0..5 {
            let path = format!("/held{round}");
            let gate = Gate::new();
            origin.on(&path, Reply::ok(20_000).max_age(60).hold(&gate));
            let early = Crowd::connect(edge.address(), 30).await.fire(&path);
            gate.wait_reached(1).await;
            edge.wait_for_value("sluice_parked_now", 29).await;
            renew(&edge, &mut next).await;
            let late = Crowd::connect(edge.address(), 30).await.fire(&path);
            edge.wait_for_value("sluice_parked_now", 59).await;
            gate.open();
            for crowd in [early, late] {
                crowd.land().await.same_object(&path);
            }
            // The late ones cannot read what the former instance is still filling.
            assert!(origin.count(&path) <= 2, "{store}");
        }
        assert_eq!(edge.counter("sluice_wait_timeouts").await, 0, "{store}");
        assert_eq!(edge.counter("sluice_host_errors").await, 0, "{store}");
        edge.wait_for_value("sluice_parked_now", 0).await;
        edge.wait_for_value("sluice_flights_now", 0).await;
    }
}

#[tokio::test]
async fn hot_copies_stay_through_a_renewal() {
    let origin = origin().await;
    let edge = without_copies(&origin, Store::V2_DISK)
        .env("HOT_BYTES", "1MiB")
        .env("CACHE_MAX_OPEN_KEYS", MOST.to_string());
    let edge = edge.start().await;
    let mut client = Client::connect(edge.address()).await;
    assert!(client.heat("/hot", &[]).await.is_hot());
    let admissions = edge.counter("sluice_hot_admissions").await;
    let copies = edge.counter("sluice_hot_objects_now").await;
    renew(&edge, &mut 0).await;
    assert_eq!(edge.counter("sluice_hot_admissions").await, admissions);
    assert_eq!(edge.counter("sluice_hot_objects_now").await, copies);
    let _ = client.get("/hot").await.stamp("/hot");
    assert_eq!(origin.count("/hot"), 1);
}

/// What goes to the journal in the moment of a renewal is sent again. The journal is on no disk, which may take its time.
async fn purges_are_recorded_through_renewals() {
    let origin = origin().await;
    let purger = Purger::new();
    let folder = TempDir::new_in("/dev/shm").unwrap();
    let edge = purger.open(without_copies(&origin, Store::V2_DISK));
    let edge = edge.env("CACHE_MAX_OPEN_KEYS", MOST.to_string());
    let edge = edge.env("CACHE_DIR", folder.path().display().to_string());
    let edge = edge.start().await;
    let mut purges = JoinSet::new();
    let stop = Arc::new(AtomicBool::new(false));
    for number in 0..8 {
        let stop = Arc::clone(&stop);
        purges.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let order = json!({"url": format!("http://edge.test/purged{number}")});
                let response = purger.call(&order).await;
                assert_eq!(response.status, 200, "{response}");
            }
        });
    }
    let mut next = 0;
    for _ in 0..12 {
        renew(&edge, &mut next).await;
    }
    stop.store(true, Ordering::Relaxed);
    purges.join_all().await;
    assert_eq!(edge.counter("sluice_purges_unrecorded").await, 0);
}

#[tokio::test]
async fn every_purge_is_recorded_through_renewals() {
    // Workers have two seconds for each.
    let slack = Duration::from_secs(1);
    unless_the_machine_stands_still(slack, purges_are_recorded_through_renewals).await;
}
