// SPDX-License-Identifier: Apache-2.0
//! A request that an edge takes passes to the owner of its key in every form, and no client can make edges drop each other.

use super::world::World;
use crate::origin::websocket::{connect, echo};
use sluice_tests::client::frames::{Frames, get, kind};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::{Origin, Reply};

/// Targets that an edge accepts, changes or refuses.
const TARGETS: [&str; 16] = [
    "/a",
    "/a|b\"c\\d^e`f{g}",
    "//a//b/",
    "/%00",
    "/%zz",
    "/a%2fb?x=1&&y",
    "/a#b",
    "/a\tb",
    "/a\u{c}b",
    "/\u{fc}",
    "http://edge.test/absolute",
    "http://edge.test",
    "*",
    "/?",
    "/..",
    "/%e2%82%ac?%e2%82%ac",
];

/// The status of a request in HTTP/1.1 for each target, 0 for none.
async fn statuses(edge: &Edge) -> Vec<u16> {
    let mut statuses = Vec::new();
    for target in TARGETS {
        for (method, headers) in [
            ("GET", &[][..]),
            (
                "GET",
                &[("te", "trailers, gzip"), ("x-odd", "\u{fc}\u{80}")],
            ),
            (
                "POST",
                &[("content-length", "0"), ("expect", "100-continue")],
            ),
            ("PURGEABLE", &[("cookie", "a=\"b\"; c"), ("a_b", "1")]),
        ] {
            let mut client = Client::connect(edge.address()).await;
            let response = client.try_exchange(request(method, target, headers)).await;
            statuses.push(response.map_or(0, |response| response.status));
        }
    }
    statuses
}

/// The frame that ends a request for each path in HTTP/2.
async fn ends(edge: &Edge) -> Vec<Option<u8>> {
    let mut ends = Vec::new();
    for path in ["/a b", "/\u{fc}", "/a\u{7f}", "a", "", "/a#b", "/ok"] {
        let mut frames = Frames::connect(edge.address(), &[]).await;
        assert!(frames.request(1, &get(path)).await);
        let ended = [kind::HEADERS, kind::RST_STREAM, kind::GOAWAY];
        let seen = frames.until(|frame| ended.contains(&frame.kind)).await;
        ends.push(seen.last().map(|frame| frame.kind));
    }
    ends
}

fn edge(origin: &Origin) -> Builder {
    Edge::http(origin).env("SLUICE_STATS", "all").workers(1)
}

#[tokio::test]
async fn a_request_has_the_same_answer_as_from_one_edge_and_loses_no_peer() {
    let (origin, world) = (Origin::start().ready().await, World::new().await);
    origin.on("*", Reply::ok(500).max_age(600));
    let edges = world.start(|| edge(&origin)).await;
    let alone = edge(&origin).start().await;
    let (expected, expected_ends) = (statuses(&alone).await, ends(&alone).await);
    for edge in &edges {
        assert_eq!(statuses(edge).await, expected);
        assert_eq!(ends(edge).await, expected_ends);
    }
    for edge in &edges {
        let reached = "cluster.peers.membership_healthy";
        assert_eq!(edge.counter(reached).await, 3);
    }
}

#[tokio::test]
async fn a_websocket_passes_two_edges() {
    let (address, world) = (echo().await, World::new().await);
    let echo = || Builder::new().env("SLUICE_ORIGIN", format!("http://{address}"));
    let edges = world.start(|| echo().workers(1)).await;
    for edge in &edges {
        let mut client = connect(edge, "/chat").await;
        client.send("hello").await.unwrap();
        assert_eq!(client.some(5).await.unwrap(), b"hello");
    }
}
