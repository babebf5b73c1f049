// SPDX-License-Identifier: Apache-2.0
//! When a worker's VM dies, only requests that wait in it fail, and no request is forwarded unchecked.

use sluice_tests::client::crowd::{Crowd, Outcomes};
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::direct::Direct;
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::net::SocketAddr;
use std::time::Duration;

/// Timeout after which Envoy ends requests that wait in the dead VM.
const IDLE: Duration = Duration::from_secs(4);
const FOLLOWERS: usize = 100;
/// A policy under which only the end of the lease releases the followers of a leader whose VM has died.
const POLICY: &str = "origin: {kind: bucket}\ncoalesce: {lease: 1s, max_wait: 600s}\n";
const FORBIDDEN: [(&str, &str); 6] = [
    ("DELETE", "/a"),
    ("PUT", "/a"),
    ("GET", "/aN?acl"),
    ("GET", "/..%2fother/x"),
    ("GET", "/../other/x"),
    ("DELETE", "/..%2fother/x?acl"),
];

async fn start(origin: &Origin, workers: usize) -> Edge {
    Edge::scripted_bucket(origin)
        .workers(workers)
        .policy(POLICY)
        .trapping()
        .direct(Direct {
            stream_idle: Some(IDLE),
            ..Direct::default()
        })
        .start()
        .await
}

/// Checks that every request of the bucket was checked and signed.
fn assert_all_checked(origin: &Origin) {
    for request in origin.requests().all() {
        let line = format!("{} {}", request.method, request.target);
        assert!(matches!(request.method.as_str(), "GET" | "HEAD"), "{line}");
        assert!(request.target.starts_with("/site/"), "{line}");
        assert!(!request.target.contains(['?', '%']), "{line}");
        assert!(!request.target.contains("other"), "{line}");
        let signature = request.headers.get("authorization").unwrap_or_default();
        assert!(signature.starts_with("AWS4-HMAC-SHA256 "), "{line}");
        assert!(!request.headers.any_with_prefix("x-sluice-"), "{line}");
        assert!(!request.headers.any_with_prefix("x-trap"), "{line}");
    }
}

/// Sends forbidden requests on many connections, and so on all workers.
async fn ask_for_the_forbidden(edge: &Edge) -> Outcomes {
    let crowd = Crowd::connect(edge.address(), 5 * FORBIDDEN.len()).await;
    let flight = crowd.fire_each(|n| {
        let (method, target) = FORBIDDEN[n % FORBIDDEN.len()];
        // Each request has its own key, so that none waits in the dead VM.
        let target = target.replace('N', &n.to_string());
        request(method, &target, &[("content-length", "0")])
    });
    flight.land().await
}

/// A client that repeats its request until it is served, so that its request is among the first in a new VM.
async fn insist(address: SocketAddr, path: String) {
    let mut client = Client::connect(address).await;
    while client.get(&path).await.status != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn dies_while_followers_wait(role: &str, workers: usize) {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("*", Reply::ok(1000));
    origin.on("/site/parked", Reply::ok(20_000).hold(&gate));
    let edge = start(&origin, workers).await;
    // The connection stays on one worker, which is the leader's.
    let connection = Http2::connect(edge.address()).await;
    let _leader = connection.start("GET", "/parked", &[]).await.unwrap();
    gate.wait_reached(1).await;
    let followers = Crowd::connect(edge.address(), FOLLOWERS)
        .await
        .fire("/parked");
    edge.wait_for_value("sluice_parked_now", FOLLOWERS as u64)
        .await;
    let mut trap = connection
        .start("GET", "/trap", &[("x-trap", role)])
        .await
        .unwrap();
    let forbidden = ask_for_the_forbidden(&edge).await;
    let answered = forbidden
        .responses()
        .filter(|response| response.status < 400);
    for response in answered {
        // The response is the object itself, because the URL without its query names the object.
        let asked = (0..5 * FORBIDDEN.len()).map(|n| format!("/site/a{n}"));
        let right = |path: String| body::check(&path, &response.body).is_ok();
        assert!(asked.into_iter().any(right), "{response}");
    }
    assert_eq!(trap.head().await.unwrap().0, 503);
    // The other worker continues undisturbed. The worker that lost its VM soon has a new one.
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(Client::connect(edge.address()).await);
    }
    let mut at_once = 0;
    for (n, client) in clients.iter_mut().enumerate() {
        at_once += usize::from(client.get(&format!("/soon{n}")).await.status == 200);
    }
    assert!(at_once > 0, "no client is served");
    gate.open();
    for (n, client) in clients.iter_mut().enumerate() {
        let path = format!("/new{n}");
        eventually("an answer", async || client.get(&path).await.status == 200).await;
    }
    let outcomes = followers.land().await;
    // The other worker's clients have the object. Envoy has ended the requests that waited in the dead VM.
    let tally = outcomes.tally();
    println!("{role}: {tally:?}");
    assert!(tally.contains_key("200"), "{tally:?}");
    assert_eq!(outcomes.responses().count(), FOLLOWERS, "{tally:?}");
    for response in outcomes
        .responses()
        .filter(|response| response.status < 500)
    {
        let _ = response.stamp("/site/parked");
    }
    let _ = edge.get("/parked").await.stamp("/site/parked");
    // Nothing of the dead VM stays in the gauges.
    for gauge in ["sluice_parked_now", "sluice_flights_now"] {
        edge.wait_for_value(gauge, 0).await;
    }
    assert_all_checked(&origin);
}

