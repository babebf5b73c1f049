// SPDX-License-Identifier: Apache-2.0
//! Origins that answer an upload before they have read it (RFC 9112, 9.5).

use crate::origin::hop::{before, raw_origin};
use sluice_tests::bare::Bare;
use sluice_tests::client::http2::Http2;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::store::Store;
use sluice_tests::http::message::Wire;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt as _;

/// An origin that answers each request at its headers with the status in the path, closes its side of the connection,
/// and keeps reading.
async fn hasty() -> SocketAddr {
    raw_origin(async |mut stream| {
        let (read, mut write) = stream.split();
        let mut wire = Wire::new(read);
        let Ok(Some(head)) = wire.head().await else {
            return;
        };
        let status = head.word(1).trim_start_matches('/');
        let answer = format!(
            "HTTP/1.1 {status} X\r\nlocation: /login\r\nconnection: close\r\ncontent-length: 6\r\n\r\nhasty\n"
        );
        let _ = write.write_all(answer.as_bytes()).await;
        let _ = write.shutdown().await;
        while wire.some(usize::MAX).await.is_ok_and(|bytes| !bytes.is_empty()) {}
    })
    .await
}

/// Status of an upload of `bytes` bytes by HTTP/1.1, or `None` without a response.
async fn upload(address: SocketAddr, target: &str, bytes: usize) -> Option<u16> {
    let mut client = Client::connect(address).await;
    let length = bytes.to_string();
    let head = request("POST", target, &[("content-length", &length)]);
    client.send(head).await.ok()?;
    // The edge may have closed its side already.
    let _ = client.send_more(vec![b'a'; bytes]).await;
    client.response().await.ok().map(|response| response.status)
}

/// Status of an upload of `parts` parts by HTTP/2, or `None` without a response.
async fn upload_by_http2(address: SocketAddr, target: &str, parts: usize) -> Option<u16> {
    static PART: [u8; 16_000] = [b'a'; 16_000];
    let client = Http2::connect(address).await;
    let mut stream = client.begin("POST", target, &[], false).await.ok()?;
    for part in 0..parts {
        let _ = stream.send_body(&PART, part + 1 == parts);
    }
    stream.head().await.ok().map(|(status, _)| status)
}

/// Number of uploads that get the origin's response.
async fn count(address: SocketAddr) -> usize {
    let mut answered = 0;
    for status in [413, 401, 302] {
        let target = format!("/{status}");
        for bytes in [100_000, 1_000_000, 2_600_000] {
            for _ in 0..4 {
                answered += usize::from(upload(address, &target, bytes).await == Some(status));
            }
        }
        for _ in 0..8 {
            answered += usize::from(upload_by_http2(address, &target, 60).await == Some(status));
        }
    }
    answered
}

/// `envoy#2929`, `envoy#18213`, `envoy#38697`.
#[tokio::test]
async fn an_answer_to_an_upload_arrives_as_often_as_with_bare_envoy() {
    let origin = hasty().await;
    let edge = before(origin).start().await;
    // This is plain Envoy without the hop.
    let bare = Bare::changed_before(&format!("http://{origin}"), Store::V1_DISK, 1, &|config| {
        let routes = &mut config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"]
            [0]["typed_config"]["route_config"]["virtual_hosts"][0]["routes"];
        routes[0]["route"]["cluster"] = "origin_server".into();
    })
    .await;
    let (of_edge, of_bare) = (count(edge.address()).await, count(bare.address()).await);
    println!("the edge {of_edge}, bare Envoy {of_bare} of 60");
    assert!(of_edge >= of_bare, "{of_edge}, bare Envoy {of_bare}");
}
