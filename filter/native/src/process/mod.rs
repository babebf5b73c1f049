// SPDX-License-Identifier: Apache-2.0
//! State that the threads of the process share.

pub mod clock;
pub mod inbox;
pub mod queues;

use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sluice_core::hot::SharedBodies;
use sluice_core::workers::shared_data::SharedData;

use crate::configuration::Configuration;
use crate::metrics::Numbers;
use crate::process::clock::Clock;
use crate::process::inbox::{Inbox, Wakes};
use crate::process::queues::Queues;

/// State that the threads of the process share.
#[derive(Debug)]
pub struct Process {
    /// Shared data.
    pub data: SharedData,
    /// The bodies of the workers' hot copies.
    pub bodies: SharedBodies,
    /// The workers' queues.
    pub queues: Queues,
    /// The workers' timers.
    pub clock: Clock,
    /// Envoy's numbers of the metrics, since the first configuration.
    pub metrics: OnceLock<Vec<Numbers>>,
    inboxes: Mutex<Vec<Arc<Inbox>>>,
    /// The configurations of roles that Envoy has, in the order of their creation.
    configurations: Mutex<Vec<Arc<Configuration>>>,
    began: Instant,
}

/// The state of this process.
pub static PROCESS: LazyLock<Process> = LazyLock::new(|| Process {
    data: SharedData::new(),
    bodies: SharedBodies::default(),
    queues: Queues::default(),
    clock: Clock::new(),
    metrics: OnceLock::new(),
    inboxes: Mutex::default(),
    configurations: Mutex::default(),
    began: Instant::now(),
});

/// Value of the monotonic clock at the start of the process, in milliseconds. It is not 0, so that times before the
/// start can be written as well.
const BEGIN_MILLIS: u64 = 1_000_000_000;

impl Process {
    /// Creates the inbox of a new worker.
    pub fn new_inbox(&self) -> Arc<Inbox> {
        let inbox = Arc::<Inbox>::default();
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.push(Arc::clone(&inbox));
        inbox
    }

    /// The configurations of the roles.
    pub fn configurations(&self) -> Vec<Arc<Configuration>> {
        let configurations = self.configurations.lock();
        configurations
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Applies a configuration to all workers.
    pub fn add_configuration(&self, configuration: &Arc<Configuration>) {
        if configuration.is_carrier() {
            return;
        }
        let configurations = self.configurations.lock();
        let mut configurations = configurations.unwrap_or_else(PoisonError::into_inner);
        configurations.push(Arc::clone(configuration));
        drop(configurations);
        self.wake_all(Wakes::CONFIGURATIONS);
    }

    /// Removes a configuration from all workers.
    pub fn remove_configuration(&self, configuration: &Arc<Configuration>) {
        configuration.end();
        let configurations = self.configurations.lock();
        let mut configurations = configurations.unwrap_or_else(PoisonError::into_inner);
        configurations.retain(|known| !Arc::ptr_eq(known, configuration));
        drop(configurations);
        self.wake_all(Wakes::CONFIGURATIONS);
    }

    /// Wakes all workers.
    fn wake_all(&self, why: Wakes) {
        let inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.iter().for_each(|inbox| inbox.wake(why));
    }

    /// Monotonic milliseconds.
    pub fn monotonic_millis(&self) -> u64 {
        let millis = u64::try_from(self.began.elapsed().as_millis());
        millis.unwrap_or(u64::MAX).saturating_add(BEGIN_MILLIS)
    }

    /// Milliseconds since the Unix epoch.
    pub fn unix_millis() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }
}
