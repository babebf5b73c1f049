// SPDX-License-Identifier: Apache-2.0
//! The worker of this VM, which Envoy has one of per worker thread, and re-entrance: a callback that asks for the worker
//! while another has it. That is a fault of the filter, so it is counted and logged, by what is known without the worker.

use std::cell::{Cell, RefCell};

use sluice_core::metrics::Metric;
use sluice_host::{Host as _, Level};
use sluice_roles::worker::Worker;

use crate::host::{self, Envoy};

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
    /// Envoy's number of the metric that counts re-entrance, once the worker has started.
    static REENTERED: Cell<Option<u32>> = const { Cell::new(None) };
    static LOGGED: Cell<bool> = const { Cell::new(false) };
}

/// Lends the worker to a callback: `None` before the first configuration, and while another callback has it.
pub fn lend<R>(callback: impl FnOnce(Option<&mut Worker>) -> R) -> R {
    host::enter();
    WORKER.with(|worker| match worker.try_borrow_mut() {
        Ok(mut worker) => callback(worker.as_mut()),
        Err(_) => {
            report();
            callback(None)
        }
    })
}

/// Lends the place of the worker to a configuration, which may put one there. False while a callback has the worker.
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
        // There is nowhere to report a failure to count.
        let _ = Envoy.increment_metric(metric, 1);
    }
    if !LOGGED.replace(true) {
        let message = "sluice: a callback found its worker in use, and goes on without it";
        Envoy.log(Level::Critical, message);
    }
}
