// SPDX-License-Identifier: Apache-2.0
//! Clients get their responses while edges die, come back, and lose each other's names.

use super::world::{NAMES, World, wait_for_members};
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::load::{Load, Plan};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::net::Ipv4Addr;
use std::time::Instant;
use tokio::task::JoinSet;

/// Number of objects.
const OBJECTS: usize = 30;
/// Most requests that an edge may have in its hands in this test.
const AT_ONCE: usize = 8;

async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(2_000).max_age(600));
    origin
}

/// An edge with all of Envoy's statistics.
fn edge(origin: &Origin) -> Builder {
    Edge::http(origin).env("SLUICE_STATS", "all").workers(1)
}

/// Requests every object at an edge.
async fn read_all(edge: &Edge) {
    for number in 0..OBJECTS {
        let response = edge.get(&format!("/{number}")).await;
        assert_eq!(response.status, 200, "/{number}: {response}");
    }
}

#[tokio::test]
async fn an_edge_that_dies_and_comes_back_elsewhere_costs_no_request_and_keeps_its_keys() {
    let (origin, world) = (origin().await, World::new().await);
    let [first, mut second, third] = world.start(|| edge(&origin)).await;
    read_all(&first).await;
    assert_eq!(origin.requests().total(), OBJECTS);

    let begin = Instant::now();
    let load = Load::start(Plan {
        rate: 100,
        addresses: vec![first.address(), third.address()],
        targets: (0..OBJECTS).map(|number| format!("/{number}")).collect(),
        keeps_connections: true,
    });
    load.more(50).await;
    second.end_by(second.envoy_pid(), libc::SIGKILL).await;
    load.more(300).await;
    let seen = load.since(begin);
    load.stop();
    // Responses that had begun are cut.
    assert!(seen.failures.len() <= AT_ONCE, "{:?}", seen.failures);
    // The keys of the lost edge have been fetched once more, by the others.
    let fetched = origin.requests().total();
    assert!(fetched > OBJECTS && fetched <= 2 * OBJECTS, "{fetched}");

    let elsewhere = Ipv4Addr::new(127, 0, 0, 2);
    second
        .start_again_with("SLUICE_PEER_BIND", &elsewhere.to_string())
        .await;
    world.names.set(NAMES[1], &[elsewhere]);
    world.others_names.set(NAMES[1], &[elsewhere]);
    let address = format!("{elsewhere}:{}", world.port_of(1).port());
    for edge in [&first, &third] {
        eventually("its new address", async || {
            let clusters = edge.admin_get("/clusters").await;
            String::from_utf8_lossy(&clusters.body).contains(&address)
        })
        .await;
        wait_for_members(edge, 3).await;
    }
    let hits = second.counter("sluice_requests_hit").await;
    read_all(&first).await;
    read_all(&third).await;
    assert!(second.counter("sluice_requests_hit").await > hits);
    assert_eq!(origin.requests().total(), fetched);
}

#[tokio::test]
async fn an_edge_that_drains_gets_no_more_requests_of_its_peers() {
    let (origin, world) = (origin().await, World::new().await);
    let gate = Gate::new();
    origin.on("/held", Reply::ok(2_000).hold(&gate));
    let lasting = || edge(&origin).env("SLUICE_DRAIN_SECONDS", "3600");
    let [first, mut second, third] = world.start(lasting).await;
    // A request under way at the second edge keeps it alive.
    let held = Crowd::connect(second.address(), 1).await.fire("/held");
    gate.wait_reached(1).await;
    second.signal(libc::SIGTERM);
    for edge in [&first, &third] {
        wait_for_members(edge, 2).await;
    }
    read_all(&first).await;
    assert!(second.alive());
    gate.open();
    held.land().await.same_object("/held");
    assert_eq!(second.ended().await.0, Some(0));
}

#[tokio::test]
async fn names_that_are_lost_cost_no_request() {
    let (origin, world) = (origin().await, World::new().await);
    let [first, _second, third] = world.start(|| edge(&origin)).await;
    read_all(&first).await;

    // The resolver is down: the known addresses stay.
    world.names.set_silent(true);
    let failures = first.counter("cluster.peers.update_failure").await;
    first
        .wait_for_counter("cluster.peers.update_failure", failures + 1)
        .await;
    wait_for_members(&first, 3).await;
    read_all(&first).await;
    assert_eq!(origin.requests().total(), OBJECTS);
    world.names.set_silent(false);

    // The first two edges do not find a name that the third one finds.
    world.names.set(NAMES[2], &[]);
    wait_for_members(&first, 2).await;
    for edge in [&first, &third] {
        read_all(edge).await;
    }
    wait_for_members(&third, 3).await;
    let fetched = origin.requests().total();
    assert!(fetched > OBJECTS && fetched <= 2 * OBJECTS, "{fetched}");
}

#[tokio::test]
async fn an_edge_without_peers_that_take_its_requests_serves_alone() {
    let (origin, world) = (origin().await, World::new().await);
    let first = world.member(0, edge(&origin)).start().await;
    let stranger = world.member(1, edge(&origin));
    let stranger = stranger.env(
        "SLUICE_PEER_SECRET",
        "another-secret-than-that-of-the-others",
    );
    let stranger = stranger.start().await;
    wait_for_members(&stranger, 2).await;
    read_all(&stranger).await;
    assert!(first.counter("sluice_peer_requests_refused").await > 0);
    let asked = origin.requests().total();
    assert_eq!(asked, OBJECTS);

    // The third edge finds no name at all.
    world.others_names.set_silent(true);
    let alone = world.member(2, edge(&origin)).start().await;
    read_all(&alone).await;
    assert_eq!(origin.requests().total(), 2 * OBJECTS);
    // Now it finds them.
    world.others_names.set_silent(false);
    eventually("peers", async || {
        alone.counter("cluster.peers.membership_total").await == 3
    })
    .await;
    read_all(&alone).await;
}

/// Clients that wait for one object at one time.
const TOGETHER: usize = 6;

#[tokio::test]
async fn an_origin_that_cuts_a_body_for_many_clients_loses_no_peer() {
    let (origin, world) = (Origin::start().ready().await, World::new().await);
    let gate = Gate::new();
    let cut = Reply::ok(200_000).max_age(600);
    origin.on("*", cut.reset_after(100_000).hold_after(50_000, &gate));
    let edges = world.start(|| edge(&origin)).await;
    // The three edges own some of the objects each.
    let mut clients = JoinSet::new();
    for number in 0..OBJECTS {
        for _ in 0..TOGETHER {
            let address = edges[0].address();
            clients.spawn(async move {
                let mut client = Client::connect(address).await;
                client
                    .try_exchange(request("GET", &format!("/{number}"), &[]))
                    .await
            });
        }
    }
    gate.wait_reached(OBJECTS).await;
    gate.open();
    // Followers that got no byte of the second cut response get an error.
    for response in clients.join_all().await {
        let whole = response.is_ok_and(|response| response.status < 500);
        assert!(!whole, "the origin has sent no whole object");
    }
    for edge in &edges {
        let reached = "cluster.peers.membership_healthy";
        assert_eq!(edge.counter(reached).await, 3);
    }
}
