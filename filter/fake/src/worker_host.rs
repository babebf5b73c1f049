// SPDX-License-Identifier: Apache-2.0
//! Envoy for the roles of one worker's VM: all host calls.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use sluice_core::host::{HostError, SharedStore, Token};
use sluice_core::metrics::{Metric, MetricKind};
use sluice_core::workers::Millis;
use sluice_host::headers::Headers;
use sluice_host::{Half, Host, Level, Map, Queue, Result};

use crate::HeaderMap;
use crate::process::{Call, LocalReply, Process, SharedQueue, Task};

/// Error of a call about an object that does not exist.
const BAD_ARGUMENT: HostError = HostError { status: 2 };
/// Error for a missing queue and the like.
const NOT_FOUND: HostError = HostError { status: 1 };

/// Greatest size of a body that Envoy holds, from the listeners' `per_connection_buffer_limit_bytes`.
const BUFFER_BYTES: usize = 65_536;

/// Messages of one context.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub request: Option<HeaderMap>,
    pub response: Option<HeaderMap>,
    pub call_response: Option<HeaderMap>,
    /// Part of a body that passes, or a body that is buffered.
    pub body: Vec<u8>,
    /// Whether the filter has answered the request, and Envoy has not sent the answer yet.
    pub replied: bool,
    /// Attributes, and filter state that the filter has set.
    pub properties: BTreeMap<String, Vec<u8>>,
    pub configuration: Rc<[u8]>,
}

/// Host of one VM.
#[derive(Debug)]
pub(crate) struct WorkerHost {
    pub seat: usize,
    pub process: Rc<Process>,
    pub contexts: RefCell<HashMap<u32, Messages>>,
    /// Periods of the timers of root contexts.
    pub periods: RefCell<HashMap<u32, u32>>,
    /// Streams other than its own that the callback has answered.
    pub answered_others: RefCell<HashSet<u32>>,
    callback: Cell<u32>,
    effective: Cell<u32>,
}

impl WorkerHost {
    /// Creates the host of the worker at this seat.
    pub fn new(seat: usize, process: Rc<Process>) -> Self {
        Self {
            seat,
            process,
            contexts: RefCell::default(),
            periods: RefCell::default(),
            answered_others: RefCell::default(),
            callback: Cell::new(0),
            effective: Cell::new(0),
        }
    }

    /// Starts a callback of `context`, or none (0).
    pub fn enter(&self, context: u32) {
        self.callback.set(context);
        self.effective.set(context);
        self.answered_others.borrow_mut().clear();
    }

    /// Calls `with` on the messages of a context.
    pub fn with<R>(&self, context: u32, with: impl FnOnce(&mut Messages) -> R) -> R {
        let mut contexts = self.contexts.borrow_mut();
        with(contexts.get_mut(&context).expect("a context of this VM"))
    }

    fn messages<R>(&self, with: impl FnOnce(&mut Messages) -> Result<R>) -> Result<R> {
        let mut contexts = self.contexts.borrow_mut();
        let context = contexts.get_mut(&self.effective.get());
        context.map_or(Err(BAD_ARGUMENT), with)
    }

    fn map<R>(&self, map: Map, with: impl FnOnce(&mut HeaderMap) -> R) -> Result<R> {
        self.messages(|messages| {
            let map = match map {
                Map::Request => &mut messages.request,
                Map::Response => &mut messages.response,
                Map::CallResponse => &mut messages.call_response,
            };
            map.as_mut().map(with).ok_or(BAD_ARGUMENT)
        })
    }

    fn body(&self, wanted: Range<usize>) -> Result<Vec<u8>> {
        self.messages(|messages| {
            let end = wanted.end.min(messages.body.len());
            Ok(messages.body.get(wanted.start..end).unwrap_or(&[]).to_vec())
        })
    }
}

impl SharedStore for WorkerHost {
    fn get(&self, key: &str) -> Result<Option<(Vec<u8>, Token)>> {
        self.process.data.get(key)
    }

    fn compare_and_set(&self, key: &str, value: &[u8], token: Option<Token>) -> Result<bool> {
        self.process.data.compare_and_set(key, value, token)
    }
}

