// SPDX-License-Identifier: Apache-2.0
//! The calls to Envoy's admin interface. The interface is a Unix socket that only this user can open, so neither a
//! browser nor another user of the machine can reach it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::unix_client::{self, Call, percent_encoded};

/// A client of the admin interface.
pub struct Admin {
    socket: PathBuf,
}

impl Admin {
    /// A client of the interface at this socket.
    pub const fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Makes the health path answer 503 from now on, and makes responses close their connections.
    pub fn fail_health_checks(&self) {
        // If this fails, clients get no warning, but the edge still ends.
        let _ = self.call("POST", "/healthcheck/fail");
    }

    /// Tells the filter whether the store has room from now on. Returns false if Envoy does not answer.
    #[must_use]
    pub fn set_room(&self, room: bool) -> bool {
        let percent = if room { 0 } else { 100 };
        let path = format!("/runtime_modify?sluice.no_room={percent}");
        self.call("POST", &path).is_ok()
    }

    /// The number of requests in flight: from clients, and to the origin, because a fill continues without its
    /// client. `None`: Envoy does not answer.
    pub fn active_requests(&self) -> Option<u64> {
        let gauges = self.statistics("(downstream|upstream)_rq_active$")?;
        let ours =
            |name: &str| name.starts_with("http.edge") || name.starts_with("cluster.origin.");
        let values = gauges.iter().filter(|(name, _)| ours(name));
        Some(values.map(|(_, value)| value).sum())
    }

    /// The number of connections of clients over HTTP/3. `None`: Envoy does not answer.
    pub fn http3_connections(&self) -> Option<u64> {
        let gauges = self.statistics("^http.edge_tls.downstream_cx_http3_active$")?;
        Some(gauges.values().sum())
    }

    /// The counters and gauges whose names match `filter`, a regular expression. `None`: Envoy does not answer.
    pub fn statistics(&self, filter: &str) -> Option<BTreeMap<String, u64>> {
        let filter = percent_encoded(filter);
        let text = self.call("GET", &format!("/stats?filter={filter}")).ok()?;
        let lines = text.lines().filter_map(|line| {
            let (name, value) = line.rsplit_once(": ")?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Some(lines.collect())
    }

    /// All statistics in the text format of Prometheus, which Envoy renders on its main thread.
    ///
    /// # Errors
    /// Envoy does not answer.
    pub fn prometheus(&self) -> io::Result<String> {
        self.call("GET", "/stats/prometheus")
    }

    /// The statistics whose names match `filter`, a regular expression, in the text format of Prometheus.
    ///
    /// # Errors
    /// Envoy does not answer.
    pub fn prometheus_of(&self, filter: &str) -> io::Result<String> {
        let filter = percent_encoded(filter);
        self.call("GET", &format!("/stats/prometheus?filter={filter}"))
    }

    /// The body of the answer to a call. Each call has a new connection.
    fn call(&self, method: &str, path: &str) -> io::Result<String> {
        let call = Call {
            method,
            ..Call::get(path)
        };
        Ok(unix_client::call(&self.socket, &call)?.body)
    }
}
