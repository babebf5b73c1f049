// SPDX-License-Identifier: Apache-2.0
//! Envoy as the roles' host: all calls, through the callbacks of the ABI.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sluice_core::host::{HostError, SharedStore, Token};
use sluice_core::internal_headers::ROUTING_HEADERS;
use sluice_core::metrics::MetricKind;
use sluice_core::workers::KeyHash;
use sluice_host::header_map::HeaderMap;
use sluice_host::headers::Headers;
use sluice_host::{Half, Host, Level, Map, Queue, Result};

use crate::abi::{self, Attribute, HeaderMapType, LogLevel};
use crate::metrics::DefinedMetric;
use crate::native_worker::{Effective, NativeWorker, Task};
use crate::process::{PROCESS, Process};
use crate::reply::Reply;
use crate::stream::Stream;

/// The object of the call does not exist.
const NOT_FOUND: HostError = HostError { status: 1 };
/// The call concerns an object that does not exist here, such as the wrong message.
const BAD_ARGUMENT: HostError = HostError { status: 2 };
/// Envoy returned an error.
const INTERNAL_FAILURE: HostError = HostError { status: 10 };

/// Prefix of the names of filter state, the same as in Envoy's Wasm host.
const FILTER_STATE: &str = "wasm.";

/// The Envoy of a worker.
#[derive(Clone, Copy)]
pub struct NativeHost(pub &'static NativeWorker);

impl std::fmt::Debug for NativeHost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("NativeHost")
    }
}

fn check(done: bool) -> Result<()> {
    if done { Ok(()) } else { Err(INTERNAL_FAILURE) }
}

const fn map_type(map: Map) -> Option<HeaderMapType> {
    match map {
        Map::Request => Some(HeaderMapType::Request),
        Map::Response => Some(HeaderMapType::Response),
        Map::CallResponse => None,
    }
}

impl NativeHost {
    /// The stream that calls concern.
    fn stream(self) -> Result<Rc<Stream>> {
        match &*self.0.effective.borrow() {
            Effective::Stream(stream) if !stream.ended.get() => Ok(Rc::clone(stream)),
            _ => Err(BAD_ARGUMENT),
        }
    }

    fn context(self) -> Result<u32> {
        match &*self.0.effective.borrow() {
            Effective::Stream(stream) => Ok(stream.context),
            Effective::Root(context) => Ok(*context),
            Effective::Nobody => Err(BAD_ARGUMENT),
        }
    }

    fn push(self, task: Task) {
        self.0.tasks.borrow_mut().push_back(task);
    }

    /// Uses a header map that the module itself holds: that of an answer, or of a reply that is being sent.
    fn with_own_map<R>(self, map: Map, with: impl FnOnce(&mut HeaderMap) -> R) -> Option<R> {
        match map {
            Map::Request => None,
            Map::Response => {
                let stream = self.stream().ok()?;
                let mut reply = stream.reply.borrow_mut();
                reply.as_mut().map(|reply| with(reply.headers()))
            }
            Map::CallResponse => {
                let mut answer = self.0.answer.borrow_mut();
                answer.as_mut().map(|answer| with(&mut answer.headers))
            }
        }
    }

    /// Changes a header map.
    fn edit(
        self,
        map: Map,
        own: impl FnOnce(&mut HeaderMap),
        envoys: impl FnOnce(abi::Filter, HeaderMapType) -> bool,
    ) -> Result<()> {
        if self.with_own_map(map, own).is_some() {
            return Ok(());
        }
        let map = map_type(map).ok_or(BAD_ARGUMENT)?;
        check(envoys(self.stream()?.filter, map))
    }
}

impl SharedStore for NativeHost {
    fn get(&self, key: &str) -> Result<Option<(Vec<u8>, Token)>> {
        Ok(PROCESS.data.get(key))
    }

    fn compare_and_set(&self, key: &str, value: &[u8], token: Option<Token>) -> Result<bool> {
        Ok(PROCESS.data.compare_and_set(key, value, token))
    }
}

impl Host for NativeHost {
    fn headers(&self, map: Map) -> Result<Headers> {
        if let Some(bytes) = self.with_own_map(map, |map| map.encode()) {
            return Ok(Headers::new(bytes));
        }
        let map = map_type(map).ok_or(BAD_ARGUMENT)?;
        let stream = self.stream()?;
        let headers = Headers::new(stream.filter.headers(map));
        if map == HeaderMapType::Request {
            stream.note_method(&headers);
        }
        Ok(headers)
    }

