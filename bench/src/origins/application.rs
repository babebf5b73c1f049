// SPDX-License-Identifier: Apache-2.0
//! An application that is slow by itself: each page takes 120 ms of CPU time, one page at a time, so that there are
//! eight a second at most.

use crate::origins::feed::feed;
use sluice_tests::origin::http_date;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// What rendering a page takes.
pub const RENDERING: Duration = Duration::from_millis(120);
/// A page without a validator.
pub const PAGE: &str = "/page";
/// The same page with an `ETag`, by which the application knows that nothing has changed, and need not render.
pub const VALIDATED: &str = "/validated";

const TAG: &str = "\"1\"";

/// A running one, which ends when it is dropped, each of its connections with its peer.
pub struct Application {
    address: SocketAddr,
    desk: Arc<Desk>,
    accepting: Option<JoinHandle<()>>,
}

/// What its connections share.
struct Desk {
    /// Who renders.
    renderer: Mutex<()>,
    page: Vec<u8>,
    rendered: AtomicUsize,
    unchanged: AtomicUsize,
    ending: AtomicBool,
}

impl Application {
    /// Starts it.
    ///
    /// # Panics
    /// When it cannot listen on loopback.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let desk = Arc::new(Desk {
            renderer: Mutex::new(()),
            page: feed(),
            rendered: AtomicUsize::new(0),
            unchanged: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
        });
        let serving = desk.clone();
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.ending.load(Ordering::SeqCst) {
                    return;
                }
                let desk = serving.clone();
                // Ends with the connection, which is another's affair.
                std::thread::spawn(move || desk.serve(stream));
            }
        });
        Self {
            address,
            desk,
            accepting: Some(accepting),
        }
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many pages it has rendered, and how often it has said that nothing has changed, since this was asked before.
    pub fn take_counts(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        (take(&self.desk.rendered), take(&self.desk.unchanged))
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.desk.ending.store(true, Ordering::SeqCst);
        // The thread looks when somebody comes.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Desk {
    /// Answers what comes on a connection until it ends.
    fn serve(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Ok(mut writer) = stream.try_clone() else {
            return;
        };
        let mut reader = BufReader::new(stream);
        while let Some(head) = head(&mut reader) {
            if writer.write_all(&self.answer(&head)).is_err() {
                return;
            }
        }
    }

    fn answer(&self, head: &str) -> Vec<u8> {
        let head = head.to_ascii_lowercase();
        let date = http_date(SystemTime::now());
        let validated = head.starts_with(&format!("get {VALIDATED} "));
        let tag = if validated {
            format!("etag: {TAG}\r\n")
        } else {
            String::new()
        };
        let known = |line: &str| line.starts_with("if-none-match:") && line.contains(TAG);
        if validated && head.lines().any(known) {
            self.unchanged.fetch_add(1, Ordering::SeqCst);
            return format!("HTTP/1.1 304 Not Modified\r\ndate: {date}\r\n{tag}\r\n").into_bytes();
        }
        if !validated && !head.starts_with(&format!("get {PAGE} ")) {
            return format!("HTTP/1.1 404 Not Found\r\ndate: {date}\r\ncontent-length: 0\r\n\r\n")
                .into_bytes();
        }
        self.render();
        let head = format!(
            "HTTP/1.1 200 OK\r\ndate: {date}\r\ncontent-type: application/json\r\n{tag}content-length: {}\r\n\r\n",
            self.page.len()
        );
        [head.as_bytes(), &self.page].concat()
    }

    /// Takes [`RENDERING`] of this thread's CPU time, when nobody else renders.
    fn render(&self) {
        let _rendering = self.renderer.lock().unwrap_or_else(PoisonError::into_inner);
        let end = thread_time() + RENDERING;
        while thread_time() < end {
            for _ in 0..20 {
                std::hint::black_box(self.page.iter().map(|&byte| u64::from(byte)).sum::<u64>());
            }
        }
        self.rendered.fetch_add(1, Ordering::SeqCst);
    }
}

/// The lines of a request without a body, up to the empty one; nothing at the end of the connection.
fn head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    loop {
        let before = head.len();
        reader.read_line(&mut head).ok().filter(|&read| read > 0)?;
        if head[before..].trim_end().is_empty() {
            return Some(head);
        }
    }
}

/// The CPU time that this thread has taken.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat");
    let text = text.expect("a kernel that keeps account of threads");
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_tests::client::{Client, request};
    use std::time::Instant;
    use tokio::runtime::Builder;

    #[test]
    fn pages_are_rendered_one_at_a_time_and_what_has_not_changed_is_not() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let application = Application::start();
            let mut clients = Vec::new();
            for _ in 0..2 {
                clients.push(Client::connect(application.address()).await);
            }
            let began = Instant::now();
            let answers = clients.into_iter().map(|mut client| {
                tokio::spawn(async move {
                    let response = client.get(VALIDATED).await;
                    (client, response)
                })
            });
            let answers: Vec<_> = answers.collect();
            for answer in answers {
                let (mut client, response) = answer.await.unwrap();
                assert_eq!(
                    (response.status, response.body.len()),
                    (200, crate::origins::feed::SIZE)
                );
                let known = [("If-None-Match", "W/\"1\"")];
                let again = client.exchange(request("GET", VALIDATED, &known)).await;
                assert_eq!(again.status, 304);
            }
            assert!(began.elapsed() >= 2 * RENDERING);
            assert_eq!(application.take_counts(), (2, 2));
        });
    }
}
