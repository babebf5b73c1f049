// SPDX-License-Identifier: Apache-2.0
//! The requests that a server has received: an origin, or the proxy in front of MinIO.

use crate::PATIENCE;
use crate::http::message::{Head, Headers};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::watch;

/// A request as it was received.
#[derive(Clone, Debug)]
pub struct Request {
    /// GET, HEAD and so on.
    pub method: String,
    /// The target exactly as in the first line.
    pub target: String,
    /// The fields.
    pub headers: Headers,
    /// The body, where the server has kept it.
    pub body: Vec<u8>,
    /// Time at which its head was received.
    pub at: Instant,
    /// Whether its response ended as scripted.
    pub state: State,
}

/// Progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Still held or being answered.
    Open,
    /// Answered to the scripted end.
    Done,
    /// The peer left before its response was complete.
    Abandoned,
}

/// All requests of one server, in order.
#[derive(Clone, Default)]
pub struct Requests(Arc<Log>);

struct Log {
    seen: Mutex<Vec<Request>>,
    changes: watch::Sender<()>,
    forgets: AtomicBool,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            seen: Mutex::default(),
            changes: watch::channel(()).0,
            forgets: AtomicBool::new(false),
        }
    }
}

impl Requests {
    /// Records a request; the number names it in [`Requests::end`].
    pub fn begin(&self, head: &Head) -> usize {
        self.begin_with(head, Vec::new())
    }

    /// Records a request with the bytes after its head.
    pub fn begin_with(&self, head: &Head, body: Vec<u8>) -> usize {
        if self.0.forgets.load(Ordering::Relaxed) {
            return usize::MAX;
        }
        let mut seen = self.0.seen.lock().unwrap();
        seen.push(Request {
            method: head.word(0).to_owned(),
            target: head.word(1).to_owned(),
            headers: head.headers.clone(),
            body,
            at: Instant::now(),
            state: State::Open,
        });
        let number = seen.len() - 1;
        drop(seen);
        self.0.changes.send_replace(());
        number
    }

    /// Records no requests from now on.
    pub fn forget(&self) {
        self.0.forgets.store(true, Ordering::Relaxed);
    }

    /// Records how a request ended.
    pub fn end(&self, number: usize, state: State) {
        // A reset of the log forgets requests that are under way.
        if let Some(request) = self.0.seen.lock().unwrap().get_mut(number) {
            request.state = state;
        }
        self.0.changes.send_replace(());
    }

    /// A copy of all requests.
    #[must_use]
    pub fn all(&self) -> Vec<Request> {
        self.0.seen.lock().unwrap().clone()
    }

    /// The requests for one target.
    #[must_use]
    pub fn of(&self, target: &str) -> Vec<Request> {
        self.all()
            .into_iter()
            .filter(|request| request.target == target)
            .collect()
    }

    /// Number of requests that satisfy `test`.
    pub fn matching(&self, test: impl Fn(&Request) -> bool) -> usize {
        self.0
            .seen
            .lock()
            .unwrap()
            .iter()
            .filter(|request| test(request))
            .count()
    }

    /// Number of requests for a target.
    #[must_use]
    pub fn count(&self, target: &str) -> usize {
        self.matching(|request| request.target == target)
    }

    /// Number of all requests.
    #[must_use]
    pub fn total(&self) -> usize {
        self.matching(|_| true)
    }

    /// Waits until `count` requests for a target have arrived.
    ///
    /// # Panics
    /// When they have not within [`PATIENCE`].
    pub async fn wait_for(&self, target: &str, count: usize) {
        self.wait_until(&format!("{count} requests for {target}"), |seen| {
            seen.iter()
                .filter(|request| request.target == target)
                .count()
                >= count
        })
        .await;
    }

    /// Waits until the peer has left `count` requests for a target.
    ///
    /// # Panics
    /// When they were not within [`PATIENCE`].
    pub async fn wait_abandoned(&self, target: &str, count: usize) {
        self.wait_until(
            &format!("{count} abandoned requests for {target}"),
            |seen| {
                seen.iter()
                    .filter(|request| request.target == target && request.state == State::Abandoned)
                    .count()
                    >= count
            },
        )
        .await;
    }

    /// Waits until the log satisfies `test`.
    ///
    /// # Panics
    /// When it does not within [`PATIENCE`].
    pub async fn wait_until(&self, what: &str, test: impl Fn(&[Request]) -> bool) {
        let mut changes = self.0.changes.subscribe();
        let met = tokio::time::timeout(PATIENCE, async {
            while !test(&self.0.seen.lock().unwrap()) {
                let _ = changes.changed().await;
            }
        })
        .await
        .is_ok();
        assert!(
            met,
            "{what}: not within {PATIENCE:?}; seen: {}",
            self.summary()
        );
    }

    /// A line about the requests, for a message.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut counts = std::collections::BTreeMap::<String, usize>::new();
        for request in self.all() {
            *counts
                .entry(format!(
                    "{} {} {:?}",
                    request.method, request.target, request.state
                ))
                .or_default() += 1;
        }
        let lines: Vec<_> = counts
            .iter()
            .take(20)
            .map(|(what, n)| format!("{n}x {what}"))
            .collect();
        if lines.is_empty() {
            "nothing".to_owned()
        } else {
            lines.join(", ")
        }
    }
}
