// SPDX-License-Identifier: Apache-2.0
//! The TLS listener: HTTP/1.1 and HTTP/2, TLS 1.2 and later, and the same cache as in cleartext.

use rustls::version::{TLS12, TLS13};
use sluice_tests::client::crowd::Crowd;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Builder;
use sluice_tests::edge::Edge;
use sluice_tests::edge::tls::{Certificate, exchange};
use sluice_tests::http::body;
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use sluice_tests::server::requests::Request;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A policy for an origin that answers both schemes alike.
const ONE_FOR_ALL_SCHEMES: &str = "origin: {kind: http}\nkey: {headers: []}\n";

async fn start(origin: &Origin, certificate: &Certificate) -> (Edge, SocketAddr) {
    start_with(Edge::http(origin).policy(ONE_FOR_ALL_SCHEMES), certificate).await
}

async fn start_with(edge: Builder, certificate: &Certificate) -> (Edge, SocketAddr) {
    let port = free_port();
    let edge = edge
        .env("SLUICE_EDGE_TLS_PORT", port.to_string())
        .env("SLUICE_TLS_CERT", certificate.cert().display().to_string())
        .env("SLUICE_TLS_KEY", certificate.key().display().to_string());
    (edge.start().await, loopback(port))
}

#[tokio::test]
async fn clients_that_stay_idle_after_the_handshake_leave_room_for_others_within_seconds() {
    // A limit of 400 open files allows 150 connections.
    const BOUND: u64 = 150;
    const LATEST: Duration = Duration::from_secs(60);
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1_000));
    let certificate = Certificate::new();
    let (edge, address) = start_with(Edge::http(&origin).open_files(400), &certificate).await;
    let mut idle = Vec::new();
    for _ in 0..BOUND - 5 {
        let stream = certificate
            .connect(address, &["h2", "http/1.1"], &[&TLS13])
            .await;
        idle.push(stream.unwrap());
    }
    let active = "http.edge_tls.downstream_cx_active";
    edge.wait_for_counter(active, BOUND * 9 / 10).await;
    let began = Instant::now();
    let left = |active| active <= BOUND * 2 / 3;
    edge.wait_for_counter_until("room for others", active, left)
        .await;
    let took = began.elapsed();
    assert!(took < LATEST, "{took:?}");
    assert_eq!(edge.get("/a").await.status, 200);
}

#[tokio::test]
async fn every_protocol_and_version_is_served_from_one_entry() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(50_000));
    let certificate = Certificate::new();
    let (edge, address) = start(&origin, &certificate).await;
    for version in [&TLS12, &TLS13] {
        for offered in [&["http/1.1"][..], &[]] {
            let stream = certificate.connect(address, offered, &[version]).await;
            let mut stream = stream.unwrap();
            let (head, content) = exchange(&mut stream, &request("GET", "/a", &[]))
                .await
                .unwrap();
            assert_eq!(head.word(1), "200", "{version:?} {offered:?}");
            body::check("/a", &content).unwrap();
        }
        let offered = ["h2", "http/1.1"];
        let stream = certificate.connect(address, &offered, &[version]).await;
        let stream = stream.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let connection = Http2::over(stream).await.unwrap();
        let (status, _, content) = connection.get("/a").await.unwrap();
        assert_eq!(status, 200, "{version:?}");
        body::check("/a", &content).unwrap();
    }
    // The scheme is not part of this key either.
    assert!(edge.get("/a").await.is_hit());
    assert_eq!(origin.count("/a"), 1, "{}", origin.requests().summary());
}

#[tokio::test]
async fn an_http_origin_answers_each_scheme_for_its_own_clients() {
    let origin = Origin::start().ready().await;
    for path in ["/a", "/b"] {
        origin.on(path, Reply::ok(50_000).etag("v1").ranges());
    }
    let certificate = Certificate::new();
    let (edge, address) = start_with(Edge::http(&origin).workers(1), &certificate).await;
    let schemes = |path: &str| {
        let asked = origin.requests().of(path);
        let scheme =
            |request: &Request| request.headers.get("x-forwarded-proto").map(str::to_owned);
        asked.iter().filter_map(scheme).collect::<Vec<_>>()
    };
    let mut secret = certificate.connect(address, &[], &[&TLS13]).await.unwrap();
    for _ in 0..2 {
        let _ = edge.get("/a").await.stamp("/a");
        let asked = request("GET", "/a", &[]);
        let (head, _) = exchange(&mut secret, &asked).await.unwrap();
        assert_eq!(head.word(1), "200");
    }
    assert_eq!(schemes("/a"), ["http", "https"]);
    // The edge itself sends a request for the size, and one for the object.
    let part = request("GET", "/b", &[("range", "bytes=0-9")]);
    let (head, _) = exchange(&mut secret, &part).await.unwrap();
    assert_eq!(head.word(1), "206");
    let asked = schemes("/b");
    assert_eq!(asked, vec!["https"; asked.len()]);
    assert!(!asked.is_empty());
}

