// SPDX-License-Identifier: Apache-2.0
//! The filter's calls mean the same to the host of the Wasm module and to that of the native module, for any bytes.
//! Each test runs with the module of `RUNTIME`; the claims are those of `sluice_host::conformance`.

use sluice_tests::client::{Client, Response};
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};

/// A request with a header that is not text, and an empty header.
fn asking(method: &str, what: &str) -> Vec<u8> {
    let head = format!(
        "{method} /a HTTP/1.1\r\nhost: edge.test\r\nx-conformance: {what}\r\nx-empty:\r\nx-bytes: "
    );
    [head.as_bytes(), b"\xe9\r\n\r\n"].concat()
}

async fn ask(edge: &Edge, method: &str, what: &str) -> Response {
    let mut client = Client::connect(edge.address()).await;
    client.exchange(asking(method, what)).await
}

#[tokio::test]
async fn calls_about_a_request_and_a_reply_mean_what_they_say() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(1).trapping().start().await;
    for status in ["200", "404", "503"] {
        let told = ask(&edge, "GET", status).await;
        assert_eq!(told.status.to_string(), status, "{told}");
        assert_eq!(told.header("x-conformance"), "ok; ok");
        assert_eq!(told.body, b"ok \xe9\x00\xff", "{told}");
        assert_eq!(told.header("content-type"), "text/x-conformance", "{told}");
        assert_eq!(told.header("x-bytes"), "\u{e9}", "{told}");
        assert_eq!(told.header("x-long").len(), 20_000, "{told}");
        assert_eq!(told.headers.get("x-empty"), Some(""), "{told}");
        assert!(told.headers.all("x-twice").eq(["1", "2"]), "{told}");
        let head = ask(&edge, "HEAD", status).await;
        assert_eq!(head.status.to_string(), status, "{head}");
        assert!(head.body.is_empty(), "{head}");
    }
}

#[tokio::test]
async fn calls_about_a_response_mean_what_they_say() {
    let origin = Origin::start().ready().await;
    let object = Reply::text("an object").header("x-empty", "");
    origin.on("/a", object.header("cache-control", "private"));
    let edge = Edge::http(&origin).workers(1).trapping().start().await;
    let told = ask(&edge, "GET", "response").await;
    assert_eq!(told.status, 200, "{told}");
    // ORIGIN has also made its calls.
    assert_eq!(told.header("x-conformance"), "ok; ok");
    let body = String::from_utf8_lossy(&told.body).replace("ok ", "");
    assert_eq!(body, "an object", "{told}");
    assert_eq!(told.body.len(), "ok ok an object".len(), "{told}");
}
