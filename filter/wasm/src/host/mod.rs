// SPDX-License-Identifier: Apache-2.0
//! Every call to Envoy, through the raw proxy-wasm imports.
//!
//! The SDK's wrappers panic on statuses they do not expect, and a panic is a trap that kills the
//! worker's VM with every request parked in it. Here each status becomes a `Result`.
#![allow(unsafe_code)]

pub mod headers;

use std::ops::Range;
use std::ptr;
use std::time::Duration;

use sluice_core::host::{HostError, SharedStore, Token};

use crate::host::headers::serialize;

/// Outcome of a host call.
pub type Result<T> = std::result::Result<T, HostError>;

const OK: u32 = 0;
const NOT_FOUND: u32 = 1;
const CAS_MISMATCH: u32 = 8;

/// A token that the host does not hand out: with it, `set` creates an absent key and fails on any
/// other, while 0 would overwrite whatever is there.
const CREATE: u32 = u32::MAX;

/// Which header map a call is about.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Map {
    /// The request's headers.
    Request = 0,
    /// The response's headers.
    Response = 2,
    /// The headers of the answer to [`http_call`].
    CallResponse = 6,
}

/// Which half of a stream a call is about.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Half {
    /// From the client.
    Request = 0,
    /// To the client.
    Response = 1,
}

