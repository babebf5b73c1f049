// SPDX-License-Identifier: Apache-2.0
//! The worker that has died in whose place this one is, and its share in the gauges.
//!
//! A VM cannot know on which thread it runs. But Envoy delivers a message for a dead VM to the next VM of the same
//! thread, with the number of the dead worker's queue. So a new worker sends an empty message to every worker that has
//! a share. The one whose message it receives itself is its predecessor. Any other worker gets a turn for nothing.

use sluice_core::workers::WorkerId;
use sluice_core::workers::gauge_shares::{GAUGES, GaugeShares};
use sluice_host::{Host, Queue};

use crate::worker::metrics::Metrics;
use crate::worker::roots::Roots;

/// The workers that may be the predecessor, with their queues.
#[derive(Debug, Default)]
pub struct Candidates(Vec<(Queue, WorkerId)>);

impl Candidates {
    /// Notes that this worker has received a message for `queue`.
    pub(crate) fn hear_of(&mut self, host: &dyn Host, metrics: &Metrics, queue: Queue) {
        let found = self.0.iter().find(|(known, _)| *known == queue);
        if let Some((_, predecessor)) = found {
            succeed(host, metrics, *predecessor);
            self.0.clear();
        }
    }
}

/// Sends an empty message to every worker that may be the predecessor, and returns these workers.
pub(in crate::worker) fn candidates(host: &dyn Host, roots: &Roots) -> Candidates {
    // Only a root context that every VM has from its start can receive the message in both VMs.
    let Some(first) = host.first_root() else {
        return Candidates::default();
    };
    let shares = GaugeShares::new(host).all().unwrap_or_default();
    let candidates = shares
        .into_iter()
        .filter(|share| share.worker != roots.worker() && share.receiver == first)
        .filter_map(|share| Some((roots.knock(share.worker).ok()?, share.worker)));
    Candidates(candidates.collect())
}

/// Subtracts the share of a worker that has died from the gauges.
pub fn succeed(host: &dyn Host, metrics: &Metrics, predecessor: WorkerId) {
    let taken = GaugeShares::new(host).take(predecessor);
    let Ok(Some(share)) = taken else { return };
    for (metric, value) in GAUGES.into_iter().zip(share.values) {
        metrics.lower(metric, value);
    }
}
