// SPDX-License-Identifier: Apache-2.0
//! The requests to the entry point's own servers: one on each connection, with bounds on its size and its time.

use std::io::{self, BufRead, Read};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bound on the head of a request, in bytes.
const MAX_HEAD: u64 = 16 << 10;
/// Bound on the fields of a request.
const MAX_FIELDS: usize = 64;
/// Bound on the body of a request, in bytes.
const MAX_BODY: usize = 1 << 20;

/// The head of a request (RFC 9112, section 2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The method.
    pub method: String,
    /// The target: a path and a query.
    pub target: String,
    /// The names and values of the fields, in their order.
    pub fields: Vec<(String, String)>,
}

impl RequestHead {
    /// Reads a head. `None`: the client has closed the connection without one.
    ///
    /// # Errors
    /// `InvalidData`: the head is too long or not HTTP. Other kinds: the connection has failed.
    pub fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        let mut reader = reader.take(MAX_HEAD);
        while !head.ends_with(b"\r\n\r\n") {
            if reader.read_until(b'\n', &mut head)? == 0 {
                return match head.as_slice() {
                    [] => Ok(None),
                    _ => Err(invalid("a call without an end")),
                };
            }
        }
        Self::parse(&head).map(Some)
    }

    fn parse(head: &[u8]) -> io::Result<Self> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let parsed = request.parse(head);
        parsed.map_err(|error| invalid(&format!("a call that is not HTTP: {error}")))?;
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let fields = request.headers.iter();
        Ok(Self {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            fields: fields
                .map(|field| (field.name.to_owned(), text(field.value)))
                .collect(),
        })
    }

    /// Reads the body, which is empty if the head has no length.
    ///
    /// # Errors
    /// The length is too large or not a number, or the connection has failed.
    pub fn read_body(&self, reader: &mut impl Read) -> io::Result<Vec<u8>> {
        let length = match self.field("content-length") {
            Some(length) => length.parse().ok(),
            None => Some(0),
        };
        let length: usize = length.ok_or_else(|| invalid("a call without a length"))?;
        if length > MAX_BODY {
            return Err(invalid("a call that is too long"));
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(body)
    }

    /// The value of the first field with this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// A connection whose reads can be bounded in time.
pub trait TimedConnection {
    /// Bounds the time of each read.
    ///
    /// # Errors
    /// The system refuses.
    fn bound_reads(&self, time: Duration) -> io::Result<()>;
}

impl TimedConnection for TcpStream {
    fn bound_reads(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))
    }
}

impl TimedConnection for UnixStream {
    fn bound_reads(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))
    }
}

/// A reader of a connection until a point in time.
#[derive(Debug)]
pub struct ReaderUntil<'a, C> {
    connection: &'a C,
    time: Duration,
    /// `None` until the first byte arrives.
    end: Option<Instant>,
}

impl<'a, C> ReaderUntil<'a, C> {
    /// A reader for this time from now on.
    pub fn from_now(connection: &'a C, time: Duration) -> Self {
        Self {
            connection,
            time,
            end: Some(Instant::now() + time),
        }
    }

    /// A reader for this time from the first byte on, which may arrive at any time.
    pub const fn from_first_byte(connection: &'a C, time: Duration) -> Self {
        Self {
            connection,
            time,
            end: None,
        }
    }
}

impl<C: TimedConnection> Read for ReaderUntil<'_, C>
where
    for<'a> &'a C: Read,
{
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        if let Some(end) = self.end {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.connection.bound_reads(left)?;
        }
        let mut connection = self.connection;
        let length = connection.read(part)?;
        self.end.get_or_insert_with(|| Instant::now() + self.time);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(call: &str) -> io::Result<(RequestHead, Vec<u8>)> {
        let mut reader = call.as_bytes();
        let head = RequestHead::read(&mut reader)?.unwrap();
        let body = head.read_body(&mut reader)?;
        Ok((head, body))
    }

    #[test]
    fn a_request_is_read_with_its_fields_and_its_body() {
        let (head, body) =
            read("POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}rest").unwrap();
        assert_eq!(
            (head.method.as_str(), head.target.as_str()),
            ("POST", "/a?b=c")
        );
        assert_eq!(
            (head.field("host"), body.as_slice()),
            (Some("x"), &b"{}"[..])
        );
        let (_, body) = read("GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(body.is_empty());
    }

    #[test]
    fn a_request_that_is_too_long_or_not_http_is_refused() {
        let length = MAX_BODY + 1;
        let long_head = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(16 << 10));
        let long_body = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
        for (call, reason) in [
            (long_head.as_str(), "a call without an end"),
            (&long_body, "a call that is too long"),
            (
                "POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
                "a call without a length",
            ),
            ("nonsense\r\n\r\n", "a call that is not HTTP: invalid token"),
        ] {
            let refused = read(call).map(|_| ()).unwrap_err();
            assert!(refused.to_string().starts_with(reason), "{refused}");
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_silent_client_ends_the_reading_in_time() {
        let (client, server) = UnixStream::pair().unwrap();
        let mut reader =
            io::BufReader::new(ReaderUntil::from_now(&server, Duration::from_millis(20)));
        assert!(RequestHead::read(&mut reader).is_err());
        drop(client);
    }
}
