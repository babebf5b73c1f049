// SPDX-License-Identifier: Apache-2.0
//! A new policy arrives through xDS, under load: no request fails, no request waits forever, and a bad policy changes
//! nothing.

use serde_json::Value;
use sluice_tests::client::crowd::{Crowd, stampede};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const POLICY: &str = "origin: {kind: http}\ncoalesce: {max_wait: 600s, lease: 600s}\n";
const ROUNDS: u64 = 5;
const DRAIN: Duration = Duration::from_secs(4);

fn edge(origin: &Origin) -> Builder {
    Edge::http(origin).policy(POLICY).direct(Direct {
        listener_file: true,
        ..Direct::default()
    })
}

/// Changes a field of the policy that does not matter to the test.
fn touch(policy: &mut Value, round: u64) {
    policy["cache"]["hit_for_miss"] = format!("{}s", 100 + round).into();
}

async fn update(edge: &Edge, round: u64) {
    edge.update_policy(&|policy| touch(policy, round));
    edge.wait_for_counter("listener_manager.listener_modified", round)
        .await;
    // Until then, workers of the former listener still accept connections.
    edge.wait_for_value("listener_manager.total_listeners_warming", 0)
        .await;
}

/// A client that sends requests until `stop` is set. It keeps its connections for as long as the edge allows.
async fn ask(
    edge: std::net::SocketAddr,
    number: usize,
    stop: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
) {
    let mut client = Client::connect(edge).await;
    let mut asked = 0_usize;
    while !stop.load(Ordering::Relaxed) {
        // The keys are always new, and two clients request each of them.
        let path = format!("/load{}-{}", number / 2, asked % 500);
        let response = client.get(&path).await;
        assert_eq!(response.status, 200, "{path}: {response}");
        let _ = response.stamp(&path);
        if response.header("connection") == "close" {
            client = Client::connect(edge).await;
        }
        served.fetch_add(1, Ordering::Relaxed);
        asked += 1;
    }
}

#[tokio::test]
async fn no_request_fails_and_no_wake_up_is_lost() {
    let origin = Origin::start().ready().await;
    origin.on("/load*", Reply::ok(2_000));
    let edge = edge(&origin).start().await;
    let (stop, served) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut load = JoinSet::new();
    for number in 0..8 {
        load.spawn(ask(
            edge.address(),
            number,
            Arc::clone(&stop),
            Arc::clone(&served),
        ));
    }
    for round in 1..=ROUNDS {
        let path = format!("/held{round}");
        let gate = Gate::new();
        origin.on(&path, Reply::ok(20_000).hold(&gate));
        let early = Crowd::connect(edge.address(), 30).await.fire(&path);
        gate.wait_reached(1).await;
        edge.wait_for_counter("sluice_parked_now", 29).await;
        update(&edge, round).await;
        // These clients wait for the same leader, under the new policy.
        let late = Crowd::connect(edge.address(), 30).await.fire(&path);
        edge.wait_for_counter("sluice_parked_now", 59).await;
        gate.open();
        for crowd in [early, late] {
            crowd.land().await.same_object(&path);
        }
        assert_eq!(origin.count(&path), 1);
    }
    stop.store(true, Ordering::Relaxed);
    load.join_all().await;
    assert!(served.load(Ordering::Relaxed) > 100, "no load");
    assert_eq!(edge.counter("sluice_wait_timeouts").await, 0);
    assert_eq!(edge.counter("sluice_host_errors").await, 0);
    edge.wait_for_value("sluice_parked_now", 0).await;
}

/// Envoy still has the root context of the first policy in each worker, and uses it again. The root context of the
/// second policy, which had taken over the timer and the queue, ends.
#[tokio::test]
async fn a_policy_that_is_taken_back_at_once_leaves_nobody_waiting() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).policy(POLICY).direct(Direct {
        listener_file: true,
        drain: Some(DRAIN),
        ..Direct::default()
    });
    let edge = edge.start().await;
    for (number, round) in [(1, 1), (2, 2), (3, 1)] {
        edge.update_policy(&|policy| touch(policy, round));
        edge.wait_for_counter("listener_manager.listener_modified", number)
            .await;
    }
    edge.wait_for_value("listener_manager.total_listeners_warming", 0)
        .await;
    for draining in ["listeners", "filter_chains"] {
        let value = format!("listener_manager.total_{draining}_draining");
        edge.wait_for_value(&value, 0).await;
    }
    for path in ["/a", "/b"] {
        let gate = Gate::new();
        origin.on(path, Reply::ok(20_000).hold(&gate));
        let crowd = Crowd::connect(edge.address(), 60).await.fire(path);
        edge.wait_for_value("sluice_parked_now", 59).await;
        gate.open();
        crowd.land().await.same_object(path);
        assert_eq!(origin.count(path), 1);
    }
    assert_eq!(edge.counter("sluice_wait_timeouts").await, 0);
    assert_eq!(edge.counter("sluice_host_errors").await, 0);
}

#[tokio::test]
async fn a_new_policy_holds_for_new_requests() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000));
    let edge = edge(&origin).start().await;
    let policy = |policy: &mut Value| {
        policy["key"]["query"]["mode"] = "sort".into();
        policy["key"]["query"]["remove"] = serde_json::json!(["utm_*"]);
    };
    let _ = edge.get("/a?utm_x=1").await.stamp("/a?utm_x=1");
    edge.update_policy(&policy);
    edge.wait_for_counter("listener_manager.listener_modified", 1)
        .await;
    sluice_tests::eventually("the new policy", async || {
        let response = edge.get("/a?utm_x=1").await;
        sluice_tests::http::body::check("/a", &response.body).is_ok()
    })
    .await;
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn a_bad_policy_leaves_the_old_one_serving_and_is_seen() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("*", Reply::ok(1000));
    origin.on("/held", Reply::ok(20_000).hold(&gate));
    // Envoy logs a line about a plugin that refuses its configuration.
    let edge = edge(&origin)
        .allow_log_of("wasm")
        .allow_log_of("dynamic_modules")
        .start()
        .await;
    let flight = Crowd::connect(edge.address(), 30).await.fire("/held");
    edge.wait_for_value("sluice_parked_now", 29).await;
    let mut kept = Client::connect(edge.address()).await;
    assert_eq!(kept.get("/a").await.status, 200);
    edge.update_policy(&|policy| policy["coalesce"]["max_wait"] = "soon".into());
    edge.wait_for_counter("listener_manager.lds.update_rejected", 1)
        .await;
    edge.wait_for_log("coalesce.max_wait").await;
    assert_eq!(kept.exchange(request("GET", "/b", &[])).await.status, 200);
    stampede(edge.address(), 50, "/c").await.same_object("/c");
    assert_eq!(origin.count("/c"), 1);
    gate.open();
    flight.land().await.same_object("/held");
    assert_eq!(origin.count("/held"), 1);
    // A good policy after the bad one is accepted.
    edge.update_policy(&|policy| policy["coalesce"]["max_wait"] = "5s".into());
    edge.wait_for_counter("listener_manager.listener_modified", 1)
        .await;
    stampede(edge.address(), 50, "/d").await.same_object("/d");
    assert_eq!(origin.count("/d"), 1);
}
