// SPDX-License-Identifier: Apache-2.0
//! Workers that share memory keep one body of an object for all workers.

use sluice::settings::Runtime;
use sluice_tests::client::Client;
use sluice_tests::edge::Edge;
use sluice_tests::edge::direct::Direct;
use sluice_tests::machine::tool::runtime;
use sluice_tests::origin::{Origin, Reply};

const WORKERS: usize = 8;
const OBJECTS: usize = 64;
const SIZE: usize = 64 * 1024;

/// Memory in bytes that copies of the same objects on all workers take, and the total size of the copies in bytes.
async fn copies_on_all_workers() -> (u64, u64) {
    let origin = Origin::start().ready().await;
    for object in 0..OBJECTS {
        origin.on(&format!("/{object}"), Reply::ok(SIZE).max_age(3_600));
    }
    let edge = Edge::http(&origin)
        .workers(WORKERS)
        .direct(Direct {
            exact_balance: true,
            ..Direct::default()
        })
        .start()
        .await;
    let mut clients = Vec::new();
    for _ in 0..WORKERS {
        clients.push(Client::connect(edge.address()).await);
    }
    // Every worker has answered from the store once, and has allocated its memory for that.
    for client in &mut clients {
        for _ in 0..20 {
            let _ = client.get("/0").await;
        }
    }
    let before = edge.resident_kib();
    for client in &mut clients {
        for object in 0..OBJECTS {
            let path = format!("/{object}");
            while !client.get(&path).await.is_hot() {}
        }
    }
    let after = edge.resident_kib();
    let copied = edge.counter("sluice_hot_bytes_now").await;
    (after.saturating_sub(before) * 1024, copied)
}

#[tokio::test]
async fn workers_without_vms_keep_one_body_of_an_object() {
    let (taken, copied) = copies_on_all_workers().await;
    println!("{copied} bytes of copies took {taken} bytes");
    // A worker may have no client here, if it still had a connection from the start.
    assert!(copied > (WORKERS / 2 * OBJECTS * SIZE) as u64, "{copied}");
    match runtime() {
        Runtime::Native => assert!(taken < copied / 2, "{taken} of {copied}"),
        // Each VM has separate memory.
        Runtime::Wasm => assert!(taken > copied * 3 / 4, "{taken} of {copied}"),
    }
}
