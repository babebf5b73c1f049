// SPDX-License-Identifier: Apache-2.0
//! The server that the API server asks for the log of a pod, for `kubectl logs` and for Helm.

use super::Host;
use crate::http::message::Wire;
use crate::mesh::tls_front::TlsFront;
use crate::server::Server;
use std::io;
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// The server for logs. It ends when dropped.
pub(super) struct Logs {
    front: TlsFront,
    _server: Server,
}

impl Logs {
    pub(super) fn start(host: Arc<Host>) -> Self {
        let server = Server::start("logs", move |stream, _| {
            let host = Arc::clone(&host);
            async move { answer(stream, &host).await }
        });
        let front = TlsFront::start("node", server.address());
        Self {
            front,
            _server: server,
        }
    }

    pub(super) const fn port(&self) -> u16 {
        self.front.address().port()
    }
}

/// Answers a GET of `/containerLogs/NAMESPACE/POD/CONTAINER`.
async fn answer(stream: TcpStream, host: &Host) -> io::Result<()> {
    let mut wire = Wire::new(stream);
    let Some(head) = wire.head().await? else {
        return Ok(());
    };
    let mut parts = head.word(1).split('/').skip(2).map(str::to_owned);
    let name = [(); 2].map(|()| parts.next().unwrap_or_default());
    let log = host
        .running
        .lock()
        .unwrap()
        .get(&name)
        .map(|running| running.log.clone());
    let text = log.map(std::fs::read).transpose()?.unwrap_or_default();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    wire.get_mut()
        .write_all(&[head.as_bytes(), &text].concat())
        .await
}
