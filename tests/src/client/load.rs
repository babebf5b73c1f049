// SPDX-License-Identifier: Apache-2.0
//! Clients that send requests at a constant rate, even if responses are slow.
//!
//! A request's time counts from when it was due, not from when a connection was free for it. So a server that stands
//! still for a second delays all requests that were due in that second (no coordinated omission).

use crate::client::{Client, Response, request};
use crate::http::body;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Largest number of connections; further requests are sent late.
const CONNECTIONS: usize = 64;

/// The requests of a load.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Requests per second.
    pub rate: u32,
    /// The servers; each connection uses one of them, in turn.
    pub addresses: Vec<SocketAddr>,
    /// The targets of stamped bodies, in turn.
    pub targets: Vec<String>,
    /// Whether connections are kept for the next request.
    pub keeps_connections: bool,
}

/// One request.
#[derive(Clone, Debug)]
struct Sample {
    due: Instant,
    took: Duration,
    wrong: Option<String>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    next: AtomicUsize,
    samples: Mutex<Vec<Sample>>,
}

/// Load that continues until it is stopped.
pub struct Load {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Results of a load from some time on.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Number of requests that were due.
    pub requests: usize,
    /// Description of each failed request.
    pub failures: Vec<String>,
    times: Vec<Duration>,
}

impl Load {
    /// Starts the load on a new thread.
    ///
    /// # Panics
    /// When no thread can be started.
    #[must_use]
    pub fn start(plan: Plan) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(press(Arc::new(plan), theirs));
        };
        let thread = std::thread::Builder::new().name("load".to_owned());
        Self {
            shared,
            thread: Some(thread.spawn(run).unwrap()),
        }
    }

    /// Results of the requests that have been due since `since` and have been answered.
    ///
    /// # Panics
    /// When a client's task has panicked.
    #[must_use]
    pub fn since(&self, since: Instant) -> Seen {
        let samples = self.shared.samples.lock().unwrap();
        let samples = samples.iter().filter(|sample| sample.due >= since);
        let mut times: Vec<_> = samples.clone().map(|sample| sample.took).collect();
        times.sort();
        Seen {
            requests: times.len(),
            failures: samples.filter_map(|sample| sample.wrong.clone()).collect(),
            times,
        }
    }

    /// Waits until `count` more requests have been answered.
    pub async fn more(&self, count: usize) {
        let answered = || self.shared.samples.lock().unwrap().len();
        let enough = answered() + count;
        crate::eventually(&format!("{count} more requests"), async || {
            answered() >= enough
        })
        .await;
    }

    /// Ends the load when the requests under way have been answered.
    ///
    /// # Panics
    /// When a client's task has panicked.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "a client died");
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

impl Seen {
    /// The q-quantile (0 to 1) of the times from when a request was due to the end of its response.
    ///
    /// # Panics
    /// When there was no request.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    pub fn quantile(&self, q: f64) -> Duration {
        self.times[((self.times.len() - 1) as f64 * q).round() as usize]
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |q| self.quantile(q).as_secs_f64() * 1_000.0;
        write!(
            f,
            "{} requests, {} failed, P50 {:.1} ms, P99 {:.1} ms, maximum {:.1} ms",
            self.requests,
            self.failures.len(),
            milliseconds(0.5),
            milliseconds(0.99),
            milliseconds(1.0),
        )
    }
}

async fn press(plan: Arc<Plan>, shared: Arc<Shared>) {
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for number in 0..CONNECTIONS {
        let address = plan.addresses[number % plan.addresses.len()];
        clients.spawn(ask(address, start, Arc::clone(&plan), Arc::clone(&shared)));
    }
    clients.join_all().await;
}

async fn ask(address: SocketAddr, start: Instant, plan: Arc<Plan>, shared: Arc<Shared>) {
    let mut client = None;
    while !shared.over.load(Ordering::Relaxed) {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let due = start + Duration::from_secs(number as u64) / plan.rate;
        tokio::time::sleep_until(due.into()).await;
        let target = &plan.targets[number % plan.targets.len()];
        let wrong = exchange(&mut client, address, target).await.err();
        if !plan.keeps_connections {
            client = None;
        }
        shared.samples.lock().unwrap().push(Sample {
            due,
            took: due.elapsed(),
            wrong,
        });
    }
}

/// Sends a request on the open connection, or on a new one if the server has said that it closes the last.
async fn exchange(
    client: &mut Option<Client>,
    address: SocketAddr,
    target: &str,
) -> Result<(), String> {
    let mut connected = match client.take() {
        Some(client) => client,
        None => Client::try_connect(address)
            .await
            .map_err(|failure| failure.to_string())?,
    };
    let answer = connected.try_exchange(request("GET", target, &[])).await;
    let answer = answer.map_err(|failure| format!("{target}: {failure}"))?;
    if !closes(&answer) {
        *client = Some(connected);
    }
    if answer.status != 200 {
        return Err(format!("{target}: {answer}"));
    }
    body::check(target, &answer.body).map(drop)
}

fn closes(answer: &Response) -> bool {
    answer.header("connection").eq_ignore_ascii_case("close")
}
