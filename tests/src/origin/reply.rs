// SPDX-License-Identifier: Apache-2.0
//! A scripted response: its content, its time, and its end.

use crate::http::body;
use crate::http::message::Framing;
use crate::server::gate::Gate;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

/// Content of a response's body.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// A stamped body, see [`body`].
    Stamped(usize),
    Bytes(Vec<u8>),
    /// This many zeros, made as they are sent.
    Zeros(usize),
}

impl Content {
    pub fn len(&self) -> usize {
        match self {
            Self::Stamped(size) | Self::Zeros(size) => *size,
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Makes a part of the body of response number `sequence` for `target`.
    pub fn payload(&self, target: &str, sequence: u64, bytes: Range<usize>) -> Payload {
        match self {
            Self::Stamped(size) => Payload::Bytes(body::part(target, sequence, *size, bytes)),
            Self::Bytes(all) => Payload::Bytes(all[bytes].to_vec()),
            Self::Zeros(_) => Payload::Zeros(bytes.len()),
        }
    }
}

/// The bytes of a response's body.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    Bytes(Vec<u8>),
    Zeros(usize),
}

impl Payload {
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Zeros(size) => *size,
        }
    }

    pub fn piece(&self, from: usize, to: usize) -> Cow<'_, [u8]> {
        match self {
            Self::Bytes(bytes) => Cow::Borrowed(&bytes[from..to]),
            Self::Zeros(_) => Cow::Owned(vec![0; to - from]),
        }
    }
}

/// How a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Complete,
    ResetBeforeHead,
    /// RST after this many bytes of body.
    ResetAfter(usize),
    /// The connection is closed, in order, after this many bytes of body.
    CloseAfter(usize),
}

/// A scripted response.
#[derive(Clone)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) trailers: String,
    /// Fields whose values may be any bytes, behind `headers` and `Date`.
    pub(super) fields: Vec<(String, Vec<u8>)>,
    pub(super) content: Content,
    pub(super) framing: Framing,
    pub(super) delay: Duration,
    pub(super) before_head: Option<Gate>,
    pub(super) in_body: Option<(usize, Gate)>,
    pub(super) ending: Ending,
    pub(super) pace: Option<(usize, Duration)>,
    pub(super) ranges: bool,
    pub(super) dated: bool,
    /// The number in the stamp of all responses, in place of the number of each.
    pub(super) version: Option<u64>,
}

impl Reply {
    /// Makes a stamped body of `size` bytes with this status.
    #[must_use]
    pub fn new(status: u16, size: usize) -> Self {
        Self {
            status,
            headers: Vec::new(),
            trailers: String::new(),
            fields: Vec::new(),
            content: Content::Stamped(size),
            framing: Framing::Length(0),
            delay: Duration::ZERO,
            before_head: None,
            in_body: None,
            ending: Ending::Complete,
            pace: None,
            ranges: false,
            dated: true,
            version: None,
        }
    }

    /// Makes a 200 with a stamped body of `size` bytes.
    #[must_use]
    pub fn ok(size: usize) -> Self {
        Self::new(200, size)
    }

    /// Makes a response with this status and a small stamped body.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::new(status, 100)
    }

    /// Makes a 200 with exactly these bytes.
    #[must_use]
    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Self {
            content: Content::Bytes(text.into()),
            ..Self::ok(body::STAMP)
        }
    }

    /// Makes a 200 with this many zeros, which may be any number.
    #[must_use]
    pub fn zeros(size: usize) -> Self {
        Self {
            content: Content::Zeros(size),
            ..Self::ok(body::STAMP)
        }
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Removes the body (for 204 and 304, or an empty 200).
    #[must_use]
    pub fn empty(self) -> Self {
        Self {
            content: Content::Bytes(Vec::new()),
            ..self
        }
    }

    /// Adds a field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Makes the response chunked, with a trailer field.
    #[must_use]
    pub fn trailer(mut self, name: &str, value: &str) -> Self {
        let _ = write!(self.trailers, "{name}: {value}\r\n");
        self.chunked()
    }

    /// Adds a field whose value may be any bytes, behind the others and `Date`.
    #[must_use]
    pub fn header_bytes(mut self, name: &str, value: &[u8]) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds `Cache-Control: max-age=…`.
    #[must_use]
    pub fn max_age(self, seconds: u32) -> Self {
        self.header("cache-control", &format!("max-age={seconds}"))
    }

    /// Adds an `ETag`, in quotes; requests with this tag in `If-None-Match` get a 304.
    #[must_use]
    pub fn etag(self, tag: &str) -> Self {
        self.header("etag", &format!("\"{tag}\""))
    }

    /// Answers `Range: bytes=A-B` and `A-` with 206.
    #[must_use]
    pub fn ranges(self) -> Self {
        Self {
            ranges: true,
            ..self.header("accept-ranges", "bytes")
        }
    }

    /// Makes all responses parts of one version of an object, with its number in the stamp and in a strong `ETag`. A
    /// request with another tag in `If-Match` gets a 412.
    #[must_use]
    pub fn version(self, number: u64) -> Self {
        Self {
            version: Some(number),
            ..self.etag(&format!("v{number}")).ranges()
        }
    }

    /// Sends the body chunked instead of with a length.
    #[must_use]
    pub fn chunked(self) -> Self {
        Self {
            framing: Framing::Chunked,
            ..self
        }
    }

    /// Sends the body neither chunked nor with a length: it ends with the connection.
    #[must_use]
    pub fn until_close(self) -> Self {
        Self {
            framing: Framing::Close,
            ..self
        }
    }

    /// Waits this long before it sends the first byte.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Holds the whole response until `gate` opens.
    #[must_use]
    pub fn hold(self, gate: &Gate) -> Self {
        Self {
            before_head: Some(gate.clone()),
            ..self
        }
    }

    /// Sends the head and `bytes` of the body, then holds the rest until `gate` opens.
    #[must_use]
    pub fn hold_after(self, bytes: usize, gate: &Gate) -> Self {
        Self {
            in_body: Some((bytes, gate.clone())),
            ..self
        }
    }

    /// Sends the body in pieces of `bytes`, one each `every`.
    #[must_use]
    pub fn pace(self, bytes: usize, every: Duration) -> Self {
        Self {
            pace: Some((bytes, every)),
            ..self
        }
    }

    /// Resets the connection instead of answering.
    #[must_use]
    pub fn reset(self) -> Self {
        Self {
            ending: Ending::ResetBeforeHead,
            ..self
        }
    }

    /// Resets the connection after the head and `bytes` of the body.
    #[must_use]
    pub fn reset_after(self, bytes: usize) -> Self {
        Self {
            ending: Ending::ResetAfter(bytes),
            ..self
        }
    }

    /// Closes the connection after the head and `bytes` of the body.
    #[must_use]
    pub fn close_after(self, bytes: usize) -> Self {
        Self {
            ending: Ending::CloseAfter(bytes),
            ..self
        }
    }

    /// Value of a field that was added.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        let field = fields.find(|(known, _)| known == name);
        field.map(|(_, value)| value.as_str())
    }

    /// Leaves out `Date`.
    #[must_use]
    pub fn undated(self) -> Self {
        Self {
            dated: false,
            ..self
        }
    }
}
