// SPDX-License-Identifier: Apache-2.0
//! HTTP/3: the TLS listener's cache, rules and bounds over QUIC, and `Alt-Svc` in every response over TLS.

use rustls::version::TLS13;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::tls::Certificate;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::http3::Http3;
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::net::SocketAddr;
use test_case::test_case;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

async fn start(edge: Builder, certificate: &Certificate, mode: &str) -> (Edge, SocketAddr) {
    let port = free_port();
    let edge = edge
        .env("SLUICE_EDGE_TLS_PORT", port.to_string())
        .env("SLUICE_TLS_CERT", certificate.cert().display().to_string())
        .env("SLUICE_TLS_KEY", certificate.key().display().to_string())
        .env("SLUICE_HTTP3", mode);
    (edge.start().await, loopback(port))
}

async fn over_tls(certificate: &Certificate, address: SocketAddr) -> Client<TlsStream<TcpStream>> {
    let stream = certificate.connect(address, &["http/1.1"], &[&TLS13]).await;
    Client::on(stream.unwrap())
}

/// The response headers that all responses from one entry share.
fn lasting(response: &Response) -> [Option<&str>; 7] {
    let names = [
        "accept-ranges",
        "alt-svc",
        "cache-control",
        "content-length",
        "content-type",
        "etag",
        "server",
    ];
    names.map(|name| response.headers.get(name))
}

#[tokio::test]
async fn http3_has_the_entries_and_the_rules_of_the_tls_listener() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(50_000).etag("v1").max_age(600));
    let certificate = Certificate::new();
    let (_edge, address) = start(Edge::http(&origin).workers(1), &certificate, "on").await;
    let mut secret = over_tls(&certificate, address).await;
    assert_eq!(secret.get("/a").await.status, 200);
    let stored = eventually_hit(&mut secret, "/a").await;
    let quic = Http3::start(address, &certificate).await;
    let mut client = Client::connect(quic.address()).await;
    let hit = client.get("/a").await;
    assert!(hit.is_hit(), "{hit}");
    assert_eq!(lasting(&hit), lasting(&stored));
    assert_eq!(hit.body, stored.body);
    let same = request("GET", "/a", &[("if-none-match", "\"v1\"")]);
    assert_eq!(client.exchange(same).await.status, 304);
    // The guard and the method rules refuse what they refuse elsewhere.
    for (method, target, status) in [
        ("GET", "/x/..%2f..%2fother", 400),
        ("PURGE", "/a", 405),
        ("TRACE", "/a", 405),
    ] {
        let response = client.exchange(request(method, target, &[])).await;
        assert_eq!(response.status, status, "{method} {target}: {response}");
        assert_eq!(response.header("alt-svc"), stored.header("alt-svc"));
    }
    assert!(client.get("/a").await.is_hit());
    let seen = [("x-forwarded-for", "192.0.2.7"), ("x-sluice-key", "x")];
    let passed = client.exchange(request("POST", "/quic", &seen)).await;
    assert_eq!(passed.status, 200, "{passed}");
    let passed = secret.exchange(request("POST", "/tls", &seen)).await;
    assert_eq!(passed.status, 200, "{passed}");
    let told = |target: &str| {
        let asked = origin.requests().of(target);
        let headers = &asked.first().unwrap().headers;
        let told = ["x-forwarded-for", "x-forwarded-proto", "x-sluice-key"];
        told.map(|name| headers.get(name).map(str::to_owned))
    };
    let [addresses, scheme, internal] = told("/quic");
    assert!(addresses.unwrap().starts_with("192.0.2.7,"));
    assert_eq!((scheme.as_deref(), internal), (Some("https"), None));
    assert_eq!(told("/quic"), told("/tls"));
}

async fn eventually_hit(client: &mut Client<TlsStream<TcpStream>>, target: &str) -> Response {
    loop {
        let response = client.get(target).await;
        if response.is_hit() {
            return response;
        }
    }
}

