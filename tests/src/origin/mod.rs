// SPDX-License-Identifier: Apache-2.0
//! A scriptable HTTP/1.1 origin: what it answers, when, how it fails, and what it was asked.

use crate::http::body;
use crate::http::message::{Framing, Head, Wire};
use crate::server::gate::Gate;
use crate::server::requests::{Requests, State};
use crate::server::{Listening, Server};
use socket2::SockRef;
use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

/// What is in an answer's body.
#[derive(Clone, Debug)]
enum Content {
    /// A stamped body, see [`body`].
    Stamped(usize),
    Bytes(Vec<u8>),
    /// So many zeros, made as they are sent.
    Zeros(usize),
}

impl Content {
    fn len(&self) -> usize {
        match self {
            Self::Stamped(size) | Self::Zeros(size) => *size,
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// What answer number `sequence` for `target` has of it.
    fn payload(&self, target: &str, sequence: u64) -> Payload {
        match self {
            Self::Stamped(size) => Payload::Bytes(body::make(target, sequence, *size)),
            Self::Bytes(bytes) => Payload::Bytes(bytes.clone()),
            Self::Zeros(size) => Payload::Zeros(*size),
        }
    }
}

/// The bytes of one answer's body.
#[derive(Clone, Debug)]
enum Payload {
    Bytes(Vec<u8>),
    Zeros(usize),
}

impl Payload {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Zeros(size) => *size,
        }
    }

    fn slice(&self, from: usize, to: usize) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes[from..to].to_vec()),
            Self::Zeros(_) => Self::Zeros(to - from),
        }
    }

    fn piece(&self, from: usize, to: usize) -> Cow<'_, [u8]> {
        match self {
            Self::Bytes(bytes) => Cow::Borrowed(&bytes[from..to]),
            Self::Zeros(_) => Cow::Owned(vec![0; to - from]),
        }
    }
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Complete,
    ResetBeforeHead,
    /// RST after so many bytes of body.
    ResetAfter(usize),
    /// The connection is closed, in order, after so many bytes of body.
    CloseAfter(usize),
}

/// One scripted answer.
#[derive(Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    content: Content,
    framing: Framing,
    delay: Duration,
    before_head: Option<Gate>,
    in_body: Option<(usize, Gate)>,
    ending: Ending,
    pace: Option<(usize, Duration)>,
    ranges: bool,
    dated: bool,
}

impl Reply {
    /// A stamped body of `size` bytes with this status.
    #[must_use]
    pub fn new(status: u16, size: usize) -> Self {
        Self {
            status,
            headers: Vec::new(),
            content: Content::Stamped(size),
            framing: Framing::Length(0),
            delay: Duration::ZERO,
            before_head: None,
            in_body: None,
            ending: Ending::Complete,
            pace: None,
            ranges: false,
            dated: true,
        }
    }

    /// 200 with a stamped body of `size` bytes.
    #[must_use]
    pub fn ok(size: usize) -> Self {
        Self::new(200, size)
    }

    /// A status with a small stamped body.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::new(status, 100)
    }

    /// 200 with exactly these bytes.
    #[must_use]
    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Self {
            content: Content::Bytes(text.into()),
            ..Self::ok(body::STAMP)
        }
    }

    /// 200 with so many zeros, however many that is.
    #[must_use]
    pub fn zeros(size: usize) -> Self {
        Self {
            content: Content::Zeros(size),
            ..Self::ok(body::STAMP)
        }
    }

    /// With another status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// No body at all (for 204 and 304, or an empty 200).
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

    /// `Cache-Control: max-age=…`
    #[must_use]
    pub fn max_age(self, seconds: u32) -> Self {
        self.header("cache-control", &format!("max-age={seconds}"))
    }

    /// An `ETag`, in quotes; requests whose `If-None-Match` has it get 304.
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

    /// Chunked instead of with a length.
    #[must_use]
    pub fn chunked(self) -> Self {
        Self {
            framing: Framing::Chunked,
            ..self
        }
    }

    /// Neither chunked nor with a length: the connection's end is the body's.
    #[must_use]
    pub fn until_close(self) -> Self {
        Self {
            framing: Framing::Close,
            ..self
        }
    }

    /// Waits so long before anything is sent.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Holds the whole answer until `gate` opens.
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

    /// Without `Date`.
    #[must_use]
    pub fn undated(self) -> Self {
        Self {
            dated: false,
            ..self
        }
    }
}

