// SPDX-License-Identifier: Apache-2.0
//! There is a hop within Envoy between the cache and the origin. Where the origin fails, the hop makes the response.
//! It changes nothing else.

use sluice_tests::client::{Client, request};
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::eventually;
use sluice_tests::http::message::{Head, Wire};
use sluice_tests::machine::standstill::unless_the_machine_stands_still;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use sluice_tests::server::requests::State;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// An origin that passes each of its connections to `serve` until the test ends.
pub async fn raw_origin<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// An edge with one worker in front of this origin.
pub fn before(origin: SocketAddr) -> Builder {
    Builder::new()
        .env("SLUICE_ORIGIN", format!("http://{origin}"))
        .workers(1)
}

/// An edge in front of a bucket at this address. The edge sends no retries.
pub fn before_bucket(address: SocketAddr) -> Builder {
    Builder::new()
        .env("SLUICE_ORIGIN", "s3://site")
        .env("SLUICE_S3_ENDPOINT", format!("http://{address}"))
        .env("SLUICE_S3_RETRIES", "0")
        .env("AWS_ACCESS_KEY_ID", "AKIDSCRIPTED")
        .env("AWS_SECRET_ACCESS_KEY", "scripted-secret-value")
}

#[tokio::test]
async fn a_connection_that_breaks_is_asked_once_more_where_that_is_safe() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(1000).reset());
    let edge = Edge::http(&origin).workers(1).start().await;
    assert_eq!(edge.get("/a").await.status, 503);
    for method in ["POST", "PUT", "DELETE"] {
        let empty = [("content-length", "0")];
        let response = edge.send(method, "/b", &empty).await;
        assert_eq!(response.status, 503, "{response}");
    }
    assert_eq!((origin.count("/a"), origin.count("/b")), (2, 3));
}

/// An origin that accepts no connection until `full` is dropped: its queue has room for one.
async fn full_origin() -> (TcpListener, TcpStream) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let full = TcpStream::connect(listener.local_addr().unwrap()).await;
    (listener, full.unwrap())
}

/// Sends a request to an edge whose hop retries `retries` times. Its origin accepts connections only after the first
/// attempt has failed.
async fn ask_a_late_origin(retries: u32) -> (u16, u64) {
    let (listener, full) = full_origin().await;
    let address = listener.local_addr().unwrap();
    let direct = Direct {
        retries: Some(retries),
        ..Direct::default()
    };
    let edge = before(address).direct(direct).start().await;
    let serve = async {
        let failed = "cluster.origin_server.upstream_cx_connect_timeout";
        edge.wait_for_counter(failed, 1).await;
        drop(full);
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (read, mut write) = stream.split();
                if let Ok(Some(_)) = Wire::new(read).head().await {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    let _ = write.write_all(answer).await;
                }
            });
        }
    };
    // The method must not be sent twice.
    let empty = [("content-length", "0")];
    let status = tokio::select! {
        response = edge.send("POST", "/a", &empty) => response.status,
        () = serve => unreachable!("the server never ends"),
    };
    let retried = edge.counter("cluster.origin_server.upstream_rq_retry");
    (status, retried.await)
}

#[tokio::test]
async fn a_connection_that_cannot_be_made_is_tried_once_more() {
    let (retried, control) = tokio::join!(ask_a_late_origin(1), ask_a_late_origin(0));
    assert_eq!(retried, (200, 1));
    assert_eq!(control, (503, 0));
}

#[tokio::test]
async fn a_response_that_envoy_makes_for_the_origin_is_marked_for_the_filter_alone() {
    const LOGGED: &str = "sluice: no answer from the origin";
    let origin = Origin::start().ready().await;
    let liar = Reply::status(503).header("x-sluice-origin-failed", "spoofed");
    origin.on("*", liar);
    let edge = Edge::http(&origin).workers(1).start().await;
    let ways = [("GET", "/a"), ("POST", "/a")];
    for (method, path) in ways {
        let response = edge.send(method, path, &[]).await;
        assert_eq!(response.status, 503);
        assert!(!response.headers.any_with_prefix("x-sluice-"), "{response}");
    }
    assert_eq!(edge.log_lines(LOGGED), [""; 0], "the origin has answered");
    origin.refuse().await;
    for (method, path) in ways.map(|(method, _)| (method, "/b")) {
        let response = edge.send(method, path, &[]).await;
        assert_eq!(response.status, 503, "{response}");
        assert!(!response.headers.any_with_prefix("x-sluice-"), "{response}");
        assert_eq!(
            response.body, b"The origin could not answer.\n",
            "{response}"
        );
    }
    edge.wait_for_log(LOGGED).await;
    assert!(edge.log_lines(LOGGED)[0].contains("connection_failure"));
}

