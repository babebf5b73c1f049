// SPDX-License-Identifier: Apache-2.0
//! Header values that are not text, from origins and from clients.

use sluice_tests::bare::Bare;
use sluice_tests::client::{Client, Response, get, until_hit};
use sluice_tests::edge::Edge;
use sluice_tests::edge::store::Store;
use sluice_tests::eventually;
use sluice_tests::origin::{Origin, Reply};

/// A file name in Latin-1.
const BYTES: &[u8] = b"attachment; filename=\"M\xfcller.pdf\"";
/// The file name as a client of the tests reads it, with each byte as a character.
const READ: &str = "attachment; filename=\"M\u{fc}ller.pdf\"";

/// A response with this file name. `Content-Length` follows it.
fn named() -> Reply {
    let reply = Reply::ok(1_000).max_age(60).etag("v1");
    reply.header_bytes("content-disposition", BYTES)
}

/// Sends GET with a header of these bytes.
async fn ask(edge: &Edge, path: &str, name: &str, value: &[u8]) -> Response {
    let start = format!("GET {path} HTTP/1.1\r\nhost: edge.test\r\n{name}: ");
    let bytes = [start.as_bytes(), value, b"\r\n\r\n"].concat();
    Client::connect(edge.address()).await.exchange(bytes).await
}

/// sozu#664, yarp#2076, fastify-http-proxy#343
#[tokio::test]
async fn a_file_name_in_latin_1_is_stored_and_served_byte_for_byte() {
    let origin = Origin::start().ready().await;
    origin.on("/a", named());
    let edge = Edge::http(&origin).workers(1).start().await;
    let miss = edge.get("/a").await;
    assert_eq!(miss.header("content-disposition"), READ, "{miss}");
    let hit = until_hit(edge.address(), "/a").await;
    let head = edge.send("HEAD", "/a", &[]).await;
    let part = edge.send("GET", "/a", &[("range", "bytes=0-9")]).await;
    assert_eq!((head.status, part.status), (200, 206));
    for response in [&hit, &head, &part] {
        assert_eq!(response.header("content-disposition"), READ, "{response}");
    }
    let unchanged = edge.send("GET", "/a", &[("if-none-match", "\"v1\"")]).await;
    assert_eq!(unchanged.status, 304, "{unchanged}");
    assert_eq!(hit.header("content-length"), "1000", "{hit}");
    assert_eq!(hit.stamp("/a"), miss.stamp("/a"));
    assert_eq!(origin.count("/a"), 1);
    assert_eq!(edge.counter("sluice_hit_for_miss_marked").await, 0);
}

/// sozu#664
#[tokio::test]
async fn control_the_store_loses_the_fields_behind_a_value_that_is_no_text() {
    let origin = Origin::start().ready().await;
    origin.on("/a", named());
    let bare = Bare::start(&origin, Store::V1_DISK, 1).await;
    let miss = get(bare.address(), "/a").await;
    assert_eq!(miss.header("content-length"), "1000", "{miss}");
    eventually("a hit", async || {
        let hit = get(bare.address(), "/a").await;
        assert_eq!(hit.header("content-disposition"), READ, "{hit}");
        !hit.header("age").is_empty() && hit.header("content-length").is_empty()
    })
    .await;
}

/// souin#192, haproxy#987
#[tokio::test]
async fn a_request_header_that_is_no_text_has_a_key_of_its_own() {
    let origin = Origin::start().ready().await;
    let policy = "origin: {kind: http}\nkey: {headers: [x-country]}\n";
    let vary = Reply::ok(100).max_age(60).header("vary", "Accept-Language");
    origin.on("/vary", vary);
    origin.on("/key", Reply::ok(100).max_age(60));
    let edge = Edge::http(&origin).workers(1).policy(policy).start().await;
    for (path, name) in [("/vary", "accept-language"), ("/key", "x-country")] {
        let mut stamps = Vec::new();
        for value in [&b"xx,\xff"[..], b"xx,\xfe", b"xx"] {
            let first = ask(&edge, path, name, value).await;
            stamps.push(first.stamp(path));
            let again = ask(&edge, path, name, value).await;
            assert!(again.is_reused(), "{path} {value:?}: {again}");
            assert_eq!(again.stamp(path), first.stamp(path));
        }
        assert_eq!(origin.count(path), 3, "{path}");
        assert!(stamps[0] != stamps[1] && stamps[1] != stamps[2]);
        let asked = origin.requests().of(path);
        assert_eq!(asked[0].headers.get(name), Some("xx,\u{ff}"), "{path}");
    }
}

/// souin#192
#[tokio::test]
async fn a_field_that_decides_and_is_no_text_keeps_a_response_out_of_the_store() {
    let origin = Origin::start().ready().await;
    let edge = Edge::http(&origin).workers(1).start().await;
    let bare = || Reply::ok(100);
    for (path, reply) in [
        (
            "/control",
            bare().header_bytes("cache-control", b"no-store, \xff"),
        ),
        (
            "/vary",
            bare().max_age(60).header_bytes("vary", b"Accept, \xff"),
        ),
        (
            "/tag",
            bare().max_age(60).header_bytes("cache-tag", b"a \xff"),
        ),
    ] {
        origin.on(path, reply);
        for sent in 1..=3 {
            let response = edge.get(path).await;
            assert_eq!(response.status, 200, "{response}");
            assert_eq!(origin.count(path), sent, "{path}: {response}");
        }
    }
}

/// yarp#2076
#[tokio::test]
async fn a_user_agent_that_is_no_text_is_forwarded_byte_for_byte() {
    let origin = Origin::start().ready().await;
    origin.on("/a", Reply::ok(100).max_age(60));
    let edge = Edge::http(&origin).workers(1).start().await;
    let miss = ask(&edge, "/a", "user-agent", b"Browser/1 (\xfc)").await;
    assert_eq!(miss.status, 200, "{miss}");
    let asked = origin.requests().of("/a");
    assert_eq!(
        asked[0].headers.get("user-agent"),
        Some("Browser/1 (\u{fc})")
    );
    assert!(edge.get("/a").await.is_reused());
    assert_eq!(edge.counter("sluice_host_errors").await, 0);
}

/// yarp#2076. Envoy removes a `Referer` that is not an absolute URL. It never accepts a URL with bytes beyond ASCII.
#[tokio::test]
async fn a_request_with_a_referer_that_is_no_url_goes_on_without_it() {
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(100));
    let edge = Edge::http(&origin).workers(1).start().await;
    let bare = Bare::start(&origin, Store::V1_MEMORY, 1).await;
    for address in [edge.address(), bare.address()] {
        let request = b"GET /a HTTP/1.1\r\nhost: edge.test\r\nreferer: http://a.test/\xfc\r\n\r\n";
        let mut client = Client::connect(address).await;
        assert_eq!(client.exchange(request.to_vec()).await.status, 200);
    }
    for request in origin.requests().of("/a") {
        assert_eq!(request.headers.get("referer"), None);
    }
}
