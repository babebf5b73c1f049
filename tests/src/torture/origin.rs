// SPDX-License-Identifier: Apache-2.0
//! The origin of a run: it answers at once, from the time alone, and fails as drawn.

use super::adornment::{self, REQUEST_BYTES};
use super::ask::{PADDING, PADDINGS};
use super::clock::Clock;
use super::fault::{Fault, REFUSED};
use super::feed::{self, Page};
use super::fetches::{Ending, Fetch, Fetches, Server, Slice};
use super::object::{Kind, Object, VARIES_BY};
use super::skew::Skew;
use crate::chance::rng::{Rng, mix};
use crate::http::http_date;
use crate::http::message::{Head, latin_1};
use crate::server;
use crate::server::exchange::{self, After, Answering, LAST_CHUNK, write_chunk};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::AsyncWriteExt as _;
use tokio::net::tcp::WriteHalf;

/// Size of the pieces of a body, unless its object has a pace.
const PIECE: usize = 32 * 1024;
/// The name of the field with the version.
pub const VERSION: &str = "x-version";
/// The name of the field with the number of the fetch.
pub const FETCH: &str = "x-fetch";
/// The name of the field with the requested variant.
pub const VARIANT: &str = "x-answers";

/// The objects of the origin, and its record of requests.
pub struct Shelf {
    /// The time.
    pub clock: Clock,
    /// Seed of the random numbers.
    pub seed: u64,
    /// All objects.
    pub objects: Vec<Object>,
    /// All requests.
    pub fetches: Fetches,
    /// The purge feed.
    pub feed: Page,
    /// The clock of the origin.
    pub skew: Skew,
}

impl Shelf {
    /// The shelf of a run whose origin fails, or does not.
    #[must_use]
    pub fn new(seed: u64, faults: bool) -> Self {
        Self {
            clock: Clock::start(),
            seed,
            objects: Object::all(faults),
            fetches: Fetches::default(),
            feed: Page::default(),
            skew: Skew::default(),
        }
    }
}

/// A port of the origin, for one edge.
struct Port {
    shelf: Arc<Shelf>,
    edge: usize,
    server: Server,
}

/// Starts a port of one of the origins, for the edge of this number.
#[must_use]
pub fn start(shelf: &Arc<Shelf>, edge: usize, server: Server) -> server::Server {
    let shelf = Arc::clone(shelf);
    server::Server::start("torture", move |stream, listening| {
        let port = Port {
            shelf: Arc::clone(&shelf),
            edge,
            server,
        };
        async move { exchange::serve(stream, listening, &port).await }
    })
}

/// The response to one request.
pub struct Answer {
    about: About,
    head: Vec<u8>,
    bytes: Vec<u8>,
    chunked: bool,
    pace: Option<(usize, Duration)>,
    fault: Option<Fault>,
}

/// The subject of a request.
#[derive(Clone, Copy)]
enum About {
    /// The fetch of this number.
    Fetch(usize),
    /// The feed up to this line.
    Feed(u64),
}

/// A request, and the object at that moment.
struct Question<'a> {
    object: &'a Object,
    variant: String,
    version: u64,
    /// `Last-Modified`
    modified: String,
    /// Whether the client's version is the current one.
    valid: bool,
    /// Whether the request asks for a body.
    body: bool,
    /// The requested part, if it is not the whole body.
    part: Option<Range<usize>>,
    /// Whether the request is for another version only (RFC 9110, 13.1.1).
    failed: bool,
    /// The number of the fetch.
    number: usize,
    /// The time by the origin's clock.
    date: SystemTime,
}

