// SPDX-License-Identifier: Apache-2.0
//! The root contexts of this worker. Only a root context has the timer and the queue through which workers send each
//! other messages.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use sluice_core::workers::message::Message;
use sluice_core::workers::shared_value::SharedError;
use sluice_core::workers::{Millis, Roster, WorkerId};

use crate::worker::metrics::Metrics;
use sluice_host::{self as host, Host, Queue};

/// The `vm_id` in Envoy's configuration, by which workers find each other's queues.
const VM_ID: &str = "sluice";

/// The root contexts, and the queues of all workers.
#[derive(Debug)]
pub struct Roots {
    host: Rc<dyn Host>,
    metrics: Rc<Metrics>,
    /// This worker.
    worker: WorkerId,
    /// All live root contexts that have a policy, in the order of their configuration.
    contexts: Vec<u32>,
    /// The root context whose callback runs, or ran last.
    serving: u32,
    queue: Option<Queue>,
    /// Messages that were taken from the queue outside of its callback, in their order.
    held: VecDeque<Vec<u8>>,
    /// The Unix time in milliseconds at which the queue was read last.
    read: Millis,
    /// The root context that is called for messages.
    receiver: u32,
    /// Whether the host's [`Host::first_root`] has ended.
    first_is_gone: bool,
    /// The queues of other workers to which this worker has sent messages.
    queues: HashMap<WorkerId, Queue>,
    /// The timer's period in milliseconds; 0 means no timer.
    tick_period: Millis,
    /// Whether the effective context differs from that of the callback.
    acting_as_other: Cell<bool>,
}

impl Roots {
    /// The roots of `worker`, without any root context yet.
    pub fn new(host: Rc<dyn Host>, metrics: Rc<Metrics>, worker: WorkerId) -> Self {
        Self {
            host,
            metrics,
            worker,
            contexts: Vec::new(),
            serving: 0,
            queue: None,
            held: VecDeque::new(),
            read: 0,
            receiver: 0,
            first_is_gone: false,
            queues: HashMap::new(),
            tick_period: 0,
            acting_as_other: Cell::new(false),
        }
    }

    /// This worker.
    pub const fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Adds a root context, which is the newest now.
    pub fn add(&mut self, context: u32) {
        self.contexts.push(context);
        self.serving = context;
    }

    /// Forgets a root context that ends. Returns true if another one has to take over the timer and the queue.
    pub fn remove(&mut self, context: u32) -> bool {
        self.first_is_gone |= self.host.first_root() == Some(context);
        let serves = self.serves(context);
        self.contexts.retain(|known| *known != context);
        self.serving = self.newest();
        serves && !self.contexts.is_empty()
    }

    /// The newest root context, which has the timer; 0 means none.
    fn newest(&self) -> u32 {
        self.contexts.last().copied().unwrap_or(0)
    }

    /// Whether `context` has the timer or the queue.
    pub fn serves(&self, context: u32) -> bool {
        context == self.newest() || context == self.receiver
    }

    /// Notes that a callback of this root context begins. Answers to calls that it makes are delivered to it.
    pub fn begin_callback(&mut self, context: u32) {
        self.serving = context;
    }

    /// The root context whose callback runs, or ran last.
    pub fn serving(&self) -> u32 {
        self.serving
    }

    /// Makes a root context the receiver of this worker's queue: the VM's first one, or the newest one if the first
    /// has ended. After a VM has died, the host delivers the VM's messages to the same context number in the next VM.
    /// The SDK aborts if that number belongs to a stream. The number of the first root context never does.
    pub fn register(&mut self) -> host::Result<()> {
        // The first root context may have ended before this worker began.
        let first = self.host.first_root().filter(|first| {
            self.first_is_gone = self.first_is_gone || self.act_as(*first).is_err();
            !self.first_is_gone
        });
        let receiver = first.unwrap_or(self.newest());
        let queue = self
            .act_as(receiver)?
            .register_queue(&queue_name(self.worker))?;
        self.restore(self.newest());
        self.queue = Some(queue);
        self.receiver = receiver;
        // The timer of the former root context stopped with that context.
        self.tick_period = 0;
        self.metrics.belong_to(self.worker, receiver);
        Ok(())
    }

    /// Gives the receiver of another worker's queue a turn, and returns the queue.
    pub fn knock(&self, other: WorkerId) -> host::Result<Queue> {
        let queue = self.host.resolve_queue(VM_ID, &queue_name(other))?;
        self.host.enqueue(queue, &[])?;
        Ok(queue)
    }

