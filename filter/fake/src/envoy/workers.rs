// SPDX-License-Identifier: Apache-2.0
//! The events at workers: time, messages, lookups, policies, faults.

use std::ops::Range;
use std::rc::Rc;

use sluice_core::workers::Millis;
use sluice_host::Queue;
use sluice_roles::root::Root;
use sluice_roles::worker::succession;

use super::FakeEnvoy;
use crate::exchange::Side;
use crate::process::Call;
use crate::records::{Ending, FetchId, FetchPhase, Stage};
use crate::vm::{RootContext, Vm};
use crate::worker_host::WorkerHost;

/// Events at workers.
impl FakeEnvoy {
    /// Advances the clock.
    pub fn advance(&mut self, millis: Millis) {
        self.process.now.set(self.now() + millis);
        self.expire_calls();
    }

    /// Fires the timer of a worker, if it is set. Returns whether it is set.
    pub fn tick(&mut self, seat: usize) -> bool {
        let Some(vm) = &self.vms[seat] else {
            return false;
        };
        let periods = vm.host.periods.borrow().clone();
        let set: Vec<u32> = periods
            .into_iter()
            .filter(|(_, period)| *period > 0)
            .map(|(context, _)| context)
            .collect();
        for context in &set {
            self.call_root(seat, *context, |root, worker| root.on_tick(worker));
            self.run();
        }
        !set.is_empty()
    }

    /// Fires the timers of all workers.
    pub fn tick_all(&mut self) {
        for seat in 0..self.workers() {
            self.tick(seat);
        }
    }

    /// Number of messages under way to a worker.
    pub fn messages(&self, seat: usize) -> usize {
        let queues = self.process.queues.borrow();
        let queue = self.queue(seat).map(|queue| queues[queue].under_way.len());
        queue.unwrap_or(0)
    }

    /// Delivers the oldest message to a worker.
    pub fn deliver(&mut self, seat: usize) {
        let Some(queue) = self.queue(seat) else {
            return;
        };
        let number = Queue(u32::try_from(queue).unwrap_or(u32::MAX));
        let context = {
            let mut queues = self.process.queues.borrow_mut();
            let queue = &mut queues[queue];
            let Some(message) = queue.under_way.pop_front() else {
                return;
            };
            queue.arrived.push_back(message);
            queue.receiver.1
        };
        self.process.hears.set(true);
        self.call_root(seat, context, |root, worker| {
            root.on_queue_ready_of(worker, number)
        });
        self.process.hears.set(false);
        self.run();
    }

    /// Delivers all messages, including the messages that these cause.
    pub fn deliver_all(&mut self) {
        while let Some(seat) = (0..self.workers()).find(|seat| self.messages(*seat) > 0) {
            self.deliver(seat);
        }
    }

    /// Drops the oldest message to a worker.
    pub fn lose(&mut self, seat: usize) {
        if let Some(queue) = self.queue(seat) {
            self.process.queues.borrow_mut()[queue]
                .under_way
                .pop_front();
        }
    }

    /// Returns the queue of the worker that lives at a seat.
    fn queue(&self, seat: usize) -> Option<usize> {
        let name = format!("sluice/worker/{}", self.worker(seat)?.identity.worker.0);
        let queues = self.process.queues.borrow();
        queues.iter().position(|queue| queue.name == name)
    }

    /// Number of lookups and looks of a worker without an answer.
    pub fn lookups(&self, seat: usize) -> usize {
        self.vms[seat].as_ref().map_or(0, |vm| vm.lookups.len())
    }

    /// Answers the oldest lookup of a worker.
    pub fn answer_lookup(&mut self, seat: usize) {
        if let Some(call) = self.take_lookup(seat) {
            self.enter_edge(&call);
            self.run();
        }
    }

    /// Number of readings of the purge feed by a worker that have not been sent to the origin.
    pub fn readings(&self, seat: usize) -> usize {
        self.vms[seat].as_ref().map_or(0, |vm| vm.readings.len())
    }

    /// Sends a worker's reading of the purge feed to the origin. Returns the request there.
    ///
    /// # Panics
    /// There is none.
    pub fn send_reading(&mut self, seat: usize) -> FetchId {
        let vm = self.vms[seat].as_mut();
        let call = vm.and_then(|vm| vm.readings.pop_front());
        self.enter_edge(&call.expect("a reading"));
        self.run();
        FetchId(self.fetches.len() - 1)
    }

    /// Answers the oldest lookup of a worker while the disk is full.
    pub fn refuse_lookup(&mut self, seat: usize) {
        let full = std::mem::replace(&mut self.full, true);
        self.answer_lookup(seat);
        self.full = full;
    }

    /// Drops the answer to the oldest lookup of a worker. Envoy ends the lookup at its deadline.
    pub fn lose_lookup(&mut self, seat: usize) {
        let lookup = self.take_lookup(seat);
        if let Some(vm) = &mut self.vms[seat] {
            vm.lost.extend(lookup);
        }
    }

