// SPDX-License-Identifier: Apache-2.0
//! Envoy's numbers of the metrics. A module can define metrics only while a configuration is being created. Therefore
//! each configuration defines all of them in the same order, and gets the same numbers.

use sluice_core::metrics::{Metric, MetricKind};

use crate::abi::{Filter, FilterConfig};

/// The label of a metric for one site. Envoy writes it into the name in the same way as the roles.
const SITE: &str = "site";
/// Text between a metric's name and the site's name in the names of the roles.
const OF_SITE: &str = ".site.";

/// Envoy's numbers of one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    kind: MetricKind,
    all: usize,
    /// Number of the counter or histogram with a label.
    by_site: Option<usize>,
}

/// A metric that the roles have defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinedMetric {
    numbers: Numbers,
    site: Option<String>,
}

/// Defines all metrics. `None` if Envoy refuses one.
pub fn define_all(config: FilterConfig) -> Option<Vec<Numbers>> {
    let define = |metric: &Metric| {
        let (kind, name) = (metric.kind(), metric.name());
        let (all, by_site) = match kind {
            MetricKind::Counter => {
                let by_site = config.define_counter(name, &[SITE])?;
                (config.define_counter(name, &[])?, Some(by_site))
            }
            MetricKind::Gauge => (config.define_gauge(name)?, None),
            MetricKind::Histogram => {
                let by_site = config.define_histogram(name, &[SITE])?;
                (config.define_histogram(name, &[])?, Some(by_site))
            }
        };
        Some(Numbers { kind, all, by_site })
    };
    Metric::ALL.iter().map(define).collect()
}

impl DefinedMetric {
    /// The metric with that name, which may end with a site's name.
    pub fn find(numbers: &[Numbers], name: &str) -> Option<Self> {
        let (metric, site) = match name.split_once(OF_SITE) {
            Some((metric, site)) => (metric, Some(site.to_owned())),
            None => (name, None),
        };
        let position = Metric::ALL.iter().position(|known| known.name() == metric);
        let numbers = *numbers.get(position?)?;
        Some(Self { numbers, site })
    }

    /// Adds to a counter or gauge, in the name of a live stream.
    pub fn increment(&self, filter: Filter, offset: i64) -> bool {
        let Numbers { kind, all, by_site } = self.numbers;
        match (kind, &self.site, by_site) {
            (MetricKind::Counter, Some(site), Some(by_site)) => {
                filter.increment_counter(by_site, Some(site), offset.unsigned_abs())
            }
            (MetricKind::Counter, ..) => filter.increment_counter(all, None, offset.unsigned_abs()),
            (MetricKind::Gauge, ..) => filter.move_gauge(all, offset),
            (MetricKind::Histogram, ..) => false,
        }
    }

    /// Adds a value to a histogram, in the name of a live stream.
    pub fn record(&self, filter: Filter, value: u64) -> bool {
        let Numbers { all, by_site, .. } = self.numbers;
        match (&self.site, by_site) {
            (Some(site), Some(by_site)) => filter.record(by_site, Some(site), value),
            _ => filter.record(all, None, value),
        }
    }
}