struct Script {
    /// A path, or the start of many with `*` at its end.
    pattern: String,
    replies: Vec<Reply>,
    used: usize,
}

#[derive(Default)]
struct Shared {
    scripts: Mutex<Vec<Script>>,
    requests: Requests,
    sequence: AtomicU64,
    /// Bytes of bodies, as far as the kernel has taken them.
    bytes: AtomicU64,
}

impl Shared {
    /// The script of that very path, else the longest pattern that fits.
    fn reply(&self, target: &str) -> Reply {
        let mut scripts = self.scripts.lock().unwrap();
        let fits = |script: &&mut Script| match script.pattern.strip_suffix('*') {
            Some(start) => target.starts_with(start),
            None => script.pattern == target,
        };
        let rank = |script: &&mut Script| (!script.pattern.ends_with('*'), script.pattern.len());
        let Some(script) = scripts.iter_mut().filter(fits).max_by_key(rank) else {
            return Reply::status(404);
        };
        script.used += 1;
        script.replies[(script.used - 1).min(script.replies.len() - 1)].clone()
    }
}

/// The origin. It listens from `start` on and ends when dropped.
pub struct Origin {
    shared: Arc<Shared>,
    server: Server,
}

impl Origin {
    /// Starts on a free loopback port; every path is 404 until scripted.
    ///
    /// # Panics
    /// When no socket is to be had.
    #[must_use]
    pub fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        let server = Server::start("origin", move |stream, listening| {
            let served = Arc::clone(&served);
            async move { connection(stream, &served, listening).await }
        });
        Self { shared, server }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// `http://HOST:PORT`
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Answers `pattern` so from now on: a path, or with `*` at its end the start of many.
    pub fn on(&self, pattern: &str, reply: Reply) -> &Self {
        self.on_each(pattern, [reply])
    }

    /// Answers `pattern` with one reply after the other; the last one stays.
    pub fn on_each(&self, pattern: &str, replies: impl IntoIterator<Item = Reply>) -> &Self {
        let replies: Vec<_> = replies.into_iter().collect();
        assert!(!replies.is_empty(), "{pattern} needs a reply");
        let mut scripts = self.shared.scripts.lock().unwrap();
        scripts.retain(|script| script.pattern != pattern);
        scripts.push(Script {
            pattern: pattern.to_owned(),
            replies,
            used: 0,
        });
        self
    }

    /// What it was asked.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        &self.shared.requests
    }

    /// Keeps no note of requests from now on, for a test that makes very many.
    pub fn forget_requests(&self) {
        self.requests().forget();
    }

    /// How many requests came for `target`.
    #[must_use]
    pub fn count(&self, target: &str) -> usize {
        self.requests().count(target)
    }

    /// How many bytes of bodies it has sent.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Waits until `count` requests have come for `target`.
    pub async fn wait_for_requests(&self, target: &str, count: usize) {
        self.requests().wait_for(target, count).await;
    }

    /// Refuses connections (the port is closed) until [`Origin::listen`]; those there are end with their answer.
    pub async fn refuse(&self) {
        self.server.set_listening(false).await;
    }

    /// Listens again on the same port.
    pub async fn listen(&self) {
        self.server.set_listening(true).await;
    }

    /// Waits until connections are accepted, after `start`.
    pub async fn ready(self) -> Self {
        self.server.set_listening(true).await;
        self
    }
}

/// What is to become of the connection after an answer.
enum After {
    Keep,
    Close,
    Reset,
}

async fn connection(
    mut stream: TcpStream,
    shared: &Shared,
    mut listening: Listening,
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
            let number = shared.requests.begin_with(&head, body);
            let reply = shared.reply(head.word(1));
            let sequence = shared.sequence.fetch_add(1, Ordering::Relaxed);
            let outcome = tokio::select! {
                outcome = answer(&mut write, &head, &reply, sequence, &shared.bytes) => outcome,
                () = left(&mut wire) => Err(io::ErrorKind::ConnectionReset.into()),
            };
            shared.requests.end(
                number,
                if outcome.is_ok() {
                    State::Done
                } else {
                    State::Abandoned
                },
            );
            match outcome? {
                After::Keep => {}
                after => break after,
            }
        }
    };
    if matches!(after, After::Reset) {
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    } else {
        // What is on its way must arrive before the end.
        stream.shutdown().await?;
    }
    Ok(())
}