#[tokio::test]
async fn clients_of_both_listeners_share_a_flight() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(50_000).hold(&gate));
    let certificate = Certificate::new();
    let (edge, address) = start(&origin, &certificate).await;
    let clear = Crowd::connect(edge.address(), 10).await.fire("/a");
    let stream = certificate.connect(address, &["h2"], &[&TLS13]).await;
    let connection = Http2::over(stream.unwrap()).await.unwrap();
    let mut secret = Vec::new();
    for _ in 0..10 {
        secret.push(connection.start("GET", "/a", &[]).await.unwrap());
    }
    edge.wait_for_value("sluice_parked_now", 19).await;
    gate.open();
    clear.land().await.same_object("/a");
    for mut stream in secret {
        assert_eq!(stream.head().await.unwrap().0, 200);
        body::check("/a", &stream.read(usize::MAX).await.unwrap()).unwrap();
    }
    assert_eq!(origin.count("/a"), 1);
}

#[tokio::test]
async fn older_versions_are_refused() {
    let origin = Origin::start().ready().await;
    let certificate = Certificate::new();
    let (_edge, address) = start(&origin, &certificate).await;
    // A ClientHello of TLS 1.1 with TLS_RSA_WITH_AES_128_CBC_SHA, and no extensions.
    let mut hello = vec![0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 2];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0, 0x2F, 1, 0]);
    let mut client = Client::connect(address).await;
    client.send_more(&hello).await.unwrap();
    // The response is a fatal alert: protocol_version.
    let alert = client.some(7).await.unwrap();
    assert_eq!((alert[0], &alert[5..]), (0x15, &[2, 70][..]), "{alert:?}");
}

#[tokio::test]
async fn a_certificate_that_is_none_stops_the_start() {
    let origin = Origin::start().ready().await;
    let certificate = Certificate::new();
    std::fs::write(certificate.cert(), "no certificate\n").unwrap();
    let refusal = Edge::http(&origin)
        .env("SLUICE_EDGE_TLS_PORT", free_port().to_string())
        .env("SLUICE_TLS_CERT", certificate.cert().display().to_string())
        .env("SLUICE_TLS_KEY", certificate.key().display().to_string())
        .refused()
        .await;
    assert_ne!(refusal.code, Some(0));
    assert!(refusal.output.contains("cert.pem"), "{}", refusal.output);
}

/// The settings do for one origin what the fields of a site do for many.
#[tokio::test]
async fn one_origin_redirects_cleartext_to_https_and_sends_hsts_over_tls_alone() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100).max_age(600));
    let certificate = Certificate::new();
    let edge = Edge::http(&origin)
        .env("SLUICE_REDIRECT_TO_HTTPS", "on")
        .env("SLUICE_HSTS", "365d, include_subdomains");
    let (edge, address) = start_with(edge, &certificate).await;
    let plain = edge.send("GET", "/a?b=1", &[("host", "a.test:8080")]).await;
    assert_eq!(plain.status, 301);
    assert_eq!(plain.header("location"), "https://a.test/a?b=1");
    assert_eq!(plain.headers.get("strict-transport-security"), None);
    for _ in 0..2 {
        let stream = certificate.connect(address, &["http/1.1"], &[&TLS13]).await;
        let mut stream = stream.unwrap();
        let (head, _) = exchange(&mut stream, &request("GET", "/a", &[]))
            .await
            .unwrap();
        assert_eq!(head.word(1), "200");
        let hsts = head.headers.get("strict-transport-security");
        assert_eq!(hsts, Some("max-age=31536000; includeSubDomains"));
    }
}
