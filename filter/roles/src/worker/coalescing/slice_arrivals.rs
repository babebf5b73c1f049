// SPDX-License-Identifier: Apache-2.0
//! The counters of slices and of their bytes, by the way in which the slices arrive.

use sluice_core::metrics::Metric;
use sluice_core::slices::asked::SliceState;

use crate::request::EdgeRequest;
use crate::request::policy::NumberedPolicy;
use crate::request::sliced::RequestedSlice;
use crate::worker::metrics::Metrics;

/// Notes that a slice begins to arrive, and returns in which way. `result` is the metric of requests with this result.
pub fn note_arrival(
    metrics: &Metrics,
    policy: &NumberedPolicy,
    slice: &RequestedSlice,
    result: Metric,
) -> SliceState {
    let state = slice.arrives(result);
    if let Some((slices, _)) = metrics_of(state) {
        metrics.count_of(policy, slices);
    }
    state
}

/// The counters of slices that come in this way, and of their bytes.
const fn metrics_of(state: SliceState) -> Option<(Metric, Metric)> {
    match state {
        SliceState::Hit => Some((Metric::SlicesHit, Metric::SliceBytesHit)),
        SliceState::Led => Some((Metric::SlicesMissed, Metric::SliceBytesMissed)),
        SliceState::Followed => Some((Metric::SlicesCollapsed, Metric::SliceBytesCollapsed)),
        SliceState::Changed | SliceState::Gone => None,
    }
}

/// Counts the bytes of a slice whose request ends. A background fill has no client.
pub fn count_bytes(metrics: &Metrics, closed: &EdgeRequest, slice: &RequestedSlice) {
    let counters = slice.state().and_then(metrics_of);
    if let Some((_, bytes)) = counters.filter(|_| !closed.for_others) {
        let size = closed.body.bytes.get();
        metrics.add_of(&closed.policy, bytes, size);
    }
}
