// SPDX-License-Identifier: Apache-2.0
//! Activities beside the load: a client that checks the server's health, and changes of the policy.

use serde_json::json;
use sluice_tests::client::{self, Client, request};
use sluice_tests::edge::Edge;
use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Period of the health checks.
const LOOK: Duration = Duration::from_millis(20);
/// Time from when a change has come into force to the next one.
const CHANGED: Duration = Duration::from_millis(500);

/// Changes the policy again and again until `over`; if the edge is `scraped`, each time a scrape begins. Returns the
/// longest time from a change to a response on a new connection that has the header of the new policy, in
/// milliseconds.
pub async fn change(edge: &Edge, scraped: bool, over: &Cell<bool>) -> f64 {
    let (mut longest, mut number) = (Duration::ZERO, 0);
    while !over.get() {
        number += 1;
        let metrics = edge.metrics();
        let scrape = scraped.then(|| tokio::spawn(client::get(metrics, "/metrics")));
        tokio::time::sleep(LOOK).await;
        let text = number.to_string();
        let began = Instant::now();
        let rules = json!([{"match": ["*"], "headers": {"x-change": text}}]);
        edge.reload_policy(&json!({"rules": rules}).to_string());
        while client::get(edge.address(), "/o0.bin")
            .await
            .header("x-change")
            != text
        {
            tokio::time::sleep(LOOK / 4).await;
        }
        longest = longest.max(began.elapsed());
        if let Some(scrape) = scrape {
            scrape.await.unwrap();
        }
        tokio::time::sleep(CHANGED).await;
    }
    longest.as_secs_f64() * 1e3
}

/// Checks the server's health until it is stopped, on one connection for as long as the server keeps it. Returns the
/// longest time in milliseconds.
pub async fn look(address: SocketAddr, mut stopped: oneshot::Receiver<()>) -> f64 {
    let mut client = Client::connect(address).await;
    let mut longest = Duration::ZERO;
    while stopped.try_recv().is_err() {
        let asked = Instant::now();
        let answer = client.exchange(request("GET", "/healthz", &[])).await;
        assert_eq!(answer.status, 200, "{answer}");
        longest = longest.max(asked.elapsed());
        if answer.headers.get("connection") == Some("close") {
            // Its listener has been replaced, and drops its connections.
            client = Client::connect(address).await;
        }
        tokio::time::sleep(LOOK).await;
    }
    longest.as_secs_f64() * 1e3
}
