// SPDX-License-Identifier: Apache-2.0
//! A client that reads an object, or a part of it, and compares each byte with the object's.

use crate::origins::archive::Object;
use sluice_tests::client::http2::{Http2, Stream};
use sluice_tests::client::{Client, request};
use sluice_tests::http::message::Headers;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Bytes that a client takes from its connection at once.
const TAKE: usize = 64 << 10;

/// A response that is being read.
pub struct Reader {
    source: Source,
    object: Object,
    /// The bytes of the object that are still to be read.
    left: Range<u64>,
    sent: Instant,
}

enum Source {
    Http1(Box<Client>),
    Http2(Box<Stream>),
}

/// A whole response: its times, from sending its request, and its size.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// To the first byte of its body.
    pub first_byte: Duration,
    /// To its end.
    pub took: Duration,
    /// Size of its body in bytes.
    pub bytes: u64,
}

impl Reader {
    /// Asks for a part of the object over HTTP/1.1, and reads the head of the response.
    ///
    /// # Errors
    /// What is wrong with the response, or why there is none.
    pub async fn http1(
        mut client: Client,
        object: &Object,
        part: &Range<u64>,
    ) -> Result<Self, String> {
        let sent = Instant::now();
        let range = range_field(object, part);
        let fields = range.iter().map(|range| ("range", range.as_str()));
        let ask = request("GET", &object.path, &fields.collect::<Vec<_>>());
        client
            .send(ask)
            .await
            .map_err(|failure| failure.to_string())?;
        let (_, response) = client.head().await.map_err(|failure| failure.to_string())?;
        check(response.status, &response.headers, range.is_some(), part)?;
        Ok(Self::of(
            Source::Http1(Box::new(client)),
            object,
            part,
            sent,
        ))
    }

    /// Asks for a part of the object on a connection of HTTP/2, and reads the head of the response.
    ///
    /// # Errors
    /// What is wrong with the response, or why there is none.
    pub async fn http2(
        connection: &Http2,
        object: &Object,
        part: &Range<u64>,
    ) -> Result<Self, String> {
        let sent = Instant::now();
        let range = range_field(object, part);
        let fields: Vec<_> = range
            .iter()
            .map(|range| ("range", range.as_str()))
            .collect();
        let stream = connection.start("GET", &object.path, &fields).await;
        let mut stream = stream.map_err(|error| error.to_string())?;
        let (status, headers) = stream.head().await.map_err(|error| error.to_string())?;
        check(status, &headers, range.is_some(), part)?;
        Ok(Self::of(
            Source::Http2(Box::new(stream)),
            object,
            part,
            sent,
        ))
    }

    fn of(source: Source, object: &Object, part: &Range<u64>, sent: Instant) -> Self {
        Self {
            source,
            object: object.clone(),
            left: part.clone(),
            sent,
        }
    }

    /// Reads the next bytes, and returns their number; 0 at the end.
    ///
    /// # Errors
    /// If they are not the object's, or if the response ends before all were read.
    pub async fn next(&mut self) -> Result<u64, String> {
        let left = self.left.end - self.left.start;
        if left == 0 {
            return Ok(0);
        }
        let bytes = match &mut self.source {
            Source::Http1(client) => {
                let limit = TAKE.min(usize::try_from(left).unwrap_or(TAKE));
                let some = client.some(limit).await;
                some.map_err(|failure| failure.to_string())?
            }
            Source::Http2(stream) => stream.read(1).await.map_err(|error| error.to_string())?,
        };
        let position = self.left.start;
        if bytes.is_empty() {
            return Err(format!("ended at byte {position}"));
        }
        if !self.object.has(position, &bytes) {
            return Err(format!("wrong bytes at {position}"));
        }
        self.left.start += bytes.len() as u64;
        Ok(bytes.len() as u64)
    }

    /// Reads to the end.
    ///
    /// # Errors
    /// If the bytes are not the object's, or if the response ends before all were read.
    pub async fn read(mut self) -> Result<Read, String> {
        let bytes = self.left.end - self.left.start;
        self.next().await?;
        let first_byte = self.sent.elapsed();
        while self.next().await? > 0 {}
        Ok(Read {
            first_byte,
            took: self.sent.elapsed(),
            bytes,
        })
    }

    /// Reads at least this many bytes, and then resets the connection.
    ///
    /// # Errors
    /// If the bytes are not the object's, or if the response ends before.
    pub async fn leave_after(mut self, bytes: u64) -> Result<(), String> {
        let end = self.left.start + bytes;
        while self.left.start < end {
            self.next().await?;
        }
        match self.source {
            Source::Http1(client) => client.reset(),
            Source::Http2(stream) => drop(stream),
        }
        Ok(())
    }
}

/// `Range` for a part; `None` for the whole.
fn range_field(object: &Object, part: &Range<u64>) -> Option<String> {
    match (part.start, part.end) {
        (0, end) if end == object.size => None,
        (start, end) if end == object.size => Some(format!("bytes={start}-")),
        (start, end) => Some(format!("bytes={start}-{}", end - 1)),
    }
}

/// Checks the head of a response with this part.
fn check(status: u16, headers: &Headers, is_part: bool, part: &Range<u64>) -> Result<(), String> {
    let expected = if is_part { 206 } else { 200 };
    if status != expected {
        return Err(format!("status {status}"));
    }
    let length = (part.end - part.start).to_string();
    match headers.get("content-length") {
        Some(given) if given != length => Err(format!("{given} bytes, not {length}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_asked_for_as_players_do() {
        let object = Object::new("a", 1_000);
        let field = |part| range_field(&object, &part);
        assert_eq!(field(0..1_000), None);
        assert_eq!(field(10..1_000).as_deref(), Some("bytes=10-"));
        assert_eq!(field(0..1).as_deref(), Some("bytes=0-0"));
        assert_eq!(field(10..20).as_deref(), Some("bytes=10-19"));
    }

    #[test]
    fn another_status_or_length_is_wrong() {
        let headers =
            |length: &str| Headers(vec![("content-length".to_owned(), length.to_owned())]);
        assert_eq!(check(206, &headers("10"), true, &(10..20)), Ok(()));
        assert_eq!(check(200, &Headers(Vec::new()), false, &(0..20)), Ok(()));
        assert_eq!(
            check(200, &headers("1000"), true, &(10..20)),
            Err("status 200".to_owned())
        );
        assert_eq!(
            check(206, &headers("9"), true, &(10..20)),
            Err("9 bytes, not 10".to_owned())
        );
    }
}
