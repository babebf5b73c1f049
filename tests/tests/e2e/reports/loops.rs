// SPDX-License-Identifier: Apache-2.0
//! Requests that return to the cache that has sent them (RFC 8586), and the fields that tell origins the way of a
//! request.

use crate::origin::hop::{before_bucket, raw_origin};
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

/// A port that leads to an address which is set later.
async fn detour() -> (SocketAddr, Arc<OnceLock<SocketAddr>>) {
    let target = Arc::new(OnceLock::new());
    let later = Arc::clone(&target);
    let address = raw_origin(move |mut stream| {
        let later = Arc::clone(&later);
        async move {
            let Some(address) = later.get() else { return };
            if let Ok(mut next) = TcpStream::connect(address).await {
                let _ = copy_bidirectional(&mut stream, &mut next).await;
            }
        }
    })
    .await;
    (address, target)
}

/// An edge whose origin is the HTTP server at this address.
fn to(address: SocketAddr) -> Builder {
    Builder::new().env("SLUICE_ORIGIN", format!("http://{address}"))
}

/// `squid#396`, `trafficserver#5543`, `linkerd#1411`.
#[tokio::test]
async fn an_edge_that_is_its_own_origin_says_so_at_once() {
    for builder in [to, before_bucket] {
        let (address, target) = detour().await;
        let edge = builder(address).start().await;
        target.set(edge.address()).unwrap();
        for headers in [&[][..], &[("cookie", "a=b")], &[("authorization", "b")]] {
            for _ in 0..2 {
                let response = edge.send("GET", "/a", headers).await;
                assert_eq!(response.status, 508, "{response}");
                assert!(!response.is_hit(), "{response}");
            }
        }
        let rejected = edge.counter("sluice_requests_rejected").await;
        assert!(
            (1..=12).contains(&rejected),
            "{rejected} requests have come back"
        );
    }
}

#[tokio::test]
async fn two_edges_that_are_each_others_origins_are_a_loop() {
    let (address, target) = detour().await;
    let first = to(address).start().await;
    let second = to(first.address()).start().await;
    target.set(second.address()).unwrap();
    for edge in [&first, &second] {
        let response = edge.get("/a").await;
        assert_eq!(response.status, 508, "{response}");
    }
}

#[tokio::test]
async fn an_edge_in_front_of_an_edge_is_no_loop_unless_they_are_one_fleet() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000).max_age(60));
    let inner = Edge::http(&origin).start().await;
    let outer = to(inner.address()).start().await;
    assert_eq!(outer.get("/a").await.status, 200);
    let asked = origin.requests().all();
    let told: Vec<_> = asked[0].headers.all("cdn-loop").collect();
    let told = told.join(", ");
    assert_eq!(told.matches("sluice;id=").count(), 2, "{told}");

    let inner = Edge::http(&origin)
        .env("SLUICE_CACHE_NAME", "fleet")
        .start()
        .await;
    let outer = to(inner.address())
        .env("SLUICE_CACHE_NAME", "fleet")
        .start()
        .await;
    let response = outer.get("/b").await;
    assert_eq!(response.status, 508, "{response}");
    assert_eq!(origin.count("/b"), 0);
}

#[tokio::test]
async fn origins_learn_the_name_of_the_cache() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000).max_age(60));
    let edge = Edge::http(&origin).env("SLUICE_CACHE_NAME", "edge.example");
    let edge = edge.start().await;
    let ours = [("cdn-loop", "other;x=1"), ("via", "1.0 proxy")];
    let response = edge.send("GET", "/a", &ours).await;
    assert!(
        response
            .header("cache-status")
            .starts_with("edge.example; fwd="),
        "{response}"
    );
    edge.send("POST", "/a", &[("content-length", "0")]).await;
    let asked = origin.requests().all();
    let lines = |request: usize, name: &str| {
        let lines: Vec<_> = asked[request].headers.all(name).collect();
        lines.join(",").replace(", ", ",")
    };
    assert_eq!(lines(0, "cdn-loop"), "other;x=1,edge.example");
    assert_eq!(lines(0, "via"), "1.0 proxy,1.1 edge.example");
    assert_eq!(lines(1, "cdn-loop"), "edge.example");
    assert_eq!(lines(1, "via"), "1.1 edge.example");
    let back = edge
        .send("GET", "/b", &[("cdn-loop", "a, EDGE.example ;y")])
        .await;
    assert_eq!((back.status, origin.count("/b")), (508, 0), "{back}");
    assert_eq!(back.header("cache-control"), "no-store", "{back}");
}

#[tokio::test]
async fn a_bucket_learns_the_name_of_the_cache_without_a_signature() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000).max_age(60));
    let edge = Edge::scripted_bucket(&origin).env("SLUICE_CACHE_NAME", "edge.example");
    let edge = edge.start().await;
    let ours = [("cdn-loop", "other"), ("via", "1.0 proxy")];
    assert_eq!(edge.send("GET", "/a", &ours).await.status, 200);
    let asked = origin.requests().all();
    let headers = &asked[0].headers;
    let told: Vec<_> = headers.all("cdn-loop").collect();
    assert_eq!(told.join(","), "other,edge.example");
    assert_eq!(headers.get("via"), None);
    let signed = headers.get("authorization").unwrap();
    assert!(
        signed.contains("SignedHeaders=") && !signed.contains("cdn-loop"),
        "{signed}"
    );
}

/// By default, nginx compresses no response to a request with `Via` (`gzip_proxied off`).
#[tokio::test]
async fn via_can_be_left_out() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).env("SLUICE_VIA", "off").start().await;
    edge.get("/a").await;
    let asked = origin.requests().all();
    assert_eq!(asked[0].headers.get("via"), None);
    assert!(asked[0].headers.get("cdn-loop").is_some());
}
