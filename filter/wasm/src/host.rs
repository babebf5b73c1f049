// SPDX-License-Identifier: Apache-2.0
//! Envoy as the roles' host: all calls, through the raw proxy-wasm imports.
//!
//! The SDK's wrappers panic on an unexpected status. A panic is a trap that kills the worker's VM, with every request
//! parked in it. Here each status becomes a `Result`.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::Range;
use std::ptr;
use std::time::Duration;

use sluice_core::host::{HostError, SharedStore, Token};
use sluice_core::metrics::MetricKind;
use sluice_host::headers::Headers;
use sluice_host::{Half, Host, Level, Map, Queue, Result};

use crate::imports as envoy;

const OK: u32 = 0;
const NOT_FOUND: u32 = 1;
const EMPTY: u32 = 7;
const CAS_MISMATCH: u32 = 8;

/// A token that Envoy never returns. With it, a write creates a missing key and fails on an existing one. A write
/// with 0 would overwrite any value.
const CREATE: u32 = u32::MAX;

/// Envoy numbers the contexts of a VM from 1, and the first one is a root context.
const FIRST_ROOT: u32 = 1;

const REQUEST_BODY: u32 = 0;
const RESPONSE_BODY: u32 = 1;
const CALL_RESPONSE_BODY: u32 = 4;
const PLUGIN_CONFIGURATION: u32 = 7;

const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;

/// The Envoy that runs this VM.
#[derive(Debug)]
pub struct Envoy;

fn check(status: u32) -> Result<()> {
    match status {
        OK => Ok(()),
        status => Err(HostError { status }),
    }
}