#[tokio::test]
async fn a_silent_origin_is_given_up_and_asked_again() {
    let origin = Origin::start().ready().await;
    let (silent, stuck) = (Gate::new(), Gate::new());
    let held = [Reply::ok(1000).hold(&silent), Reply::ok(1000)];
    origin.on_each("/silent", held);
    let held = Reply::ok(200_000).hold_after(1000, &stuck);
    origin.on_each("/stuck", [held, Reply::ok(200_000)]);
    let impatient = Direct {
        origin_idle: Some(Duration::from_millis(700)),
        ..Direct::default()
    };
    let edge = Edge::http(&origin)
        .workers(2)
        .direct(impatient)
        .start()
        .await;
    assert_eq!(edge.get("/silent").await.status, 504);
    let mut client = Client::connect(edge.address()).await;
    let cut = client.try_exchange(request("GET", "/stuck", &[])).await;
    assert!(cut.is_err(), "{cut:?}");
    for path in ["/silent", "/stuck"] {
        eventually("a whole object", async || {
            let mut client = Client::connect(edge.address()).await;
            let response = client.try_exchange(request("GET", path, &[])).await;
            response.is_ok_and(|response| response.status == 200)
        })
        .await;
    }
}

#[tokio::test]
async fn a_slow_origin_that_goes_on_is_waited_for() {
    let slack = Duration::from_secs(2);
    unless_the_machine_stands_still(slack, async || {
        let origin = Origin::start().ready().await;
        let slow = Reply::ok(30_000).pace(1_000, Duration::from_millis(150));
        origin.on("/a", slow);
        let impatient = Direct {
            origin_idle: Some(Duration::from_secs(3)),
            ..Direct::default()
        };
        let edge = Edge::http(&origin).direct(impatient).start().await;
        let _ = edge.get("/a").await.stamp("/a");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_leaves_a_request_of_its_own_ends_it_at_the_origin() {
    let origin = Origin::start().ready().await;
    let (head, body) = (Gate::new(), Gate::new());
    origin.on("/head", Reply::ok(1000).hold(&head));
    origin.on("/body", Reply::ok(200_000).hold_after(1000, &body));
    let edge = Edge::http(&origin).workers(1).start().await;
    for path in ["/head", "/body"] {
        let mut client = Client::connect(edge.address()).await;
        client
            .send(request("GET", path, &[("cookie", "a=1")]))
            .await
            .unwrap();
        origin.wait_for_requests(path, 1).await;
        client.reset();
        eventually("it is abandoned", async || {
            let seen = origin.requests().of(path);
            seen.iter().all(|request| request.state == State::Abandoned)
        })
        .await;
    }
}

#[tokio::test]
async fn headers_pass_up_to_the_number_and_size_that_a_client_may_send() {
    let origin = Origin::start().ready().await;
    let large = "v".repeat(50_000);
    let mut reply = Reply::ok(1000).header("x-large", &large);
    for number in 0..85 {
        reply = reply.header(&format!("x-many-{number}"), "1");
    }
    origin.on("*", reply);
    let edge = Edge::http(&origin).workers(1).start().await;
    let mut sent: Vec<(String, String)> = (0..90)
        .map(|number| (format!("x-many-{number}"), "1".to_owned()))
        .collect();
    sent.push(("x-large".to_owned(), "v".repeat(30_000)));
    let sent: Vec<(&str, &str)> = sent.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    for method in ["GET", "POST"] {
        let response = edge.send(method, "/a", &sent).await;
        assert_eq!(response.status, 200, "{method}: {response}");
        assert_eq!(response.header("x-large"), large);
        assert!(response.headers.get("x-many-84").is_some());
    }
    for request in origin.requests().of("/a") {
        let many = request.headers.0.iter();
        let many = many.filter(|(name, _)| name.starts_with("x-many-")).count();
        assert_eq!(many, 90, "{}", request.method);
    }
}

#[tokio::test]
async fn bodiless_responses_keep_their_headers() {
    let origin = raw_origin(async |mut stream| {
        let (read, mut write) = stream.split();
        let mut wire = Wire::new(read);
        while let Ok(Some(head)) = wire.head().await {
            let answer = match (head.word(0), head.word(1)) {
                ("HEAD", "/length") => "200 OK\r\ncontent-length: 12345",
                ("HEAD", _) => "200 OK",
                (_, "/204") => "204 No Content",
                _ => "304 Not Modified\r\netag: \"a\"\r\ncontent-length: 12345",
            };
            let answer = format!("HTTP/1.1 {answer}\r\nx-own: 1\r\n\r\n");
            if write.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    })
    .await;
    let edge = before(origin).start().await;
    let own = [("cookie", "a=1"), ("if-none-match", "\"a\"")];
    let mut client = Client::connect(edge.address()).await;
    for (method, path, status, length) in [
        ("HEAD", "/length", 200, Some("12345")),
        ("HEAD", "/none", 200, None),
        ("GET", "/204", 204, None),
        ("GET", "/304", 304, Some("12345")),
        ("HEAD", "/length", 200, Some("12345")),
    ] {
        let response = client.exchange(request(method, path, &own)).await;
        assert_eq!(response.status, status, "{response}");
        assert_eq!(response.headers.get("content-length"), length, "{response}");
        assert_eq!(response.header("x-own"), "1");
    }
}

#[tokio::test]
async fn an_http_1_0_origin_and_every_framing_pass() {
    let old = raw_origin(async |mut stream| {
        let (read, mut write) = stream.split();
        let _ = Wire::new(read).head().await;
        let _ = write.write_all(b"HTTP/1.0 200 OK\r\n\r\nold").await;
    })
    .await;
    let edge = before(old).start().await;
    for headers in [&[][..], &[("cookie", "a=1")]] {
        let response = edge.send("GET", "/a", headers).await;
        assert_eq!((response.status, response.body), (200, b"old".to_vec()));
    }
    let origin = Origin::start().ready().await;
    origin.on("/length", Reply::ok(300_000));
    origin.on("/chunked", Reply::ok(300_000).chunked());
    origin.on("/close", Reply::ok(300_000).until_close());
    let edge = Edge::http(&origin).workers(1).start().await;
    for path in ["/length", "/chunked", "/close"] {
        for headers in [&[("cookie", "a=1")][..], &[]] {
            let _ = edge.send("GET", path, headers).await.stamp(path);
        }
    }
}

/// Reads one request with its body, slowly, and answers with the number of bytes.
async fn count_body(mut stream: TcpStream) {
    let (read, mut write) = stream.split();
    let mut wire = Wire::new(read);
    let Ok(Some(head)) = wire.head().await else {
        return;
    };
    if expectation(&head) == "100-continue" {
        let _ = write.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
    }
    // All buffers on the way are full meanwhile.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut body = Vec::new();
    let _ = wire.body(head.request_framing(), &mut body).await;
    let text = format!("{} {}", body.len(), expectation(&head));
    // It closes the connection, on which Envoy could send the next request otherwise.
    let answer = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    );
    let _ = write.write_all(answer.as_bytes()).await;
}

fn expectation(head: &Head) -> &str {
    head.headers.get("expect").unwrap_or("none")
}

#[tokio::test]
async fn large_uploads_arrive_whole() {
    let edge = before(raw_origin(count_body).await).start().await;
    let content = vec![b'x'; 3_000_000];
    let length = content.len().to_string();
    let mut whole = request("POST", "/a", &[("content-length", &length)]);
    whole.extend_from_slice(&content);
    let mut chunked = request("POST", "/a", &[("transfer-encoding", "chunked")]);
    chunked.extend_from_slice(format!("{:x}\r\n", content.len()).as_bytes());
    chunked.extend_from_slice(&content);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    for upload in [whole, chunked] {
        let response = Client::connect(edge.address()).await.exchange(upload).await;
        assert_eq!(response.status, 200, "{response}");
        assert_eq!(response.body, b"3000000 none");
    }
}

#[tokio::test]
async fn a_client_that_expects_100_continue_gets_the_origins() {
    let edge = before(raw_origin(count_body).await).start().await;
    let mut client = Client::connect(edge.address()).await;
    let headers = [("content-length", "5"), ("expect", "100-continue")];
    client.send(request("POST", "/a", &headers)).await.unwrap();
    let go_on = client.some(usize::MAX).await.unwrap();
    assert!(go_on.starts_with(b"HTTP/1.1 100 "), "{go_on:?}");
    client.send_more("hello").await.unwrap();
    let response = client.response().await.unwrap();
    assert_eq!(response.body, b"5 100-continue", "{response}");
}

#[tokio::test]
async fn a_body_that_waits_for_100_continue_is_not_waited_for() {
    let edge = before(raw_origin(count_body).await).start().await;
    let mut client = Client::connect(edge.address()).await;
    let headers = [("transfer-encoding", "chunked"), ("expect", "100-continue")];
    client.send(request("GET", "/a", &headers)).await.unwrap();
    let go_on = client.some(usize::MAX).await.unwrap();
    assert!(go_on.starts_with(b"HTTP/1.1 100 "), "{go_on:?}");
    client.send_more("5\r\nhello\r\n0\r\n\r\n").await.unwrap();
    let response = client.response().await.unwrap();
    assert_eq!(response.body, b"5 100-continue", "{response}");
}

/// Sends an interim response before each final one.
async fn hint_early(mut stream: TcpStream) {
    let (read, mut write) = stream.split();
    let mut wire = Wire::new(read);
    while let Ok(Some(_)) = wire.head().await {
        let answer = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n\
            HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        if write.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn interim_responses_reach_clients_whose_requests_go_around_the_store() {
    let edge = before(raw_origin(hint_early).await).start().await;
    for (method, headers) in [
        ("GET", [("cookie", "a=1")]),
        ("POST", [("content-length", "0")]),
    ] {
        let mut client = Client::connect(edge.address()).await;
        client.send(request(method, "/a", &headers)).await.unwrap();
        let first = client.some(usize::MAX).await.unwrap();
        let first = String::from_utf8_lossy(&first).into_owned();
        assert!(first.starts_with("HTTP/1.1 103 "), "{first}");
        assert!(first.contains("link: </a.css>; rel=preload"), "{first}");
    }
    // Envoy's cache drops interim responses.
    let stored = edge.get("/a").await;
    assert_eq!((stored.status, stored.body.as_slice()), (200, &b"ok"[..]));
}

#[tokio::test]
async fn a_client_never_sees_the_fields_of_the_origins_connection() {
    let origin = Origin::start().ready().await;
    let reply = Reply::ok(1000).header("connection", "X-Hop, keep-alive");
    let reply = reply.header("keep-alive", "timeout=5").header("x-hop", "1");
    origin.on("/stored", reply.clone().max_age(60).header("x-end", "2"));
    origin.on("/passed", reply.header("x-end", "2"));
    let edge = Edge::http(&origin).workers(1).start().await;
    eventually("a hit", async || edge.get("/stored").await.is_hit()).await;
    let hit = edge.get("/stored").await;
    let passed = edge.send("POST", "/passed", &[]).await;
    for response in [&hit, &passed] {
        assert_eq!(response.header("x-end"), "2", "{response}");
        for name in ["x-hop", "keep-alive", "x-sluice-connection"] {
            assert!(response.headers.get(name).is_none(), "{name}: {response}");
        }
    }
    assert!(hit.is_hit() && !passed.is_hit(), "{hit} {passed}");
}
