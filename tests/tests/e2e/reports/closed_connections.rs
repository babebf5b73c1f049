// SPDX-License-Identifier: Apache-2.0
//! Origins that close a connection while a request on it is under way, as origins close idle connections.

use crate::origin::hop::{before, before_bucket, raw_origin};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::http::message::Wire;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;

/// Counts of an origin.
#[derive(Default)]
struct Seen {
    /// Number of requests.
    requests: AtomicUsize,
    /// Number of requests during which the origin closed the connection.
    closed: AtomicUsize,
}

/// An origin that answers the first request of each connection. At the second request it sends `last` in place of a
/// response, and closes the connection.
async fn closer(last: &'static str) -> (SocketAddr, Arc<Seen>) {
    let seen = Arc::<Seen>::default();
    let counts = Arc::clone(&seen);
    let address = raw_origin(move |mut stream| {
        let counts = Arc::clone(&counts);
        async move {
            let (read, mut write) = stream.split();
            let mut wire = Wire::new(read);
            if let Ok(Some(head)) = wire.head().await {
                counts.requests.fetch_add(1, Ordering::SeqCst);
                let _ = wire.body(head.request_framing(), &mut Vec::new()).await;
                let answer =
                    "HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\ncontent-length: 2\r\n\r\n";
                let body = if head.word(0) == "HEAD" { "" } else { "ok" };
                let _ = write.write_all(format!("{answer}{body}").as_bytes()).await;
            }
            if let Ok(Some(_)) = wire.head().await {
                counts.requests.fetch_add(1, Ordering::SeqCst);
                counts.closed.fetch_add(1, Ordering::SeqCst);
                let _ = write.write_all(last.as_bytes()).await;
            }
        }
    })
    .await;
    (address, seen)
}

/// Requests `each` URLs with each of 16 clients at the same time. Returns the statuses other than 200.
async fn ask_all(edge: &Edge, method: &'static str, each: usize) -> Vec<u16> {
    let clients = (0..16).map(|client| {
        let address = edge.address();
        tokio::spawn(async move {
            let mut connection = Client::connect(address).await;
            let mut others = Vec::new();
            for number in 0..each {
                let target = format!("/{method}/{client}/{number}");
                let response = connection.exchange(request(method, &target, &[])).await;
                if response.status != 200 {
                    others.push(response.status);
                }
            }
            others
        })
    });
    let mut others = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        others.extend(client.await.unwrap());
    }
    others
}

/// `envoy#1979`, `envoy#23625`, `envoy#28105`, `istio#13205`.
#[tokio::test]
async fn none_of_thousands_of_requests_fails_for_a_closed_connection() {
    const URLS: usize = 2_000;
    let (http, of_http) = closer("").await;
    let (s3, of_s3) = closer("").await;
    for (edge, seen) in [
        (before(http).start().await, of_http),
        (before_bucket(s3).workers(1).start().await, of_s3),
    ] {
        assert_eq!(ask_all(&edge, "GET", URLS / 16).await, [0; 0]);
        assert_eq!(ask_all(&edge, "HEAD", 10).await, [0; 0]);
        let asked = URLS + 160;
        let closed = seen.closed.load(Ordering::SeqCst);
        assert!(closed >= asked / 4, "{closed} connections were closed");
        assert_eq!(
            seen.requests.load(Ordering::SeqCst),
            asked + closed,
            "each is sent once more"
        );
    }
}

#[tokio::test]
async fn nothing_is_sent_again_that_may_have_had_an_effect() {
    let (address, seen) = closer("").await;
    let edge = before(address).start().await;
    let methods = [
        ("POST", "a"),
        ("PUT", "a"),
        ("DELETE", ""),
        ("PATCH", "a"),
        ("GET", "a"),
    ];
    for (method, body) in methods {
        let length = [("content-length", "1")];
        let headers = if body.is_empty() { &[][..] } else { &length };
        let before = seen.requests.load(Ordering::SeqCst);
        let first = edge.get(&format!("/{method}")).await;
        assert_eq!(first.status, 200, "{first}");
        let mut client = Client::connect(edge.address()).await;
        let head = request(method, "/effect", headers);
        let response = client.exchange([&head, body.as_bytes()].concat()).await;
        assert_eq!(response.status, 503, "{method}: {response}");
        let sent = seen.requests.load(Ordering::SeqCst) - before;
        assert_eq!(sent, 2, "{method}");
    }
}

#[tokio::test]
async fn a_response_that_has_begun_ends_with_its_connection() {
    for begun in ["H", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\ncontent-le"] {
        let (address, seen) = closer(begun).await;
        let edge = before(address).start().await;
        assert_eq!(edge.get("/a").await.status, 200);
        let response = edge.get("/b").await;
        assert!(
            matches!(response.status, 502 | 503),
            "{begun:?}: {response}"
        );
        assert_eq!(seen.requests.load(Ordering::SeqCst), 2, "{begun:?}");
    }
}

/// The origin reports when the edge closes an idle connection.
#[tokio::test]
async fn an_idle_connection_is_kept_for_as_long_as_is_set() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let origin = raw_origin(move |mut stream| {
        let tell = tell.clone();
        async move {
            let (read, mut write) = stream.split();
            let mut wire = Wire::new(read);
            let mut answered = Instant::now();
            while let Ok(Some(_)) = wire.head().await {
                answered = Instant::now();
                let _ = write
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                    .await;
            }
            let _ = tell.send(answered.elapsed());
        }
    })
    .await;
    for (set, least) in [(Some("300ms"), 300), (None, 4_000)] {
        let builder = before(origin);
        let builder = match set {
            Some(time) => builder.env("SLUICE_ORIGIN_KEEPALIVE", time),
            None => builder,
        };
        let edge = builder.start().await;
        assert_eq!(edge.get("/a").await.status, 200);
        let kept = told.recv().await.unwrap();
        let least = Duration::from_millis(least);
        // The edge closes later on a busy machine.
        assert!(kept + Duration::from_millis(50) >= least, "{kept:?}");
        assert!(kept < least + Duration::from_secs(3), "{kept:?}");
    }
}
