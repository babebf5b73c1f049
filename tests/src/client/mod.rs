// SPDX-License-Identifier: Apache-2.0
//! An HTTP/1.1 client that sends bytes exactly as given, reads as far as the test wants, and disconnects where the
//! test wants.

pub mod browser;
pub mod crowd;
pub mod frames;
pub mod http2;
pub mod load;
mod response;
pub mod storm;

pub use response::{Failure, Response};

use crate::PATIENCE;
use crate::eventually;
use crate::http::body;
use crate::http::message::{Framing, Head, Wire};
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One connection.
#[derive(Debug)]
pub struct Client<S = TcpStream> {
    wire: Wire<S>,
    method: String,
    sent: Instant,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// When no server listens.
    pub async fn try_connect(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address)
            .await
            .map_err(Failure::Refused)?;
        stream.set_nodelay(true).map_err(Failure::Refused)?;
        Ok(Self::on(stream))
    }

    /// Connects.
    ///
    /// # Panics
    /// When no server listens.
    pub async fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address)
            .await
            .unwrap_or_else(|failure| panic!("{address}: {failure}"))
    }

    /// Opens a connection with a small receive buffer, for a slow reader.
    ///
    /// # Errors
    /// When no server listens.
    pub async fn try_connect_narrow(address: SocketAddr) -> Result<Self, Failure> {
        let socket = tokio::net::TcpSocket::new_v4().map_err(Failure::Refused)?;
        socket
            .set_recv_buffer_size(4096)
            .map_err(Failure::Refused)?;
        let stream = socket.connect(address).await.map_err(Failure::Refused)?;
        Ok(Self::on(stream))
    }

    /// Opens a connection with a small receive buffer, for a slow reader.
    ///
    /// # Panics
    /// When no server listens.
    pub async fn connect_narrow(address: SocketAddr) -> Self {
        Self::try_connect_narrow(address)
            .await
            .unwrap_or_else(|failure| panic!("{address}: {failure}"))
    }

    /// Ends the connection at once, with RST.
    pub fn reset(self) {
        let stream = self.wire.into_inner();
        let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    }

    /// Ends the connection in order, with FIN, whether the response was read or not.
    pub async fn finish(self) {
        let mut stream = self.wire.into_inner();
        let _ = stream.shutdown().await;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// Creates a client on this connection.
    pub fn on(stream: S) -> Self {
        Self {
            wire: Wire::new(stream),
            method: "GET".to_owned(),
            sent: Instant::now(),
        }
    }

    /// Sends bytes exactly as given. The first word counts as the method of the request, for the framing of its
    /// response.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        let bytes = bytes.as_ref();
        self.method =
            String::from_utf8_lossy(bytes.split(|&byte| byte == b' ').next().unwrap_or_default())
                .into();
        self.sent = Instant::now();
        self.wire
            .get_mut()
            .write_all(bytes)
            .await
            .map_err(Failure::Broken)
    }

    /// Sends more bytes of a request that was started before.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn send_more(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.wire
            .get_mut()
            .write_all(bytes.as_ref())
            .await
            .map_err(Failure::Broken)
    }

    /// Reads a head; responses 1xx are skipped.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn head(&mut self) -> Result<(Head, Response), Failure> {
        let read = async {
            loop {
                match self.wire.head().await {
                    Ok(None) => return Err(Failure::NoResponse),
                    Ok(Some(head)) if head.word(1).starts_with('1') => {}
                    Ok(Some(head)) => return Ok(head),
                    Err(error) => return Err(Failure::Broken(error)),
                }
            }
        };
        let head = tokio::time::timeout(PATIENCE, read)
            .await
            .map_err(|_| Failure::Stuck)??;
        let at = Instant::now();
        let status = head.word(1).parse().map_err(|_| {
            Failure::Broken(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("no status in {:?}", head.start),
            ))
        })?;
        let headers = head.headers.clone();
        Ok((
            head,
            Response {
                status,
                headers,
                body: Vec::new(),
                first_byte: at - self.sent,
                at,
            },
        ))
    }

    /// Reads up to `limit` bytes as they are on the wire; empty at the end.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn some(&mut self, limit: usize) -> Result<Vec<u8>, Failure> {
        let read = tokio::time::timeout(PATIENCE, self.wire.some(limit)).await;
        read.map_err(|_| Failure::Stuck)?.map_err(Failure::Broken)
    }

    /// Reads one whole response.
    ///
    /// # Errors
    /// See [`Failure`]. It waits at most [`PATIENCE`] without a byte.
    pub async fn response(&mut self) -> Result<Response, Failure> {
        let (head, response) = self.head().await?;
        self.rest(&head, response).await
    }

    /// Reads the body that follows a head.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn rest(&mut self, head: &Head, mut response: Response) -> Result<Response, Failure> {
        let whole = self.body(head, &mut response.body);
        match tokio::time::timeout(2 * PATIENCE, whole).await {
            Ok(Ok(())) => Ok(response),
            Ok(Err(error)) => Err(Failure::Truncated(Box::new(response), error)),
            Err(_) => Err(Failure::Stuck),
        }
    }

    /// Reads the body that follows a head into `body`, which has the received part even if the rest is not received.
    ///
    /// # Errors
    /// When the connection ends within it.
    pub async fn body(&mut self, head: &Head, body: &mut Vec<u8>) -> io::Result<()> {
        let framing: Framing = head.response_framing(&self.method);
        self.wire.body(framing, body).await
    }

    /// Sends a request, and reads the whole response.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn try_exchange(&mut self, bytes: impl AsRef<[u8]>) -> Result<Response, Failure> {
        self.send(bytes).await?;
        self.response().await
    }

    /// Sends a request, and reads the whole response.
    ///
    /// # Panics
    /// When there is none.
    pub async fn exchange(&mut self, bytes: impl AsRef<[u8]>) -> Response {
        let bytes = bytes.as_ref();
        let shown = body::preview(bytes);
        self.try_exchange(bytes)
            .await
            .unwrap_or_else(|failure| panic!("{shown:?}: {failure}"))
    }

    /// Sends a GET on this connection.
    ///
    /// # Panics
    /// When no response arrives.
    pub async fn get(&mut self, target: &str) -> Response {
        self.exchange(request("GET", target, &[])).await
    }

    /// Sends GETs on this connection, and so to one worker, until the response is served from that worker's memory.
    ///
    /// # Panics
    /// When it never is.
    pub async fn heat(&mut self, target: &str, headers: &[(&str, &str)]) -> Response {
        for _ in 0..1_000 {
            let response = self.exchange(request("GET", target, headers)).await;
            if response.is_hot() {
                return response;
            }
            assert_eq!(response.status, 200, "{response}");
            tokio::task::yield_now().await;
        }
        panic!("{target} does not become hot");
    }
}

