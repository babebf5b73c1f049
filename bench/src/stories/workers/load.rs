// SPDX-License-Identifier: Apache-2.0
//! The load, and the clients that send it at a constant rate.

use super::{CONNECTIONS, HIT};
use sluice_tests::client::{Client, Response, request};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Whether the requests are for new text that has to be compressed; else they are for one stored object.
    pub heavy: bool,
    /// Whether connections stay; else each request has a new one.
    pub kept: bool,
}

impl Load {
    pub const ALL: [Self; 4] = [
        Self::new(false, true),
        Self::new(false, false),
        Self::new(true, true),
        Self::new(true, false),
    ];

    const fn new(heavy: bool, kept: bool) -> Self {
        Self { heavy, kept }
    }

    /// Requests a second.
    pub const fn rate(self) -> u32 {
        match (self.heavy, self.kept) {
            (true, _) => 100,
            (false, true) => 1_000,
            (false, false) => 500,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.heavy {
            "compressed misses"
        } else {
            "hits"
        };
        let how = if self.kept {
            "kept alive"
        } else {
            "a connection each"
        };
        write!(f, "{what}, {how}")
    }
}

/// Results of one connection.
pub struct Answers {
    pub times: Vec<Duration>,
    /// The worker that has answered, if the server names it.
    pub worker: Option<String>,
}

/// Sends requests at a constant rate. The n-th request is due after n periods, on the n-th connection, modulo their
/// number, and waits there only for the one before it.
pub async fn ask(address: SocketAddr, load: Load, seconds: u32) -> Vec<Answers> {
    let mut kept = Vec::new();
    for _ in 0..CONNECTIONS {
        kept.push(match load.kept {
            true => Some(Client::connect(address).await),
            false => None,
        });
    }
    let period = Duration::from_secs(1) / load.rate();
    let start = Instant::now() + Duration::from_millis(20);
    let each = load.rate() * seconds / CONNECTIONS;
    let mut asking = JoinSet::new();
    for (first, client) in (0..).zip(kept) {
        let dues = (0..each).map(move |turn| turn * CONNECTIONS + first);
        let dues = dues.map(move |number| (number, start + period * number));
        asking.spawn(on_time(address, client, load, dues));
    }
    asking.join_all().await.into_iter().flatten().collect()
}

/// Sends each request when it is due, on the connection that is kept, or on a new one.
async fn on_time(
    address: SocketAddr,
    mut kept: Option<Client>,
    load: Load,
    dues: impl Iterator<Item = (u32, Instant)>,
) -> Vec<Answers> {
    let mut answers: Vec<Answers> = Vec::new();
    for (number, due) in dues {
        tokio::time::sleep_until(due).await;
        let response = match &mut kept {
            Some(client) => exchange(client, load, number).await,
            None => exchange(&mut Client::connect(address).await, load, number).await,
        };
        let took = due.elapsed();
        match answers.last_mut().filter(|_| kept.is_some()) {
            Some(answers) => answers.times.push(took),
            None => answers.push(Answers {
                times: vec![took],
                worker: response.headers.get("x-worker").map(str::to_owned),
            }),
        }
    }
    answers
}

pub async fn exchange(client: &mut Client, load: Load, number: u32) -> Response {
    let (target, accepted, coding) = if load.heavy {
        (format!("/heavy/{number}"), "gzip", Some("gzip"))
    } else {
        (HIT.to_owned(), "identity", None)
    };
    let ask = request("GET", &target, &[("accept-encoding", accepted)]);
    let response = client.exchange(ask).await;
    let right = response.status == 200 && response.headers.get("content-encoding") == coding;
    assert!(right, "{target}: {response}");
    response
}
