// SPDX-License-Identifier: Apache-2.0
//! The filter's metrics in the host's statistics, and its log.

use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;

use sluice_core::freshness::UncacheableReason;
use sluice_core::host::HostError;
use sluice_core::metrics::Metric;
use sluice_core::workers::Millis;

use crate::request::policy::NumberedPolicy;
use sluice_host::{self as host, Host, Level};

/// The host's numbers of the metrics and the last values of the gauges, by [`Metric::index`], and the time at which
/// each line of code last logged.
#[derive(Debug)]
pub struct Metrics {
    host: Rc<dyn Host>,
    ids: Vec<Option<u32>>,
    gauges: RefCell<Vec<i64>>,
    logged: RefCell<Vec<(&'static Location<'static>, Millis)>>,
}

impl Metrics {
    /// Defines all metrics. A metric that the host refuses is not counted; requests are not affected.
    pub fn define(host: Rc<dyn Host>) -> Self {
        let define = |metric: &Metric| host.define_metric(metric.kind(), metric.name()).ok();
        Self {
            ids: Metric::ALL.iter().map(define).collect(),
            gauges: RefCell::new(vec![0; Metric::ALL.len()]),
            logged: RefCell::default(),
            host,
        }
    }

    /// Adds to a counter.
    pub fn count(&self, metric: Metric, amount: u32) {
        if let Some(id) = self.id(metric) {
            // There is nowhere to report a failure to count.
            let _ = self.host.increment_metric(id, i64::from(amount));
        }
    }

    /// Adds one to a counter, for the site of that policy.
    pub fn count_of(&self, policy: &NumberedPolicy, metric: Metric) {
        self.add_of(policy, metric, 1);
    }

    /// Adds to a counter, for the site of that policy, unless `amount` is 0.
    pub fn add_of(&self, policy: &NumberedPolicy, metric: Metric, amount: u64) {
        let id = policy.counters.id(&*self.host, metric);
        if let Some(id) = id.or_else(|| self.id(metric)).filter(|_| amount > 0) {
            let amount = i64::try_from(amount).unwrap_or(i64::MAX);
            let _ = self.host.increment_metric(id, amount);
        }
    }

    /// Counts the reason for which a client's response is not stored, if there is one, for the site of that policy.
    pub fn count_uncacheable(&self, policy: &NumberedPolicy, reason: Option<UncacheableReason>) {
        if let Some(reason) = reason {
            self.count_of(policy, Metric::of_reason(reason));
        }
    }

    /// Adds a value to a histogram.
    pub fn record(&self, metric: Metric, value: u64) {
        if let Some(id) = self.id(metric) {
            let _ = self.host.record_metric(id, value);
        }
    }

    /// Adds a value to a histogram, for the site of that policy.
    pub fn record_of(&self, policy: &NumberedPolicy, metric: Metric, value: u64) {
        let id = policy.counters.id(&*self.host, metric);
        if let Some(id) = id.or_else(|| self.id(metric)) {
            let _ = self.host.record_metric(id, value);
        }
    }

    /// Sets a gauge to this worker's present value. The host adds up the changes of all workers.
    pub fn set_gauge(&self, metric: Metric, value: usize) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        let mut gauges = self.gauges.borrow_mut();
        if let (Some(id), Some(last)) = (self.id(metric), gauges.get_mut(metric.index()))
            && value != *last
        {
            let _ = self.host.increment_metric(id, value - *last);
            *last = value;
        }
    }

    /// Logs an abnormal event, at most one per second for each line of code that calls this. Events of one kind must
    /// not hide others, such as the reason for which a bucket cannot be read.
    #[track_caller]
    pub fn warn(&self, message: impl FnOnce() -> String) {
        let (now, kind) = (self.host.monotonic_millis(), Location::caller());
        let mut logged = self.logged.borrow_mut();
        match logged.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, last)) if *last + 1_000 > now => return,
            Some((_, last)) => *last = now,
            None => logged.push((kind, now)),
        }
        self.host.log(Level::Warn, &message());
    }

    /// Counts a failed host call, and logs its consequence.
    #[track_caller]
    pub fn fault(&self, consequence: &str, error: HostError) {
        self.count(Metric::HostErrors, 1);
        self.warn(|| format!("sluice: {consequence}: {error}"));
    }

    /// Counts and logs the failure of a host call that a request needs for coalescing.
    #[track_caller]
    pub fn check(&self, result: host::Result<()>) {
        if let Err(error) = result {
            self.fault("a request continued without coalescing", error);
        }
    }

    /// The host's number of a metric.
    pub fn id(&self, metric: Metric) -> Option<u32> {
        self.ids.get(metric.index()).copied().flatten()
    }
}
