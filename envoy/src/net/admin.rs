// SPDX-License-Identifier: Apache-2.0
//! The calls to Envoy's admin interface that the entry point makes.

use ureq::Agent;

use super::http;

/// A client of the admin interface.
pub struct Admin {
    client: Agent,
    base: String,
}

impl Admin {
    /// A client of the interface on this port of loopback.
    pub fn new(port: u16) -> Self {
        Self {
            client: http::client(),
            base: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Makes the health path answer 503 from now on, and responses close their connections.
    pub fn fail_health_checks(&self) {
        // Where this fails, clients get no warning; the edge ends all the same.
        let _ = self.post("healthcheck/fail");
    }

    /// Tells the filter whether the store has room from now on. False: Envoy does not answer.
    #[must_use]
    pub fn set_room(&self, room: bool) -> bool {
        let percent = if room { 0 } else { 100 };
        self.post(&format!("runtime_modify?sluice.no_room={percent}"))
    }

    fn post(&self, path: &str) -> bool {
        let uri = format!("{}/{path}", self.base);
        self.client.post(uri).send_empty().is_ok()
    }

    /// The number of requests in flight: those of clients, and those to the origin, as a fill goes on without its
    /// client. `None`: Envoy does not answer.
    pub fn active_requests(&self) -> Option<u64> {
        let uri = format!(
            "{}/stats?filter=(downstream|upstream)_rq_active$",
            self.base
        );
        let mut response = self.client.get(uri).call().ok()?;
        let gauges = response.body_mut().read_to_string().ok()?;
        let ours =
            |line: &&str| line.starts_with("http.edge") || line.starts_with("cluster.origin.");
        let values = gauges.lines().filter(ours).filter_map(|line| {
            let (_, value) = line.rsplit_once(": ")?;
            value.parse::<u64>().ok()
        });
        Some(values.sum())
    }
}
