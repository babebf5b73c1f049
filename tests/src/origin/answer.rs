// SPDX-License-Identifier: Apache-2.0
//! Sending of a scripted response.

use super::Shared;
use super::reply::{Ending, Payload, Reply};
use crate::http::http_date;
use crate::http::message::{Framing, Head};
use crate::server::exchange::{After, Answering, LAST_CHUNK, write_chunk};
use crate::server::requests::State;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::io::AsyncWriteExt as _;
use tokio::net::tcp::WriteHalf;

/// A request and its response.
pub struct Answer {
    /// The number of the request.
    number: usize,
    /// The number of the response.
    sequence: u64,
    request: Head,
    reply: Reply,
}

/// The part of the object for a request: a status, and which bytes.
struct Part {
    status: u16,
    bytes: Range<usize>,
}

impl Answering for Shared {
    type Answer = Answer;

    fn begin(&self, request: Head, body: Vec<u8>) -> Answer {
        Answer {
            number: self.requests.begin_with(&request, body),
            reply: self.reply(request.word(1)),
            sequence: self.sequence.fetch_add(1, Ordering::Relaxed),
            request,
        }
    }

    async fn send(&self, answer: &Answer, write: &mut WriteHalf<'_>) -> io::Result<After> {
        let reply = &answer.reply;
        tokio::time::sleep(reply.delay).await;
        if let Some(gate) = &reply.before_head {
            gate.pass().await;
        }
        if reply.ending == Ending::ResetBeforeHead {
            return Ok(After::Reset);
        }
        let part = answer.part();
        write.write_all(&answer.head(&part)).await?;
        if answer.request.word(0) == "HEAD" || part.is_bodiless() {
            let closes = reply.framing == Framing::Close && !part.is_bodiless();
            return Ok(if closes { After::Close } else { After::Keep });
        }
        // Made only now, because a large body takes a while.
        let sequence = reply.version.unwrap_or(answer.sequence);
        let target = answer.request.word(1);
        let payload = reply.content.payload(target, sequence, part.bytes);
        send_body(write, reply, &payload, &self.bytes).await
    }

    fn end(&self, answer: &Answer, sent: bool) {
        let state = if sent { State::Done } else { State::Abandoned };
        self.requests.end(answer.number, state);
    }
}

impl Part {
    const fn is_bodiless(&self) -> bool {
        matches!(self.status, 204 | 304)
    }
}

impl Answer {
    fn part(&self) -> Part {
        let (reply, whole) = (&self.reply, self.reply.content.len());
        let asked = |name| self.request.headers.get(name);
        let is_known = |tag: &str| asked("if-none-match").is_some_and(|tags| tags.contains(tag));
        if reply.status == 200 && reply.field("etag").is_some_and(is_known) {
            return Part {
                status: 304,
                bytes: 0..whole,
            };
        }
        let is_wanted = |tag: &str| asked("if-match").is_none_or(|tags| tags.contains(tag));
        if reply.version.is_some() && !reply.field("etag").is_some_and(is_wanted) {
            return Part {
                status: 412,
                bytes: 0..0,
            };
        }
        let range = asked("range").filter(|_| reply.ranges);
        match range.and_then(|field| range_of(field, whole)) {
            Some(bytes) => Part { status: 206, bytes },
            None => Part {
                status: reply.status,
                bytes: 0..whole,
            },
        }
    }

    fn head(&self, part: &Part) -> Vec<u8> {
        let Part { status, bytes } = part;
        let mut head = format!("HTTP/1.1 {status} Scripted\r\n").into_bytes();
        let mut add = |name: &str, value: &[u8]| {
            head.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        };
        // A 304 describes a body that an earlier response had.
        if *status != 304 {
            add("x-origin-sequence", self.sequence.to_string().as_bytes());
        }
        for (name, value) in &self.reply.headers {
            add(name, value.as_bytes());
        }
        if *status == 206 {
            let whole = self.reply.content.len();
            let range = format!("bytes {}-{}/{whole}", bytes.start, bytes.end - 1);
            add("content-range", range.as_bytes());
        }
        if self.reply.dated {
            add("date", http_date(SystemTime::now()).as_bytes());
        }
        for (name, value) in &self.reply.fields {
            add(name, value);
        }
        match self.reply.framing {
            _ if part.is_bodiless() => {}
            Framing::Length(_) => add("content-length", bytes.len().to_string().as_bytes()),
            Framing::Chunked => add("transfer-encoding", b"chunked"),
            Framing::Close => add("connection", b"close"),
        }
        head.extend(b"\r\n");
        head
    }
}

async fn send_body(
    write: &mut WriteHalf<'_>,
    reply: &Reply,
    content: &Payload,
    bytes: &AtomicU64,
) -> io::Result<After> {
    let (end, after) = match reply.ending {
        Ending::ResetAfter(bytes) => (bytes, After::Reset),
        Ending::CloseAfter(bytes) => (bytes, After::Close),
        _ if reply.framing == Framing::Close => (content.len(), After::Close),
        _ => (content.len(), After::Keep),
    };
    let end = end.min(content.len());
    let (piece, every) = reply.pace.unwrap_or((64 * 1024, Duration::ZERO));
    let mut sent = 0;
    let mut held = reply.in_body.as_ref();
    loop {
        if let Some((_, gate)) = held.take_if(|(at, _)| sent >= *at) {
            gate.pass().await;
        }
        if sent >= end {
            break;
        }
        let stop = held.map_or(end, |(at, _)| (*at).min(end)).min(sent + piece);
        let part = &*content.piece(sent, stop);
        bytes.fetch_add(part.len() as u64, Ordering::Relaxed);
        if reply.framing == Framing::Chunked {
            write_chunk(write, part).await?;
        } else {
            write.write_all(part).await?;
        }
        sent = stop;
        if sent < end && !every.is_zero() {
            tokio::time::sleep(every).await;
        }
    }
    if reply.framing == Framing::Chunked && after == After::Keep {
        let (end, line_end) = LAST_CHUNK.split_at(LAST_CHUNK.len() - 2);
        write.write_all(end).await?;
        write.write_all(reply.trailers.as_bytes()).await?;
        write.write_all(line_end).await?;
    }
    Ok(after)
}

/// The range of `bytes=A-B` or `bytes=A-`, if it fits.
fn range_of(field: &str, size: usize) -> Option<Range<usize>> {
    let (from, to) = field.strip_prefix("bytes=")?.split_once('-')?;
    let from: usize = from.parse().ok()?;
    let to = if to.is_empty() {
        size.checked_sub(1)?
    } else {
        to.parse().ok()?
    };
    (from <= to && to < size).then_some(from..to + 1)
}