    fn set_header_bytes(&self, map: Map, name: &str, value: &[u8]) -> Result<()> {
        if value.is_empty() {
            return self.remove_header(map, name);
        }
        self.edit(
            map,
            |map| map.set(name, value),
            |filter, map| {
                let done = filter.set_header(map, name, value);
                // The route depends on this header. A Wasm host clears the route at each change of a header.
                if ROUTING_HEADERS.contains(&name) {
                    filter.clear_route();
                }
                done
            },
        )
    }

    fn add_header_bytes(&self, map: Map, name: &str, value: &[u8]) -> Result<()> {
        if value.is_empty() {
            return Ok(());
        }
        self.edit(
            map,
            |map| map.add(name, value),
            |filter, map| filter.add_header(map, name, value),
        )
    }

    fn remove_header(&self, map: Map, name: &str) -> Result<()> {
        self.edit(
            map,
            |map| map.remove(name),
            |filter, map| filter.remove_header(map, name),
        )
    }

    fn plugin_configuration(&self, size: usize) -> Result<Vec<u8>> {
        let root = self.0.root(self.context()?).ok_or(BAD_ARGUMENT)?;
        Ok(root.configuration.text.iter().copied().take(size).collect())
    }

    fn request_body(&self, size: usize) -> Result<Vec<u8>> {
        Ok(self.stream()?.body(Half::Request, 0, size))
    }

    fn response_body(&self, wanted: Range<usize>) -> Result<Vec<u8>> {
        let stream = self.stream()?;
        if let Some(reply) = &*stream.reply.borrow() {
            let end = wanted.end.min(reply.body.len());
            return Ok(reply.body.get(wanted.start..end).unwrap_or(&[]).to_vec());
        }
        Ok(stream.body(Half::Response, wanted.start, wanted.len()))
    }

    fn replace_response_body(&self, size: usize, bytes: &[u8]) -> Result<()> {
        let stream = self.stream()?;
        if let Some(reply) = &mut *stream.reply.borrow_mut() {
            let size = size.min(reply.body.len());
            reply.body.splice(..size, bytes.iter().copied());
            return Ok(());
        }
        check(stream.replace_response_body(size, bytes))
    }

    fn call_body(&self, size: usize) -> Result<Vec<u8>> {
        let answer = self.0.answer.borrow();
        let body = answer.as_ref().map(|answer| answer.body.as_slice());
        let body = body.ok_or(BAD_ARGUMENT)?;
        Ok(body.get(..size.min(body.len())).unwrap_or(&[]).to_vec())
    }

    fn respond_with(
        &self,
        status: u16,
        details: &'static str,
        headers: &[u8],
        body: &[u8],
    ) -> Result<()> {
        let context = self.stream()?.context;
        let reply = Reply::new(status, details, headers, body);
        self.push(Task::Reply(context, reply));
        Ok(())
    }

    fn act_as(&self, context: u32) -> Result<()> {
        let effective = match self.0.stream(context) {
            Some(stream) => Effective::Stream(stream),
            None => {
                let root = self.0.root(context).ok_or(BAD_ARGUMENT)?;
                Effective::Root(root.context)
            }
        };
        self.0.effective.replace(effective);
        Ok(())
    }

    fn resume(&self, half: Half) -> Result<()> {
        let context = self.stream()?.context;
        self.push(Task::Resume(context, half));
        Ok(())
    }

    fn reset(&self, _: Half) -> Result<()> {
        let context = self.stream()?.context;
        self.push(Task::Reset(context));
        Ok(())
    }

    fn property(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match path {
            "plugin_root_id" => {
                let root = self.0.root(self.context()?).ok_or(BAD_ARGUMENT)?;
                Ok(Some(root.configuration.role.clone()))
            }
            "xds\0route_name" => {
                let filter = self.stream()?.filter;
                Ok(filter.attribute(Attribute::RouteName))
            }
            "source\0address" => {
                let filter = self.stream()?.filter;
                Ok(filter.attribute(Attribute::SourceAddress))
            }
            "connection\0id" => {
                let number = self
                    .stream()?
                    .filter
                    .attribute_number(Attribute::ConnectionId);
                Ok(number.map(|number| number.to_le_bytes().to_vec()))
            }
            "connection\0requested_server_name" => {
                let filter = self.stream()?.filter;
                Ok(filter.attribute(Attribute::RequestedServerName))
            }
            _ => Ok(None),
        }
    }

