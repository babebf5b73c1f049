// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.1 messages as they are on the wire, read from any reader.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Fields in the order in which they arrived, with names as they were spelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// The first field of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All fields of that name.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let name = name.to_owned();
        self.0
            .iter()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(&name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether there is a field whose name has this prefix, such as `x-amz-`.
    #[must_use]
    pub fn any_with_prefix(&self, prefix: &str) -> bool {
        self.0
            .iter()
            .any(|(name, _)| name.to_ascii_lowercase().starts_with(prefix))
    }

    /// The number in a field.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.trim().parse().ok()
    }

    fn chunked(&self) -> bool {
        self.get("transfer-encoding")
            .is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked"))
    }
}

/// The bytes of a text in which each character stands for a byte.
///
/// # Panics
/// When a character is above 255.
#[must_use]
pub fn latin_1(text: &str) -> Vec<u8> {
    let byte = |character| u8::try_from(character).expect("a byte");
    text.chars().map(byte).collect()
}

/// The start line and the fields of a request or a response.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The first line, without its end.
    pub start: String,
    /// The fields.
    pub headers: Headers,
}

impl Head {
    /// The n-th word of the first line.
    #[must_use]
    pub fn word(&self, n: usize) -> &str {
        self.start.split(' ').nth(n).unwrap_or_default()
    }

    /// How the body that follows a request's head is delimited.
    #[must_use]
    pub fn request_framing(&self) -> Framing {
        if self.headers.chunked() {
            Framing::Chunked
        } else {
            Framing::Length(self.headers.number("content-length").unwrap_or(0))
        }
    }

    /// How the body that follows a response's head is delimited.
    #[must_use]
    pub fn response_framing(&self, request_method: &str) -> Framing {
        let status = self.word(1);
        if request_method == "HEAD" || matches!(status, "204" | "304") || status.starts_with('1') {
            Framing::Length(0)
        } else if self.headers.chunked() {
            Framing::Chunked
        } else {
            self.headers
                .number("content-length")
                .map_or(Framing::Close, Framing::Length)
        }
    }

    fn parse(bytes: &[u8]) -> io::Result<Self> {
        let bad = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
        let mut lines = text.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let mut headers = Headers::default();
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| bad(format!("no field in {line:?}")))?;
            headers.0.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok(Self { start, headers })
    }
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After this many bytes.
    Length(usize),
    /// After the last chunk.
    Chunked,
    /// At the end of the connection.
    Close,
}

/// A buffered reader of messages.
#[derive(Debug)]
pub struct Wire<R> {
    inner: R,
    pending: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Wire<R> {
    /// Reads messages from `inner`.
    pub const fn new(inner: R) -> Self {
        Self {
            inner,
            pending: Vec::new(),
        }
    }

    /// The reader inside.
    pub const fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// The reader inside. Buffered bytes are lost.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// Waits for more bytes and keeps them; `false` at the end.
    ///
    /// # Errors
    /// Those of the reader.
    pub async fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        let n = self.inner.read(&mut chunk).await?;
        self.pending.extend_from_slice(&chunk[..n]);
        Ok(n > 0)
    }

    async fn need(&mut self) -> io::Result<()> {
        if self.fill().await? {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    async fn until(&mut self, end: &[u8]) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            let found = self.pending[searched..]
                .windows(end.len())
                .position(|window| window == end);
            if let Some(at) = found {
                let rest = self.pending.split_off(searched + at + end.len());
                let mut taken = std::mem::replace(&mut self.pending, rest);
                taken.truncate(searched + at);
                return Ok(taken);
            }
            searched = self.pending.len().saturating_sub(end.len() - 1);
            self.need().await?;
        }
    }

    /// Reads a head; `None` when the peer closed between two messages.
    ///
    /// # Errors
    /// When the peer closes or resets within the head, or the bytes are not HTTP.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        if self.pending.is_empty() && !self.fill().await? {
            return Ok(None);
        }
        Head::parse(&self.until(b"\r\n\r\n").await?).map(Some)
    }

    /// Reads up to `limit` bytes, at least one; empty at the end.
    ///
    /// # Errors
    /// Those of the reader.
    pub async fn some(&mut self, limit: usize) -> io::Result<Vec<u8>> {
        if self.pending.is_empty() {
            self.fill().await?;
        }
        let rest = self.pending.split_off(limit.min(self.pending.len()));
        Ok(std::mem::replace(&mut self.pending, rest))
    }

    async fn exactly(&mut self, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            let some = self.some(left).await?;
            if some.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= some.len();
            into.extend_from_slice(&some);
        }
        Ok(())
    }

    /// Reads a body to its end into `into`, which has the received part even if the rest is not received.
    ///
    /// # Errors
    /// When the peer closes or resets before the end, or the chunks are malformed.
    pub async fn body(&mut self, framing: Framing, into: &mut Vec<u8>) -> io::Result<()> {
        match framing {
            Framing::Length(length) => self.exactly(length, into).await,
            Framing::Chunked => loop {
                let size = self.until(b"\r\n").await?;
                let size = String::from_utf8_lossy(&size).into_owned();
                let size =
                    usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)
                        .map_err(|_| {
                            io::Error::new(
                                io::ErrorKind::InvalidData,
                                format!("chunk size {size:?}"),
                            )
                        })?;
                self.exactly(size, into).await?;
                // Trailers follow the last chunk, and end with an empty line.
                while !self.until(b"\r\n").await?.is_empty() && size == 0 {}
                if size == 0 {
                    return Ok(());
                }
            },
            Framing::Close => loop {
                let some = self.some(usize::MAX).await?;
                if some.is_empty() {
                    return Ok(());
                }
                into.extend_from_slice(&some);
            },
        }
    }
}