/// Runs a call that hands over memory which Envoy has allocated in the VM; `None` for "not found".
fn receive(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Result<Option<Vec<u8>>> {
    let mut data: *mut u8 = ptr::null_mut();
    let mut size = 0;
    match call(&raw mut data, &raw mut size) {
        OK if data.is_null() => Ok(Some(Vec::new())),
        // SAFETY: Envoy got this memory from the SDK's allocator export, with this very size.
        OK => Ok(Some(unsafe { Vec::from_raw_parts(data, size, size) })),
        NOT_FOUND => Ok(None),
        status => Err(HostError { status }),
    }
}

/// Reads bytes of a buffer.
fn buffer(buffer: u32, wanted: Range<usize>) -> Result<Vec<u8>> {
    // SAFETY: both out-pointers are valid for the call, and ranges that Envoy reads are those of slices; likewise in
    // all calls below.
    let bytes = receive(|data, size| unsafe {
        envoy::proxy_get_buffer_bytes(buffer, wanted.start, wanted.len(), data, size)
    })?;
    Ok(bytes.unwrap_or_default())
}

/// All variables of the VM's environment, as `NAME=value`, each followed by a NUL.
fn environment() -> Result<Vec<u8>> {
    let (mut count, mut size) = (0, 0);
    check(unsafe { envoy::environ_sizes_get(&raw mut count, &raw mut size) })?;
    let mut starts = vec![ptr::null_mut(); count];
    let mut variables = vec![0; size];
    // SAFETY: both have the sizes that Envoy has just said.
    check(unsafe { envoy::environ_get(starts.as_mut_ptr(), variables.as_mut_ptr()) })?;
    Ok(variables)
}

const fn map_number(map: Map) -> u32 {
    match map {
        Map::Request => 0,
        Map::Response => 2,
        Map::CallResponse => 6,
    }
}

const fn half_number(half: Half) -> u32 {
    match half {
        Half::Request => 0,
        Half::Response => 1,
    }
}

thread_local! {
    /// The time of each clock that the running callback has read, in nanoseconds; 0 if it has not been read.
    static CLOCKS: [Cell<u64>; 2] = const { [Cell::new(0), Cell::new(0)] };
}

/// Begins a callback, in which each clock is read once.
pub fn enter() {
    CLOCKS.with(|clocks| clocks.iter().for_each(|read| read.set(0)));
}

fn clock(id: u32) -> u64 {
    CLOCKS.with(|clocks| {
        let read = clocks.get(id as usize);
        if let Some(known) = read.map(Cell::get).filter(|known| *known > 0) {
            return known;
        }
        let mut nanoseconds = 0;
        // Envoy has both clocks. Without them time would not advance, and nothing would count as fresh for longer
        // than one event.
        let _ = unsafe { envoy::clock_time_get(id, 1, &raw mut nanoseconds) };
        read.into_iter().for_each(|read| read.set(nanoseconds));
        nanoseconds
    })
}

impl SharedStore for Envoy {
    fn get(&self, key: &str) -> Result<Option<(Vec<u8>, Token)>> {
        let mut token = 0;
        let value = receive(|data, size| unsafe {
            envoy::proxy_get_shared_data(key.as_ptr(), key.len(), data, size, &raw mut token)
        })?;
        Ok(value.map(|value| (value, Token(token))))
    }

    fn compare_and_set(&self, key: &str, value: &[u8], token: Option<Token>) -> Result<bool> {
        let token = token.map_or(CREATE, |token| token.0);
        let (key, size) = (key.as_ptr(), key.len());
        match unsafe { envoy::proxy_set_shared_data(key, size, value.as_ptr(), value.len(), token) }
        {
            OK => Ok(true),
            CAS_MISMATCH => Ok(false),
            status => Err(HostError { status }),
        }
    }
}

impl Host for Envoy {
    fn headers(&self, map: Map) -> Result<Headers> {
        let map = map_number(map);
        let bytes =
            receive(|data, size| unsafe { envoy::proxy_get_header_map_pairs(map, data, size) })?;
        Ok(Headers::new(bytes.unwrap_or_default()))
    }

    fn set_header_bytes(&self, map: Map, name: &str, value: &[u8]) -> Result<()> {
        if value.is_empty() {
            return self.remove_header(map, name);
        }
        let (map, bytes, size) = (map_number(map), value.as_ptr(), value.len());
        check(unsafe {
            envoy::proxy_replace_header_map_value(map, name.as_ptr(), name.len(), bytes, size)
        })
    }

    fn add_header_bytes(&self, map: Map, name: &str, value: &[u8]) -> Result<()> {
        if value.is_empty() {
            return Ok(());
        }
        let (map, bytes, size) = (map_number(map), value.as_ptr(), value.len());
        check(unsafe {
            envoy::proxy_add_header_map_value(map, name.as_ptr(), name.len(), bytes, size)
        })
    }

    fn remove_header(&self, map: Map, name: &str) -> Result<()> {
        let map = map_number(map);
        check(unsafe { envoy::proxy_remove_header_map_value(map, name.as_ptr(), name.len()) })
    }

    fn plugin_configuration(&self, size: usize) -> Result<Vec<u8>> {
        buffer(PLUGIN_CONFIGURATION, 0..size)
    }

    fn request_body(&self, size: usize) -> Result<Vec<u8>> {
        buffer(REQUEST_BODY, 0..size)
    }

    fn response_body(&self, wanted: Range<usize>) -> Result<Vec<u8>> {
        buffer(RESPONSE_BODY, wanted)
    }

    fn replace_response_body(&self, size: usize, bytes: &[u8]) -> Result<()> {
        let (data, length) = (bytes.as_ptr(), bytes.len());
        check(unsafe { envoy::proxy_set_buffer_bytes(RESPONSE_BODY, 0, size, data, length) })
    }

    fn call_body(&self, size: usize) -> Result<Vec<u8>> {
        buffer(CALL_RESPONSE_BODY, 0..size)
    }

    fn respond_with(
        &self,
        status: u16,
        details: &'static str,
        headers: &[u8],
        body: &[u8],
    ) -> Result<()> {
        const NO_GRPC_STATUS: i32 = -1;
        check(unsafe {
            envoy::proxy_send_local_response(
                u32::from(status),
                details.as_ptr(),
                details.len(),
                body.as_ptr(),
                body.len(),
                headers.as_ptr(),
                headers.len(),
                NO_GRPC_STATUS,
            )
        })
    }

    fn act_as(&self, context: u32) -> Result<()> {
        check(unsafe { envoy::proxy_set_effective_context(context) })
    }

    fn resume(&self, half: Half) -> Result<()> {
        check(unsafe { envoy::proxy_continue_stream(half_number(half)) })
    }

    fn reset(&self, half: Half) -> Result<()> {
        check(unsafe { envoy::proxy_close_stream(half_number(half)) })
    }

    fn property(&self, path: &str) -> Result<Option<Vec<u8>>> {
        receive(|data, size| unsafe {
            envoy::proxy_get_property(path.as_ptr(), path.len(), data, size)
        })
    }

    fn set_property(&self, path: &str, value: &str) -> Result<()> {
        let (text, size) = (value.as_ptr(), value.len());
        check(unsafe { envoy::proxy_set_property(path.as_ptr(), path.len(), text, size) })
    }

    /// The only call that uses the SDK, because its dispatcher needs the number. It passes the answer to the context
    /// whose callback is running now.
    fn call(
        &self,
        cluster: &str,
        headers: &[(&str, &[u8])],
        body: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<u32> {
        let headers = headers.iter().map(|(name, value)| {
            // SAFETY: the SDK asks for texts, but does nothing with them than to copy their bytes for Envoy.
            (*name, unsafe { std::str::from_utf8_unchecked(value) })
        });
        let (headers, trailers) = (headers.collect(), Vec::new());
        proxy_wasm::hostcalls::dispatch_http_call(cluster, headers, body, trailers, timeout)
            .map_err(|status| HostError {
                status: status as u32,
            })
    }

    fn first_root(&self) -> Option<u32> {
        Some(FIRST_ROOT)
    }

    fn register_queue(&self, name: &str) -> Result<Queue> {
        let mut queue = 0;
        check(unsafe {
            envoy::proxy_register_shared_queue(name.as_ptr(), name.len(), &raw mut queue)
        })?;
        Ok(Queue(queue))
    }

    fn resolve_queue(&self, vm_id: &str, name: &str) -> Result<Queue> {
        let mut queue = 0;
        let (vm_id, size) = (vm_id.as_ptr(), vm_id.len());
        check(unsafe {
            let queue = &raw mut queue;
            envoy::proxy_resolve_shared_queue(vm_id, size, name.as_ptr(), name.len(), queue)
        })?;
        Ok(Queue(queue))
    }

    fn enqueue(&self, queue: Queue, message: &[u8]) -> Result<()> {
        let (data, size) = (message.as_ptr(), message.len());
        check(unsafe { envoy::proxy_enqueue_shared_queue(queue.0, data, size) })
    }

    fn dequeue(&self, queue: Queue) -> Result<Option<Vec<u8>>> {
        let received =
            receive(|data, size| unsafe { envoy::proxy_dequeue_shared_queue(queue.0, data, size) });
        match received {
            Err(HostError { status: EMPTY }) => Ok(None),
            received => received,
        }
    }

    fn set_tick_period(&self, milliseconds: u32) -> Result<()> {
        check(unsafe { envoy::proxy_set_tick_period_milliseconds(milliseconds) })
    }

    fn environment(&self, name: &str) -> Result<Option<String>> {
        let variables = environment()?;
        let texts = variables.split(|byte| *byte == 0);
        let mut values = texts.filter_map(|text| {
            let (variable, value) = std::str::from_utf8(text).ok()?.split_once('=')?;
            (variable == name).then(|| value.to_owned())
        });
        Ok(values.next())
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<()> {
        check(unsafe { envoy::random_get(bytes.as_mut_ptr(), bytes.len()) })
    }

    fn monotonic_millis(&self) -> u64 {
        clock(MONOTONIC) / 1_000_000
    }

    fn unix_millis(&self) -> u64 {
        clock(REALTIME) / 1_000_000
    }

    fn define_metric(&self, kind: MetricKind, name: &str) -> Result<u32> {
        let kind = match kind {
            MetricKind::Counter => 0,
            MetricKind::Gauge => 1,
            MetricKind::Histogram => 2,
        };
        let mut metric = 0;
        check(unsafe {
            envoy::proxy_define_metric(kind, name.as_ptr(), name.len(), &raw mut metric)
        })?;
        Ok(metric)
    }

    fn increment_metric(&self, metric: u32, offset: i64) -> Result<()> {
        // Envoy returns an error for an addition of 0 to a counter.
        if offset == 0 {
            return Ok(());
        }
        check(unsafe { envoy::proxy_increment_metric(metric, offset) })
    }

    fn record_metric(&self, metric: u32, value: u64) -> Result<()> {
        check(unsafe { envoy::proxy_record_metric(metric, value) })
    }

    fn log(&self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => 1,
            Level::Warn => 3,
            Level::Error => 4,
            Level::Critical => 5,
        };
        // A failure to write a log line cannot be reported.
        let _ = unsafe { envoy::proxy_log(level, message.as_ptr(), message.len()) };
    }
}
