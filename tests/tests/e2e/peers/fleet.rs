// SPDX-License-Identifier: Apache-2.0
//! A key is fetched once for all edges, and a client cannot tell which edge has answered.

use super::world::{SECRET, World};
use crate::access::world::Rules;
use sluice_tests::client::Response;
use sluice_tests::client::http2::Http2;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};

/// An address that the rules allow, and one that they do not.
const INSIDE: &str = "203.0.113.9";
const OUTSIDE: &str = "198.51.100.7";

async fn origin() -> Origin {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(2_000).max_age(600).ranges());
    origin
}

/// An edge that admits clients of one network, behind one trusted proxy.
fn edge(origin: &Origin, rules: &Rules) -> Builder {
    Edge::http(origin)
        .env("SLUICE_ACCESS", rules.path())
        .env("SLUICE_TRUSTED_HOPS", "1")
        .workers(2)
}

async fn get(edge: &Edge, target: &str) -> Response {
    let inside = [("x-forwarded-for", INSIDE)];
    edge.send("GET", target, &inside).await
}

/// The headers of the first request for a target, without the ones that differ between two requests.
fn told(origin: &Origin, target: &str) -> Vec<(String, String)> {
    let request = origin.requests().of(target).remove(0);
    let headers = request.headers.0.iter().cloned();
    let changing = ["host", "cdn-loop"];
    let mut headers: Vec<_> = headers
        .filter(|(name, _)| !changing.contains(&name.as_str()))
        .collect();
    headers.sort();
    headers
}

/// The requests that an edge has counted, by results.
async fn counted(edge: &Edge) -> u64 {
    let counts = edge.stats("sluice_requests_").await;
    let results = counts.iter().filter(|(name, _)| !name.contains(".site."));
    results.map(|(_, count)| count).sum()
}

#[tokio::test]
async fn a_key_is_fetched_once_for_all_edges_and_each_request_counts_once() {
    let (origin, rules) = (origin().await, Rules::new("allow: [203.0.113.0/24]\n"));
    let world = World::new().await;
    let edges = world.start(|| edge(&origin, &rules)).await;
    let alone = edge(&origin, &rules).start().await;
    let mut sent = 0;
    for number in 0..20 {
        let target = format!("/{number}");
        let spelling = format!("/x/../%{:x}", b'0' + number % 10);
        let responses = tokio::join!(
            get(&edges[0], &target),
            get(&edges[1], &target),
            get(&edges[2], &target),
        );
        for response in [&responses.0, &responses.1, &responses.2] {
            assert_eq!(response.status, 200, "{response}");
            assert_eq!(response.body, responses.0.body, "{target}");
        }
        sent += 3;
        if number < 10 {
            for edge in &edges {
                let other = get(edge, &spelling).await;
                assert_eq!(other.body, responses.0.body, "{spelling}: {other}");
                sent += 1;
            }
        }
        assert_eq!(origin.count(&target), 1, "{target}");
    }
    let owners = tokio::join!(
        edges[0].counter("sluice_origin_fetches"),
        edges[1].counter("sluice_origin_fetches"),
        edges[2].counter("sluice_origin_fetches"),
    );
    assert!(owners.0 > 0 && owners.1 > 0 && owners.2 > 0, "{owners:?}");

    for edge in &edges {
        // A client outside, one without the proxy, and a URL that no edge serves.
        let outside = edge
            .send("GET", "/1", &[("x-forwarded-for", OUTSIDE)])
            .await;
        assert_eq!(outside.status, 403, "{outside}");
        assert_eq!(edge.get("/1").await.status, 403);
        assert_eq!(get(edge, "/%zz").await.status, 400);
        // No client can name its address, or be a peer.
        let forged = [("x-forwarded-for", OUTSIDE), ("x-sluice-client", INSIDE)];
        assert_eq!(edge.send("GET", "/1", &forged).await.status, 403);
        sent += 4;
        let peer = [("x-forwarded-for", INSIDE), ("x-sluice-peer", SECRET)];
        let looping = edge.send("GET", "/1", &peer).await;
        assert_eq!(looping.status, 508, "{looping}");
        assert!(
            looping
                .headers
                .0
                .iter()
                .all(|(name, _)| !name.starts_with("x-sluice"))
        );
    }
    for edge in [&edges[0], &alone] {
        let target = if std::ptr::eq(edge, &alone) {
            "/alone"
        } else {
            "/fleet"
        };
        let headers = [
            ("x-forwarded-for", INSIDE),
            ("cookie", "a=b"),
            ("x-own", "1"),
        ];
        let passed = edge.send("POST", target, &headers).await;
        assert_eq!(passed.status, 200, "{passed}");
    }
    sent += 1;
    assert_eq!(told(&origin, "/fleet"), told(&origin, "/alone"));

    eventually("each request counts once", async || {
        let counts = tokio::join!(counted(&edges[0]), counted(&edges[1]), counted(&edges[2]));
        counts.0 + counts.1 + counts.2 == sent
    })
    .await;
    // The requests without the proxy have another address, as many as the ones that pretend to be peers.
    eventually("each request has a line", async || {
        let of = |edge: &Edge| edge.log_lines(INSIDE).len() + edge.log_lines(OUTSIDE).len();
        edges.iter().map(of).sum::<usize>() as u64 == sent
    })
    .await;
}

#[tokio::test]
async fn the_port_for_peers_takes_only_peers() {
    let (origin, rules) = (origin().await, Rules::new("allow: [203.0.113.0/24]\n"));
    let world = World::new().await;
    let [edge, ..] = world.start(|| edge(&origin, &rules)).await;
    let client = Http2::connect(world.port_of(0)).await;
    for headers in [
        &[("x-sluice-client", INSIDE)][..],
        &[
            ("x-sluice-client", INSIDE),
            ("x-sluice-peer", "another-secret-of-no-peer"),
        ],
        &[("x-sluice-client", INSIDE), ("authorization", "Bearer x")],
    ] {
        for method in ["GET", "POST", "OPTIONS"] {
            let (status, refused, body) = client.send(method, "/1", headers).await.unwrap();
            assert_eq!(status, 403, "{headers:?}");
            assert_eq!(refused.get("x-sluice-peer-refused"), Some("1"));
            assert_eq!(body, b"This port is for peers.\n");
        }
    }
    assert_eq!(edge.counter("sluice_peer_requests_refused").await, 9);
    let peer = [("x-sluice-client", INSIDE), ("x-sluice-peer", SECRET)];
    let (status, ..) = client.send("GET", "/1", &peer).await.unwrap();
    assert_eq!(status, 200);
    let outside = [("x-sluice-client", OUTSIDE), ("x-sluice-peer", SECRET)];
    let (status, ..) = client.send("GET", "/1", &outside).await.unwrap();
    assert_eq!(status, 403);
    assert_eq!(edge.counter("sluice_peer_requests_refused").await, 9);
    assert_eq!(origin.requests().total(), 1);
}

#[tokio::test]
async fn control_edges_without_peers_fetch_each_key_themselves() {
    let origin = origin().await;
    let edge = || Edge::http(&origin).workers(1).start();
    let (a, b, c) = tokio::join!(edge(), edge(), edge());
    for edge in [&a, &b, &c] {
        assert_eq!(edge.get("/1").await.status, 200);
    }
    assert_eq!(origin.count("/1"), 3);
}
