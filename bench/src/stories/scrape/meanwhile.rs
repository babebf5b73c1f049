// SPDX-License-Identifier: Apache-2.0
//! What goes on beside the load: a client that asks whether the server is well, and changes of the policy.

use serde_json::json;
use sluice_tests::client::{self, Client, request};
use sluice_tests::edge::Edge;
use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How often a client looks whether the server says that it is well.
const LOOK: Duration = Duration::from_millis(20);
/// From when a change has come into force to the next.
const CHANGED: Duration = Duration::from_millis(500);

/// Changes the policy again and again, when a scrape begins if it is `scraped`, until it is `over`: the longest time from
/// there to an answer to a new connection that has the header of the new policy, in milliseconds.
pub async fn change(edge: &Edge, scraped: bool, over: &Cell<bool>) -> f64 {
    let (mut longest, mut number) = (Duration::ZERO, 0);
    while !over.get() {
        number += 1;
        let metrics = edge.metrics();
        let scrape = scraped.then(|| tokio::spawn(client::get(metrics, "/stats/prometheus")));
        tokio::time::sleep(LOOK).await;
        let text = number.to_string();
        let began = Instant::now();
        edge.update_policy(&|policy| {
            policy["rules"] = json!([{"match": ["*"], "headers": {"x-change": text}}]);
        });
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

/// Asks on one connection, for as long as the server keeps it, whether the server is well, until it is stopped; the longest
/// time in milliseconds.
pub async fn look(address: SocketAddr, mut stopped: oneshot::Receiver<()>) -> f64 {
    let mut client = Client::connect(address).await;
    let mut longest = Duration::ZERO;
    while stopped.try_recv().is_err() {
        let asked = Instant::now();
        let answer = client.exchange(request("GET", "/healthz", &[])).await;
        assert_eq!(answer.status, 200, "{answer}");
        longest = longest.max(asked.elapsed());
        if answer.headers.get("connection") == Some("close") {
            // Its listener has been replaced, and lets go of its connections.
            client = Client::connect(address).await;
        }
        tokio::time::sleep(LOOK).await;
    }
    longest.as_secs_f64() * 1e3
}
