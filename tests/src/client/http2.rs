// SPDX-License-Identifier: Apache-2.0
//! An HTTP/2 client (prior knowledge) that can reset a stream at any point.

use crate::PATIENCE;
use crate::http::message::{Headers, latin_1};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// One connection.
pub struct Http2 {
    requests: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

/// A request that has been sent.
pub struct Stream {
    response: ResponseFuture,
    send: SendStream<Bytes>,
    body: Option<RecvStream>,
}

impl Http2 {
    /// Connects.
    ///
    /// # Panics
    /// When the server does not speak HTTP/2.
    pub async fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address)
            .await
            .unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    /// Connects.
    ///
    /// # Errors
    /// When no server listens, or the server does not speak HTTP/2.
    pub async fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Self::over(stream).await
    }

    /// Starts HTTP/2 on a stream.
    ///
    /// # Errors
    /// When the server does not.
    pub async fn over<T>(stream: T) -> io::Result<Self>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (requests, connection) = h2::client::handshake(stream)
            .await
            .map_err(io::Error::other)?;
        let driver = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { requests, driver })
    }

    /// Sends a request without a body.
    ///
    /// # Errors
    /// When the connection is gone.
    ///
    /// # Panics
    /// When the request is not valid.
    pub async fn start(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Stream, h2::Error> {
        self.begin(method, target, headers, true).await
    }

    /// Sends the headers of a request, which ends with them if `ends`.
    ///
    /// # Errors
    /// When the connection is gone.
    ///
    /// # Panics
    /// When the request is not valid.
    pub async fn begin(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        ends: bool,
    ) -> Result<Stream, h2::Error> {
        // If the target is absolute, it has its own scheme.
        let uri = match target.starts_with('/') {
            true => format!("http://edge.test{target}"),
            false => target.to_owned(),
        };
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, latin_1(value));
        }
        let mut requests = self.requests.clone().ready().await?;
        let (response, send) = requests.send_request(request.body(()).expect("a request"), ends)?;
        Ok(Stream {
            response,
            send,
            body: None,
        })
    }

    /// Sends a GET, and reads the response to its end.
    ///
    /// # Errors
    /// When the stream or the connection is reset.
    ///
    /// # Panics
    /// When no response arrives.
    pub async fn get(&self, target: &str) -> Result<(u16, Headers, Vec<u8>), h2::Error> {
        self.send("GET", target, &[]).await
    }

    /// Sends a request without a body, and reads the response to its end.
    ///
    /// # Errors
    /// When the stream or the connection is reset.
    ///
    /// # Panics
    /// When no response arrives.
    pub async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<(u16, Headers, Vec<u8>), h2::Error> {
        let mut stream = self.start(method, target, headers).await?;
        let whole = async {
            let (status, headers) = stream.head().await?;
            Ok((status, headers, stream.read(usize::MAX).await?))
        };
        tokio::time::timeout(PATIENCE, whole)
            .await
            .unwrap_or_else(|_| panic!("{target}: no response"))
    }

    /// Drops the connection without a GOAWAY frame.
    pub fn abort(self) {
        self.driver.abort();
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Stream {
    /// Waits for the head.
    ///
    /// # Errors
    /// When the stream is reset.
    pub async fn head(&mut self) -> Result<(u16, Headers), h2::Error> {
        let response = (&mut self.response).await?;
        let fields = response.headers().iter();
        let fields = fields.map(|(name, value)| {
            let value = value.as_bytes().iter();
            (
                name.to_string(),
                value.map(|&byte| char::from(byte)).collect(),
            )
        });
        let headers = Headers(fields.collect());
        let status = response.status().as_u16();
        self.body = Some(response.into_body());
        Ok((status, headers))
    }

    /// Reads at least `least` bytes of body, or the body to its end.
    ///
    /// # Errors
    /// When the stream is reset.
    ///
    /// # Panics
    /// When the head has not been read.
    pub async fn read(&mut self, least: usize) -> Result<Vec<u8>, h2::Error> {
        let body = self.body.as_mut().expect("the head comes first");
        let mut read = Vec::new();
        while read.len() < least {
            let Some(data) = body.data().await else { break };
            let data = data?;
            body.flow_control().release_capacity(data.len())?;
            read.extend_from_slice(&data);
        }
        Ok(read)
    }

    /// Sends a part of the request's body; the body ends with it if `ends`.
    ///
    /// # Errors
    /// When the stream is reset.
    pub fn send_body(&mut self, part: &'static [u8], ends: bool) -> Result<(), h2::Error> {
        self.send.send_data(Bytes::from_static(part), ends)
    }

    /// Ends the request with trailers.
    ///
    /// # Errors
    /// When the stream is reset.
    ///
    /// # Panics
    /// Never: the trailers have one line.
    pub fn send_trailers(&mut self) -> Result<(), h2::Error> {
        let line = http::HeaderMap::from_iter([(
            http::header::HeaderName::from_static("x-trailer"),
            http::header::HeaderValue::from_static("1"),
        )]);
        self.send.send_trailers(line)
    }

    /// Sends RST_STREAM.
    pub fn reset(mut self, reason: Reason) {
        self.send.send_reset(reason);
    }
}