impl Host for WorkerHost {
    fn headers(&self, map: Map) -> Result<Headers> {
        self.map(map, |map| Headers::new(map.encode()))
    }

    fn set_header_bytes(&self, map: Map, name: &str, value: &[u8]) -> Result<()> {
        if value.is_empty() {
            return self.remove_header(map, name);
        }
        self.map(map, |map| map.set(name, value))
    }

    fn add_header_bytes(&self, map: Map, name: &str, value: &[u8]) -> Result<()> {
        if value.is_empty() {
            return Ok(());
        }
        self.map(map, |map| map.add(name, value))
    }

    fn remove_header(&self, map: Map, name: &str) -> Result<()> {
        self.map(map, |map| map.remove(name))
    }

    fn plugin_configuration(&self, size: usize) -> Result<Vec<u8>> {
        self.messages(|messages| Ok(messages.configuration.iter().copied().take(size).collect()))
    }

    fn request_body(&self, size: usize) -> Result<Vec<u8>> {
        self.body(0..size)
    }

    fn response_body(&self, wanted: Range<usize>) -> Result<Vec<u8>> {
        self.body(wanted)
    }

    fn replace_response_body(&self, size: usize, bytes: &[u8]) -> Result<()> {
        self.messages(|messages| {
            let (size, before) = (size.min(messages.body.len()), messages.body.len());
            messages.body.splice(..size, bytes.iter().copied());
            let grown = messages.body.len().max(before);
            assert!(
                grown == before || grown <= BUFFER_BYTES,
                "Envoy resets the stream amid the call: {grown} bytes"
            );
            Ok(())
        })
    }

    fn call_body(&self, size: usize) -> Result<Vec<u8>> {
        self.body(0..size)
    }

    fn respond_with(
        &self,
        status: u16,
        _: &'static str,
        headers: &[u8],
        body: &[u8],
    ) -> Result<()> {
        let context = self.effective.get();
        self.messages(|messages| {
            assert!(!messages.replied, "context {context} is answered twice");
            messages.replied = true;
            Ok(())
        })?;
        if context != self.callback.get() {
            self.answered_others.borrow_mut().insert(context);
        }
        let mut headers = HeaderMap::decode(headers);
        headers.set(":status", status.to_string());
        headers.set("content-length", body.len().to_string());
        if !headers.has("content-type") && !body.is_empty() {
            headers.add("content-type", "text/plain");
        }
        let reply = LocalReply {
            headers,
            body: body.to_vec(),
        };
        self.process.push(Task::Reply(self.seat, context, reply));
        Ok(())
    }

    fn act_as(&self, context: u32) -> Result<()> {
        if !self.contexts.borrow().contains_key(&context) {
            return Err(BAD_ARGUMENT);
        }
        self.effective.set(context);
        Ok(())
    }

    fn resume(&self, half: Half) -> Result<()> {
        let before = self.process.before.borrow().clone();
        let context = self.effective.get();
        let resume = Task::Resume(self.seat, context, half, before);
        self.process.push(resume);
        Ok(())
    }

    fn reset(&self, _: Half) -> Result<()> {
        let context = self.effective.get();
        self.process.push(Task::Reset {
            seat: self.seat,
            context,
            foreign: context != self.callback.get(),
        });
        Ok(())
    }

    fn property(&self, path: &str) -> Result<Option<Vec<u8>>> {
        self.messages(|messages| Ok(messages.properties.get(path).cloned()))
    }

    fn set_property(&self, path: &str, value: &str) -> Result<()> {
        self.messages(|messages| {
            messages.properties.insert(path.to_owned(), value.into());
            Ok(())
        })
    }

