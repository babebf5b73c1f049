// SPDX-License-Identifier: Apache-2.0
//! The workers' timers. Envoy has no timers for filters, so one thread wakes the workers whose timer is due.

use std::sync::{Arc, Condvar, Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::inbox::{Inbox, Wakes};

/// Size of the thread's stack.
pub const STACK_BYTES: usize = 128 * 1024;

/// The timer of a worker.
#[derive(Debug)]
struct Timer {
    inbox: Arc<Inbox>,
    period: Duration,
    due: Instant,
}

/// All running timers.
#[derive(Debug)]
pub struct Clock {
    timers: Mutex<Vec<Timer>>,
    changed: Condvar,
    started: Once,
}

impl Clock {
    /// A clock without timers.
    pub const fn new() -> Self {
        Self {
            timers: Mutex::new(Vec::new()),
            changed: Condvar::new(),
            started: Once::new(),
        }
    }

    /// Sets the period of a worker's timer; `None` stops it.
    pub fn set(&'static self, inbox: &Arc<Inbox>, period: Option<Duration>) {
        let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        timers.retain(|timer| !Arc::ptr_eq(&timer.inbox, inbox));
        if let Some(period) = period {
            timers.push(Timer {
                inbox: Arc::clone(inbox),
                period,
                due: Instant::now() + period,
            });
            self.changed.notify_one();
        }
        drop(timers);
        self.started.call_once(|| {
            let thread = thread::Builder::new().name("sluice:clock".to_owned());
            // Without the thread no timer is ever due, so no request stops waiting.
            let _ = thread.stack_size(STACK_BYTES).spawn(|| self.run());
        });
    }

    fn run(&self) {
        let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            for timer in timers.iter_mut().filter(|timer| timer.due <= now) {
                timer.due = now + timer.period;
                timer.inbox.wake(Wakes::TICK);
            }
            let next = timers.iter().map(|timer| timer.due).min();
            timers = match next {
                Some(next) => {
                    let waited = self.changed.wait_timeout(timers, next.duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .changed
                    .wait(timers)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
