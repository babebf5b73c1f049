// SPDX-License-Identifier: Apache-2.0
//! WebSockets are passed to an HTTP origin and back until one side closes them.

use super::hop::{before, raw_origin};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Edge;
use sluice_tests::edge::direct::Direct;
use sluice_tests::http::message::Wire;
use sluice_tests::machine::standstill::unless_the_machine_stands_still;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// An origin that echoes the messages of a WebSocket, and has a page for other requests.
pub async fn echo() -> SocketAddr {
    raw_origin(async |mut stream| {
        let (read, mut write) = stream.split();
        let mut wire = Wire::new(read);
        let Ok(Some(head)) = wire.head().await else {
            return;
        };
        if head.headers.get("upgrade") != Some("websocket") {
            let page = "HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\ncontent-length: 4\r\n\
                        connection: close\r\n\r\npage";
            let _ = write.write_all(page.as_bytes()).await;
            return;
        }
        let switch =
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n";
        let _ = write.write_all(switch.as_bytes()).await;
        while let Ok(bytes @ [_, ..]) = wire.some(usize::MAX).await.as_deref() {
            let _ = write.write_all(bytes).await;
        }
    })
    .await
}

/// The request for a WebSocket at this path.
pub fn handshake(target: &str) -> Vec<u8> {
    let headers = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    request("GET", target, &headers)
}

/// A client with an open WebSocket at this path.
pub async fn connect(edge: &Edge, target: &str) -> Client {
    let mut client = Client::connect(edge.address()).await;
    client.send(handshake(target)).await.unwrap();
    let mut switched = Vec::new();
    while !switched.ends_with(b"\r\n\r\n") {
        switched.extend(client.some(usize::MAX).await.unwrap());
    }
    assert!(switched.starts_with(b"HTTP/1.1 101 "));
    client
}

pub async fn say(client: &mut Client, message: &str) {
    client.send_more(message).await.unwrap();
    assert_eq!(client.some(usize::MAX).await.unwrap(), message.as_bytes());
}

#[tokio::test]
async fn a_websocket_stays_open_both_ways() {
    // The origin has to accept the connection in time.
    let slack = Duration::from_secs(1);
    unless_the_machine_stands_still(slack, async || {
        let impatient = Direct {
            origin_idle: Some(Duration::from_secs(2)),
            ..Direct::default()
        };
        let edge = before(echo().await).direct(impatient).start().await;
        let mut client = connect(&edge, "/chat").await;
        for message in ["ping", "pong"] {
            // The connection is idle for longer than the origin's idle timeout.
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            say(&mut client, message).await;
        }
    })
    .await;
}
