// SPDX-License-Identifier: Apache-2.0
//! Envoy's cache writes the headers of a 304 over the headers of the entry that the key has by then. So an entry has
//! one fill at a time.

use serde_json::json;
use sluice_tests::bare::Bare;
use sluice_tests::client::{Client, get, request, until_hit};
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::Purger;
use sluice_tests::edge::store::Store;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;

const OLD: usize = 2_000;
const NEW: usize = 5_000;
const LONG: u32 = 3_600;

/// A version of the object that is fresh for `lifetime` seconds.
fn version(name: &str, size: usize, lifetime: u32) -> Reply {
    let reply = Reply::ok(size).max_age(lifetime);
    reply.etag(name).header("x-version", name)
}

/// Changes the object while the origin still holds the 304 about its old version.
fn change(origin: &Origin, gate: &Gate) {
    let unchanged = version("old", OLD, LONG).hold(gate);
    origin.on_each("/a", [unchanged, version("new", NEW, LONG)]);
}

#[tokio::test]
async fn control_bare_envoy_writes_the_headers_of_a_304_over_those_of_another_entry() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", version("old", OLD, 1));
    let bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    let told = async || get(bare.address(), "/a").await;
    eventually("a hit", async || !told().await.header("age").is_empty()).await;
    change(&origin, &gate);
    let mut held = Client::connect(bare.address()).await;
    loop {
        let asks = request("GET", "/a", &[]);
        held.send(asks).await.unwrap();
        tokio::select! {
            () = gate.wait_reached(1) => break,
            _still_fresh = held.response() => {}
        }
    }
    let changed = told().await;
    assert_eq!(changed.header("x-version"), "new", "{changed}");
    // No request asks meanwhile: Envoy takes the old file away first, and a miss would store the new object again.
    eventually("the new object in the only file", async || {
        stored_versions(&bare) == ["new"]
    })
    .await;
    gate.open();
    eventually("the headers of the 304 in the only file", async || {
        stored_versions(&bare) == ["old"]
    })
    .await;
    let mixed = told().await;
    let seen = (mixed.header("x-version"), mixed.body.len());
    assert_eq!(seen, ("old", NEW), "{mixed}");
}

/// The values of `x-version` in the files of the store of `bare` Envoy, which are serialized protocol buffers.
fn stored_versions(bare: &Bare) -> Vec<String> {
    const FIELD: &[u8] = b"\n\x09x-version\x12\x03";
    let files = bare.entries().read_dir().unwrap();
    // Envoy may take a file away meanwhile.
    let files = files.filter_map(|file| std::fs::read(file.unwrap().path()).ok());
    let version = |file: Vec<u8>| {
        let at = file.windows(FIELD.len()).position(|bytes| bytes == FIELD);
        let value = at.map(|at| file.iter().skip(at + FIELD.len()).take(3));
        value.map_or_else(String::new, |value| {
            value.map(|&byte| char::from(byte)).collect()
        })
    };
    files.map(version).collect()
}

#[tokio::test]
async fn a_softly_purged_entry_is_filled_after_the_fill_from_before_the_purge() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", version("old", OLD, LONG));
    let purger = Purger::new();
    let edge = purger.open(Edge::http(&origin)).workers(2).start().await;
    let soft = json!({"url": "http://edge.test/a", "soft": true});
    until_hit(edge.address(), "/a").await;
    change(&origin, &gate);
    let asked = origin.count("/a");
    purger.purge(soft.clone()).await;
    let mut before = Client::connect(edge.address()).await;
    before.send(request("GET", "/a", &[])).await.unwrap();
    gate.wait_reached(1).await;
    purger.purge(soft).await;
    let mut after = Client::connect(edge.address()).await;
    after.send(request("GET", "/a", &[])).await.unwrap();
    edge.wait_for_value("sluice_parked_now", 1).await;
    assert_eq!(origin.count("/a"), asked + 1);
    gate.open();
    let told = before.response().await.unwrap();
    assert_eq!((told.header("x-version"), told.body.len()), ("old", OLD));
    let new = ("new", NEW);
    let told = after.response().await.unwrap();
    assert_eq!((told.header("x-version"), told.body.len()), new);
    let hit = until_hit(edge.address(), "/a").await;
    assert_eq!((hit.header("x-version"), hit.body.len()), new);
    assert_eq!(edge.counter("sluice_key_mismatches").await, 0);
}
