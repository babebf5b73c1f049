// SPDX-License-Identifier: Apache-2.0
//! A worker thread of Envoy: the roles' worker, the root contexts and the streams on it, and the tasks that remain
//! after a callback.
//!
//! A native_worker is never freed, because Envoy destroys streams after Rust has destroyed a thread's local data.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sluice_core::metrics::Metric;
use sluice_core::workers::{NumberMap, WorkerId};
use sluice_host::{Action, Half, Host, Queue};
use sluice_roles::callbacks::{self, StreamContext};
use sluice_roles::root::Root;
use sluice_roles::worker::{Worker, succession};

use crate::abi::{self, CallAnswer, Filter, LogLevel};
use crate::configuration::Configuration;
use crate::metrics::DefinedMetric;
use crate::process::PROCESS;
use crate::process::inbox::Inbox;
use crate::reply::Reply;
use crate::stream::{Part, Stream};

/// A task that the roles have requested. It is done after the callback, because Envoy may call the module again
/// meanwhile.
#[derive(Debug)]
pub enum Task {
    /// Resumes a paused half of a stream.
    Resume(u32, Half),
    /// Resets a stream.
    Reset(u32),
    /// Answers a request.
    Reply(u32, Reply),
}

/// A root context.
pub struct RootContext {
    /// Its number.
    pub context: u32,
    /// The configuration that it belongs to.
    pub configuration: Arc<Configuration>,
    /// Empty while the root context is configured.
    root: OnceCell<Root>,
}

/// The object that the calls of a callback concern.
#[derive(Clone, Default)]
pub enum Effective {
    /// No object.
    #[default]
    Nobody,
    /// A root context.
    Root(u32),
    /// A stream.
    Stream(Rc<Stream>),
}

/// One worker thread.
pub struct NativeWorker {
    /// The access of other threads to it.
    pub inbox: Arc<Inbox>,
    /// The stream that never ends, for the filter's own calls and turns.
    pub carrier: RefCell<Option<Rc<Stream>>>,
    /// The object that the calls of this callback concern.
    pub effective: RefCell<Effective>,
    /// Tasks to be done after this callback.
    pub tasks: RefCell<VecDeque<Task>>,
    /// Streams that have ended within a callback, and whose roles have not been notified.
    ended: RefCell<Vec<Rc<Stream>>>,
    /// The answer that this callback concerns.
    pub answer: RefCell<Option<CallAnswer>>,
    /// The metrics that the roles have defined, by their numbers.
    pub metrics: RefCell<Vec<DefinedMetric>>,
    /// Additions to metrics that had no stream in whose name to count them.
    uncounted: RefCell<Vec<(DefinedMetric, i64)>>,
    /// The root context that is called for messages.
    pub receiver: Cell<u32>,
    /// The root context that is called when the timer is due.
    pub ticking: Cell<u32>,
    /// The host of the roles.
    host: OnceCell<Rc<dyn Host>>,
    worker: RefCell<Option<Worker>>,
    roots: RefCell<Vec<Rc<RootContext>>>,
    streams: RefCell<NumberMap<u32, Rc<Stream>>>,
    /// The root contexts that have made the carrier's calls, by Envoy's number of the call.
    calls: RefCell<NumberMap<u64, u32>>,
    last_context: Cell<u32>,
    /// The worker that was lost, until the next one has subtracted its share from the gauges.
    lost: Cell<Option<WorkerId>>,
    /// Monotonic milliseconds that this callback has read.
    millis: Cell<Option<u64>>,
}

thread_local! {
    // Without a destructor, so that Rust does not destroy it before Envoy's last streams.
    static NATIVE_WORKER: Cell<Option<&'static NativeWorker>> = const { Cell::new(None) };
}