impl Question<'_> {
    /// The head of a response without a fault, except the empty line at its end.
    fn head(&self) -> String {
        let Self {
            object, version, ..
        } = *self;
        let status = match object.kind {
            _ if self.failed => 412,
            _ if self.valid => 304,
            _ if self.part.is_some() => 206,
            Kind::Missing => 404,
            _ => 200,
        };
        let mut head = begin(status, self.date);
        head.push_str(&format!("cache-control: {}\r\n", object.cache_control()));
        if object.expires {
            let expires = http_date(self.date + Duration::from_secs(object.lifetime));
            head.push_str(&format!("expires: {expires}\r\n"));
        }
        match object.etag(version) {
            Some(tag) => head.push_str(&format!("etag: {tag}\r\n")),
            None => head.push_str(&format!("last-modified: {}\r\n", self.modified)),
        }
        if object.kind == Kind::Varying {
            head.push_str(&format!("vary: {VARIES_BY}\r\n"));
        }
        let adorned = object.adornment.map(|kind| kind.of_response(version));
        for (name, value) in adorned.into_iter().flatten() {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.failed {
            return head + "content-length: 0\r\n";
        }
        if self.valid {
            return head;
        }
        let (number, variant) = (self.number, &self.variant);
        head.push_str(&format!(
            "{VERSION}: {version}\r\n{FETCH}: {number}\r\n{VARIANT}: {variant}\r\n"
        ));
        if object.kind == Kind::SetCookie {
            head.push_str(&format!("set-cookie: visitor={number}\r\n"));
        }
        if object.chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        } else {
            let size = object.size(version);
            if let Some(Range { start, end }) = self.part {
                let last = end - 1;
                head.push_str(&format!("content-range: bytes {start}-{last}/{size}\r\n"));
            }
            let length = self.range().len();
            head.push_str(&format!("content-length: {length}\r\n"));
        }
        head.push_str("accept-ranges: bytes\r\n");
        head
    }

    const fn has_body(&self) -> bool {
        self.body && !self.valid && !self.failed
    }

    fn bytes(&self) -> Vec<u8> {
        if !self.has_body() {
            return Vec::new();
        }
        let content = self.object.content(&self.variant, self.version);
        content.slice(self.range())
    }

    /// The range of the object that is sent.
    fn range(&self) -> Range<usize> {
        let all = 0..self.object.size(self.version);
        self.part.clone().unwrap_or(all)
    }
}

/// The bytes of `bytes=FIRST-LAST` in a body of this size.
fn bytes_of(range: &str, size: usize) -> Option<Range<usize>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let range = first.parse().ok()?..size.min(last.parse::<usize>().ok()? + 1);
    (!range.is_empty()).then_some(range)
}

/// The beginning of a response.
fn begin(status: u16, date: SystemTime) -> String {
    let date = http_date(date);
    format!("HTTP/1.1 {status} Torture\r\ndate: {date}\r\n")
}

