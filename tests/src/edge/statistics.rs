// SPDX-License-Identifier: Apache-2.0
//! The statistics of an edge, from its admin interface.

use super::Edge;
use crate::client::{self, Client, Response, request};
use crate::{PATIENCE, eventually};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::net::UnixStream;

/// The pages of the admin interface that show the configuration, and so might show a secret.
pub const ADMIN_PAGES: [&str; 6] = [
    "/config_dump?include_eds",
    "/server_info",
    "/stats",
    "/clusters",
    "/listeners",
    "/runtime",
];

impl Edge {
    /// Sends a GET to the admin interface.
    pub async fn admin_get(&self, target: &str) -> Response {
        self.admin_send("GET", target).await
    }

    /// Sends a request to the admin interface.
    ///
    /// # Panics
    /// When no response arrives.
    pub async fn admin_send(&self, method: &str, target: &str) -> Response {
        let stream = UnixStream::connect(self.admin()).await;
        let mut client = Client::on(stream.expect("an admin interface"));
        client.exchange(request(method, target, &[])).await
    }

    /// The document at `/metrics` of an edge with a port for it ([`super::Builder::metrics`]).
    pub async fn metrics_document(&self) -> String {
        let answer = client::get(self.metrics(), "/metrics").await;
        assert_eq!(answer.status, 200, "{answer}");
        String::from_utf8_lossy(&answer.body).into_owned()
    }

    /// Waits until `/metrics` has this line: a series and its value.
    ///
    /// # Panics
    /// When it has no such line within [`PATIENCE`].
    pub async fn wait_for_metric(&self, line: &str) {
        eventually(line, async || {
            let document = self.metrics_document().await;
            document.lines().any(|each| each == line)
        })
        .await;
    }

    /// All statistics whose name contains `part`.
    ///
    /// # Panics
    /// When the admin does not answer with JSON.
    pub async fn stats(&self, part: &str) -> BTreeMap<String, u64> {
        let filter = part.replace('.', "\\.");
        let response = self
            .admin_get(&format!("/stats?format=json&filter={filter}"))
            .await;
        let document: serde_json::Value = serde_json::from_slice(&response.body)
            .unwrap_or_else(|error| panic!("stats: {error}: {response}"));
        let stats = document["stats"].as_array().cloned().unwrap_or_default();
        let number = |stat: &serde_json::Value| {
            Some((stat["name"].as_str()?.to_owned(), stat["value"].as_u64()?))
        };
        stats.iter().filter_map(number).collect()
    }

    /// A counter or gauge by its whole name; the filter's own may be given without Envoy's prefix for Wasm.
    /// 0 when there is none yet.
    pub async fn counter(&self, name: &str) -> u64 {
        let stats = self.stats(name).await;
        let own = format!("wasmcustom.{name}");
        stats
            .get(name)
            .or_else(|| stats.get(&own))
            .copied()
            .unwrap_or(0)
    }

    /// Waits until a counter or gauge is at least `least`.
    pub async fn wait_for_counter(&self, name: &str, least: u64) {
        self.wait_for_counter_until(&format!("{name} >= {least}"), name, |value| value >= least)
            .await;
    }

    /// Waits until a counter or gauge has this value; gauges follow at the filter's next tick.
    pub async fn wait_for_value(&self, name: &str, wanted: u64) {
        self.wait_for_counter_until(&format!("{name} = {wanted}"), name, |value| value == wanted)
            .await;
    }

    /// Waits until a counter or gauge satisfies `test`.
    ///
    /// # Panics
    /// When it does not within [`PATIENCE`].
    pub async fn wait_for_counter_until(&self, what: &str, name: &str, test: impl Fn(u64) -> bool) {
        let met = async {
            while !test(self.counter(name).await) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, met).await.is_err() {
            panic!(
                "{what}: not within {PATIENCE:?}; {:#?}",
                self.stats("sluice").await
            );
        }
    }
}
