// SPDX-License-Identifier: Apache-2.0
//! The time to the first byte of a response to a client.

use crate::worker::metrics::Metrics;
use sluice_core::metrics::Metric;
use sluice_core::workers::Millis;
use sluice_host::Host;

use crate::request::policy::NumberedPolicy;

/// The measurement of one response's time to its first byte.
#[derive(Clone, Copy, Debug, Default)]
pub enum FirstByteTimer {
    /// A timer that measures nothing: EDGE refuses or redirects the request, or has recorded the time.
    #[default]
    Off,
    /// A hot copy answers the request in the callback of its headers. The clock is not read, because that would cost
    /// each hot hit a call of the host.
    Immediate,
    /// The time at which EDGE had the whole request.
    Since(Millis),
}

impl FirstByteTimer {
    /// Records the time in the histogram `metric`, once.
    pub fn stop(
        &mut self,
        host: &dyn Host,
        metrics: &Metrics,
        policy: &NumberedPolicy,
        metric: Metric,
    ) {
        let millis = match std::mem::take(self) {
            Self::Off => return,
            Self::Immediate => 0,
            Self::Since(start) => host.monotonic_millis().saturating_sub(start),
        };
        metrics.record_of(policy, metric, millis);
    }
}
