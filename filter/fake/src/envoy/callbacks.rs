// SPDX-License-Identifier: Apache-2.0
//! Callbacks of contexts, with the worker that is lent to each callback.

use std::rc::Rc;

use sluice_host::Action;
use sluice_host::Host;
use sluice_roles::callbacks::{self, StreamContext};
use sluice_roles::root::Root;
use sluice_roles::worker::Worker;

use super::FakeEnvoy;
use crate::exchange::{Context, Side};
use crate::process::Before;
use crate::records::Client;

/// Callbacks of contexts.
impl FakeEnvoy {
    /// Calls a context of the worker at `seat`.
    ///
    /// # Panics
    /// Another callback has the worker.
    pub(super) fn callback<R>(
        &mut self,
        seat: usize,
        context: u32,
        call: impl FnOnce(&dyn Host, Option<&mut Worker>) -> R,
    ) -> R {
        self.note_leases();
        let vm = self.vms[seat].as_mut().expect("a VM that lives");
        assert!(!vm.lent, "a callback found its worker in use");
        let host = Rc::clone(&vm.host);
        host.enter(context);
        let mut worker = vm.worker.take();
        vm.lent = true;
        let (start, end) = (vm.withheld.start, vm.withheld.end);
        let withheld = start == 0 && end > 0;
        vm.withheld = start.saturating_sub(1)..end.saturating_sub(1);
        let lent = if withheld { None } else { worker.as_mut() };
        let result = callbacks::lend(lent, |worker| call(&*host, worker));
        vm.worker = worker;
        vm.lent = false;
        result
    }

    /// Records the leases before a callback.
    pub(super) fn note_leases(&self) {
        *self.process.before.borrow_mut() = Before {
            leases: self.flights(),
            faulty: self.data.is_faulty(),
        };
    }

    /// Calls a context of a request. The callback may pause the request.
    ///
    /// # Panics
    /// The callback has answered another stream without pausing its own stream. Envoy would stop its own stream as
    /// well.
    pub(super) fn act(
        &mut self,
        client: Client,
        side: Side,
        call: impl FnOnce(&mut dyn StreamContext, &dyn Host, Option<&mut Worker>) -> Action,
    ) -> Action {
        let action = self.call(client, side, call);
        let seat = self.clients[client.0].seat;
        let vm = self.vms[seat].as_ref().expect("a VM that lives");
        let others = vm.host.answered_others.borrow();
        assert!(
            others.is_empty() || action == Action::Pause,
            "{client:?} goes on though its callback has answered {others:?}"
        );
        action
    }

    /// Calls a context of a request.
    pub(super) fn call<R>(
        &mut self,
        client: Client,
        side: Side,
        call: impl FnOnce(&mut dyn StreamContext, &dyn Host, Option<&mut Worker>) -> R,
    ) -> R {
        let seat = self.clients[client.0].seat;
        let context = self.context(client, side).expect("a context");
        let number = context.number;
        let mut stream = context.stream.take().expect("no callback within another");
        let result = self.callback(seat, number, |host, worker| {
            call(&mut *stream, host, worker)
        });
        if let Some(context) = self.context(client, side) {
            context.stream = Some(stream);
        }
        result
    }

    /// Calls a root context, if it exists.
    pub(super) fn call_root(
        &mut self,
        seat: usize,
        context: u32,
        call: impl FnOnce(&Root, Option<&mut Worker>),
    ) {
        let roots = self.vms[seat].as_ref().map(|vm| &vm.roots);
        let mut roots = roots.into_iter().flatten();
        let root = roots.find(|root| root.context == context);
        if let Some(root) = root.map(|root| Rc::clone(&root.root)) {
            self.callback(seat, context, |_, worker| call(&root, worker));
        }
    }

    /// Returns a context of a request, while the context exists.
    pub(super) fn context(&mut self, client: Client, side: Side) -> Option<&mut Context> {
        let exchange = &mut self.exchanges[client.0];
        match side {
            Side::Edge => exchange.edge.as_mut(),
            Side::Origin => exchange.upstream.as_mut()?.context.as_mut(),
        }
    }

    /// Calls a context for the last time, and removes it.
    pub(super) fn end_context(&mut self, client: Client, side: Side) {
        let Some(number) = self.context(client, side).map(|context| context.number) else {
            return;
        };
        if side == Side::Edge {
            self.call(client, side, |stream, host, worker| {
                stream.on_log(host, worker)
            });
        }
        self.call(client, side, |stream, _, worker| stream.on_done(worker));
        let seat = self.clients[client.0].seat;
        self.contexts.remove(&(seat, number));
        if let Some(vm) = &self.vms[seat] {
            vm.forget(number);
        }
        let exchange = &mut self.exchanges[client.0];
        match side {
            Side::Edge => exchange.edge = None,
            Side::Origin => {
                if let Some(upstream) = &mut exchange.upstream {
                    upstream.context = None;
                }
            }
        }
    }
}