    fn call(
        &self,
        cluster: &str,
        headers: &[(&str, &[u8])],
        body: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<u32> {
        // Envoy knows the clusters of its configuration. None of these has such a name.
        if cluster.is_empty() || cluster.contains(' ') {
            return Err(BAD_ARGUMENT);
        }
        let context = self.effective.get();
        // The SDK passes the answer to the context of the callback, and Envoy to the effective one.
        assert_eq!(
            context,
            self.callback.get(),
            "a call of one context in the name of another"
        );
        let call = Call {
            number: self.process.next_call(),
            seat: self.seat,
            context,
            cluster: cluster.to_owned(),
            headers: lines_of(headers),
            body: body.unwrap_or_default().to_vec(),
            deadline: self.process.now.get()
                + Millis::try_from(timeout.as_millis()).unwrap_or(Millis::MAX),
        };
        let number = call.number;
        self.process.push(Task::Call(call));
        Ok(number)
    }

    fn first_root(&self) -> Option<u32> {
        None
    }

    fn register_queue(&self, name: &str) -> Result<Queue> {
        let receiver = (self.seat, self.effective.get());
        let mut queues = self.process.queues.borrow_mut();
        let known = queues.iter().position(|queue| queue.name == name);
        let number = known.unwrap_or(queues.len());
        match known {
            Some(known) => queues[known].receiver = receiver,
            None => queues.push(SharedQueue {
                name: name.to_owned(),
                receiver,
                under_way: Default::default(),
                arrived: Default::default(),
            }),
        }
        Ok(Queue(u32::try_from(number).unwrap_or(u32::MAX)))
    }

    fn resolve_queue(&self, _: &str, name: &str) -> Result<Queue> {
        let queues = self.process.queues.borrow();
        let known = queues.iter().position(|queue| queue.name == name);
        let number = known.ok_or(NOT_FOUND)?;
        Ok(Queue(u32::try_from(number).unwrap_or(u32::MAX)))
    }

    fn enqueue(&self, queue: Queue, message: &[u8]) -> Result<()> {
        let mut queues = self.process.queues.borrow_mut();
        let queue = queues.get_mut(queue.0 as usize).ok_or(NOT_FOUND)?;
        if !message.is_empty() {
            self.process.sent.borrow_mut().push(message.to_vec());
        }
        let (seat, context) = queue.receiver;
        if seat == self.seat {
            queue.arrived.push_back(message.to_vec());
            self.process.push(Task::Ready(seat, context));
        } else {
            queue.under_way.push_back(message.to_vec());
        }
        Ok(())
    }

    fn dequeue(&self, queue: Queue) -> Result<Option<Vec<u8>>> {
        let mut queues = self.process.queues.borrow_mut();
        let queue = queues.get_mut(queue.0 as usize).ok_or(NOT_FOUND)?;
        let arrived = queue.arrived.pop_front();
        if arrived.is_some() || self.process.hears.get() {
            return Ok(arrived);
        }
        Ok(queue.under_way.pop_front())
    }

    fn set_tick_period(&self, milliseconds: u32) -> Result<()> {
        let context = self.effective.get();
        let mut periods = self.periods.borrow_mut();
        let period = periods.get_mut(&context).ok_or(BAD_ARGUMENT)?;
        *period = milliseconds;
        Ok(())
    }

    fn environment(&self, name: &str) -> Result<Option<String>> {
        let environment = self.process.environment.borrow();
        Ok(environment.get(name).cloned())
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<()> {
        for chunk in bytes.chunks_mut(8) {
            let random = self.process.next_random().to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
        Ok(())
    }

    fn monotonic_millis(&self) -> u64 {
        self.process.now.get()
    }

    fn unix_millis(&self) -> u64 {
        self.process.unix_millis()
    }

    fn define_metric(&self, _: MetricKind, name: &str) -> Result<u32> {
        let metric = Metric::ALL.iter().position(|metric| metric.name() == name);
        let number = match metric {
            Some(number) => number,
            None => self.process.counter_of_site(name).ok_or(BAD_ARGUMENT)?,
        };
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }

    fn increment_metric(&self, metric: u32, offset: i64) -> Result<()> {
        let counted = self.process.count(metric as usize, offset);
        counted.ok_or(BAD_ARGUMENT)
    }

    fn record_metric(&self, metric: u32, _: u64) -> Result<()> {
        self.process.count(metric as usize, 1).ok_or(BAD_ARGUMENT)
    }

    fn log(&self, _: Level, message: &str) {
        self.process.log.borrow_mut().push(message.to_owned());
    }
}

fn lines_of(headers: &[(&str, &[u8])]) -> HeaderMap {
    let lines = headers.iter();
    let lines = lines.map(|(name, value)| ((*name).to_owned(), value.to_vec()));
    HeaderMap::of_lines(lines.collect())
}
