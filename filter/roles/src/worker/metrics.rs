// SPDX-License-Identifier: Apache-2.0
//! The filter's metrics in the host's statistics, and its log.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;

use sluice_core::freshness::UncacheableReason;
use sluice_core::host::HostError;
use sluice_core::metrics::Metric;
use sluice_core::workers::gauge_shares::{GAUGES, GaugeShare, GaugeShares};
use sluice_core::workers::{Millis, WorkerId};

use crate::request::policy::NumberedPolicy;
use sluice_host::{self as host, Host, Level};

/// The host's numbers of the metrics and the last values of the gauges, by [`Metric::index`], and the time at which
/// each line of code last logged.
#[derive(Debug)]
pub struct Metrics {
    host: Rc<dyn Host>,
    ids: Vec<Option<u32>>,
    gauges: RefCell<Vec<i64>>,
    /// The worker, and the root context that receives its messages.
    owner: Cell<Option<(WorkerId, u32)>>,
    logged: RefCell<Vec<(&'static Location<'static>, Millis)>>,
}

impl Metrics {
    /// Defines all metrics. A metric that the host refuses is not counted; requests are not affected.
    pub fn define(host: Rc<dyn Host>) -> Self {
        let define = |metric: &Metric| host.define_metric(metric.kind(), metric.name()).ok();
        Self {
            ids: Metric::ALL.iter().map(define).collect(),
            gauges: RefCell::new(vec![0; Metric::ALL.len()]),
            owner: Cell::new(None),
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

    /// Sets gauges to this worker's present values. The host adds up the changes of all workers.
    pub fn publish(&self, values: &[(Metric, usize)]) {
        let changes = values
            .iter()
            .map(|(metric, value)| self.set_gauge(*metric, *value));
        if changes.fold(false, |any, changed| any | changed) {
            self.put_share();
        }
    }

    /// Sets a gauge. Returns whether it has changed.
    fn set_gauge(&self, metric: Metric, value: usize) -> bool {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        let mut gauges = self.gauges.borrow_mut();
        if let (Some(id), Some(last)) = (self.id(metric), gauges.get_mut(metric.index()))
            && value != *last
        {
            let _ = self.host.increment_metric(id, value - *last);
            *last = value;
            return true;
        }
        false
    }

    /// Notes in shared data what the host's gauges have from this worker.
    fn put_share(&self) {
        let Some((worker, receiver)) = self.owner.get() else {
            return;
        };
        let gauges = self.gauges.borrow();
        let value = |metric: Metric| gauges.get(metric.index()).copied().unwrap_or(0);
        let share = GaugeShare {
            worker,
            receiver,
            values: GAUGES.map(|metric| u64::try_from(value(metric)).unwrap_or(0)),
        };
        // If this fails, gauges may be too high after the death of this worker.
        let _ = GaugeShares::new(&*self.host).put(&share);
    }

    /// Sets the worker whose gauges these are, and the root context that receives its messages.
    pub fn belong_to(&self, worker: WorkerId, receiver: u32) {
        let owner = Some((worker, receiver));
        if self.owner.replace(owner) != owner {
            self.put_share();
        }
    }

    /// Subtracts from a gauge what a worker that has died had added.
    pub fn lower(&self, metric: Metric, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        if let Some(id) = self.id(metric).filter(|_| value > 0) {
            let _ = self.host.increment_metric(id, -value);
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

    /// Counts a failed host call, and logs its consequence. Returns the result of one that has not failed.
    #[track_caller]
    pub fn note_fault<T>(&self, consequence: &str, result: host::Result<T>) -> Option<T> {
        match result {
            Ok(result) => Some(result),
            Err(error) => {
                self.fault(consequence, error);
                None
            }
        }
    }

    /// Counts and logs the failure of a host call that a request needs for coalescing.
    #[track_caller]
    pub fn check(&self, result: host::Result<()>) {
        self.note_fault("a request continued without coalescing", result);
    }

    /// The host's number of a metric.
    pub fn id(&self, metric: Metric) -> Option<u32> {
        self.ids.get(metric.index()).copied().flatten()
    }
}
