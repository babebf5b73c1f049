// SPDX-License-Identifier: Apache-2.0
//! What the workers of one Envoy share, and what their host calls lead to after the callback.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use sluice_core::metrics::Metric;
use sluice_core::workers::Millis;
use sluice_host::Half;

use crate::records::{Client, Lease};
use crate::{FakeSharedData, HeaderMap};

/// The Unix time at which the monotonic clock would have begun, in milliseconds.
const EPOCH: Millis = 1_700_000_000_000;

/// A reply that the filter makes itself.
#[derive(Clone, Debug)]
pub(crate) struct LocalReply {
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// A call of the filter's own.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub number: u32,
    pub seat: usize,
    /// The context that gets the answer.
    pub context: u32,
    pub cluster: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// When Envoy gives it up.
    pub deadline: Millis,
}

/// Who led what when a callback began, and whether the board could fail in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub leases: Rc<Vec<Lease>>,
    pub faulty: bool,
}

/// What Envoy does after a callback. Contexts are those of the worker at that seat.
#[derive(Debug)]
pub(crate) enum Task {
    /// Lets a paused half of a stream go on.
    Resume(usize, u32, Half, Before),
    /// Resets a stream; `foreign` says that another stream's callback has asked for that.
    Reset {
        seat: usize,
        context: u32,
        foreign: bool,
    },
    /// Answers a request.
    Reply(usize, u32, LocalReply),
    /// Gives the receiver of a queue its turn.
    Ready(usize, u32),
    /// Lets a request that EDGE has not paused go on to the cache.
    Proceed(Client, Before),
    /// Sends a call.
    Call(Call),
}

impl Task {
    /// Whether Envoy calls the VM again while it carries this out.
    fn calls_back(&self) -> bool {
        matches!(
            self,
            Self::Resume(..) | Self::Reset { .. } | Self::Reply(..)
        )
    }
}

/// Most things at a time that a worker may have Envoy do after callbacks. Envoy does each inside of the one before, and a
/// real VM dies where the thread's stack is full: at some 300 replies.
const MOST_AT_ONCE: usize = 48;

/// A queue by which workers tell each other.
#[derive(Debug)]
pub(crate) struct SharedQueue {
    pub name: String,
    /// The worker and the root context that have registered it last.
    pub receiver: (usize, u32),
    /// Messages on their way from other workers.
    pub under_way: VecDeque<Vec<u8>>,
    /// Messages that the receiver can take.
    pub arrived: VecDeque<Vec<u8>>,
}

/// The process.
#[derive(Debug)]
pub(crate) struct Process {
    pub data: Rc<FakeSharedData>,
    pub now: Cell<Millis>,
    pub tasks: RefCell<VecDeque<Task>>,
    pub queues: RefCell<Vec<SharedQueue>>,
    /// All messages so far, wake-ups aside.
    pub sent: RefCell<Vec<Vec<u8>>>,
    pub log: RefCell<Vec<String>>,
    /// The environment of its VMs.
    pub environment: RefCell<BTreeMap<String, String>>,
    pub before: RefCell<Before>,
    counters: RefCell<Vec<i64>>,
    /// The names of the counters of sites, whose numbers follow those of the edge.
    counters_of_sites: RefCell<Vec<String>>,
    calls: Cell<u32>,
    random: Cell<u64>,
}

impl Process {
    /// A process that has just begun.
    pub fn new() -> Self {
        Self {
            data: Rc::default(),
            now: Cell::new(1_000),
            tasks: RefCell::default(),
            queues: RefCell::default(),
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

    /// The Unix time in milliseconds.
    pub fn unix_millis(&self) -> Millis {
        EPOCH + self.now.get()
    }

    /// Has Envoy do that after the callback.
    ///
    /// # Panics
    /// It has to do too much after the callback.
    pub fn push(&self, task: Task) {
        let mut tasks = self.tasks.borrow_mut();
        let is_turn = |task: &Task| matches!(task, Task::Ready(..));
        let turns = tasks.iter().position(is_turn).filter(|_| !is_turn(&task));
        // A turn of a root context is a callback of its own, after what this one has asked for.
        let place = turns.unwrap_or(tasks.len());
        tasks.insert(place, task);
        let nested = tasks.iter().filter(|task| task.calls_back()).count();
        assert!(
            nested <= MOST_AT_ONCE,
            "{nested} things to do after a callback"
        );
    }

    /// The number of the next call.
    pub fn next_call(&self) -> u32 {
        self.calls.set(self.calls.get() + 1);
        self.calls.get()
    }

    /// Numbers that look random and are the same in each run (SplitMix64).
    pub fn next_random(&self) -> u64 {
        self.random
            .set(self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut number = self.random.get();
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// What a metric says.
    pub fn counted(&self, metric: usize) -> i64 {
        self.counters.borrow()[metric]
    }

    /// The number of a site's counter with that name; `None` if it is no such name.
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
