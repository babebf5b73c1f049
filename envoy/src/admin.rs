// SPDX-License-Identifier: Apache-2.0
//! Envoy's admin interface, as far as the entry point needs it.

use std::collections::BTreeMap;

use ureq::Agent;

use crate::http;

/// A client of the admin interface.
pub struct Admin {
    client: Agent,
    base: String,
}

impl Admin {
    /// The interface on this port of loopback.
    pub fn new(port: u16) -> Self {
        Self {
            client: http::client(),
            base: format!("http://127.0.0.1:{port}"),
        }
    }

    /// From now on the health path answers 503, and responses close their connections.
    pub fn fail_health_checks(&self) {
        // A lost warning: the edge ends all the same.
        let _ = self
            .client
            .post(format!("{}/healthcheck/fail", self.base))
            .send_empty();
    }

    /// Whether the store has room, from now on. False where Envoy does not answer.
    #[must_use]
    pub fn say_room(&self, room: bool) -> bool {
        let percent = if room { 0 } else { 100 };
        let uri = format!("{}/runtime_modify?sluice.no_room={percent}", self.base);
        self.client.post(uri).send_empty().is_ok()
    }

    /// How many requests are under way, the clients' and those to the origin (a fill goes on without its client).
    pub fn active_requests(&self) -> Option<u64> {
        let active = self.stats("(downstream|upstream)_rq_active$")?;
        let ours =
            |name: &str| name.starts_with("http.edge") || name.starts_with("cluster.origin.");
        let ours = active.iter().filter(|(name, _)| ours(name));
        Some(ours.map(|(_, value)| value).sum())
    }

    /// Envoy's counters and gauges whose names contain what `filter` describes.
    fn stats(&self, filter: &str) -> Option<BTreeMap<String, u64>> {
        let uri = format!("{}/stats?filter={filter}", self.base);
        let mut response = self.client.get(uri).call().ok()?;
        let text = response.body_mut().read_to_string().ok()?;
        let values = text.lines().filter_map(|line| {
            let (name, value) = line.rsplit_once(": ")?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Some(values.collect())
    }
}