impl NativeWorker {
    /// The native_worker of this thread, if the thread has had a stream.
    pub fn of_this_thread() -> Option<&'static Self> {
        NATIVE_WORKER.get()
    }

    /// The native_worker of this thread. If there is none, creates one with the host that `host` returns.
    pub fn take(host: impl FnOnce(&'static Self) -> Rc<dyn Host>) -> &'static Self {
        NATIVE_WORKER.get().unwrap_or_else(|| {
            let native_worker = &*Box::leak(Box::new(Self::new()));
            let _ = native_worker.host.set(host(native_worker));
            NATIVE_WORKER.set(Some(native_worker));
            native_worker
        })
    }

    fn new() -> Self {
        Self {
            inbox: PROCESS.new_inbox(),
            carrier: RefCell::default(),
            effective: RefCell::default(),
            tasks: RefCell::default(),
            ended: RefCell::default(),
            answer: RefCell::default(),
            metrics: RefCell::default(),
            uncounted: RefCell::default(),
            receiver: Cell::new(0),
            ticking: Cell::new(0),
            host: OnceCell::new(),
            worker: RefCell::default(),
            roots: RefCell::default(),
            streams: RefCell::default(),
            calls: RefCell::default(),
            last_context: Cell::new(0),
            lost: Cell::new(None),
            millis: Cell::new(None),
        }
    }

    /// Creates a stream with the role of `configuration`. Returns `None` if the role cannot begin.
    pub fn open(
        &'static self,
        configuration: &Arc<Configuration>,
        filter: Filter,
    ) -> Option<Rc<Stream>> {
        if self.root_of(configuration).is_none() {
            self.configure_all();
        }
        let root_context = self.root_of(configuration)?;
        let root = root_context.root.get()?;
        let context = self.new_context();
        let part = Part::Role(RefCell::new(root.stream_context(context)));
        let upstream = configuration.is_upstream();
        let stream = Rc::new(Stream::new(context, filter, part, upstream));
        let mut streams = self.streams.borrow_mut();
        streams.insert(context, Rc::clone(&stream));
        Some(stream)
    }

    /// The root context of a configuration.
    fn root_of(&self, configuration: &Arc<Configuration>) -> Option<Rc<RootContext>> {
        let is_its = |root: &&Rc<RootContext>| Arc::ptr_eq(&root.configuration, configuration);
        self.roots.borrow().iter().find(is_its).cloned()
    }

    /// Applies all configurations to the worker that it does not know yet. The first one creates the worker.
    pub fn configure_all(&'static self) {
        for configuration in PROCESS.configurations() {
            if self.root_of(&configuration).is_none() {
                self.configure(&configuration);
            }
        }
    }

    fn configure(&'static self, configuration: &Arc<Configuration>) {
        let context = self.new_context();
        let configured = Rc::new(RootContext {
            context,
            configuration: Arc::clone(configuration),
            root: OnceCell::new(),
        });
        self.roots.borrow_mut().push(Rc::clone(&configured));
        self.enter(Effective::Root(context));
        let mut root = Root::new(context);
        let size = configuration.text.len();
        let accepted = match (self.host.get(), self.worker.try_borrow_mut()) {
            (Some(host), Ok(mut worker)) => {
                let accepted = root.on_configure(Rc::clone(host), &mut worker, size);
                if let Some(worker) = &*worker
                    && let Some(lost) = self.lost.take()
                {
                    succession::succeed(&*worker.host, &worker.metrics, lost);
                }
                accepted
            }
            _ => false,
        };
        self.leave();
        if !accepted || configured.root.set(root).is_err() {
            let mut roots = self.roots.borrow_mut();
            roots.retain(|root| root.context != context);
        }
    }

    fn new_context(&self) -> u32 {
        let next = self.last_context.get().wrapping_add(1).max(1);
        self.last_context.set(next);
        next
    }

    /// The stream with that number.
    pub fn stream(&self, context: u32) -> Option<Rc<Stream>> {
        self.streams.borrow().get(&context).cloned()
    }

    /// The root context with that number.
    pub fn root(&self, context: u32) -> Option<Rc<RootContext>> {
        let roots = self.roots.borrow();
        roots.iter().find(|root| root.context == context).cloned()
    }

    /// Adds to a counter or gauge. Returns false if Envoy refuses it.
    pub fn add(&self, metric: &DefinedMetric, offset: i64) -> bool {
        if let Some(filter) = self.witness() {
            return metric.increment(filter, offset);
        }
        let mut uncounted = self.uncounted.borrow_mut();
        match uncounted.iter_mut().find(|(known, _)| known == metric) {
            Some((_, sum)) => *sum += offset,
            None => uncounted.push((metric.clone(), offset)),
        }
        true
    }

    /// Counts, in the name of the carrier, each addition that had no stream.
    pub fn count_late(&self) {
        for (metric, offset) in self.uncounted.take() {
            self.add(&metric, offset);
        }
    }

    /// Returns a stream in whose name metrics are counted, because Envoy counts only in the name of a stream. The
    /// carrier's counters are the server's. Those of a stream behind the cache filter would be its cluster's. There is
    /// none only until the worker has a carrier.
    pub fn witness(&self) -> Option<Filter> {
        if let Some(carrier) = &*self.carrier.borrow() {
            return Some(carrier.filter);
        }
        let streams = self.streams.borrow();
        let is_server = |stream: &&Rc<Stream>| !stream.upstream && !stream.ended.get();
        streams.values().find(is_server).map(|stream| stream.filter)
    }

    /// Monotonic milliseconds, read once in a callback.
    pub fn monotonic_millis(&self) -> u64 {
        let millis = self.millis.get();
        let millis = millis.unwrap_or_else(|| PROCESS.monotonic_millis());
        self.millis.set(Some(millis));
        millis
    }

    fn enter(&self, effective: Effective) {
        self.millis.set(None);
        self.effective.replace(effective);
    }

    /// Calls the role's context of a stream. The tasks that it requests are not done yet.
    pub fn call<R>(
        &'static self,
        stream: &Rc<Stream>,
        call: impl FnOnce(&mut dyn StreamContext, &dyn Host, Option<&mut Worker>) -> R,
    ) -> Option<R> {
        let Part::Role(role) = &stream.part else {
            return None;
        };
        self.enter(Effective::Stream(Rc::clone(stream)));
        let (mut role, host) = (role.try_borrow_mut().ok()?, self.host.get()?);
        let result = self.lend(|worker| call(&mut **role, &**host, worker));
        self.leave();
        Some(result)
    }

    /// Calls a root context in the name of the carrier, and does the tasks that it requests.
    pub fn call_root(&'static self, context: u32, call: impl FnOnce(&Root, Option<&mut Worker>)) {
        let root_context = self.root(context);
        let root = root_context.as_ref().and_then(|root| root.root.get());
        let Some(root) = root.filter(|_| self.carrier.borrow().is_some()) else {
            return;
        };
        self.enter(Effective::Root(context));
        self.lend(|worker| call(root, worker));
        self.leave();
        self.do_tasks();
    }

    fn leave(&self) {
        self.effective.replace(Effective::Nobody);
    }

    /// Lends the worker to a callback. The callback gets `None` before the first configuration, and while another
    /// callback has the worker.
    fn lend<R>(&self, callback: impl FnOnce(Option<&mut Worker>) -> R) -> R {
        match self.worker.try_borrow_mut() {
            Ok(mut worker) => callbacks::lend(worker.as_mut(), callback),
            Err(_) => {
                self.count(Metric::ReenteredCallbacks);
                callback(None)
            }
        }
    }

    /// Adds one to a metric, without use of the worker.
    fn count(&'_ self, metric: Metric) {
        let numbers = PROCESS.metrics.get().map(Vec::as_slice);
        let metric = DefinedMetric::find(numbers.unwrap_or_default(), metric.name());
        if let Some(metric) = metric {
            self.add(&metric, 1);
        }
    }

    /// Whether a callback has the worker. Envoy calls the module again within some calls.
    pub fn is_busy(&self) -> bool {
        self.worker.try_borrow_mut().is_err()
    }

    /// Notes a stream that has ended within a callback. Its role is notified after the callback.
    pub fn end_later(&self, stream: &Rc<Stream>) {
        self.forget(stream);
        self.ended.borrow_mut().push(Rc::clone(stream));
    }

    /// Notifies the roles of streams that have ended within a callback. Envoy has destroyed its side of these
    /// streams.
    fn tell_ended(&self) {
        for stream in self.ended.take() {
            let Part::Role(role) = &stream.part else {
                continue;
            };
            self.leave();
            self.millis.set(None);
            if let Ok(mut role) = role.try_borrow_mut() {
                self.lend(|worker| role.on_done(worker));
            }
            self.leave();
        }
    }

    /// Does the tasks that callbacks have requested. Does nothing within a callback, because the outer callback does
    /// all tasks.
    pub fn do_tasks(&'static self) {
        while !self.is_busy() {
            self.tell_ended();
            // Envoy may call the module again in each task. The tasks of such a call are done there.
            let Some(task) = self.tasks.borrow_mut().pop_front() else {
                return;
            };
            self.do_task(task);
        }
    }

    fn do_task(&'static self, task: Task) {
        let (Task::Resume(context, _) | Task::Reset(context) | Task::Reply(context, _)) = task;
        let Some(stream) = self.stream(context).filter(|stream| !stream.ended.get()) else {
            return;
        };
        match task {
            Task::Resume(_, half) if stream.handling.get() == Some(half) => {
                stream.resumed.set(true)
            }
            Task::Resume(_, Half::Request) => stream.filter.continue_decoding(),
            Task::Resume(_, Half::Response) if stream.reply.borrow().is_some() => {
                self.finish_reply(&stream);
            }
            Task::Resume(_, Half::Response) => stream.filter.continue_encoding(),
            Task::Reset(_) => stream.filter.reset("sluice_reset"),
            Task::Reply(_, reply) => self.reply(&stream, reply),
        }
    }

    /// Passes a reply to a request to the role, and sends it.
    fn reply(&'static self, stream: &Rc<Stream>, reply: Reply) {
        if stream.responds.get() || stream.reply.borrow().is_some() || stream.upstream {
            stream.reply.replace(None);
            stream.responds.set(true);
            return stream.send(&reply);
        }
        let ends = reply.body.is_empty() || stream.is_head();
        stream.reply.replace(Some(reply));
        let action = self.call(stream, |role, host, worker| {
            role.on_response_headers(host, worker, ends)
        });
        if action == Some(Action::Continue) {
            self.finish_reply(stream);
        }
    }

    /// Sends a reply whose headers have passed the role.
    fn finish_reply(&'static self, stream: &Rc<Stream>) {
        let size = stream.reply.borrow().as_ref().map(|reply| reply.body.len());
        let size = size.filter(|size| *size > 0 && !stream.is_head());
        if let Some(size) = size {
            self.call(stream, |role, host, worker| {
                role.on_response_body(host, worker, size, true)
            });
        }
        let reply = stream.reply.take();
        if let Some(reply) = reply {
            stream.send(&reply);
        }
    }

    /// Notes the root context that has made a call of the carrier.
    pub fn note_call(&self, call: u64, root: u32) {
        self.calls.borrow_mut().insert(call, root);
    }

    /// Removes a call. Returns the root context that has made it.
    pub fn take_call(&self, call: u64) -> Option<u32> {
        self.calls.borrow_mut().remove(&call)
    }

    /// Removes all calls, because their answers are lost with the carrier.
    pub fn take_calls(&self) -> Vec<(u64, u32)> {
        self.calls.borrow_mut().drain().collect()
    }

    /// Makes the effective root context the receiver of the messages for this worker.
    pub fn register_queue(&self, name: &str) -> Option<Queue> {
        let Effective::Root(context) = *self.effective.borrow() else {
            return None;
        };
        let queue = PROCESS.queues.register(name, &self.inbox)?;
        self.receiver.set(context);
        Some(queue)
    }

    /// Sets the period of the effective root context's timer; zero stops it.
    pub fn set_tick_period(&self, milliseconds: u32) -> bool {
        let Effective::Root(context) = *self.effective.borrow() else {
            return false;
        };
        self.ticking.set(context);
        let period = (milliseconds > 0).then(|| Duration::from_millis(milliseconds.into()));
        PROCESS.clock.set(&self.inbox, period);
        true
    }

    /// Drops the root contexts whose configuration has ended.
    pub fn drop_roots(&'static self) {
        let (gone, left) = std::mem::take(&mut *self.roots.borrow_mut())
            .into_iter()
            .partition::<Vec<_>, _>(|root| root.configuration.is_gone());
        *self.roots.borrow_mut() = left;
        for root in gone {
            self.enter(Effective::Nobody);
            if let Some(root) = root.root.get() {
                self.lend(|worker| root.on_drop(worker));
            }
            self.leave();
            self.do_tasks();
        }
    }

    /// Forgets a stream that has ended.
    pub fn forget(&self, stream: &Stream) {
        stream.ended.set(true);
        self.streams.borrow_mut().remove(&stream.context);
    }

    /// Discards the worker, because a callback has panicked and the worker's state may be wrong. All its requests
    /// end. The worker starts again with the next request, as after the death of a VM.
    pub fn lose_worker(&'static self) {
        self.enter(Effective::Nobody);
        self.count(Metric::WorkersLost);
        let message = "sluice: a callback panicked: its worker ends its requests and starts again";
        abi::log(LogLevel::Critical, message);
        self.leave();
        PROCESS.queues.close(&self.inbox);
        PROCESS.clock.set(&self.inbox, None);
        self.tasks.borrow_mut().clear();
        // The state of their roles may be too damaged to be destroyed.
        std::mem::forget(self.ended.take());
        self.calls.borrow_mut().clear();
        self.roots.borrow_mut().clear();
        // Its state may be too damaged to be destroyed.
        let lost = ManuallyDrop::new(self.worker.take());
        if let Some(lost) = &*lost {
            self.lost.set(Some(lost.identity.worker));
        }
        let streams = std::mem::take(&mut *self.streams.borrow_mut());
        let streams = streams.values().filter(|stream| !stream.ended.get());
        streams.for_each(|stream| stream.lose());
    }
}
