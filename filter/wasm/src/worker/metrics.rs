// SPDX-License-Identifier: Apache-2.0
//! The filter's metrics in Envoy's statistics.

use sluice_core::metrics::Metric;

use crate::host;

/// The host's numbers of the metrics, by [`Metric::index`], and what the gauges last said.
#[derive(Debug)]
pub struct Metrics {
    ids: Vec<Option<u32>>,
    gauges: [(Metric, i64); 5],
}

impl Metrics {
    /// Defines them all. One that Envoy refuses is not counted; requests do not suffer.
    pub fn define() -> Self {
        let define = |metric: &Metric| host::define_metric(metric.kind(), metric.name()).ok();
        Self {
            ids: Metric::ALL.iter().map(define).collect(),
            gauges: [
                (Metric::ParkedNow, 0),
                (Metric::FlightsNow, 0),
                (Metric::HintsNow, 0),
                (Metric::HotObjectsNow, 0),
                (Metric::HotBytesNow, 0),
            ],
        }
    }

    /// Adds to a counter.
    pub fn count(&self, metric: Metric, amount: u32) {
        if let Some(id) = self.id(metric) {
            // There is nowhere to report a failure to count.
            let _ = host::increment_metric(id, i64::from(amount));
        }
    }

    /// Adds a value to a histogram.
    pub fn record(&self, metric: Metric, value: u64) {
        if let Some(id) = self.id(metric) {
            let _ = host::record_metric(id, value);
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
                let _ = host::increment_metric(id, value - *last);
                *last = value;
            }
        }
    }

    /// The host's number of a metric.
    pub fn id(&self, metric: Metric) -> Option<u32> {
        self.ids.get(metric.index()).copied().flatten()
    }
}