/// Log levels of the host.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Level {
    /// Something abnormal that the filter copes with.
    Warn = 3,
    /// Something that keeps the filter from its work.
    Error = 4,
}

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_log(level: u32, message: *const u8, size: usize) -> u32;
    fn proxy_get_header_map_pairs(map: u32, data: *mut *mut u8, size: *mut usize) -> u32;
    fn proxy_get_header_map_value(
        map: u32,
        name: *const u8,
        name_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    fn proxy_replace_header_map_value(
        map: u32,
        name: *const u8,
        name_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    fn proxy_add_header_map_value(
        map: u32,
        name: *const u8,
        name_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    fn proxy_remove_header_map_value(map: u32, name: *const u8, name_size: usize) -> u32;
    fn proxy_set_property(
        path: *const u8,
        path_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> u32;
    fn proxy_get_property(
        path: *const u8,
        path_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    fn proxy_get_buffer_bytes(
        buffer: u32,
        start: usize,
        max_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    fn proxy_set_buffer_bytes(
        buffer: u32,
        start: usize,
        size: usize,
        data: *const u8,
        data_size: usize,
    ) -> u32;
    fn proxy_get_shared_data(
        key: *const u8,
        key_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
        token: *mut u32,
    ) -> u32;
    fn proxy_set_shared_data(
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
        token: u32,
    ) -> u32;
    fn proxy_register_shared_queue(name: *const u8, name_size: usize, queue: *mut u32) -> u32;
    fn proxy_resolve_shared_queue(
        vm_id: *const u8,
        vm_id_size: usize,
        name: *const u8,
        name_size: usize,
        queue: *mut u32,
    ) -> u32;
    fn proxy_enqueue_shared_queue(queue: u32, value: *const u8, value_size: usize) -> u32;
    fn proxy_dequeue_shared_queue(queue: u32, data: *mut *mut u8, size: *mut usize) -> u32;
    fn proxy_continue_stream(half: u32) -> u32;
    fn proxy_close_stream(half: u32) -> u32;
    fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> u32;
    fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
    fn proxy_set_effective_context(context: u32) -> u32;
    fn proxy_define_metric(kind: u32, name: *const u8, name_size: usize, metric: *mut u32) -> u32;
    fn proxy_increment_metric(metric: u32, offset: i64) -> u32;
    fn proxy_record_metric(metric: u32, value: u64) -> u32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn random_get(buffer: *mut u8, size: usize) -> u32;
    fn clock_time_get(clock: u32, precision: u64, time: *mut u64) -> u32;
}

fn check(status: u32) -> Result<()> {
    if status == OK {
        Ok(())
    } else {
        Err(HostError { status })
    }
}

/// Runs a call that hands over memory which the host has allocated in the VM; `None` for "not found".
fn receive(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Result<Option<Vec<u8>>> {
    let mut data: *mut u8 = ptr::null_mut();
    let mut size = 0;
    match call(&raw mut data, &raw mut size) {
        OK if data.is_null() => Ok(Some(Vec::new())),
        // SAFETY: the host got this memory from the SDK's allocator export, with this very size.
        OK => Ok(Some(unsafe { Vec::from_raw_parts(data, size, size) })),
        NOT_FOUND => Ok(None),
        status => Err(HostError { status }),
    }
}

/// Writes to Envoy's log.
pub fn log(level: Level, message: &str) {
    // SAFETY: the host reads the given range only. A log line that cannot be written has no reader.
    let _ = unsafe { proxy_log(level as u32, message.as_ptr(), message.len()) };
}

/// The whole of `map`, in the ABI's serialisation (see [`crate::host::headers`]).
pub fn header_pairs(map: Map) -> Result<Vec<u8>> {
    // SAFETY: both out-pointers are valid for the call; likewise in the calls below.
    receive(|data, size| unsafe { proxy_get_header_map_pairs(map as u32, data, size) })
        .map(Option::unwrap_or_default)
}

/// The value of one header; the values of several of one name joined by commas.
pub fn header(map: Map, name: &str) -> Result<Option<Vec<u8>>> {
    let value = receive(|data, size| unsafe {
        proxy_get_header_map_value(map as u32, name.as_ptr(), name.len(), data, size)
    })?;
    // Envoy answers "no such header" with an empty value.
    Ok(value.filter(|value| !value.is_empty()))
}

/// Sets a header in place of all of its name.
pub fn set_header(map: Map, name: &str, value: &str) -> Result<()> {
    check(unsafe {
        proxy_replace_header_map_value(
            map as u32,
            name.as_ptr(),
            name.len(),
            value.as_ptr(),
            value.len(),
        )
    })
}

/// Adds a header to those of its name.
pub fn add_header(map: Map, name: &str, value: &str) -> Result<()> {
    check(unsafe {
        proxy_add_header_map_value(
            map as u32,
            name.as_ptr(),
            name.len(),
            value.as_ptr(),
            value.len(),
        )
    })
}

/// Removes all headers of that name.
pub fn remove_header(map: Map, name: &str) -> Result<()> {
    check(unsafe { proxy_remove_header_map_value(map as u32, name.as_ptr(), name.len()) })
}

/// An Envoy attribute, such as `response.code_details` with its parts NUL-separated.
pub fn property(path: &str) -> Result<Option<Vec<u8>>> {
    receive(|data, size| unsafe { proxy_get_property(path.as_ptr(), path.len(), data, size) })
}

/// Sets filter state of the effective context's request, which Envoy knows as `wasm.` and `path`.
pub fn set_property(path: &str, value: &str) -> Result<()> {
    check(unsafe { proxy_set_property(path.as_ptr(), path.len(), value.as_ptr(), value.len()) })
}

/// The plugin's configuration.
pub fn plugin_configuration(size: usize) -> Result<Vec<u8>> {
    const PLUGIN_CONFIGURATION: u32 = 7;
    receive(|data, length| unsafe {
        proxy_get_buffer_bytes(PLUGIN_CONFIGURATION, 0, size, data, length)
    })
    .map(Option::unwrap_or_default)
}

/// The body of the answer to [`http_call`], of `size` bytes.
pub fn call_body(size: usize) -> Result<Vec<u8>> {
    const CALL_RESPONSE_BODY: u32 = 4;
    receive(|data, length| unsafe {
        proxy_get_buffer_bytes(CALL_RESPONSE_BODY, 0, size, data, length)
    })
    .map(Option::unwrap_or_default)
}

const RESPONSE_BODY: u32 = 1;

/// The first `size` bytes of the request's body, as far as it is buffered.
pub fn request_body(size: usize) -> Result<Vec<u8>> {
    const REQUEST_BODY: u32 = 0;
    receive(|data, length| unsafe { proxy_get_buffer_bytes(REQUEST_BODY, 0, size, data, length) })
        .map(Option::unwrap_or_default)
}

/// Drops the first `size` bytes of the piece of the response's body that is passing.
pub fn drop_response_body(size: usize) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    replace_response_body(size, &[])
}

/// Puts `bytes` in place of the first `size` bytes of the piece of the response's body that is passing.
pub fn replace_response_body(size: usize, bytes: &[u8]) -> Result<()> {
    check(unsafe { proxy_set_buffer_bytes(RESPONSE_BODY, 0, size, bytes.as_ptr(), bytes.len()) })
}

/// Bytes of the piece of the response's body that is passing.
pub fn response_body(wanted: Range<usize>) -> Result<Vec<u8>> {
    receive(|data, size| unsafe {
        proxy_get_buffer_bytes(RESPONSE_BODY, wanted.start, wanted.len(), data, size)
    })
    .map(Option::unwrap_or_default)
}

/// The data that all workers share.
#[derive(Debug, Default)]
pub struct SharedData;

impl SharedStore for SharedData {
    fn get(&self, key: &str) -> Result<Option<(Vec<u8>, Token)>> {
        let mut token = 0;
        let value = receive(|data, size| unsafe {
            proxy_get_shared_data(key.as_ptr(), key.len(), data, size, &raw mut token)
        })?;
        Ok(value.map(|value| (value, Token(token))))
    }

    fn compare_and_set(&mut self, key: &str, value: &[u8], token: Option<Token>) -> Result<bool> {
        let token = token.map_or(CREATE, |token| token.0);
        match unsafe {
            proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), token)
        } {
            OK => Ok(true),
            CAS_MISMATCH => Ok(false),
            status => Err(HostError { status }),
        }
    }
}

/// A queue of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue(pub u32);

/// Makes this root context the receiver of the queue.
pub fn register_queue(name: &str) -> Result<Queue> {
    let mut queue = 0;
    check(unsafe { proxy_register_shared_queue(name.as_ptr(), name.len(), &raw mut queue) })?;
    Ok(Queue(queue))
}

/// The queue that another worker of the VM `vm_id` has registered.
pub fn resolve_queue(vm_id: &str, name: &str) -> Result<Queue> {
    let mut queue = 0;
    check(unsafe {
        proxy_resolve_shared_queue(
            vm_id.as_ptr(),
            vm_id.len(),
            name.as_ptr(),
            name.len(),
            &raw mut queue,
        )
    })?;
    Ok(Queue(queue))
}

/// Puts a message into a queue and wakes its receiver.
pub fn enqueue(queue: Queue, message: &[u8]) -> Result<()> {
    check(unsafe { proxy_enqueue_shared_queue(queue.0, message.as_ptr(), message.len()) })
}

/// The next message, if there is one.
pub fn dequeue(queue: Queue) -> Result<Option<Vec<u8>>> {
    const EMPTY: u32 = 7;
    let received = receive(|data, size| unsafe { proxy_dequeue_shared_queue(queue.0, data, size) });
    match received {
        Err(HostError { status: EMPTY }) => Ok(None),
        received => received,
    }
}

/// Lets a paused half of the effective context's stream go on.
pub fn resume(half: Half) -> Result<()> {
    check(unsafe { proxy_continue_stream(half as u32) })
}

/// Resets the effective context's stream.
pub fn reset(half: Half) -> Result<()> {
    check(unsafe { proxy_close_stream(half as u32) })
}

/// Answers the effective context's request. `details` is for Envoy's access log.
pub fn respond(status: u16, details: &str, headers: &[(&str, &str)], body: &str) -> Result<()> {
    respond_bytes(status, details, headers, body.as_bytes())
}

/// The same with a body that need not be text.
pub fn respond_bytes(
    status: u16,
    details: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<()> {
    let headers = headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()));
    respond_with(status, details, &serialize(headers), body)
}

/// The same with headers in the ABI's serialisation.
pub fn respond_with(status: u16, details: &str, headers: &[u8], body: &[u8]) -> Result<()> {
    const NO_GRPC_STATUS: i32 = -1;
    check(unsafe {
        proxy_send_local_response(
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

/// Sends a request without a body to a cluster; the number of the call comes back with its answer.
///
/// This is the one call that goes through the SDK, whose dispatcher must learn the number; it hands the
/// answer to the context whose callback is running now.
pub fn http_call(cluster: &str, headers: &[(&str, &str)], timeout: Duration) -> Result<u32> {
    proxy_wasm::hostcalls::dispatch_http_call(cluster, headers.to_vec(), None, Vec::new(), timeout)
        .map_err(|status| HostError {
            status: status as u32,
        })
}

/// Sends a request with a body to a cluster; otherwise as [`http_call`].
pub fn http_post(
    cluster: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    timeout: Duration,
) -> Result<u32> {
    let (headers, trailers) = (headers.to_vec(), Vec::new());
    proxy_wasm::hostcalls::dispatch_http_call(cluster, headers, Some(body), trailers, timeout)
        .map_err(|status| HostError {
            status: status as u32,
        })
}

/// Sets the period of the effective root context's timer; zero stops it.
pub fn set_tick_period(milliseconds: u32) -> Result<()> {
    check(unsafe { proxy_set_tick_period_milliseconds(milliseconds) })
}

/// Directs the calls that follow at another context of this VM, until the callback returns.
pub fn set_effective_context(context: u32) -> Result<()> {
    check(unsafe { proxy_set_effective_context(context) })
}

/// Kinds of metrics in the ABI.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Kind {
    /// Only grows.
    Counter = 0,
    /// Goes up and down.
    Gauge = 1,
    /// A distribution.
    Histogram = 2,
}

/// Defines a metric, or finds it where another worker has.
pub fn define_metric(kind: Kind, name: &str) -> Result<u32> {
    let mut metric = 0;
    check(unsafe { proxy_define_metric(kind as u32, name.as_ptr(), name.len(), &raw mut metric) })?;
    Ok(metric)
}

/// Adds to a counter or gauge.
pub fn increment_metric(metric: u32, offset: i64) -> Result<()> {
    check(unsafe { proxy_increment_metric(metric, offset) })
}

/// Adds a value to a histogram.
pub fn record_metric(metric: u32, value: u64) -> Result<()> {
    check(unsafe { proxy_record_metric(metric, value) })
}

/// Random bytes.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    check(unsafe { random_get(bytes.as_mut_ptr(), N) })?;
    Ok(bytes)
}

fn clock(id: u32) -> u64 {
    let mut nanoseconds = 0;
    // SAFETY: the out-pointer is valid. Envoy has both clocks; without them time would stand still,
    // and nothing would be believed fresh for longer than one event.
    let _ = unsafe { clock_time_get(id, 1, &raw mut nanoseconds) };
    nanoseconds
}

/// Monotonic milliseconds, the same for all workers of the process.
pub fn monotonic_millis() -> u64 {
    const MONOTONIC: u32 = 1;
    clock(MONOTONIC) / 1_000_000
}

/// Milliseconds since the Unix epoch.
pub fn unix_millis() -> u64 {
    const REALTIME: u32 = 0;
    clock(REALTIME) / 1_000_000
}

/// Seconds since the Unix epoch.
pub fn unix_seconds() -> i64 {
    i64::try_from(unix_millis() / 1_000).unwrap_or(i64::MAX)
}
