// SPDX-License-Identifier: Apache-2.0
//! Access of other threads to a worker: they wake its carrier.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::abi::Scheduler;

/// The reasons for which a worker is woken, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakes(u32);

impl Wakes {
    /// There are messages in its queue.
    pub const MESSAGES: Self = Self(1);
    /// Its timer is due.
    pub const TICK: Self = Self(2);
    /// A configuration has been created or has ended.
    pub const CONFIGURATIONS: Self = Self(4);

    /// Whether all of `other` are among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Access to one worker.
#[derive(Debug, Default)]
pub struct Inbox {
    /// The scheduler of the carrier, while there is one.
    scheduler: Mutex<Option<Scheduler>>,
    pending: AtomicU32,
}

impl Inbox {
    /// Wakes the worker, now or as soon as it has a carrier.
    pub fn wake(&self, why: Wakes) {
        // A pending wake has been committed, or will be when the worker gets a carrier.
        if self.pending.fetch_or(why.0, Ordering::AcqRel) == 0 {
            self.commit();
        }
    }

    fn commit(&self) {
        let scheduler = self.scheduler.lock();
        let scheduler = scheduler.unwrap_or_else(PoisonError::into_inner);
        if let Some(scheduler) = &*scheduler {
            scheduler.commit();
        }
    }

    /// Sets the scheduler of the worker's new carrier.
    pub fn attach(&self, scheduler: Scheduler) {
        let mut place = self
            .scheduler
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some(scheduler);
        drop(place);
        if self.pending.load(Ordering::Acquire) != 0 {
            self.commit();
        }
    }

    /// Removes the scheduler of a carrier that ends. No thread uses the scheduler from now on.
    pub fn detach(&self) {
        let mut place = self
            .scheduler
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = None;
    }

    /// Takes the reasons for which the worker has been woken.
    pub fn take(&self) -> Wakes {
        Wakes(self.pending.swap(0, Ordering::AcqRel))
    }
}
