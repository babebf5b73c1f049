// SPDX-License-Identifier: Apache-2.0
//! Re-entrance: a callback, or a part of one, that asks for the worker while another has it. That is a fault of the
//! filter, so it is counted and logged, by what is known without the worker.

use std::cell::Cell;

use crate::host::{self, Level};

thread_local! {
    /// The host's number of the metric, once the worker has started.
    static METRIC: Cell<Option<u32>> = const { Cell::new(None) };
    static LOGGED: Cell<bool> = const { Cell::new(false) };
}

/// Says where re-entrance is counted from now on.
pub fn count_in(metric: Option<u32>) {
    METRIC.set(metric);
}

/// The worker is in use: counts that, and logs it the first time.
#[cold]
pub fn report() {
    if let Some(metric) = METRIC.get() {
        // There is nowhere to report a failure to count.
        let _ = host::increment_metric(metric, 1);
    }
    if !LOGGED.replace(true) {
        let message = "sluice: a callback found its worker in use, and goes on without it";
        host::log(Level::Critical, message);
    }
}
