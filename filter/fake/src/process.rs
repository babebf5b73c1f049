// SPDX-License-Identifier: Apache-2.0
//! The state that the workers of one Envoy share, and the tasks of their host calls after the callback.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use sluice_core::metrics::Metric;
use sluice_core::workers::Millis;
use sluice_host::Half;

use crate::records::{Client, Lease};
use crate::{FakeSharedData, HeaderMap};

/// Unix time in milliseconds at which the monotonic clock was 0.
const EPOCH: Millis = 1_700_000_000_000;

/// Local reply of the filter.
#[derive(Clone, Debug)]
pub(crate) struct LocalReply {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Call of the filter.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub number: u32,
    pub seat: usize,
    /// Context that gets the answer.
    pub context: u32,
    pub cluster: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Time when Envoy ends the call.
    pub deadline: Millis,
}

/// Leases at the start of a callback, and whether the board could fail in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub leases: Rc<Vec<Lease>>,
    pub faulty: bool,
}

/// Task of Envoy after a callback. Contexts belong to the worker at the seat.
#[derive(Debug)]
pub(crate) enum Task {
    /// Resumes a paused half of a stream.
    Resume(usize, u32, Half, Before),
    /// Resets a stream; `foreign` says that another stream's callback has asked for it.
    Reset {
        seat: usize,
        context: u32,
        foreign: bool,
    },
    /// Answers a request.
    Reply(usize, u32, LocalReply),
    /// Gives the receiver of a queue its turn.
    Ready(usize, u32),
    /// Sends a request that EDGE has not paused to the cache.
    Proceed(Client, Before),
    /// Sends a call.
    Call(Call),
}

impl Task {
    /// Whether Envoy calls the VM again while it carries out this task.
    fn calls_back(&self) -> bool {
        matches!(
            self,
            Self::Resume(..) | Self::Reset { .. } | Self::Reply(..)
        )
    }
}

/// Greatest number of tasks after callbacks that a worker may give to Envoy at one time. Envoy carries out each task
/// within the previous one. A real VM dies when the thread's stack is full, at about 300 replies.
const MOST_AT_ONCE: usize = 48;

/// Queue for messages to a worker.
#[derive(Debug)]
pub(crate) struct SharedQueue {
    pub name: String,
    /// Worker and root context that have registered the queue last.
    pub receiver: (usize, u32),
    /// Messages from other workers whose callbacks have not run yet. Only another callback takes them.
    pub under_way: VecDeque<Vec<u8>>,
    /// Messages that the receiver can take.
    pub arrived: VecDeque<Vec<u8>>,
}

/// State of the process.
#[derive(Debug)]
pub(crate) struct Process {
    pub data: Rc<FakeSharedData>,
    pub now: Cell<Millis>,
    pub tasks: RefCell<VecDeque<Task>>,
    pub queues: RefCell<Vec<SharedQueue>>,
    /// Whether a callback for the messages in a queue runs.
    pub hears: Cell<bool>,
    /// All messages so far, except wake-ups.
    pub sent: RefCell<Vec<Vec<u8>>>,
    pub log: RefCell<Vec<String>>,
    /// Environment of the VMs.
    pub environment: RefCell<BTreeMap<String, String>>,
    pub before: RefCell<Before>,
    counters: RefCell<Vec<i64>>,
    /// Names of the sites' counters. Their numbers follow those of the edge's counters.
    counters_of_sites: RefCell<Vec<String>>,
    calls: Cell<u32>,
    random: Cell<u64>,
}

impl Process {
    /// Creates a process that has just started.
    pub fn new() -> Self {
        Self {
            data: Rc::default(),
            now: Cell::new(1_000),
            tasks: RefCell::default(),
            queues: RefCell::default(),
            hears: Cell::new(false),
            sent: RefCell::default(),
            log: RefCell::default(),
            environment: RefCell::default(),
            before: RefCell::default(),
            counters: RefCell::new(vec![0; Metric::ALL.len()]),
            counters_of_sites: RefCell::default(),
            calls: Cell::new(0),
            random: Cell::new(0),
        }
    }

    /// Unix time in milliseconds.
    pub fn unix_millis(&self) -> Millis {
        EPOCH + self.now.get()
    }

    /// Gives Envoy a task for the time after the callback.
    ///
    /// # Panics
    /// Envoy has too many tasks after the callback.
    pub fn push(&self, task: Task) {
        let mut tasks = self.tasks.borrow_mut();
        let is_turn = |task: &Task| matches!(task, Task::Ready(..));
        let turns = tasks.iter().position(is_turn).filter(|_| !is_turn(&task));
        // A turn of a root context is a separate callback. It follows the tasks that this callback has asked for.
        let place = turns.unwrap_or(tasks.len());
        tasks.insert(place, task);
        let nested = tasks.iter().filter(|task| task.calls_back()).count();
        assert!(
            nested <= MOST_AT_ONCE,
            "{nested} things to do after a callback"
        );
    }

    /// Returns the number of the next call.
    pub fn next_call(&self) -> u32 {
        self.calls.set(self.calls.get() + 1);
        self.calls.get()
    }

    /// Returns numbers that look random and are the same in each run (SplitMix64).
    pub fn next_random(&self) -> u64 {
        self.random
            .set(self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut number = self.random.get();
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// Returns the value of a metric.
    pub fn counted(&self, metric: usize) -> i64 {
        self.counters.borrow()[metric]
    }

    /// Returns the number of a site's counter with this name; `None` if no counter can have this name.
    pub fn counter_of_site(&self, name: &str) -> Option<usize> {
        let (metric, _) = name.split_once(".site.")?;
        Metric::ALL.iter().find(|known| known.name() == metric)?;
        let mut names = self.counters_of_sites.borrow_mut();
        let position = names.iter().position(|known| known == name);
        let position = position.unwrap_or_else(|| {
            names.push(name.to_owned());
            self.counters.borrow_mut().push(0);
            names.len() - 1
        });
        Some(Metric::ALL.len() + position)
    }

    /// Adds to a metric.
    pub fn count(&self, metric: usize, offset: i64) -> Option<()> {
        *self.counters.borrow_mut().get_mut(metric)? += offset;
        Some(())
    }
}
