// SPDX-License-Identifier: Apache-2.0
//! A proxy that counts, and holds, the requests on their way to a real server. It changes no byte of them, so a
//! signature over `Host` stays good as long as the client signed for the proxy's address.

use crate::http::message::Wire;
use crate::server::Server;
use crate::server::gate::Gate;
use crate::server::requests::{Requests, State};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

#[derive(Default)]
struct Shared {
    requests: Requests,
    gates: Mutex<HashMap<String, Gate>>,
}

/// The proxy; it ends when dropped.
pub struct Proxy {
    shared: Arc<Shared>,
    server: Server,
}

impl Proxy {
    /// Starts a proxy in front of `target`.
    ///
    /// # Panics
    /// When no socket can be created.
    #[must_use]
    pub fn start(target: SocketAddr) -> Self {
        Self::distant(target, Duration::ZERO)
    }

    /// Starts a proxy in front of `target` that delays each request by `delay`. Requests of one connection are
    /// delayed one after the other.
    ///
    /// # Panics
    /// When no socket can be created.
    #[must_use]
    pub fn distant(target: SocketAddr, delay: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        let server = Server::start("proxy", move |stream, _| {
            let served = Arc::clone(&served);
            async move { relay(stream, target, delay, &served).await }
        });
        Self { shared, server }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The requests that passed the proxy.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        &self.shared.requests
    }

    /// Holds requests for `target` until the gate opens.
    #[must_use]
    pub fn hold(&self, target: &str) -> Gate {
        let gate = Gate::new();
        self.shared
            .gates
            .lock()
            .unwrap()
            .insert(target.to_owned(), gate.clone());
        gate
    }
}

async fn relay(
    mut client: TcpStream,
    target: SocketAddr,
    delay: Duration,
    shared: &Shared,
) -> io::Result<()> {
    let mut server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let requests = async {
        let mut wire = Wire::new(from_client);
        while let Some(head) = wire.head().await? {
            let number = shared.requests.begin(&head);
            let gate = shared.gates.lock().unwrap().get(head.word(1)).cloned();
            if let Some(gate) = gate {
                gate.pass().await;
            }
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            // Fields are forwarded in their original spelling.
            let mut text = format!("{}\r\n", head.start);
            for (name, value) in &head.headers.0 {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            text.push_str("\r\n");
            let mut bytes: Vec<u8> = text
                .chars()
                .map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'))
                .collect();
            wire.body(head.request_framing(), &mut bytes).await?;
            to_server.write_all(&bytes).await?;
            shared.requests.end(number, State::Done);
        }
        io::Result::Ok(())
    };
    tokio::select! {
        ended = requests => ended,
        ended = tokio::io::copy(&mut from_server, &mut to_client) => ended.map(drop),
    }
}
