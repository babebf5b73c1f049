// SPDX-License-Identifier: Apache-2.0
//! The slices of a large object belong to all edges, and the edge that a client asks makes the response of them.

use super::world::{SECRET, World, wait_for_members};
use crate::slices::world::{
    Asked, KNOWN, OBJECT, SLICE, SLICES, UNKNOWN, assert_part, assert_whole, edge, object, origin,
    settle,
};
use sluice_tests::client::http2::{Http2, Stream};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::http::body;
use sluice_tests::origin::Origin;

const BYTES: u64 = OBJECT as u64;

/// An edge that slices, with an access log.
fn member(origin: &Origin) -> Builder {
    edge(origin).workers(2).env("SLUICE_ACCESS_LOG", "json")
}

/// The sum of a counter over edges.
async fn sum(edges: &[Edge], name: &str) -> u64 {
    let mut sum = 0;
    for edge in edges {
        sum += edge.counter(name).await;
    }
    sum
}

/// The number of slices that the origin has sent.
fn fetched(origin: &Origin) -> u64 {
    let asked = Asked::of(origin.requests(), KNOWN);
    asked.slices.values().sum::<usize>() as u64
}

/// The bytes of the slices with these numbers.
async fn part(edge: &Edge, first: usize, count: usize) -> sluice_tests::client::Response {
    let last = (first + count) * SLICE - 1;
    let range = format!("bytes={}-{last}", first * SLICE);
    edge.send("GET", KNOWN, &[("range", &range)]).await
}

#[tokio::test]
async fn the_slices_of_an_object_are_fetched_once_and_belong_to_all_edges() {
    let (origin, world) = (origin(&object(1)).await, World::new().await);
    let edges = world.start(|| member(&origin)).await;
    for edge in &edges {
        for _ in 0..2 {
            assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
        }
        assert_part(&part(edge, 3, 2).await, KNOWN, 3 * SLICE..5 * SLICE);
    }
    settle(&origin).await;
    let asked = Asked::of(origin.requests(), KNOWN);
    asked.assert_each_slice_once();
    assert_eq!(asked.wholes, 0);
    // Each edge that has made a response has asked for the headers once.
    assert!(asked.heads <= edges.len(), "{asked:?}");
    for edge in &edges {
        let stored = edge.counter("sluice_slices_missed").await;
        assert!(stored > 0 && stored < SLICES as u64, "{stored}");
    }

    let sent = 6 * BYTES + 3 * 2 * SLICE as u64;
    for edge in &edges {
        edge.wait_for_value("sluice_sliced_now", 0).await;
    }
    for (name, value) in [
        ("sluice_slices_missed", SLICES as u64),
        ("sluice_slices_hit", 5 * SLICES as u64 + 3 * 2),
        ("sluice_sliced_requests", 9),
        ("sluice_sliced_cut", 0),
        ("sluice_bytes_sent", sent),
    ] {
        assert_eq!(sum(&edges, name).await, value, "{name}");
    }
    // A slice ends in front of its client's response, and has no line. The edge that a client asks logs a client that
    // hangs up at the last byte, in front of the end of the stream.
    let lines = || {
        let lines = edges.iter().flat_map(|edge| edge.log_lines(KNOWN));
        let lines = lines.filter(|line| !line.contains("remote_disconnect"));
        lines.collect::<Vec<_>>()
    };
    eventually("a line for each response", async || lines().len() >= 9).await;
    assert_eq!(lines().len(), 9, "{:#?}", lines());
}

#[tokio::test]
async fn the_edge_that_a_client_asks_makes_its_response_of_slices() {
    let (origin, world) = (origin(&object(1)).await, World::new().await);
    let edges = world.start(|| member(&origin).workers(1)).await;
    for edge in &edges {
        // The first response shows that the object is large, and the owner of its URL makes it.
        assert_whole(&edge.get(UNKNOWN).await, UNKNOWN, 1);
        assert_whole(&edge.get(UNKNOWN).await, UNKNOWN, 1);
        let made = edge.counter("sluice_sliced_requests").await;
        assert_whole(&edge.get(UNKNOWN).await, UNKNOWN, 1);
        assert_eq!(edge.counter("sluice_sliced_requests").await, made + 1);
    }
    settle(&origin).await;
    let asked = Asked::of(origin.requests(), UNKNOWN);
    asked.assert_each_slice_once();
    assert_eq!(asked.wholes, 1, "{asked:?}");
}

#[tokio::test]
async fn a_large_object_that_changes_is_never_mixed() {
    let (origin, world) = (origin(&object(1)).await, World::new().await);
    let edges = world.start(|| member(&origin)).await;
    for edge in &edges {
        assert_part(&part(edge, 0, 2).await, KNOWN, 0..2 * SLICE);
    }
    origin.on(KNOWN, object(2));
    for edge in &edges {
        // The origin has no such slice of version 1, so the edge makes a new plan.
        let response = part(edge, 9, 2).await;
        assert_eq!(response.status, 206, "{response}");
        let version_2 = body::part(KNOWN, 2, OBJECT, 9 * SLICE..11 * SLICE);
        assert!(response.body == version_2, "{response}");
        // The response of a worker that has not heard of the change breaks off behind the slices of version 1.
        eventually("all of version 2", async || {
            let mut client = Client::connect(edge.address()).await;
            let whole = client.try_exchange(request("GET", KNOWN, &[])).await;
            whole.is_ok_and(|whole| {
                assert_whole(&whole, KNOWN, 2);
                true
            })
        })
        .await;
    }
}