impl Shelf {
    fn question(&self, head: &Head, (edge, server): (usize, Server)) -> Question<'_> {
        let now = self.clock.now();
        let path = head.word(1);
        let found = self.objects.iter().position(|object| object.path == path);
        let index = found.unwrap_or_else(|| panic!("nobody asks for {path}"));
        let object = &self.objects[index];
        let asked = |name| head.headers.get(name);
        let variant = asked(VARIES_BY).unwrap_or_default().to_owned();
        let version = object.version(now);
        let modified = http_date(self.clock.date(object.since(version)));
        let valid = match object.etag(version) {
            Some(tag) => asked("if-none-match").is_some_and(|tags| tags.contains(&tag)),
            None => asked("if-modified-since") == Some(&modified),
        };
        let body = head.word(0) == "GET";
        let tag = object.etag(version);
        // The edge asks for a slice of the version that it knows.
        let is_slice = body && asked("if-match").is_some();
        let failed = is_slice && asked("if-match") != tag.as_deref();
        let part = asked("range").filter(|_| is_slice && !failed);
        let part = part.and_then(|range| bytes_of(range, object.size(version)));
        let first = part.as_ref().map(|part| part.start);
        let conditions = ["if-none-match", "if-modified-since"];
        let varies = object.kind == Kind::Varying;
        let date = self.skew.now();
        let number = self.fetches.begin(Fetch {
            object: index,
            version,
            date,
            edge,
            server,
            variant: if varies {
                variant.clone()
            } else {
                String::new()
            },
            slice: first.map(|first| Slice { version, first }),
            body,
            alone: failed
                || asked(PADDING).is_some_and(|padding| padding.len() >= PADDINGS[1])
                || asked(adornment::NAME).is_some_and(|value| value.len() >= REQUEST_BYTES),
            conditional: conditions.iter().any(|name| asked(name).is_some()),
            unchanged: valid,
            begun: now,
            ended: (Ending::Open, now),
            fault: None,
        });
        Question {
            object,
            variant,
            version,
            modified,
            valid,
            body,
            part,
            failed,
            number,
            date,
        }
    }

    /// Records the fault that a response is about to get.
    fn fail(&self, answer: &Answer) -> After {
        let Some(fault) = answer.fault else {
            return After::Keep;
        };
        if let About::Fetch(number) = answer.about {
            self.fetches.fail(number, fault, self.clock.now());
        }
        match fault {
            Fault::Error(_) | Fault::Refused => After::Keep,
            Fault::Fin(_) => After::Close,
            Fault::Rst(_) | Fault::Reset => After::Reset,
        }
    }

    /// The response with an object.
    fn answer(&self, head: &Head, from: (usize, Server)) -> Answer {
        let question = self.question(head, from);
        let Question { object, number, .. } = question;
        let size = question.range().len();
        let bodiless = !question.has_body();
        let mut rng = Rng::new(self.seed ^ mix(number as u64));
        let padded = head.headers.get(PADDING).is_some();
        let fault = Fault::draw(object, size, padded, &mut rng);
        let fault = fault.filter(|fault| !(fault.cuts() && bodiless));
        let (head, bytes) = match fault {
            Some(Fault::Error(status)) => {
                let fields = format!("{FETCH}: {number}\r\ncontent-length: 0\r\n");
                (begin(status, question.date) + &fields, Vec::new())
            }
            // The response says that it may be stored, but it must not be.
            Some(Fault::Refused) => {
                let fields = format!(
                    "{FETCH}: {number}\r\ncache-control: max-age=60\r\ncontent-length: 0\r\n"
                );
                (begin(REFUSED, question.date) + &fields, Vec::new())
            }
            _ => (question.head(), question.bytes()),
        };
        Answer {
            about: About::Fetch(number),
            head: latin_1(&(head + "\r\n")),
            chunked: object.chunked && !bytes.is_empty(),
            bytes,
            pace: object.pace,
            fault,
        }
    }

    /// The response with the feed.
    fn feed(&self, head: &Head) -> Answer {
        let (text, newest) = self.feed.text();
        let tag = format!("\"{newest}\"");
        let is_known = head.headers.get("if-none-match") == Some(&tag);
        let (status, bytes) = match is_known {
            true => (304, Vec::new()),
            false => (200, text.into_bytes()),
        };
        let mut fields = begin(status, self.skew.now()) + &format!("etag: {tag}\r\n");
        if !is_known {
            fields.push_str(&format!("content-length: {}\r\n", bytes.len()));
        }
        Answer {
            about: About::Feed(newest),
            head: latin_1(&(fields + "\r\n")),
            bytes,
            chunked: false,
            pace: None,
            fault: None,
        }
    }
}

impl Answering for Port {
    type Answer = Answer;

    fn begin(&self, head: Head, _body: Vec<u8>) -> Answer {
        match head.word(1) {
            feed::PATH => self.shelf.feed(&head),
            _ => self.shelf.answer(&head, (self.edge, self.server)),
        }
    }

    async fn send(&self, answer: &Answer, write: &mut WriteHalf<'_>) -> io::Result<After> {
        if matches!(
            answer.fault,
            Some(Fault::Reset | Fault::Error(_) | Fault::Refused)
        ) {
            let after = self.shelf.fail(answer);
            if after == After::Keep {
                write.write_all(&answer.head).await?;
            }
            return Ok(after);
        }
        write.write_all(&answer.head).await?;
        let end = match answer.fault {
            Some(Fault::Fin(end) | Fault::Rst(end)) => end,
            _ => answer.bytes.len(),
        };
        let (piece, every) = answer.pace.unwrap_or((PIECE, Duration::ZERO));
        for (count, part) in answer.bytes[..end].chunks(piece).enumerate() {
            if count > 0 {
                tokio::time::sleep(every).await;
            }
            if answer.chunked {
                write_chunk(write, part).await?;
            } else {
                write.write_all(part).await?;
            }
        }
        let after = self.shelf.fail(answer);
        if answer.chunked && after == After::Keep {
            write.write_all(LAST_CHUNK).await?;
        }
        Ok(after)
    }

    fn end(&self, answer: &Answer, sent: bool) {
        let ending = if sent { Ending::Sent } else { Ending::Left };
        let shelf = &self.shelf;
        match answer.about {
            About::Fetch(number) => shelf.fetches.end(number, ending, shelf.clock.now()),
            About::Feed(newest) if sent => shelf.feed.note_reading(self.edge, newest),
            About::Feed(_) => {}
        }
    }
}
