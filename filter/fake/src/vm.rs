// SPDX-License-Identifier: Apache-2.0
//! The VM of one worker: its worker, its root contexts, and the numbers of its contexts.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use sluice_roles::root::Root;
use sluice_roles::worker::Worker;

use crate::process::Call;
use crate::worker_host::WorkerHost;

/// Root context.
#[derive(Debug)]
pub(crate) struct RootContext {
    pub context: u32,
    pub id: &'static str,
    pub root: Rc<Root>,
}

/// VM of a living worker.
#[derive(Debug)]
pub(crate) struct Vm {
    pub host: Rc<WorkerHost>,
    /// Worker; `None` while a callback has it, and before the first configuration.
    pub worker: Option<Worker>,
    /// Whether a callback has the worker.
    pub lent: bool,
    /// Range of the next callbacks that get no worker, as if another callback had it.
    pub withheld: Range<u32>,
    pub roots: Vec<RootContext>,
    /// Lookups under way.
    pub lookups: VecDeque<Call>,
    /// Readings of the purge feed under way.
    pub readings: VecDeque<Call>,
    /// Lookups whose answers are lost.
    pub lost: Vec<Call>,
    /// Calls to other clusters than the background listener, and calls that wait for the test to send them.
    pub calls: VecDeque<Call>,
    last_context: u32,
}

impl Vm {
    /// Creates a VM without a configuration.
    pub fn new(host: Rc<WorkerHost>) -> Self {
        Self {
            host,
            worker: None,
            lent: false,
            withheld: 0..0,
            roots: Vec::new(),
            lookups: VecDeque::new(),
            readings: VecDeque::new(),
            lost: Vec::new(),
            calls: VecDeque::new(),
            last_context: 0,
        }
    }

    /// Registers a context with the host, and returns its number.
    pub fn new_context(&mut self) -> u32 {
        self.last_context += 1;
        let mut contexts = self.host.contexts.borrow_mut();
        contexts.insert(self.last_context, Default::default());
        self.last_context
    }

    /// Removes a context.
    pub fn forget(&self, context: u32) {
        self.host.contexts.borrow_mut().remove(&context);
    }

    /// Returns the newest root context with this id.
    pub fn root(&self, id: &str) -> Option<&RootContext> {
        self.roots.iter().rev().find(|root| root.id == id)
    }
}