/// A request around the cache reaches ORIGIN without any filter of the cache between them.
#[tokio::test]
async fn a_trap_on_the_way_around_the_cache_ends_that_request_alone() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000));
    let mut edge = Edge::http(&origin).workers(1).trapping().start().await;
    for n in 0..5 {
        let trapped = edge.send("POST", "/trap", &[("x-trap", "origin")]).await;
        assert_eq!(trapped.status, 503, "{trapped}");
        let path = format!("/{n}");
        eventually("a new VM", async || edge.get(&path).await.status == 200).await;
    }
    edge.check();
}

#[tokio::test]
async fn a_trap_in_the_edge_role_ends_requests_of_its_worker_alone() {
    dies_while_followers_wait("edge", 2).await;
}

#[tokio::test]
async fn a_trap_in_the_origin_role_ends_requests_of_its_worker_alone() {
    dies_while_followers_wait("origin", 2).await;
}

/// The lease of a leader whose VM has died is not renewed, so another worker takes over when the lease ends.
#[tokio::test]
async fn another_worker_takes_over_when_the_lease_has_ended() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    let replies = [Reply::ok(20_000).hold(&gate), Reply::ok(20_000)];
    origin.on("*", Reply::ok(1000));
    origin.on_each("/site/parked", replies);
    let edge = start(&origin, 2).await;
    let connection = Http2::connect(edge.address()).await;
    let _leader = connection.start("GET", "/parked", &[]).await.unwrap();
    gate.wait_reached(1).await;
    let followers = Crowd::connect(edge.address(), 20).await.fire("/parked");
    edge.wait_for_value("sluice_parked_now", 20).await;
    let trap = connection
        .start("GET", "/trap", &[("x-trap", "edge")])
        .await;
    assert_eq!(trap.unwrap().head().await.unwrap().0, 503);
    edge.wait_for_counter("sluice_handovers", 1).await;
    gate.open();
    let outcomes = followers.land().await;
    let tally = outcomes.tally();
    assert!(tally.contains_key("200"), "{tally:?}");
    for response in outcomes
        .responses()
        .filter(|response| response.status < 500)
    {
        let _ = response.stamp("/site/parked");
    }
}

/// A worker dies that has followers of another worker's leader. Its successor gets the leader's message, under the
/// number that a root context had, and that a parked request may have now.
#[tokio::test]
async fn a_message_to_a_dead_vm_does_no_harm_to_its_successor() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000));
    let edge = start(&origin, 2).await;
    for attempt in 0.. {
        let [before, after] = ["before", "after"].map(|name| format!("/{name}{attempt}"));
        let gates = [&before, &after].map(|path| {
            let gate = Gate::new();
            let held = Reply::ok(1000).hold(&gate);
            origin.on(&format!("/site{path}"), held);
            gate
        });
        let connection = Http2::connect(edge.address()).await;
        let mut leader = connection.start("GET", &before, &[]).await.unwrap();
        gates[0].wait_reached(1).await;
        let parked = edge.counter("sluice_followers_parked").await;
        let waiting = Crowd::connect(edge.address(), FOLLOWERS)
            .await
            .fire(&before);
        edge.wait_for_counter("sluice_followers_parked", parked + FOLLOWERS as u64)
            .await;
        let trap = Http2::connect(edge.address()).await;
        let trap = trap.start("GET", "/trap", &[("x-trap", "edge")]).await;
        assert_eq!(trap.unwrap().head().await.unwrap().0, 503);
        let insistent: Vec<_> = (0..FOLLOWERS)
            .map(|_| tokio::spawn(insist(edge.address(), after.clone())))
            .collect();
        gates[1].wait_reached(1).await;
        edge.wait_for_counter("sluice_followers_parked", parked + 2 * FOLLOWERS as u64 - 1)
            .await;
        gates[0].open();
        let is_led = leader.head().await.unwrap().0 == 200;
        gates[1].open();
        waiting.land().await;
        for client in insistent {
            client.await.unwrap();
        }
        assert!(attempt < 20, "the trap never reaches the other worker");
        if is_led {
            assert_eq!(edge.log_lines("proxy_on_queue_ready failed").len(), 0);
            break;
        }
    }
}
