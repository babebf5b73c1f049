// SPDX-License-Identifier: Apache-2.0
//! The filter's metrics in Envoy's statistics, and its log.

use std::rc::Rc;

use crate::host::{self, Host, Level};
use sluice_core::host::HostError;
use sluice_core::metrics::Metric;
use sluice_core::workers::Millis;

/// The host's numbers of the metrics, by [`Metric::index`], what the gauges last said, and when the log was last used.
#[derive(Debug)]
pub struct Metrics {
    host: Rc<dyn Host>,
    ids: Vec<Option<u32>>,
    gauges: [(Metric, i64); 5],
    logged: Option<Millis>,
}

impl Metrics {
    /// Defines them all. One that Envoy refuses is not counted; requests do not suffer.
    pub fn define(host: &Rc<dyn Host>) -> Self {
        let define = |metric: &Metric| host.define_metric(metric.kind(), metric.name()).ok();
        Self {
            host: Rc::clone(host),
            ids: Metric::ALL.iter().map(define).collect(),
            gauges: [
                (Metric::ParkedNow, 0),
                (Metric::FlightsNow, 0),
                (Metric::HintsNow, 0),
                (Metric::HotObjectsNow, 0),
                (Metric::HotBytesNow, 0),
            ],
            logged: None,
        }
    }

    /// Adds to a counter.
    pub fn count(&self, metric: Metric, amount: u32) {
        if let Some(id) = self.id(metric) {
            // There is nowhere to report a failure to count.
            let _ = self.host.increment_metric(id, i64::from(amount));
        }
    }

    /// Adds a value to a histogram.
    pub fn record(&self, metric: Metric, value: u64) {
        if let Some(id) = self.id(metric) {
            let _ = self.host.record_metric(id, value);
        }
    }

    /// Moves these gauges to this worker's present values. Envoy sums the workers' movements.
    pub fn set_gauges(&mut self, values: &[(Metric, usize)]) {
        let ids = &self.ids;
        for (metric, last) in &mut self.gauges {
            let said = values.iter().find(|(said, _)| said == metric);
            let value = said.map_or(*last, |(_, value)| {
                i64::try_from(*value).unwrap_or(i64::MAX)
            });
            if value != *last
                && let Some(id) = ids.get(metric.index()).copied().flatten()
            {
                let _ = self.host.increment_metric(id, value - *last);
                *last = value;
            }
        }
    }

    /// Logs an abnormal event, at most one a second.
    pub fn warn(&mut self, message: impl FnOnce() -> String) {
        let now = self.host.monotonic_millis();
        if self.logged.is_none_or(|logged| logged + 1_000 <= now) {
            self.logged = Some(now);
            self.host.log(Level::Warn, &message());
        }
    }

    /// A host call has failed: counts it, and logs what came of it.
    pub fn fault(&mut self, consequence: &str, error: HostError) {
        self.count(Metric::HostErrors, 1);
        self.warn(|| format!("sluice: {consequence}: {error}"));
    }

    /// Counts and logs the failure of a host call that a request needs for coalescing.
    pub fn check(&mut self, result: host::Result<()>) {
        if let Err(error) = result {
            self.fault("a request went on uncoalesced", error);
        }
    }

    /// The host's number of a metric.
    pub fn id(&self, metric: Metric) -> Option<u32> {
        self.ids.get(metric.index()).copied().flatten()
    }
}
