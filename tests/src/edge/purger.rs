// SPDX-License-Identifier: Apache-2.0
//! Purge calls to an edge.

use crate::client::{Client, Failure, Response, request};
use crate::edge::Builder;
use crate::machine::ports::{free_port, loopback};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A token that edges may be given.
pub const TOKEN: &str = "a-token-for-tests-only";

/// Time that the edge waits for a worker; it waits longer for its journal.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// The listener for purges of one edge.
#[derive(Clone, Copy, Debug)]
pub struct Purger {
    port: u16,
}

impl Purger {
    /// Creates a listener on a free port.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { port: free_port() }
    }

    /// Lets `edge` accept purges on this listener.
    pub fn open(&self, edge: Builder) -> Builder {
        self.listen(edge).env("SLUICE_PURGE_TOKEN", TOKEN)
    }

    /// Lets `edge` listen here, if it accepts purges at all.
    pub fn listen(&self, edge: Builder) -> Builder {
        edge.env("SLUICE_PURGE_PORT", self.port.to_string())
    }

    /// The listener's address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        loopback(self.port)
    }

    /// Sends a request with a body, with or without `authorization`.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let length = body.len().to_string();
        let mut all = vec![("content-length", length.as_str())];
        all.extend(headers);
        let mut bytes = request(method, path, &all);
        bytes.extend(body.as_bytes());
        Client::connect(self.address()).await.exchange(bytes).await
    }

    /// Sends a purge with the right token.
    ///
    /// # Panics
    /// When it is not answered.
    pub async fn call(&self, order: &Value) -> Response {
        let called = self.try_call(order).await;
        called.unwrap_or_else(|failure| panic!("{order}: {failure}"))
    }

    /// Sends a purge with the right token to an edge that may be down.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn try_call(&self, order: &Value) -> Result<Response, Failure> {
        let (authorization, order) = (format!("Bearer {TOKEN}"), order.to_string());
        let length = order.len().to_string();
        let headers = [
            ("authorization", authorization.as_str()),
            ("content-length", &length),
        ];
        let mut bytes = request("POST", "/purge", &headers);
        bytes.extend(order.as_bytes());
        let mut client = Client::try_connect(self.address()).await?;
        client.try_exchange(bytes).await
    }

    /// Sends a message of SNS, or a false one.
    pub async fn deliver(&self, message: &Value) -> Response {
        self.send("POST", "/sns", &[], &message.to_string()).await
    }

    /// Sends a purge that must succeed on every worker. If a worker or the journal has not answered in time, as on a
    /// machine or a disk that stands still, it is sent again.
    ///
    /// # Panics
    /// When it does not succeed.
    pub async fn purge(&self, order: Value) -> Value {
        const CALLS: u32 = 5;
        let mut calls = 0;
        loop {
            calls += 1;
            let begun = Instant::now();
            let response = self.call(&order).await;
            if response.status == 200 {
                return serde_json::from_slice(&response.body).unwrap();
            }
            let late = begun.elapsed() >= ANSWERED_WITHIN;
            assert!(late && calls < CALLS, "{order}: {response}");
        }
    }
}
