// SPDX-License-Identifier: Apache-2.0
//! A slow application: each page takes 120 ms of CPU time, one page at a time, so it serves at most eight a second.

use crate::origins::feed::feed;
use crate::origins::responder::Responder;
use sluice_tests::http::http_date;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// CPU time to render a page.
pub const RENDERING: Duration = Duration::from_millis(120);
/// A page without a validator.
pub const PAGE: &str = "/page";
/// The same page with an `ETag`. If it matches, the application does not render, and answers with status 304.
pub const VALIDATED: &str = "/validated";

const TAG: &str = "\"1\"";

/// A running application.
pub struct Application {
    desk: Arc<Desk>,
    responder: Responder,
}

/// The state that its connections share.
struct Desk {
    /// Held by the connection that renders.
    renderer: Mutex<()>,
    page: Vec<u8>,
    rendered: AtomicUsize,
    unchanged: AtomicUsize,
}

impl Application {
    /// Starts the application.
    pub fn start() -> Self {
        let desk = Arc::new(Desk {
            renderer: Mutex::new(()),
            page: feed(),
            rendered: AtomicUsize::new(0),
            unchanged: AtomicUsize::new(0),
        });
        let serving = desk.clone();
        let responder = Responder::start(move |head| serving.answer(head));
        Self { desk, responder }
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.responder.address
    }

    /// Number of rendered pages, and of responses with status 304, since the last call.
    pub fn take_counts(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        (take(&self.desk.rendered), take(&self.desk.unchanged))
    }
}

impl Desk {
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

    /// Takes [`RENDERING`] of this thread's CPU time, while no other thread renders.
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

/// CPU time of this thread so far.
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