/// Whether a server answers a GET of `target` with status 200, for servers that may not listen yet.
pub async fn is_healthy(address: SocketAddr, target: &str) -> bool {
    let Ok(mut client) = Client::try_connect(address).await else {
        return false;
    };
    let answer = client.try_exchange(request("GET", target, &[])).await;
    answer.is_ok_and(|answer| answer.status == 200)
}

/// Sends GETs of `target` until the store has it, and returns the first hit. Until then requests wait for each other
/// and share the response.
///
/// # Panics
/// When it is never a hit.
pub async fn until_hit(address: SocketAddr, target: &str) -> Response {
    let mut last = get(address, target).await;
    eventually(&format!("a hit of {target}"), async || {
        last = get(address, target).await;
        last.is_hit()
    })
    .await;
    last
}

/// The bytes of a request without a body.
#[must_use]
pub fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    request_text(method, target, headers).into_bytes()
}

/// A request without a body, as text.
pub fn request_text(method: &str, target: &str, headers: &[(&str, &str)]) -> String {
    let mut text = format!("{method} {target} HTTP/1.1\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        text.push_str("host: edge.test\r\n");
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text
}

/// Sends a GET on a new connection.
///
/// # Panics
/// When no response arrives.
pub async fn get(address: SocketAddr, target: &str) -> Response {
    Client::connect(address).await.get(target).await
}

/// Sends a request on a new connection.
///
/// # Panics
/// When no response arrives.
pub async fn send(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> Response {
    Client::connect(address)
        .await
        .exchange(request(method, target, headers))
        .await
}
