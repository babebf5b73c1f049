// SPDX-License-Identifier: Apache-2.0
//! A worker that stalls for longer than the others wait for it joins them again afterwards.

use serde_json::json;
use sluice_tests::client::{Client, until_hit};
use sluice_tests::edge::Edge;
use sluice_tests::edge::purger::Purger;
use sluice_tests::eventually;
use sluice_tests::machine::stall::Stall;
use sluice_tests::origin::{Origin, Reply};
use tokio::task::JoinSet;

#[tokio::test]
async fn a_worker_that_stood_still_during_a_change_hears_of_later_purges() {
    let origin = Origin::start().ready().await;
    origin.on("/kept", Reply::ok(1_000).max_age(3_600));
    origin.on("/changed", Reply::ok(1_000).max_age(1).etag("old"));
    let purger = Purger::new();
    let edge = purger.open(Edge::http(&origin));
    let edge = edge.workers(2).allow_log("did not answer to a change");
    let edge = edge.start().await;
    let mut clients = Vec::new();
    for _ in 0..16 {
        let mut client = Client::connect(edge.address()).await;
        client.heat("/kept", &[]).await;
        clients.push(client);
    }
    until_hit(edge.address(), "/changed").await;

    let stall = Stall::of_thread(edge.envoy_pid(), "wrk:worker_1");
    let mut asking = JoinSet::new();
    for mut client in clients {
        asking.spawn(async move {
            client.get("/kept").await;
            client
        });
    }
    let mut answered = asking.join_next().await.unwrap().unwrap();
    origin.on("/changed", Reply::ok(1_000).max_age(3_600).etag("new"));
    eventually("the change", async || {
        answered.get("/changed").await.header("etag") == "\"new\""
    })
    .await;
    drop(stall);

    let mut clients = asking.join_all().await;
    // Either worker may have the connection.
    eventually("purges that both hear of", async || {
        for _ in 0..16 {
            let order = json!({"url": "http://edge.test/kept"});
            if purger.purge(order).await["workers"] != 2 {
                return false;
            }
        }
        true
    })
    .await;
    for _ in 0..16 {
        for client in &mut clients {
            client.heat("/kept", &[]).await;
        }
        let fetched = origin.count("/kept");
        purger.purge(json!({"url": "http://edge.test/kept"})).await;
        for client in &mut clients {
            let stamp = client.get("/kept").await.stamp("/kept");
            assert!(stamp.sequence >= fetched as u64, "{stamp:?}");
        }
    }
}