#[tokio::test]
async fn an_edge_that_dies_costs_its_slices_only_and_has_them_again_afterwards() {
    let (origin, world) = (origin(&object(1)).await, World::new().await);
    let [first, mut second, third] = world.start(|| member(&origin)).await;
    for edge in [&first, &third] {
        assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
    }
    let lost = second.counter("sluice_slices_missed").await;
    second.end_by(second.envoy_pid(), libc::SIGKILL).await;
    for edge in [&first, &third] {
        for _ in 0..2 {
            assert_whole(&edge.get(KNOWN).await, KNOWN, 1);
        }
    }
    settle(&origin).await;
    // Until an edge has noticed the loss, a slice may get to another edge than afterwards.
    let again = fetched(&origin) - SLICES as u64;
    assert!(again >= lost && again <= 2 * lost, "{again} of {lost}");

    second.start_again().await;
    for edge in [&first, &third] {
        wait_for_members(edge, 3).await;
    }
    let hits = second.counter("sluice_slices_hit").await;
    assert_whole(&first.get(KNOWN).await, KNOWN, 1);
    assert!(second.counter("sluice_slices_hit").await > hits);
    settle(&origin).await;
    assert_eq!(fetched(&origin), SLICES as u64 + again);
}

#[tokio::test]
async fn a_peers_request_for_a_slice_needs_the_secret_and_names_a_url_of_clients() {
    let (origin, world) = (origin(&object(1)).await, World::new().await);
    let edges = world.start(|| member(&origin).workers(1)).await;
    let port = Http2::connect(world.port_of(0)).await;
    let version = format!("{OBJECT} {SLICE} \"v1\"");
    let ask = async |secret: &str, key: &str, version: &str| {
        let headers = [
            ("x-sluice-peer", secret),
            ("x-sluice-key", key),
            ("x-sluice-slice-version", version),
        ];
        let (status, headers, content) = port.send("GET", "/", &headers).await.unwrap();
        (
            status,
            headers.get("x-sluice-slice-state").map(str::to_owned),
            content,
        )
    };
    let slice = format!("edge.test{KNOWN}#s=2");
    let asked = ask(SECRET, &slice, &version).await;
    // The control.
    assert_eq!((asked.0, asked.1.as_deref()), (200, Some("led")));
    assert!(asked.2 == body::part(KNOWN, 1, OBJECT, 2 * SLICE..3 * SLICE));

    let gone = version.replace("v1", "v0");
    let state = ask(SECRET, &slice, &gone).await.1;
    assert_eq!(state.as_deref(), Some("changed"));
    let sent = fetched(&origin);
    let other_size = format!("{OBJECT} {} \"v1\"", SLICE / 2);
    let above = format!("edge.test{KNOWN}#s={SLICES}");
    let dots = format!("edge.test/a/../{KNOWN}#s=2");
    for (secret, key, version) in [
        (
            "another-secret-of-the-tests",
            slice.as_str(),
            version.as_str(),
        ),
        (SECRET, &slice, &other_size),
        (SECRET, &dots, &version),
        (SECRET, "edge.test/.sluice/purges#s=0", "x"),
        (SECRET, &above, &version),
    ] {
        let (status, state, _) = ask(secret, key, version).await;
        assert!(
            status != 200 && state.is_none(),
            "{status}: {secret} {key} {version}"
        );
    }
    assert_eq!(fetched(&origin), sent);
    drop(edges);
}

/// Reads a response to its end, and checks its bytes.
async fn read(mut stream: Stream) {
    let content = stream.read(usize::MAX).await.unwrap();
    assert_eq!(body::check(KNOWN, &content).unwrap().sequence, 1);
}

#[tokio::test]
async fn clients_that_share_the_connection_between_two_edges_do_not_wait_for_each_other() {
    const POLICY: &str = "origin: {kind: http}\nstore: {slices: {streams: 1}}\n";
    let (origin, world) = (origin(&object(1)).await, World::new().await);
    let edges = world
        .start(|| member(&origin).policy(POLICY).workers(1))
        .await;
    assert_whole(&edges[0].get(KNOWN).await, KNOWN, 1);
    let mut begun = Vec::new();
    for _ in 0..4 {
        let connection = Http2::connect(edges[0].address()).await;
        let mut stream = connection.start("GET", KNOWN, &[]).await.unwrap();
        assert_eq!(stream.head().await.unwrap().0, 200);
        begun.push((connection, stream));
    }
    assert_eq!(sum(&edges, "sluice_sliced_queued").await, 0);
    for (_connection, stream) in begun {
        read(stream).await;
    }
}
