// SPDX-License-Identifier: Apache-2.0
//! One worker's VM: its worker, its root contexts, its contexts' numbers.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use sluice_roles::root::Root;
use sluice_roles::worker::Worker;

use crate::process::Call;
use crate::worker_host::WorkerHost;

/// A root context.
#[derive(Debug)]
pub(crate) struct RootContext {
    pub context: u32,
    pub id: &'static str,
    pub root: Rc<Root>,
}

/// The VM of a worker that lives.
#[derive(Debug)]
pub(crate) struct Vm {
    pub host: Rc<WorkerHost>,
    /// `None` while a callback has it, and before the first configuration.
    pub worker: Option<Worker>,
    /// A callback has the worker.
    pub lent: bool,
    /// Which of the next callbacks get no worker, as if another callback had it.
    pub withheld: Range<u32>,
    pub roots: Vec<RootContext>,
    /// Lookups on their way.
    pub lookups: VecDeque<Call>,
    /// Lookups whose answer is lost.
    pub lost: Vec<Call>,
    /// Calls to other clusters than the filter's own listener, and such as wait for the test to let them in.
    pub calls: VecDeque<Call>,
    last_context: u32,
}

impl Vm {
    /// A VM without a configuration.
    pub fn new(host: Rc<WorkerHost>) -> Self {
        Self {
            host,
            worker: None,
            lent: false,
            withheld: 0..0,
            roots: Vec::new(),
            lookups: VecDeque::new(),
            lost: Vec::new(),
            calls: VecDeque::new(),
            last_context: 0,
        }
    }

    /// Makes a context known to the host, and gives its number.
    pub fn new_context(&mut self) -> u32 {
        self.last_context += 1;
        let mut contexts = self.host.contexts.borrow_mut();
        contexts.insert(self.last_context, Default::default());
        self.last_context
    }

    /// Forgets a context.
    pub fn forget(&self, context: u32) {
        self.host.contexts.borrow_mut().remove(&context);
    }

    /// The newest root context of that id.
    pub fn root(&self, id: &str) -> Option<&RootContext> {
        self.roots.iter().rev().find(|root| root.id == id)
    }
}
