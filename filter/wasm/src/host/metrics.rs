// SPDX-License-Identifier: Apache-2.0
//! Envoy's statistics.

use sluice_core::metrics::MetricKind;

use super::imports::{proxy_define_metric, proxy_increment_metric, proxy_record_metric};
use super::{Result, check};

/// Defines a metric, or finds it where another worker has.
pub fn define_metric(kind: MetricKind, name: &str) -> Result<u32> {
    let kind = match kind {
        MetricKind::Counter => 0,
        MetricKind::Gauge => 1,
        MetricKind::Histogram => 2,
    };
    let mut metric = 0;
    check(unsafe { proxy_define_metric(kind, name.as_ptr(), name.len(), &raw mut metric) })?;
    Ok(metric)
}

/// Adds to a counter or gauge.
pub fn increment_metric(metric: u32, offset: i64) -> Result<()> {
    check(unsafe { proxy_increment_metric(metric, offset) })
}

/// Adds a value to a histogram.
pub fn record_metric(metric: u32, value: u64) -> Result<()> {
    check(unsafe { proxy_record_metric(metric, value) })
}