#[tokio::test]
async fn headers_above_the_bound_end_their_stream_and_no_other() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100).max_age(600));
    let certificate = Certificate::new();
    let (_edge, address) = start(Edge::http(&origin), &certificate, "on").await;
    let quic = Http3::start(address, &certificate).await;
    let mut client = Client::connect(quic.address()).await;
    let large = "x".repeat(40 << 10);
    let response = client
        .exchange(request("GET", "/large", &[("x-large", &large)]))
        .await;
    assert!(response.status >= 431, "{response}");
    let names: Vec<_> = (0..150).map(|number| format!("x-{number}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    let response = client.exchange(request("GET", "/many", &many)).await;
    assert!(response.status >= 431, "{response}");
    assert_eq!(client.get("/small").await.status, 200);
    assert_eq!((origin.count("/large"), origin.count("/many")), (0, 0));
}

#[test_case("on", true; "on")]
#[test_case("clear", true; "clear")]
#[test_case("off", false; "control: off")]
#[tokio::test]
async fn each_response_over_tls_says_where_http3_is(mode: &str, told: bool) {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100).etag("v1").max_age(600));
    let certificate = Certificate::new();
    let (edge, address) = start(Edge::http(&origin), &certificate, mode).await;
    let there = format!("h3=\":{}\"; ma=86400", address.port());
    let expected = told.then_some(if mode == "on" { &*there } else { "clear" });
    let mut secret = over_tls(&certificate, address).await;
    let miss = secret.get("/a").await;
    let hit = eventually_hit(&mut secret, "/a").await;
    let mut all = vec![(200, miss), (200, hit)];
    let none = [("if-none-match", "\"v1\"")];
    let large = "x".repeat(40 << 10);
    for (status, method, target, headers) in [
        (304, "GET", "/a", &none[..]),
        (200, "HEAD", "/a", &[]),
        (400, "GET", "/x/..%2f..%2fother", &[]),
        (405, "PURGE", "/a", &[]),
        (200, "GET", "/healthz", &[]),
        (431, "GET", "/a", &[("x-large", large.as_str())]),
    ] {
        let mut secret = over_tls(&certificate, address).await;
        let response = secret.exchange(request(method, target, headers)).await;
        all.push((status, response));
    }
    for (status, response) in all {
        assert_eq!(response.status, status, "{response}");
        assert_eq!(response.headers.get("alt-svc"), expected, "{response}");
    }
    assert_eq!(edge.get("/a").await.headers.get("alt-svc"), None);
}

#[tokio::test]
async fn a_drain_lets_a_download_over_http3_end() {
    let origin = Origin::start().ready().await;
    let gate = Gate::new();
    origin.on("/a", Reply::ok(400_000).hold_after(100_000, &gate));
    let certificate = Certificate::new();
    let builder = Edge::http(&origin).env("SLUICE_DRAIN_SECONDS", "3600");
    let (mut edge, address) = start(builder, &certificate, "on").await;
    let quic = Http3::start(address, &certificate).await;
    let mut client = Client::connect(quic.address()).await;
    client.send(request("GET", "/a", &[])).await.unwrap();
    gate.wait_reached(1).await;
    edge.signal(libc::SIGTERM);
    eventually("it says that it drains", async || {
        edge.get("/healthz").await.status == 503
    })
    .await;
    gate.open();
    let response = client.response().await.unwrap();
    assert_eq!((response.status, response.body.len()), (200, 400_000));
    let (code, log) = edge.ended().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn a_renewed_certificate_is_for_new_connections_and_ends_no_other() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100).max_age(600));
    let mut certificate = Certificate::new();
    let (_edge, address) = start(Edge::http(&origin), &certificate, "on").await;
    let former = Http3::start(address, &certificate).await;
    let mut open = Client::connect(former.address()).await;
    assert_eq!(open.get("/a").await.status, 200);
    certificate.renew();
    // The client trusts the new certificate only, and tries until the edge has it.
    let renewed = Http3::start(address, &certificate).await;
    assert_eq!(
        Client::connect(renewed.address())
            .await
            .get("/a")
            .await
            .status,
        200
    );
    assert_eq!(open.get("/a").await.status, 200);
}
