// SPDX-License-Identifier: Apache-2.0
//! The root contexts of this worker, with what only a root context has: the timer and the queue.

use std::collections::HashMap;

use crate::host::{self, Host, Queue};
use sluice_core::workers::{Millis, WorkerId};

/// The `vm_id` in Envoy's configuration, by which workers find each other's queues.
const VM_ID: &str = "sluice";

/// The root contexts, and the queues of all workers.
#[derive(Debug, Default)]
pub struct Roots {
    /// All root contexts that have a policy and are there, in the order of their configuration.
    contexts: Vec<u32>,
    queue: Option<Queue>,
    /// The queues of other workers, as far as they were needed.
    queues: HashMap<WorkerId, Queue>,
    /// The timer's period in milliseconds; 0 is none.
    pub tick_period: Millis,
    /// The effective context is another than that of the callback.
    pub acting_as_other: bool,
}

impl Roots {
    /// Adds a root context, which is the newest now.
    pub fn add(&mut self, context: u32) {
        self.contexts.push(context);
    }

    /// Forgets a root context that goes. True if another has to take over the timer and the queue.
    pub fn remove(&mut self, context: u32) -> bool {
        let serves = self.newest() == context;
        self.contexts.retain(|known| *known != context);
        serves && !self.contexts.is_empty()
    }

    /// The newest root context, which has the timer and the queue; 0 is none.
    pub fn newest(&self) -> u32 {
        self.contexts.last().copied().unwrap_or(0)
    }

    /// Makes the newest root context the receiver of `worker`'s queue, this worker's own. The host must take that context
    /// for the caller: a queue belongs to the one that has registered it last.
    pub fn register(&mut self, host: &dyn Host, worker: WorkerId) -> host::Result<()> {
        self.queue = Some(host.register_queue(&queue_name(worker))?);
        // The timer of the former root context has stopped with it.
        self.tick_period = 0;
        Ok(())
    }

    /// Asks Envoy for a turn of the newest root context, after this callback.
    pub fn wake(&self, host: &dyn Host) -> host::Result<()> {
        self.queue.map_or(Ok(()), |queue| host.enqueue(queue, &[]))
    }

    /// The next message in this worker's queue.
    pub fn receive(&self, host: &dyn Host) -> host::Result<Option<Vec<u8>>> {
        self.queue.map_or(Ok(None), |queue| host.dequeue(queue))
    }

    /// Puts a message into another worker's queue.
    pub fn send(&mut self, host: &dyn Host, worker: WorkerId, message: &[u8]) -> host::Result<()> {
        let queue = match self.queues.get(&worker) {
            Some(queue) => *queue,
            None => {
                let queue = host.resolve_queue(VM_ID, &queue_name(worker))?;
                self.queues.insert(worker, queue);
                queue
            }
        };
        host.enqueue(queue, message)
    }
}

/// Name of a worker's queue.
fn queue_name(worker: WorkerId) -> String {
    format!("sluice/worker/{}", worker.0)
}