/// Waits until the peer closes or resets.
pub(crate) async fn left(wire: &mut Wire<ReadHalf<'_>>) {
    while matches!(wire.fill().await, Ok(true)) {}
}

async fn answer(
    write: &mut WriteHalf<'_>,
    head: &Head,
    reply: &Reply,
    sequence: u64,
    bytes: &AtomicU64,
) -> io::Result<After> {
    tokio::time::sleep(reply.delay).await;
    if let Some(gate) = &reply.before_head {
        gate.pass().await;
    }
    if reply.ending == Ending::ResetBeforeHead {
        return Ok(After::Reset);
    }
    let whole = reply.content.len();
    let mut slice = 0..whole;
    let mut status = reply.status;
    let mut more = Vec::new();
    let etag = reply
        .headers
        .iter()
        .find(|(name, _)| name == "etag")
        .map(|(_, tag)| tag.as_str());
    let asked = |name| head.headers.get(name);
    if status == 200
        && etag.is_some_and(|tag| asked("if-none-match").is_some_and(|tags| tags.contains(tag)))
    {
        status = 304;
    } else if let Some((from, to)) = asked("range")
        .filter(|_| reply.ranges)
        .and_then(|r| range(r, whole))
    {
        status = 206;
        more.push((
            "content-range".to_owned(),
            format!("bytes {from}-{to}/{whole}"),
        ));
        slice = from..to + 1;
    }
    let bodiless = matches!(status, 204 | 304);
    let framing = if bodiless { None } else { Some(reply.framing) };
    let mut text = format!("HTTP/1.1 {status} Scripted\r\n");
    // A 304 is about a body that an earlier answer had.
    if status != 304 {
        text.push_str(&format!("x-origin-sequence: {sequence}\r\n"));
    }
    if reply.dated {
        more.push(("date".to_owned(), http_date(SystemTime::now())));
    }
    match framing {
        Some(Framing::Length(_)) => {
            more.push(("content-length".to_owned(), slice.len().to_string()))
        }
        Some(Framing::Chunked) => more.push(("transfer-encoding".to_owned(), "chunked".to_owned())),
        Some(Framing::Close) => more.push(("connection".to_owned(), "close".to_owned())),
        None => {}
    }
    for (name, value) in reply.headers.iter().chain(&more) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    write.write_all(text.as_bytes()).await?;
    if head.word(0) == "HEAD" || bodiless {
        return Ok(if framing == Some(Framing::Close) {
            After::Close
        } else {
            After::Keep
        });
    }
    // Made only now: a large body takes a while.
    let mut content = reply.content.payload(head.word(1), sequence);
    if slice.len() < whole {
        content = content.slice(slice.start, slice.end);
    }
    send_body(write, reply, &content, bytes).await
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
            write
                .write_all(format!("{:x}\r\n", part.len()).as_bytes())
                .await?;
            write.write_all(part).await?;
            write.write_all(b"\r\n").await?;
        } else {
            write.write_all(part).await?;
        }
        sent = stop;
        if sent < end && !every.is_zero() {
            tokio::time::sleep(every).await;
        }
    }
    if reply.framing == Framing::Chunked && matches!(after, After::Keep) {
        write.write_all(b"0\r\n\r\n").await?;
    }
    Ok(after)
}

/// `bytes=A-B` or `bytes=A-`, inclusive, when it fits.
fn range(field: &str, size: usize) -> Option<(usize, usize)> {
    let (from, to) = field.strip_prefix("bytes=")?.split_once('-')?;
    let from: usize = from.parse().ok()?;
    let to = if to.is_empty() {
        size.checked_sub(1)?
    } else {
        to.parse().ok()?
    };
    (from <= to && to < size).then_some((from, to))
}

/// The date in the form of RFC 9110, section 5.6.7.
#[must_use]
pub fn http_date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Civil from days, with years that begin in March.
    let z = days + 719_468;
    let (era, doe) = (z / 146_097, z % 146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + u64::from(month <= 2);
    let at = |names: &[&str], n: u64| names[usize::try_from(n).unwrap()].to_owned();
    let weekday = at(&["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"], days % 7);
    let month = at(
        &[
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ],
        month - 1,
    );
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        let date = |seconds| http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date(1_709_164_800), "Thu, 29 Feb 2024 00:00:00 GMT");
    }
}
