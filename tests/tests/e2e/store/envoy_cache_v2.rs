// SPDX-License-Identifier: Apache-2.0
//! Controls that show why Envoy's newer cache filter, v2, is not the store. Each shows on bare Envoy a fault that
//! would end an edge in front of a bucket that cuts a body now and then. If one fails, a newer Envoy may have
//! fixed the fault.

use super::slow_readers::{Read, SlowReader, version};
use serde_json::Value;
use sluice_tests::bare::Bare;
use sluice_tests::client::crowd::{Crowd, Outcomes};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::store::Store;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::time::Duration;

/// Number of attempts of a test that depends on the timing of threads.
const ROUNDS: usize = 10;
/// Longest duration of one attempt.
const ROUND: Duration = Duration::from_secs(20);

/// A client that has sent a request for `path`, and does not wait for the response.
async fn ask(bare: &Bare, path: &str) -> Client {
    let mut client = Client::connect(bare.address()).await;
    client.send(request("GET", path, &[])).await.unwrap();
    client
}

/// Waits until Envoy has died of a segmentation fault. Returns false if Envoy stays alive.
async fn dies(bare: &mut Bare) -> bool {
    for _ in 0..200 {
        if !bare.alive() {
            return bare.log().contains("Segmentation fault");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

/// A slow reader is in the middle of a fill when the origin cuts it. The next request empties the reader's entry.
#[tokio::test]
async fn control_bare_v2_dies_of_a_slow_reader_of_a_fill_that_the_origin_has_cut() {
    for _ in 0..ROUNDS {
        // Envoy may hang instead. The next round tries again.
        let died = tokio::time::timeout(ROUND, dies_of_a_slow_reader()).await;
        if died == Ok(true) {
            return;
        }
    }
    panic!("a newer Envoy?");
}

async fn dies_of_a_slow_reader() -> bool {
    const SENT: usize = 16 << 20;
    let origin = Origin::start().ready().await;
    let held = Gate::new();
    let cut = Reply::ok(20 << 20).max_age(60).close_after(SENT);
    origin.on_each("/a", [cut, Reply::ok(1_000).hold(&held)]);
    let mut bare = Bare::start(&origin, Store::V2_DISK, 1).await;
    let reader = SlowReader::begin(bare.address(), "/a").await;
    eventually("the cut", async || bare.log().contains("upstream reset")).await;
    let _next = ask(&bare, "/a").await;
    origin.wait_for_requests("/a", 2).await;
    let _ = reader.rest().await;
    dies(&mut bare).await
}

/// Makes the hop cut a response as soon as the origin does. Envoy's default delay is far too long for the test, and
/// the edge's delay gives readers time.
fn cut_at_once(config: &mut Value) {
    let listeners = config["static_resources"]["listeners"].as_array_mut();
    let mut listeners = listeners.unwrap().iter_mut();
    let hop = listeners.find(|listener| listener["name"] == "origin");
    let hop = hop.unwrap();
    hop["filter_chains"][0]["filters"][0]["typed_config"]["delayed_close_timeout"] = "0s".into();
}

/// The store resets all readers of a fill on the thread of the worker that fetched.
#[tokio::test]
async fn control_bare_v2_hangs_or_dies_when_several_workers_read_a_fill_that_the_origin_cuts() {
    let origin = Origin::start().ready().await;
    let mut bare = Bare::changed(&origin, Store::V2_DISK, 2, &cut_at_once).await;
    for round in 0..20 {
        let path = format!("/a{round}");
        let rest = Gate::new();
        let cut = Reply::ok(200_000).reset_after(50_000).max_age(60);
        origin.on(&path, cut.hold_after(100, &rest));
        let crowd = Crowd::connect(bare.address(), 20).await.fire(&path);
        rest.wait_reached(1).await;
        rest.open();
        let landed = tokio::time::timeout(Duration::from_secs(3), crowd.land()).await;
        println!("round {round}: {:?}", landed.as_ref().map(Outcomes::tally));
        if landed.is_err() || !bare.alive() {
            return;
        }
    }
    panic!("a newer Envoy?");
}

/// Readers of a stored response continue with the bytes of the response that replaces it.
#[tokio::test]
async fn control_bare_v2_mixes_versions() {
    let origin = Origin::start().ready().await;
    origin.on_each("/a", [version("one"), version("two")]);
    let bare = Bare::start(&origin, Store::V2_DISK, 2).await;
    let _ = bare.get("/a").await.stamp("/a");
    let reader = SlowReader::begin(bare.address(), "/a").await;
    eventually("the other version", async || {
        bare.get("/a").await.header("etag") == "\"two\""
    })
    .await;
    assert!(matches!(reader.finish().await, Read::Mixed(_)));
}
