// SPDX-License-Identifier: Apache-2.0
//! Requests that offer another protocol, which the edge ignores, WebSockets that an origin declines, and an origin that
//! switches to another protocol unasked.

use crate::origin::hop::{before, raw_origin};
use serde_json::Value;
use sluice_tests::bare::Bare;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Store;
use sluice_tests::http::message::Wire;
use sluice_tests::origin::{Origin, Reply};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

/// A GET with these bytes as `Upgrade`.
fn offer(target: &str, upgrade: &[u8]) -> Vec<u8> {
    let head =
        format!("GET {target} HTTP/1.1\r\nhost: edge.test\r\nconnection: Upgrade\r\nupgrade: ");
    [head.as_bytes(), upgrade, b"\r\n\r\n"].concat()
}

async fn ask(address: SocketAddr, bytes: &[u8]) -> Response {
    Client::connect(address).await.exchange(bytes).await
}

/// Apache HttpClient 5.4 offers `TLS/1.2` by default (`envoy#36305`, `istio#53239`, `dropwizard#9597`).
#[tokio::test]
async fn an_offer_of_another_protocol_is_ignored() {
    let offers: [&[u8]; 7] = [
        b"TLS/1.2",
        b"h2c, foo",
        b"websockets",
        b"websocke",
        b"\xff",
        b"webs\xffcket",
        b"websocket\xe9",
    ];
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000).max_age(600));
    let http = Edge::http(&origin).start().await;
    let bucket = Edge::scripted_bucket(&origin).start().await;
    for edge in [&http, &bucket] {
        let before = origin.requests().total();
        for (number, upgrade) in offers.iter().enumerate() {
            let target = format!("/{number}");
            let response = ask(edge.address(), &offer(&target, upgrade)).await;
            assert_eq!(response.status, 200, "{upgrade:?}: {response}");
            sluice_tests::eventually("it is stored", async || edge.get(&target).await.is_hit())
                .await;
        }
        let asked = origin.requests().all();
        assert_eq!(asked.len() - before, offers.len());
        for request in asked {
            assert_eq!(request.headers.get("upgrade"), None, "{request:?}");
            assert_ne!(request.headers.get("connection"), Some("Upgrade"));
        }
    }
}

/// Finds the settings of HTTP/1.1 of the listener for clients.
fn http1(config: &mut Value) -> &mut Value {
    let listener = &mut config["static_resources"]["listeners"][0];
    &mut listener["filter_chains"][0]["filters"][0]["typed_config"]["http_protocol_options"]
}

#[tokio::test]
async fn control_bare_envoy_refuses_an_offer_of_another_protocol() {
    let origin = Origin::start().ready().await;
    let forget = |config: &mut Value| {
        let options = http1(config).as_object_mut().expect("options");
        options.remove("ignore_http_11_upgrade").expect("the list");
    };
    let bare = Bare::changed(&origin, Store::V1_DISK, 1, &forget).await;
    let response = ask(bare.address(), &offer("/a", b"TLS/1.2")).await;
    assert_eq!(
        (response.status, response.body.len()),
        (403, 0),
        "{response}"
    );
}

/// An origin that declines each WebSocket with the status that is the path, and has no other pages.
async fn decliner() -> SocketAddr {
    raw_origin(async |mut stream| {
        let (read, mut write) = stream.split();
        let mut wire = Wire::new(read);
        while let Ok(Some(head)) = wire.head().await {
            let asked = head.headers.get("upgrade").is_some();
            let status = head.word(1).trim_start_matches('/');
            let status = if asked { status } else { "410" };
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: text/plain\r\nlocation: /elsewhere\r\n\
                 cache-control: max-age=600\r\ncontent-length: 8\r\n\r\nthe page"
            );
            if write.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    })
    .await
}

fn websocket(target: &str) -> Vec<u8> {
    let headers = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    request("GET", target, &headers)
}

/// Related to `envoy#36305`.
#[tokio::test]
async fn a_declined_websocket_says_why_and_is_never_stored() {
    let edge = before(decliner().await).start().await;
    for status in [400, 403, 404, 426, 500, 503] {
        let target = format!("/{status}");
        let response = ask(edge.address(), &websocket(&target)).await;
        assert_eq!(response.status, status, "{response}");
        assert_eq!(response.body, b"the page", "{response}");
        assert_eq!(response.header("content-type"), "text/plain", "{response}");
        assert_eq!(
            edge.get(&target).await.status,
            410,
            "{status} is not stored"
        );
    }
    for status in [200, 301, 302, 307] {
        let target = format!("/{status}");
        let response = ask(edge.address(), &websocket(&target)).await;
        assert_eq!(response.status, status, "{response}");
        assert_eq!(response.header("location"), "/elsewhere", "{response}");
        assert_eq!(
            edge.get(&target).await.status,
            410,
            "{status} is not stored"
        );
    }
}

#[tokio::test]
async fn control_bare_envoy_drops_the_body_of_a_declined_websocket() {
    let origin = format!("http://{}", decliner().await);
    let bare = Bare::before(&origin, Store::V1_DISK, 1).await;
    for (status, body) in [(200, ""), (302, ""), (404, "the page")] {
        let response = ask(bare.address(), &websocket(&format!("/{status}"))).await;
        assert_eq!(response.status, status, "{response}");
        assert_eq!(response.body, body.as_bytes(), "{response}");
        assert_eq!(response.header("location"), "/elsewhere", "{response}");
    }
}

/// An origin that switches protocols unasked on `/switch`, and counts the connections that are closed after that.
async fn switcher(closed: Arc<AtomicUsize>) -> SocketAddr {
    raw_origin(move |mut stream| {
        let closed = Arc::clone(&closed);
        async move {
            let (read, mut write) = stream.split();
            let mut wire = Wire::new(read);
            while let Ok(Some(head)) = wire.head().await {
                let switches = head.word(1).contains("switch");
                let answer = if switches {
                    "HTTP/1.1 101 Switching Protocols\r\nupgrade: foo\r\nconnection: upgrade\r\n\r\n"
                } else {
                    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
                };
                if write.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
                if switches {
                    let more = wire.some(usize::MAX).await;
                    assert!(more.is_err() || more.is_ok_and(|bytes| bytes.is_empty()));
                    closed.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_switch_that_was_not_asked_for_is_502_and_ends_the_connection() {
    let closed = Arc::new(AtomicUsize::new(0));
    let edge = before(switcher(Arc::clone(&closed)).await).start().await;
    let private = [("authorization", "Bearer a")];
    let asked = [
        request("GET", "/switch", &[]),
        request("GET", "/switch", &private),
        request("HEAD", "/switch", &[]),
        request("POST", "/switch", &[("content-length", "0")]),
    ];
    for (number, bytes) in asked.iter().enumerate() {
        let response = timeout(Duration::from_secs(10), ask(edge.address(), bytes)).await;
        let response = response.unwrap_or_else(|_| panic!("request {number} hangs"));
        assert_eq!(response.status, 502, "request {number}: {response}");
        let ended = async || closed.load(Ordering::SeqCst) > number;
        sluice_tests::eventually("the connection is closed", ended).await;
        assert_eq!(edge.get("/b").await.body, b"ok");
    }
}