    /// Makes another context the target of the following host calls.
    pub fn act_as(&self, context: u32) -> host::Result<&dyn Host> {
        self.acting_as_other.set(true);
        self.host.act_as(context)?;
        Ok(&*self.host)
    }

    /// Makes the newest root context, which has the timer, the target of the following host calls.
    fn act_as_root(&self) -> host::Result<&dyn Host> {
        self.act_as(self.newest())
    }

    /// Makes `context`, which is that of the callback, the target of host calls again, if another one was.
    pub fn restore(&self, context: u32) {
        if self.acting_as_other.take() {
            self.metrics.check(self.host.act_as(context));
        }
    }

    /// Gives the queue and the timer to the remaining root contexts, and stops the timer.
    pub fn take_over(&mut self) -> host::Result<()> {
        self.register()?;
        self.act_as_root()?.set_tick_period(0)
    }

    /// Requests a turn of the root context that has the queue, after this callback.
    pub fn wake(&self) {
        if let Some(queue) = self.queue {
            self.metrics.check(self.host.enqueue(queue, &[]));
        }
    }

    /// The next message to this worker. A message that cannot be decoded is a request for a turn.
    pub fn receive(&mut self) -> host::Result<Option<Vec<u8>>> {
        match self.held.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.take_from_queue(),
        }
    }

    /// The next message in this worker's queue, without the held messages.
    pub fn take_from_queue(&self) -> host::Result<Option<Vec<u8>>> {
        self.queue
            .map_or(Ok(None), |queue| self.host.dequeue(queue))
    }

    /// Keeps a message for [`Roots::receive`].
    pub fn hold(&mut self, message: Vec<u8>) {
        self.held.push_back(message);
    }

    /// Notes that the queue is read at `now`, a Unix time in milliseconds.
    pub fn note_reading(&mut self, now: Millis) {
        self.read = now;
    }

    /// Whether the queue was not read within `period` milliseconds in front of `now`. A step of the clock counts as
    /// such a time.
    pub fn has_not_read(&self, now: Millis, period: Millis) -> bool {
        now.abs_diff(self.read) >= period
    }

    /// Puts a message into another worker's queue.
    pub fn send(&mut self, worker: WorkerId, message: &Message) -> host::Result<()> {
        let queue = match self.queues.get(&worker) {
            Some(queue) => *queue,
            None => {
                let queue = self.host.resolve_queue(VM_ID, &queue_name(worker))?;
                self.queues.insert(worker, queue);
                queue
            }
        };
        self.host.enqueue(queue, &message.encode())
    }

    /// The other workers on the roster.
    ///
    /// # Errors
    /// Shared data could not be read.
    pub fn others(&self) -> Result<Vec<WorkerId>, SharedError> {
        let mut members = Roster::new(&*self.host).members()?;
        members.retain(|member| *member != self.worker);
        Ok(members)
    }

    /// Sends a message to all other workers that the roster names. Logs `fault` for each worker that the message does
    /// not reach.
    pub fn tell_others(&mut self, message: &Message, fault: &'static str) {
        let others = self.others().unwrap_or_default();
        self.spread(&others, message, fault);
    }

    /// Sends a message to other workers. Logs `fault` for each worker that the message does not reach.
    pub fn spread(&mut self, others: &[WorkerId], message: &Message, fault: &'static str) {
        for &other in others {
            if let Err(error) = self.send(other, message) {
                self.metrics.fault(fault, error);
            }
        }
    }

    /// Shortens the timer's period to `period` milliseconds, or starts the timer.
    pub fn shorten_period(&mut self, period: Millis) {
        if period > 0 && (self.tick_period == 0 || period < self.tick_period) {
            self.set_period(period);
        }
    }

    /// Sets the timer's period in milliseconds; 0 stops it.
    pub fn set_period(&mut self, period: Millis) {
        if period == self.tick_period {
            return;
        }
        let millis = u32::try_from(period).unwrap_or(0);
        let set = self
            .act_as_root()
            .and_then(|host| host.set_tick_period(millis));
        if set.is_ok() {
            self.tick_period = period;
        }
        self.metrics.check(set);
    }
}

/// Name of a worker's queue.
fn queue_name(worker: WorkerId) -> String {
    format!("sluice/worker/{}", worker.0)
}