    fn set_property(&self, path: &str, value: &str) -> Result<()> {
        let key = [FILTER_STATE, path].concat();
        check(self.stream()?.filter.set_filter_state(&key, value))
    }

    fn call(
        &self,
        cluster: &str,
        headers: &[(&str, &[u8])],
        body: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<u32> {
        let (native_worker, body) = (self.0, body.unwrap_or_default());
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let effective = native_worker.effective.borrow().clone();
        let call = match effective {
            Effective::Nobody => return Err(BAD_ARGUMENT),
            Effective::Stream(stream) => stream.filter.call(cluster, headers, body, millis),
            Effective::Root(context) => {
                // The carrier outlives every other stream of the worker.
                let carrier = native_worker.carrier.borrow().clone().ok_or(NOT_FOUND)?;
                let call = carrier.filter.call(cluster, headers, body, millis);
                call.inspect(|call| native_worker.note_call(*call, context))
            }
        };
        // Envoy counts the calls of a stream from 1.
        let call = call.ok_or(INTERNAL_FAILURE)?;
        u32::try_from(call).map_err(|_| INTERNAL_FAILURE)
    }

    fn first_root(&self) -> Option<u32> {
        None
    }

    fn register_queue(&self, name: &str) -> Result<Queue> {
        self.0.register_queue(name).ok_or(BAD_ARGUMENT)
    }

    fn resolve_queue(&self, _: &str, name: &str) -> Result<Queue> {
        PROCESS.queues.resolve(name).ok_or(NOT_FOUND)
    }

    fn enqueue(&self, queue: Queue, message: &[u8]) -> Result<()> {
        match PROCESS.queues.enqueue(queue, message) {
            true => Ok(()),
            false => Err(NOT_FOUND),
        }
    }

    fn dequeue(&self, queue: Queue) -> Result<Option<Vec<u8>>> {
        Ok(PROCESS.queues.dequeue(queue))
    }

    fn share_body(&self, key: KeyHash, body: Arc<[u8]>) -> Arc<[u8]> {
        PROCESS.bodies.share(key, body)
    }

    fn set_tick_period(&self, milliseconds: u32) -> Result<()> {
        match self.0.set_tick_period(milliseconds) {
            true => Ok(()),
            false => Err(BAD_ARGUMENT),
        }
    }

    fn environment(&self, name: &str) -> Result<Option<String>> {
        Ok(std::env::var(name).ok())
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<()> {
        getrandom::fill(bytes).map_err(|_| INTERNAL_FAILURE)
    }

    fn monotonic_millis(&self) -> u64 {
        self.0.monotonic_millis()
    }

    fn unix_millis(&self) -> u64 {
        Process::unix_millis()
    }

    fn define_metric(&self, _: MetricKind, name: &str) -> Result<u32> {
        let numbers = PROCESS.metrics.get().ok_or(NOT_FOUND)?;
        let metric = DefinedMetric::find(numbers, name).ok_or(BAD_ARGUMENT)?;
        let mut metrics = self.0.metrics.borrow_mut();
        metrics.push(metric);
        u32::try_from(metrics.len() - 1).map_err(|_| INTERNAL_FAILURE)
    }

    fn increment_metric(&self, metric: u32, offset: i64) -> Result<()> {
        let metrics = self.0.metrics.borrow();
        let metric = metrics.get(metric as usize).ok_or(BAD_ARGUMENT)?;
        check(self.0.add(metric, offset))
    }

    fn record_metric(&self, metric: u32, value: u64) -> Result<()> {
        let (metrics, filter) = (self.0.metrics.borrow(), self.0.witness());
        let metric = metrics.get(metric as usize).ok_or(BAD_ARGUMENT)?;
        check(metric.record(filter.ok_or(BAD_ARGUMENT)?, value))
    }

    fn log(&self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => LogLevel::Debug,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
            Level::Critical => LogLevel::Critical,
        };
        abi::log(level, message);
    }
}
