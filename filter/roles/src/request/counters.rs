// SPDX-License-Identifier: Apache-2.0
//! Counters and histograms of a site.

use std::cell::RefCell;

use sluice_core::metrics::Metric;
use sluice_core::policy::SiteScope;

use sluice_host::Host;

/// The counters and histograms of a site. Each is defined in the host when it is used for the first time.
#[derive(Debug)]
pub struct SiteCounters {
    /// The end of the names. Empty if the metrics of the site have no label.
    suffix: String,
    /// The host's numbers, by [`Metric::index`]. If the host refuses a metric, only the edge's metric counts.
    ids: RefCell<Vec<Option<Option<u32>>>>,
}

impl SiteCounters {
    /// Creates the counters of a site.
    pub fn new(site: &SiteScope) -> Self {
        let suffix = match site.name.as_str() {
            name if site.is_labelled && !name.is_empty() => format!(".site.{name}"),
            _ => String::new(),
        };
        Self {
            suffix,
            ids: RefCell::default(),
        }
    }

    /// The host's number of a metric. `None` if the metrics of the site have no label.
    pub fn id(&self, host: &dyn Host, metric: Metric) -> Option<u32> {
        if self.suffix.is_empty() {
            return None;
        }
        let mut ids = self.ids.borrow_mut();
        ids.resize(Metric::ALL.len(), None);
        let known = ids.get_mut(metric.index())?;
        let define = || {
            let name = [metric.name(), &self.suffix].concat();
            host.define_metric(metric.kind(), &name).ok()
        };
        *known.get_or_insert_with(define)
    }
}
