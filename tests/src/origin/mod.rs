// SPDX-License-Identifier: Apache-2.0
//! A scriptable HTTP/1.1 origin: its responses, their times and failures, and the requests that it received.

mod answer;
mod reply;

pub use reply::Reply;

use crate::machine::ports::{free_port, loopback};
use crate::server::Server;
use crate::server::exchange;
use crate::server::requests::Requests;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

struct Script {
    /// A path, or the beginning of many with `*` at its end.
    pattern: String,
    replies: Vec<Reply>,
    used: usize,
}

#[derive(Default)]
struct Shared {
    scripts: Mutex<Vec<Script>>,
    requests: Requests,
    sequence: AtomicU64,
    /// Number of body bytes that the kernel has accepted.
    bytes: AtomicU64,
}

impl Shared {
    /// The script of this path, else of the longest pattern that fits.
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
    /// When no socket can be created.
    #[must_use]
    pub fn start() -> Self {
        Self::start_at(loopback(free_port()))
    }

    /// Starts at an address of this machine.
    ///
    /// # Panics
    /// When no socket can be created.
    #[must_use]
    pub fn start_at(address: SocketAddr) -> Self {
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        let server = Server::start_at("origin", address, move |stream, listening| {
            let served = Arc::clone(&served);
            async move { exchange::serve(stream, listening, &*served).await }
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

    /// Sets the reply for `pattern`: a path, or the beginning of many with `*` at its end.
    pub fn on(&self, pattern: &str, reply: Reply) -> &Self {
        self.on_each(pattern, [reply])
    }

    /// Sets replies for `pattern` that are sent one after the other; the last one stays.
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

    /// The requests that it received.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        &self.shared.requests
    }

    /// Stops recording requests, for a test that sends very many.
    pub fn forget_requests(&self) {
        self.requests().forget();
    }

    /// Number of requests for `target`.
    #[must_use]
    pub fn count(&self, target: &str) -> usize {
        self.requests().count(target)
    }

    /// Number of body bytes that it has sent.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Waits until `count` requests for `target` have arrived.
    pub async fn wait_for_requests(&self, target: &str, count: usize) {
        self.requests().wait_for(target, count).await;
    }

    /// Refuses connections (the port is closed) until [`Origin::listen`]. Open connections end with their response.
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
