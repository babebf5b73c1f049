// SPDX-License-Identifier: Apache-2.0
//! What is counted for a site.

use std::cell::RefCell;

use sluice_core::metrics::Metric;

use sluice_host::Host;

/// The counters of a site, which are defined when something is counted for the first time.
#[derive(Debug)]
pub struct SiteCounters {
    /// What the names end with; empty for the one site of an edge that has no name.
    suffix: String,
    /// The host's numbers, by [`Metric::index`]. A counter that the host refuses counts for the edge alone.
    ids: RefCell<Vec<Option<Option<u32>>>>,
}

impl SiteCounters {
    /// The counters of the site of that name.
    pub fn new(site: &str) -> Self {
        let suffix = match site {
            "" => String::new(),
            site => format!(".site.{site}"),
        };
        Self {
            suffix,
            ids: RefCell::default(),
        }
    }

    /// The host's number of a counter of a named site.
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
