// SPDX-License-Identifier: Apache-2.0
//! The worker that has died in whose place this one is, and its share in the gauges.
//!
//! A VM cannot know on which thread it runs. But Envoy delivers a message for a dead VM to the next VM of the same
//! thread, with the number of the dead worker's queue. So a new worker sends an empty message to every worker that has
//! a share. The one whose message it receives itself is its predecessor. Any other worker gets a turn for nothing.

use sluice_core::workers::WorkerId;
use sluice_core::workers::gauge_shares::{GAUGES, GaugeShares};
use sluice_host::Queue;

use crate::worker::Worker;

/// The workers that may be the predecessor, with their queues.
pub type Candidates = Vec<(Queue, WorkerId)>;

impl Worker {
    /// Sends an empty message to every worker that may be the predecessor.
    pub(in crate::worker) fn seek_predecessor(&mut self) {
        // Only a root context that every VM has from its start can receive the message in both VMs.
        let Some(first) = self.host.first_root() else {
            return;
        };
        let shares = GaugeShares::new(&*self.host).all().unwrap_or_default();
        let own = self.identity.worker;
        let candidates = shares
            .into_iter()
            .filter(|share| share.worker != own && share.receiver == first)
            .filter_map(|share| Some((self.roots.knock(share.worker).ok()?, share.worker)));
        self.candidates = candidates.collect();
    }

    /// Notes that this worker has received a message for `queue`.
    pub(crate) fn hear_of(&mut self, queue: Queue) {
        let found = self.candidates.iter().find(|(known, _)| *known == queue);
        if let Some((_, predecessor)) = found {
            self.succeed(*predecessor);
            self.candidates.clear();
        }
    }

    /// Subtracts the share of a worker that has died from the gauges.
    pub fn succeed(&self, predecessor: WorkerId) {
        let taken = GaugeShares::new(&*self.host).take(predecessor);
        let Ok(Some(share)) = taken else { return };
        for (metric, value) in GAUGES.into_iter().zip(share.values) {
            self.metrics.lower(metric, value);
        }
    }
}
