// SPDX-License-Identifier: Apache-2.0
//! Many clients at one moment.

use crate::client::{Client, Failure, Response, request};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinSet;

/// Connections that are open and have sent nothing.
pub struct Crowd(Vec<Client>);

/// A crowd whose requests are under way.
pub struct Flight(JoinSet<(Result<Response, Failure>, Client)>);

/// The results of a crowd.
#[derive(Debug)]
pub struct Outcomes(pub Vec<Result<Response, Failure>>);

impl Crowd {
    /// Opens `count` connections.
    ///
    /// # Panics
    /// When one cannot be opened.
    pub async fn connect(address: SocketAddr, count: usize) -> Self {
        sluice::system::Machine::raise_open_files();
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(Client::connect(address).await);
        }
        Self(clients)
    }

    /// Sends a request for the same target on all connections.
    #[must_use]
    pub fn fire(self, target: &str) -> Flight {
        let bytes = request("GET", target, &[]);
        self.fire_each(move |_| bytes.clone())
    }

    /// Sends, as the n-th client, the bytes that `make(n)` returns.
    #[must_use]
    pub fn fire_each(self, make: impl Fn(usize) -> Vec<u8>) -> Flight {
        let mut flight = JoinSet::new();
        for (n, mut client) in self.0.into_iter().enumerate() {
            let bytes = make(n);
            flight.spawn(async move { (client.try_exchange(bytes).await, client) });
        }
        Flight(flight)
    }
}

impl Flight {
    /// Waits for all responses. No client closes its connection before all clients have their responses, as in
    /// browsers. A leader that closes the connection after its 304 or its range would end the fill.
    ///
    /// # Panics
    /// When a client's task panicked.
    pub async fn land(self) -> Outcomes {
        let (outcomes, _connections): (_, Vec<_>) = self.0.join_all().await.into_iter().unzip();
        Outcomes(outcomes)
    }
}

/// Opens `count` connections, sends all requests at once, and collects the results.
pub async fn stampede(address: SocketAddr, count: usize, target: &str) -> Outcomes {
    Crowd::connect(address, count)
        .await
        .fire(target)
        .land()
        .await
}

impl Outcomes {
    /// Number of clients by status; failures by their text.
    #[must_use]
    pub fn tally(&self) -> BTreeMap<String, usize> {
        let mut tally = BTreeMap::new();
        for outcome in &self.0 {
            let what = match outcome {
                Ok(response) => response.status.to_string(),
                Err(failure) => failure.to_string(),
            };
            *tally.entry(what).or_default() += 1;
        }
        tally
    }

    /// The responses that were received.
    pub fn responses(&self) -> impl Iterator<Item = &Response> {
        self.0.iter().filter_map(|outcome| outcome.as_ref().ok())
    }

    /// Asserts that every client received this status, and returns the responses.
    ///
    /// # Panics
    /// When a client received another status, or no response.
    pub fn all(&self, status: u16) -> Vec<&Response> {
        let all: Vec<_> = self
            .responses()
            .filter(|response| response.status == status)
            .collect();
        assert_eq!(
            all.len(),
            self.0.len(),
            "not everyone got {status}: {:?}",
            self.tally()
        );
        all
    }

    /// Asserts that every client received the same whole 200 for `path` (the path at the origin).
    ///
    /// # Panics
    /// When a client did not.
    pub fn same_object(&self, path: &str) {
        let stamps: std::collections::BTreeSet<_> = self
            .all(200)
            .iter()
            .map(|response| response.stamp(path))
            .collect();
        assert_eq!(
            stamps.len(),
            1,
            "answers of different fills for {path}: {stamps:?}"
        );
    }

    /// Number of responses whose `Cache-Status` says that they are collapsed.
    #[must_use]
    pub fn collapsed(&self) -> usize {
        self.responses()
            .filter(|response| response.cache_status().contains("collapsed"))
            .count()
    }

    /// The q-quantile (0 to 1) of the times to the first byte.
    ///
    /// # Panics
    /// When no client received a response.
    #[must_use]
    pub fn first_byte(&self, quantile: f64) -> Duration {
        let mut times: Vec<_> = self
            .responses()
            .map(|response| response.first_byte)
            .collect();
        times.sort();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let at = ((times.len() - 1) as f64 * quantile).round() as usize;
        times[at]
    }
}
