// SPDX-License-Identifier: Apache-2.0
//! HTTP/2 frames as bytes, for clients that send frames which no library sends (RFC 9113, RFC 7541).

use crate::PATIENCE;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Types of frames.
pub mod kind {
    #![allow(missing_docs)]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
}

/// `END_STREAM`
pub const END_STREAM: u8 = 1;
/// `END_HEADERS`
pub const END_HEADERS: u8 = 4;
/// A field that repeats the newest one of the dynamic table, in one byte.
pub const NEWEST: u8 = 0xbe;

/// A connection on which frames are sent as given.
pub struct Frames {
    stream: TcpStream,
    /// Bytes that have been sent.
    pub sent: usize,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Type of the frame.
    pub kind: u8,
    /// Flags of the frame.
    pub flags: u8,
    /// Stream of the frame.
    pub stream: u32,
    /// Payload of the frame.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Makes a frame.
    #[must_use]
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            flags,
            stream,
            payload: payload.into(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[self.kind, self.flags]].concat();
        [&head[..], &self.stream.to_be_bytes(), &self.payload].concat()
    }
}

/// A string without Huffman coding.
fn string(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.len());
    if rest < 127 {
        bytes.push(u8::try_from(rest).unwrap());
    } else {
        bytes.push(127);
        rest -= 127;
        while rest >= 128 {
            bytes.push(u8::try_from(rest % 128).unwrap() | 128);
            rest /= 128;
        }
        bytes.push(u8::try_from(rest).unwrap());
    }
    bytes.extend(text.as_bytes());
    bytes
}

/// A field that is not added to the dynamic table.
#[must_use]
pub fn literal(name: &str, value: &str) -> Vec<u8> {
    [vec![0], string(name), string(value)].concat()
}

/// A field that becomes the newest one of the dynamic table.
#[must_use]
pub fn indexed(name: &str, value: &str) -> Vec<u8> {
    [vec![0x40], string(name), string(value)].concat()
}

/// The pseudo-header fields of a GET.
#[must_use]
pub fn get(path: &str) -> Vec<u8> {
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "edge.test"),
        (":path", path),
    ];
    fields.map(|(name, value)| literal(name, value)).concat()
}

impl Frames {
    /// Connects, with these settings.
    ///
    /// # Panics
    /// When no server listens.
    pub async fn connect(address: SocketAddr, settings: &[u8]) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut frames = Self { stream, sent: 0 };
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        frames.stream.write_all(preface).await.unwrap();
        frames.sent += preface.len();
        let settings = Frame::new(kind::SETTINGS, 0, 0, settings);
        assert!(frames.send(&settings).await);
        frames
    }

    /// Sends a frame. False when the connection is gone.
    pub async fn send(&mut self, frame: &Frame) -> bool {
        let bytes = frame.bytes();
        self.sent += bytes.len();
        self.stream.write_all(&bytes).await.is_ok()
    }

    /// Sends the headers of a request that ends with them. False when the connection is gone.
    pub async fn request(&mut self, stream: u32, headers: &[u8]) -> bool {
        let flags = END_STREAM | END_HEADERS;
        self.send(&Frame::new(kind::HEADERS, flags, stream, headers))
            .await
    }

    /// The next frame; `None` when the connection has ended.
    ///
    /// # Panics
    /// When no frame arrives for long.
    pub async fn next(&mut self) -> Option<Frame> {
        let read = async {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).await.ok()?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            Some(Frame::new(head[3], head[4], stream, payload))
        };
        tokio::time::timeout(PATIENCE, read).await.expect("a frame")
    }

    /// Reads frames until one fits, and returns all of them.
    pub async fn until(&mut self, fits: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            let last = fits(&frame);
            frames.push(frame);
            if last {
                break;
            }
        }
        frames
    }
}
