// SPDX-License-Identifier: Apache-2.0
//! A distant server of large objects, which counts the requests and the bytes that it serves.

mod object;
mod selection;

pub use object::Object;

use selection::Selection;
use sluice_tests::http::http_date;
use sluice_tests::http::message::Head;
use sluice_tests::machine::ports::{free_port, loopback};
use sluice_tests::server::Server;
use sluice_tests::server::exchange::{self, After, Answering};
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::io::AsyncWriteExt as _;
use tokio::net::tcp::WriteHalf;
use tokio::time::Instant;

/// Time from a request to its response.
pub const DISTANCE: Duration = Duration::from_millis(30);
/// Rate of each response, in bytes a second.
pub const RATE: u64 = 80 << 20;

/// Size from which an object is not small.
pub const SMALL: u64 = 1 << 20;
/// Size of a write.
const WRITE: u64 = 64 << 10;

/// A running server. Any path `/SIZE/NAME` is an object of that size, with a strong entity tag, fresh for a day.
pub struct Archive {
    counters: Arc<Counters>,
    server: Server,
}

/// Requests and bytes that the server has served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// HEAD requests.
    pub heads: u64,
    /// All other requests.
    pub gets: u64,
    /// Requests among [`Self::gets`] for objects of less than [`SMALL`] bytes.
    pub small_gets: u64,
    /// Bytes of bodies that the kernel has accepted.
    pub bytes: u64,
}

#[derive(Default)]
struct Counters {
    heads: AtomicU64,
    gets: AtomicU64,
    small_gets: AtomicU64,
    bytes: AtomicU64,
}

/// A request and its response.
struct Answer {
    /// Whether the response has a body, if its status has one.
    with_body: bool,
    /// The object and the selected part; `None` for another path.
    found: Option<(Object, Selection)>,
}

impl Archive {
    /// Starts on a free loopback port.
    pub fn start() -> Self {
        let counters = Arc::new(Counters::default());
        let counted = counters.clone();
        let serve = move |stream, listening| {
            let counted = counted.clone();
            async move { exchange::serve(stream, listening, &*counted).await }
        };
        let server = Server::start_at("archive", loopback(free_port()), serve);
        Self { counters, server }
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Requests and bytes since the last call.
    pub fn take_counts(&self) -> Counts {
        let take = |count: &AtomicU64| count.swap(0, Ordering::SeqCst);
        Counts {
            heads: take(&self.counters.heads),
            gets: take(&self.counters.gets),
            small_gets: take(&self.counters.small_gets),
            bytes: take(&self.counters.bytes),
        }
    }
}

impl Answering for Counters {
    type Answer = Answer;

    fn begin(&self, request: Head, _: Vec<u8>) -> Answer {
        let with_body = request.word(0) != "HEAD";
        let count = if with_body { &self.gets } else { &self.heads };
        let object = Object::of(request.word(1));
        // A peer that starts is asked for other paths until it answers.
        if let Some(object) = &object {
            count.fetch_add(1, Ordering::SeqCst);
            let small = with_body && object.size < SMALL;
            let small_gets = &self.small_gets;
            small_gets.fetch_add(u64::from(small), Ordering::SeqCst);
        }
        let select = |object: Object| {
            let selection = Selection::of(&request.headers, &object);
            (object, selection)
        };
        Answer {
            with_body,
            found: object.map(select),
        }
    }

    async fn send(&self, answer: &Answer, write: &mut WriteHalf<'_>) -> io::Result<After> {
        tokio::time::sleep(DISTANCE).await;
        write.write_all(answer.head().as_bytes()).await?;
        let Some((object, selection)) = answer.found.as_ref().filter(|_| answer.with_body) else {
            return Ok(After::Keep);
        };
        let (began, first, end) = (Instant::now(), selection.bytes.start, selection.bytes.end);
        let mut position = first;
        while position < end {
            let piece = object.read(position, end.min(position + WRITE));
            write.write_all(&piece).await?;
            self.bytes.fetch_add(piece.len() as u64, Ordering::SeqCst);
            position += piece.len() as u64;
            tokio::time::sleep_until(began + time_of(position - first)).await;
        }
        Ok(After::Keep)
    }

    fn end(&self, _: &Answer, _: bool) {}
}

/// Time for this many bytes of a response.
fn time_of(bytes: u64) -> Duration {
    #[allow(clippy::cast_precision_loss)]
    Duration::from_secs_f64(bytes as f64 / RATE as f64)
}

impl Answer {
    fn head(&self) -> String {
        let date = http_date(SystemTime::now());
        let Some((object, Selection { status, bytes })) = &self.found else {
            return format!("HTTP/1.1 404 Not Found\r\ndate: {date}\r\ncontent-length: 0\r\n\r\n");
        };
        let mut head = format!(
            "HTTP/1.1 {status} Archive\r\ndate: {date}\r\netag: {}\r\naccept-ranges: bytes\r\n\
             cache-control: max-age=86400\r\nlast-modified: Wed, 01 Jan 2020 00:00:00 GMT\r\n\
             content-type: application/octet-stream\r\n",
            object.tag()
        );
        match status {
            206 => {
                let (first, last, size) = (bytes.start, bytes.end - 1, object.size);
                let _ = write!(head, "content-range: bytes {first}-{last}/{size}\r\n");
            }
            416 => {
                let _ = write!(head, "content-range: bytes */{}\r\n", object.size);
            }
            _ => {}
        }
        if *status != 304 {
            let _ = write!(head, "content-length: {}\r\n", bytes.end - bytes.start);
        }
        head.push_str("\r\n");
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_tests::client::{Client, request};
    use tokio::runtime::Builder;

    #[test]
    fn parts_of_a_huge_object_are_its_bytes_and_are_counted() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let archive = Archive::start();
            let object = Object::new("a", 5_000_000_000);
            let mut client = Client::connect(archive.address()).await;
            let head = request("HEAD", &object.path, &[]);
            let head = client.exchange(head).await;
            assert_eq!(head.header("content-length"), "5000000000");
            assert_eq!(head.header("etag"), object.tag());
            let range = [("range", "bytes=4000000000-4000000999")];
            let part = client.exchange(request("GET", &object.path, &range)).await;
            assert_eq!((part.status, part.body.len()), (206, 1_000));
            let range = "bytes 4000000000-4000000999/5000000000";
            assert_eq!(part.header("content-range"), range);
            assert!(object.has(4_000_000_000, &part.body));
            assert_eq!(client.get("/").await.status, 404);
            let counts = Counts {
                heads: 1,
                gets: 1,
                small_gets: 0,
                bytes: 1_000,
            };
            assert_eq!(archive.take_counts(), counts);
            let small = Object::new("small", SMALL - 1);
            assert_eq!(client.get(&small.path).await.status, 200);
            assert_eq!(archive.take_counts().small_gets, 1);
            assert_eq!(archive.take_counts(), Counts::default());
        });
    }

    #[test]
    fn a_response_has_its_distance_and_its_rate() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let archive = Archive::start();
            let object = Object::new("a", 8 << 20);
            let began = Instant::now();
            let mut client = Client::connect(archive.address()).await;
            let whole = client.get(&object.path).await;
            assert!(began.elapsed() >= DISTANCE + time_of(object.size - WRITE));
            assert!(whole.first_byte >= DISTANCE);
            assert!(object.has(0, &whole.body) && whole.body.len() as u64 == object.size);
        });
    }
}
