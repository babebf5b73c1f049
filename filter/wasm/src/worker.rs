// SPDX-License-Identifier: Apache-2.0
//! The worker of this VM, and its protection against re-entrance. Envoy has one VM per worker thread. Re-entrance
//! means that a callback needs the worker while another callback has it. It is a fault of the filter, so it is
//! counted and logged, with state outside of the worker.

use std::cell::{Cell, RefCell};

use sluice_core::metrics::Metric;
use sluice_host::{Host as _, Level};
use sluice_roles::callbacks;
use sluice_roles::worker::Worker;

use crate::host::{self, Envoy};

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
    /// Envoy's number of the metric that counts re-entrance, after the start of the worker.
    static REENTERED: Cell<Option<u32>> = const { Cell::new(None) };
    static LOGGED: Cell<bool> = const { Cell::new(false) };
}

/// Lends the worker to a callback. The callback gets `None` before the first configuration, and while another
/// callback has the worker.
pub fn lend<R>(callback: impl FnOnce(Option<&mut Worker>) -> R) -> R {
    host::enter();
    WORKER.with(|worker| match worker.try_borrow_mut() {
        Ok(mut worker) => callbacks::lend(worker.as_mut(), callback),
        Err(_) => {
            report();
            callback(None)
        }
    })
}

/// Lends the worker's slot to a configuration, which may put a worker there. Returns false while another callback has
/// the worker.
pub fn with_slot(configure: impl FnOnce(&mut Option<Worker>) -> bool) -> bool {
    host::enter();
    WORKER.with(|worker| {
        let Ok(mut worker) = worker.try_borrow_mut() else {
            report();
            return false;
        };
        let configured = configure(&mut worker);
        let metrics = worker.as_ref().map(|worker| &worker.metrics);
        REENTERED.set(metrics.and_then(|metrics| metrics.id(Metric::ReenteredCallbacks)));
        configured
    })
}

#[cold]
fn report() {
    if let Some(metric) = REENTERED.get() {
        // A failure to count cannot be reported.
        let _ = Envoy.increment_metric(metric, 1);
    }
    if !LOGGED.replace(true) {
        let message = "sluice: a callback found its worker in use, and goes on without it";
        Envoy.log(Level::Critical, message);
    }
}
