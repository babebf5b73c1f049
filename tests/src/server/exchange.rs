// SPDX-License-Identifier: Apache-2.0
//! One HTTP/1.1 connection of a server: one request after the other, until either side ends it.

use super::Listening;
use crate::http::message::{Head, Wire};
use socket2::SockRef;
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// The connection's state after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The next request may follow.
    Keep,
    /// The connection is closed, in order.
    Close,
    /// The connection is reset.
    Reset,
}

/// The side of a server that answers requests.
pub trait Answering: Sync {
    /// The response to a request.
    type Answer: Send + Sync;

    /// Records a request, with the bytes after its head, and decides on its response.
    fn begin(&self, head: Head, body: Vec<u8>) -> Self::Answer;

    /// Sends the response.
    ///
    /// # Errors
    /// When the client is gone.
    fn send(
        &self,
        answer: &Self::Answer,
        write: &mut WriteHalf<'_>,
    ) -> impl Future<Output = io::Result<After>> + Send;

    /// Records whether the response was sent to its intended end, or the client has left before.
    fn end(&self, answer: &Self::Answer, sent: bool);
}

/// Answers the requests of a connection, until it ends or the server listens no longer.
///
/// # Errors
/// When the client leaves, or its bytes are not HTTP.
pub async fn serve(
    mut stream: TcpStream,
    mut listening: Listening,
    server: &impl Answering,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let after = {
        let (read, mut write) = stream.split();
        let mut wire = Wire::new(read);
        loop {
            let head = tokio::select! {
                head = wire.head() => head?,
                _ = listening.wait_for(|&on| !on) => return Ok(()),
            };
            let Some(head) = head else { return Ok(()) };
            let mut body = Vec::new();
            wire.body(head.request_framing(), &mut body).await?;
            let answer = server.begin(head, body);
            let sent = tokio::select! {
                sent = server.send(&answer, &mut write) => sent,
                () = left(&mut wire) => Err(io::ErrorKind::ConnectionReset.into()),
            };
            server.end(&answer, sent.is_ok());
            match sent? {
                After::Keep => {}
                after => break after,
            }
        }
    };
    if after == After::Reset {
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    } else {
        // Bytes on their way must arrive before the end.
        stream.shutdown().await?;
    }
    Ok(())
}

/// The end of a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Sends one chunk of a body.
///
/// # Errors
/// When the client is gone.
pub async fn write_chunk(write: &mut WriteHalf<'_>, chunk: &[u8]) -> io::Result<()> {
    let size = format!("{:x}\r\n", chunk.len());
    write.write_all(size.as_bytes()).await?;
    write.write_all(chunk).await?;
    write.write_all(b"\r\n").await
}

/// Waits until the peer closes or resets.
async fn left(wire: &mut Wire<ReadHalf<'_>>) {
    while matches!(wire.fill().await, Ok(true)) {}
}