    fn take_lookup(&mut self, seat: usize) -> Option<Call> {
        self.vms[seat].as_mut()?.lookups.pop_front()
    }

    /// Gives all workers another configuration.
    pub fn reconfigure(&mut self, document: &str) {
        self.document = document.as_bytes().into();
        for seat in 0..self.vms.len() {
            self.update_policy(seat);
        }
    }

    /// Gives a worker the policy again, with a new root context, and removes the old one. A worker that rejects the
    /// policy dies.
    pub fn update_policy(&mut self, seat: usize) {
        if self.vms[seat].is_none() {
            return;
        }
        let former = self.vms[seat].as_ref().and_then(|vm| vm.root("edge"));
        let former = former.map(|root| root.context);
        if !self.configure(seat, "edge") {
            return self.kill(seat);
        }
        self.run();
        if let Some(former) = former {
            self.call_root(seat, former, |root, worker| root.on_drop(worker));
            let vm = self.vms[seat].as_mut().expect("a VM that lives");
            vm.roots.retain(|root| root.context != former);
            vm.host.periods.borrow_mut().remove(&former);
            vm.forget(former);
            self.run();
        }
    }

    /// Creates a root context with this id. False if it rejects its configuration.
    pub(super) fn configure(&mut self, seat: usize, id: &'static str) -> bool {
        self.note_leases();
        let document = Rc::clone(&self.document);
        let vm = self.vms[seat].as_mut().expect("a VM that lives");
        let context = vm.new_context();
        vm.host.periods.borrow_mut().insert(context, 0);
        let size = document.len();
        vm.host.with(context, |messages| {
            messages.configuration = document;
            let name = "plugin_root_id".to_owned();
            messages.properties.insert(name, id.as_bytes().to_vec());
        });
        vm.host.enter(context);
        assert!(!vm.lent, "a configuration found its worker in use");
        let mut root = Root::new(context);
        let host = Rc::clone(&vm.host);
        let configured = root.on_configure(host, &mut vm.worker, size);
        let root = Rc::new(root);
        vm.roots.push(RootContext { context, id, root });
        configured
    }

    /// Kills a worker's VM, which loses all its work.
    pub fn kill(&mut self, seat: usize) {
        // The tasks belong to the worker that has had the last callback.
        self.process.tasks.borrow_mut().clear();
        if let Some(lost) = self.worker(seat) {
            let lost = lost.identity.worker;
            self.lost.insert(seat, lost);
        }
        self.vms[seat] = None;
        self.contexts.retain(|(of, _), _| *of != seat);
        self.aborts.retain(|(of, _)| *of != seat);
        self.turns.retain(|(of, _)| *of != seat);
        for number in 0..self.clients.len() {
            if self.clients[number].seat != seat {
                continue;
            }
            if !matches!(self.clients[number].stage, Stage::Over(_)) {
                self.clients[number].stage = Stage::Over(Ending::Left);
            }
            let exchange = &mut self.exchanges[number];
            (exchange.edge, exchange.call) = (None, None);
            if let Some(upstream) = exchange.upstream.take() {
                if upstream.filling.is_some() {
                    self.cache.abandon(&upstream.key);
                }
                if let Some(fetch) = upstream.fetch {
                    self.fetches[fetch.0].phase = FetchPhase::Over;
                }
            }
        }
    }

    /// Gives a dead worker a new VM with a new number.
    pub fn revive(&mut self, seat: usize) {
        if self.vms[seat].is_some() {
            return;
        }
        let host = WorkerHost::new(seat, Rc::clone(&self.process));
        self.vms[seat] = Some(Vm::new(Rc::new(host)));
        let configured = self.configure(seat, "origin") && self.configure(seat, "edge");
        if configured {
            let lost = self.lost.remove(&seat);
            if let (Some(worker), Some(lost)) = (self.worker(seat), lost) {
                succession::succeed(&*worker.host, &worker.metrics, lost);
            }
            self.run();
        } else {
            self.kill(seat);
        }
    }

    /// Withholds the worker from the callbacks of a VM in the range `callbacks`, counted from now, as if another
    /// callback had the worker.
    pub fn withhold_worker(&mut self, seat: usize, callbacks: Range<u32>) {
        if let Some(vm) = &mut self.vms[seat] {
            vm.withheld = callbacks;
        }
    }

    /// Returns filter state, or another property, that the filter has set on a request that is not over.
    pub fn property(&mut self, client: crate::Client, name: &str) -> Option<String> {
        let value = self.with_messages(client, Side::Edge, |messages| {
            messages.properties.get(name).cloned()
        });
        value
            .flatten()
            .and_then(|value| String::from_utf8(value).ok())
    }
}
