// SPDX-License-Identifier: Apache-2.0
//! Envoy's ABI for dynamic modules, version v0.2.0 of Envoy 1.40 (`source/extensions/dynamic_modules/abi/abi.h`). It
//! has callbacks, which a module calls, and event hooks, which Envoy calls. A module implements the hooks as
//! [`Hooks`] and exports them with [`crate::export_hooks`]. All `unsafe` code of this host is here. `.ci/abi.py` compares
//! the names and the version with Envoy's binary; compare the types and the values with the header by hand.
//!
//! Envoy calls the hooks of a stream only on one worker thread. It identifies the stream by two pointers: Envoy's
//! own, a [`Filter`], which is valid until `on_http_filter_destroy` has returned, and the module's, a
//! [`Hooks::Stream`].
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

use sluice_host::header_map::HeaderMap;
use sluice_host::headers::serialize_fields;

/// The version of the ABI that this file declares.
const VERSION: &CStr = c"v0.2.0";

/// Envoy's side of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter(*mut c_void);

/// Envoy's side of a configuration, while the configuration is being created.
#[derive(Clone, Copy, Debug)]
pub struct FilterConfig(*mut c_void);

/// Wakes a stream from any thread.
#[derive(Debug)]
pub struct Scheduler(*mut c_void);

// SAFETY: Envoy lets any thread commit to a scheduler and delete it.
unsafe impl Send for Scheduler {}

/// Bytes that Envoy or the module lends to the other.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Buffer {
    data: *const u8,
    size: usize,
}

/// A header that Envoy or the module lends to the other.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Header {
    name: Buffer,
    value: Buffer,
}

/// The header map of a stream that a call concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum HeaderMapType {
    /// The request's headers.
    Request = 0,
    /// The response's headers.
    Response = 2,
}

/// The part of a body that a call concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BodyType {
    /// The part of the request's body that has just arrived.
    ReceivedRequest = 0,
    /// The part of the request's body that Envoy buffers.
    BufferedRequest = 1,
    /// The part of the response's body that has just arrived.
    ReceivedResponse = 2,
    /// The part of the response's body that Envoy buffers.
    BufferedResponse = 3,
}

/// Attributes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Attribute {
    /// `source.address`
    SourceAddress = 24,
    /// `connection.id`
    ConnectionId = 28,
    /// `connection.requested_server_name`
    RequestedServerName = 30,
    /// `xds.route_name`
    RouteName = 61,
}

/// The way in which a stream continues after a hook for headers (`FilterHeadersStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum HeadersStatus {
    /// To the next filter.
    Continue = 0,
    /// Paused; the body is still passed to this filter.
    StopIteration = 1,
    /// Paused; the body waits, too.
    StopAllIterationAndWatermark = 4,
}

/// The way in which a stream continues after a hook for a body (`FilterDataStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DataStatus {
    /// To the next filter.
    Continue = 0,
    /// Paused; Envoy buffers the part that has arrived.
    StopIterationAndBuffer = 1,
}

/// The way in which a stream continues after a hook for trailers (`FilterTrailersStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum TrailersStatus {
    /// To the next filter.
    Continue = 0,
    /// Paused.
    StopIteration = 1,
}

/// Levels of Envoy's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LogLevel {
    /// For the search for a fault.
    Debug = 1,
    /// An abnormal event.
    Warn = 3,
    /// A failure.
    Error = 4,
    /// A fault of the module.
    Critical = 5,
}

/// Envoy's result of a call about metrics or a callout: 0 is success.
pub type Status = u32;

const SUCCESS: Status = 0;
/// The timeout of an exchange that may take any time.
const NO_TIMEOUT: u64 = 0;
/// `LocalReset` of a stream.
const LOCAL_RESET: u32 = 0;

#[rustfmt::skip]
unsafe extern "C" {
    fn envoy_dynamic_module_callback_log(level: LogLevel, message: Buffer);
    fn envoy_dynamic_module_callback_get_concurrency() -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_define_counter(config: *mut c_void, name: Buffer, labels: *const Buffer, labels_size: usize, id: *mut usize) -> Status;
    fn envoy_dynamic_module_callback_http_filter_config_define_gauge(config: *mut c_void, name: Buffer, labels: *const Buffer, labels_size: usize, id: *mut usize) -> Status;
    fn envoy_dynamic_module_callback_http_filter_config_define_histogram(config: *mut c_void, name: Buffer, labels: *const Buffer, labels_size: usize, id: *mut usize) -> Status;
    fn envoy_dynamic_module_callback_http_filter_increment_counter(filter: *mut c_void, id: usize, labels: *const Buffer, labels_size: usize, value: u64) -> Status;
    fn envoy_dynamic_module_callback_http_filter_increment_gauge(filter: *mut c_void, id: usize, labels: *const Buffer, labels_size: usize, value: u64) -> Status;
    fn envoy_dynamic_module_callback_http_filter_decrement_gauge(filter: *mut c_void, id: usize, labels: *const Buffer, labels_size: usize, value: u64) -> Status;
    fn envoy_dynamic_module_callback_http_filter_record_histogram_value(filter: *mut c_void, id: usize, labels: *const Buffer, labels_size: usize, value: u64) -> Status;
    fn envoy_dynamic_module_callback_http_get_header(filter: *mut c_void, map: HeaderMapType, name: Buffer, value: *mut Buffer, index: usize, count: *mut usize) -> bool;
    fn envoy_dynamic_module_callback_http_get_headers_size(filter: *mut c_void, map: HeaderMapType) -> usize;
    fn envoy_dynamic_module_callback_http_get_headers(filter: *mut c_void, map: HeaderMapType, headers: *mut Header) -> bool;
    fn envoy_dynamic_module_callback_http_set_header(filter: *mut c_void, map: HeaderMapType, name: Buffer, value: Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_add_header(filter: *mut c_void, map: HeaderMapType, name: Buffer, value: Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_send_response(filter: *mut c_void, status: u32, headers: *const Header, headers_size: usize, body: Buffer, details: Buffer);
    fn envoy_dynamic_module_callback_http_send_response_headers(filter: *mut c_void, headers: *const Header, headers_size: usize, ends: bool);
    fn envoy_dynamic_module_callback_http_send_response_data(filter: *mut c_void, data: Buffer, ends: bool);
    fn envoy_dynamic_module_callback_http_get_body_size(filter: *mut c_void, body: BodyType) -> usize;
    fn envoy_dynamic_module_callback_http_get_body_chunks_size(filter: *mut c_void, body: BodyType) -> usize;
    fn envoy_dynamic_module_callback_http_get_body_chunks(filter: *mut c_void, body: BodyType, chunks: *mut Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_append_body(filter: *mut c_void, body: BodyType, data: Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_drain_body(filter: *mut c_void, body: BodyType, size: usize) -> bool;
    fn envoy_dynamic_module_callback_http_received_buffered_request_body(filter: *mut c_void) -> bool;
    fn envoy_dynamic_module_callback_http_received_buffered_response_body(filter: *mut c_void) -> bool;
    fn envoy_dynamic_module_callback_http_set_filter_state_bytes(filter: *mut c_void, key: Buffer, value: Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_filter_scheduler_new(filter: *mut c_void) -> *mut c_void;
    fn envoy_dynamic_module_callback_http_filter_scheduler_commit(scheduler: *mut c_void, event: u64);
    fn envoy_dynamic_module_callback_http_filter_scheduler_delete(scheduler: *mut c_void);
    fn envoy_dynamic_module_callback_http_filter_get_attribute_string(filter: *mut c_void, attribute: Attribute, value: *mut Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_filter_get_attribute_int(filter: *mut c_void, attribute: Attribute, value: *mut u64) -> bool;
    fn envoy_dynamic_module_callback_http_filter_http_callout(filter: *mut c_void, id: *mut u64, cluster: Buffer, headers: *const Header, headers_size: usize, body: Buffer, timeout_milliseconds: u64) -> Status;
    fn envoy_dynamic_module_callback_http_filter_start_http_stream(filter: *mut c_void, id: *mut u64, cluster: Buffer, headers: *const Header, headers_size: usize, body: Buffer, ends: bool, timeout_milliseconds: u64) -> Status;
    fn envoy_dynamic_module_callback_http_filter_reset_http_stream(filter: *mut c_void, id: u64);
    fn envoy_dynamic_module_callback_http_clear_route_cache(filter: *mut c_void);
    fn envoy_dynamic_module_callback_http_filter_continue_decoding(filter: *mut c_void);
    fn envoy_dynamic_module_callback_http_filter_continue_encoding(filter: *mut c_void);
    fn envoy_dynamic_module_callback_http_filter_reset_stream(filter: *mut c_void, reason: u32, details: Buffer);
    fn envoy_dynamic_module_callback_http_filter_recreate_stream(filter: *mut c_void, headers: *const Header, headers_size: usize) -> bool;
}

impl Buffer {
    const NOTHING: Self = Self {
        data: ptr::null(),
        size: 0,
    };

    const fn of(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr(),
            size: bytes.len(),
        }
    }

    /// Copies bytes that Envoy lends. Envoy may change them in later callbacks.
    fn copied(self) -> Vec<u8> {
        // SAFETY: Envoy lends these bytes until the hook returns or another callback changes them.
        unsafe { self.lent() }.to_vec()
    }

    /// # Safety
    /// The bytes must be there while the reference lives.
    unsafe fn lent<'a>(self) -> &'a [u8] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: see above.
        unsafe { slice::from_raw_parts(self.data, self.size) }
    }
}

impl Header {
    const fn of(name: &[u8], value: &[u8]) -> Self {
        Self {
            name: Buffer::of(name),
            value: Buffer::of(value),
        }
    }
}

/// Writes to Envoy's log.
pub fn log(level: LogLevel, message: &str) {
    // SAFETY: the bytes are there until the call returns; likewise in all calls below.
    unsafe { envoy_dynamic_module_callback_log(level, Buffer::of(message.as_bytes())) }
}

/// The number of Envoy's workers. To be called on the main thread.
pub fn concurrency() -> u32 {
    // SAFETY: it has no arguments.
    unsafe { envoy_dynamic_module_callback_get_concurrency() }
}

impl FilterConfig {
    /// Defines a counter.
    pub fn define_counter(self, name: &str, labels: &[&str]) -> Option<usize> {
        let define = envoy_dynamic_module_callback_http_filter_config_define_counter;
        self.define(define, name, labels)
    }

    /// Defines a gauge.
    pub fn define_gauge(self, name: &str) -> Option<usize> {
        let define = envoy_dynamic_module_callback_http_filter_config_define_gauge;
        self.define(define, name, &[])
    }

    /// Defines a histogram.
    pub fn define_histogram(self, name: &str, labels: &[&str]) -> Option<usize> {
        let define = envoy_dynamic_module_callback_http_filter_config_define_histogram;
        self.define(define, name, labels)
    }

    fn define(
        self,
        define: unsafe extern "C" fn(
            *mut c_void,
            Buffer,
            *const Buffer,
            usize,
            *mut usize,
        ) -> Status,
        name: &str,
        labels: &[&str],
    ) -> Option<usize> {
        let labels: Vec<_> = labels
            .iter()
            .map(|label| Buffer::of(label.as_bytes()))
            .collect();
        let (name, mut id) = (Buffer::of(name.as_bytes()), 0);
        // SAFETY: the configuration is being made, and all buffers are there until the call returns.
        let status = unsafe { define(self.0, name, labels.as_ptr(), labels.len(), &raw mut id) };
        (status == SUCCESS).then_some(id)
    }
}

/// Whether a call succeeded.
pub type Done = bool;

impl Filter {
    /// Adds to a counter.
    pub fn increment_counter(self, id: usize, label: Option<&str>, value: u64) -> Done {
        let labels = label.map(|label| Buffer::of(label.as_bytes()));
        let labels = labels.as_slice();
        let increment = envoy_dynamic_module_callback_http_filter_increment_counter;
        // SAFETY: this stream's filter is there; likewise in all calls below.
        unsafe { increment(self.0, id, labels.as_ptr(), labels.len(), value) == SUCCESS }
    }

    /// Adds to a gauge, or subtracts from it.
    pub fn move_gauge(self, id: usize, offset: i64) -> Done {
        let change = match offset {
            0.. => envoy_dynamic_module_callback_http_filter_increment_gauge,
            _ => envoy_dynamic_module_callback_http_filter_decrement_gauge,
        };
        unsafe { change(self.0, id, ptr::null(), 0, offset.unsigned_abs()) == SUCCESS }
    }

    /// Adds a value to a histogram.
    pub fn record(self, id: usize, label: Option<&str>, value: u64) -> Done {
        let labels = label.map(|label| Buffer::of(label.as_bytes()));
        let labels = labels.as_slice();
        let record = envoy_dynamic_module_callback_http_filter_record_histogram_value;
        unsafe { record(self.0, id, labels.as_ptr(), labels.len(), value) == SUCCESS }
    }

    /// All headers, serialized.
    pub fn headers(self, map: HeaderMapType) -> Vec<u8> {
        const NONE: Header = Header {
            name: Buffer::NOTHING,
            value: Buffer::NOTHING,
        };
        let size = unsafe { envoy_dynamic_module_callback_http_get_headers_size(self.0, map) };
        let mut headers = vec![NONE; size];
        unsafe {
            envoy_dynamic_module_callback_http_get_headers(self.0, map, headers.as_mut_ptr());
        }
        // SAFETY: nothing changes the headers before this returns.
        let lent = |header: &Header| unsafe { (header.name.lent(), header.value.lent()) };
        serialize_fields(headers.iter().map(lent))
    }

    /// The values of all headers of that name, joined by commas.
    pub fn header(self, map: HeaderMapType, name: &str) -> Option<Vec<u8>> {
        let (mut joined, mut index, mut count) = (None, 0, 0);
        loop {
            let mut value = Buffer::NOTHING;
            let found = unsafe {
                envoy_dynamic_module_callback_http_get_header(
                    self.0,
                    map,
                    Buffer::of(name.as_bytes()),
                    &raw mut value,
                    index,
                    &raw mut count,
                )
            };
            if !found || index >= count {
                return joined;
            }
            match &mut joined {
                None => joined = Some(value.copied()),
                Some(joined) => {
                    joined.push(b',');
                    joined.extend(value.copied());
                }
            }
            index += 1;
        }
    }

    /// Replaces all headers of that name by one.
    pub fn set_header(self, map: HeaderMapType, name: &str, value: &[u8]) -> Done {
        let (name, value) = (Buffer::of(name.as_bytes()), Buffer::of(value));
        unsafe { envoy_dynamic_module_callback_http_set_header(self.0, map, name, value) }
    }

    /// Adds a header to those of its name.
    pub fn add_header(self, map: HeaderMapType, name: &str, value: &[u8]) -> Done {
        let (name, value) = (Buffer::of(name.as_bytes()), Buffer::of(value));
        unsafe { envoy_dynamic_module_callback_http_add_header(self.0, map, name, value) }
    }

    /// Removes all headers of that name.
    pub fn remove_header(self, map: HeaderMapType, name: &str) -> Done {
        let name = Buffer::of(name.as_bytes());
        let nothing = Buffer::NOTHING;
        unsafe { envoy_dynamic_module_callback_http_set_header(self.0, map, name, nothing) }
    }

    /// Answers the request with a local reply of Envoy's.
    pub fn send_response<'a>(
        self,
        status: u16,
        headers: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        body: &[u8],
        details: &str,
    ) {
        let headers = lend(headers);
        let (body, details) = (Buffer::of(body), Buffer::of(details.as_bytes()));
        let send = envoy_dynamic_module_callback_http_send_response;
        let (data, size) = (headers.as_ptr(), headers.len());
        unsafe { send(self.0, u32::from(status), data, size, body, details) }
    }

    /// Sends the headers of a response. The response has no body if it `ends` with them.
    pub fn send_response_headers<'a>(
        self,
        headers: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        ends: bool,
    ) {
        let headers = lend(headers);
        let send = envoy_dynamic_module_callback_http_send_response_headers;
        unsafe { send(self.0, headers.as_ptr(), headers.len(), ends) }
    }

    /// Sends the body of a response, and ends it.
    pub fn end_response(self, body: &[u8]) {
        let send = envoy_dynamic_module_callback_http_send_response_data;
        unsafe { send(self.0, Buffer::of(body), true) }
    }

    /// Sends a part of the body of a response.
    pub fn send_response_data(self, data: &[u8]) {
        let send = envoy_dynamic_module_callback_http_send_response_data;
        unsafe { send(self.0, Buffer::of(data), false) }
    }

    /// Size of a part of a body in bytes.
    pub fn body_size(self, body: BodyType) -> usize {
        unsafe { envoy_dynamic_module_callback_http_get_body_size(self.0, body) }
    }

    /// Whether the part of the request's body that has just arrived is the part that Envoy has buffered.
    pub fn has_received_held_request(self) -> bool {
        unsafe { envoy_dynamic_module_callback_http_received_buffered_request_body(self.0) }
    }

    /// Whether the part of the response's body that has just arrived is the part that Envoy has buffered.
    pub fn has_received_held_response(self) -> bool {
        unsafe { envoy_dynamic_module_callback_http_received_buffered_response_body(self.0) }
    }

    /// Appends bytes of a part of a body to `bytes`: those from `start`, at most `most`.
    pub fn copy_body(self, body: BodyType, start: usize, most: usize, bytes: &mut Vec<u8>) {
        let size = unsafe { envoy_dynamic_module_callback_http_get_body_chunks_size(self.0, body) };
        let mut chunks = vec![Buffer::NOTHING; size];
        let chunks_of = envoy_dynamic_module_callback_http_get_body_chunks;
        if size == 0 || !unsafe { chunks_of(self.0, body, chunks.as_mut_ptr()) } {
            return;
        }
        let (mut skip, mut left) = (start, most);
        for chunk in &chunks {
            // SAFETY: nothing changes the body before this returns.
            let chunk = unsafe { chunk.lent() };
            let from = skip.min(chunk.len());
            skip -= from;
            let (_, wanted) = chunk.split_at(from);
            let (wanted, _) = wanted.split_at(left.min(wanted.len()));
            left -= wanted.len();
            bytes.extend_from_slice(wanted);
        }
    }

    /// Appends bytes to a part of a body.
    pub fn append_body(self, body: BodyType, bytes: &[u8]) -> Done {
        unsafe { envoy_dynamic_module_callback_http_append_body(self.0, body, Buffer::of(bytes)) }
    }

    /// Removes the first bytes of a part of a body.
    pub fn drain_body(self, body: BodyType, size: usize) -> Done {
        unsafe { envoy_dynamic_module_callback_http_drain_body(self.0, body, size) }
    }

    /// Sets filter state.
    pub fn set_filter_state(self, key: &str, value: &str) -> Done {
        let (key, value) = (Buffer::of(key.as_bytes()), Buffer::of(value.as_bytes()));
        unsafe { envoy_dynamic_module_callback_http_set_filter_state_bytes(self.0, key, value) }
    }

    /// An attribute.
    pub fn attribute(self, attribute: Attribute) -> Option<Vec<u8>> {
        let mut value = Buffer::NOTHING;
        let get = envoy_dynamic_module_callback_http_filter_get_attribute_string;
        let found = unsafe { get(self.0, attribute, &raw mut value) };
        found.then(|| value.copied())
    }

    /// An attribute that is a number.
    pub fn attribute_number(self, attribute: Attribute) -> Option<u64> {
        let mut value = 0;
        let get = envoy_dynamic_module_callback_http_filter_get_attribute_int;
        let found = unsafe { get(self.0, attribute, &raw mut value) };
        found.then_some(value)
    }

    /// Sends a request to a cluster. Returns the number with which the answer is received.
    pub fn call(
        self,
        cluster: &str,
        headers: &[(&str, &[u8])],
        body: &[u8],
        timeout_milliseconds: u64,
    ) -> Option<u64> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.as_bytes(), *value));
        let (headers, mut id) = (lend(headers), 0);
        let status = unsafe {
            envoy_dynamic_module_callback_http_filter_http_callout(
                self.0,
                &raw mut id,
                Buffer::of(cluster.as_bytes()),
                headers.as_ptr(),
                headers.len(),
                Buffer::of(body),
                timeout_milliseconds,
            )
        };
        (status == SUCCESS).then_some(id)
    }

    /// Sends a request without a body to a cluster, and receives its answer in parts. Returns the number of the
    /// exchange, with which the hooks are called, perhaps before this returns. The exchange ends with this stream.
    pub fn begin_exchange(self, cluster: &str, headers: &[(&str, &[u8])]) -> Option<u64> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.as_bytes(), *value));
        let (headers, mut id) = (lend(headers), 0);
        let status = unsafe {
            envoy_dynamic_module_callback_http_filter_start_http_stream(
                self.0,
                &raw mut id,
                Buffer::of(cluster.as_bytes()),
                headers.as_ptr(),
                headers.len(),
                Buffer::NOTHING,
                true,
                NO_TIMEOUT,
            )
        };
        (status == SUCCESS).then_some(id)
    }

    /// Ends an exchange. The hook for its failure may be called.
    pub fn end_exchange(self, exchange: u64) {
        unsafe { envoy_dynamic_module_callback_http_filter_reset_http_stream(self.0, exchange) }
    }

    /// Makes Envoy select the route again, because the request's headers have changed.
    pub fn clear_route(self) {
        unsafe { envoy_dynamic_module_callback_http_clear_route_cache(self.0) }
    }

    /// Resumes a paused request.
    pub fn continue_decoding(self) {
        unsafe { envoy_dynamic_module_callback_http_filter_continue_decoding(self.0) }
    }

    /// Resumes a paused response.
    pub fn continue_encoding(self) {
        unsafe { envoy_dynamic_module_callback_http_filter_continue_encoding(self.0) }
    }

    /// Resets the stream, for this reason in Envoy's log.
    pub fn reset(self, details: &str) {
        let details = Buffer::of(details.as_bytes());
        unsafe {
            envoy_dynamic_module_callback_http_filter_reset_stream(self.0, LOCAL_RESET, details)
        }
    }

    /// Handles the request again, from the first filter on, with its present headers. Returns false if the request
    /// continues unchanged instead.
    pub fn recreate(self) -> Done {
        let recreate = envoy_dynamic_module_callback_http_filter_recreate_stream;
        unsafe { recreate(self.0, ptr::null(), 0) }
    }

    /// Returns an object that wakes this stream from any thread.
    pub fn scheduler(self) -> Scheduler {
        Scheduler(unsafe { envoy_dynamic_module_callback_http_filter_scheduler_new(self.0) })
    }
}

impl Scheduler {
    /// Wakes the stream, if it is still there.
    pub fn commit(&self) {
        // SAFETY: it has not been deleted.
        unsafe { envoy_dynamic_module_callback_http_filter_scheduler_commit(self.0, 0) }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        // SAFETY: no thread uses it any more.
        unsafe { envoy_dynamic_module_callback_http_filter_scheduler_delete(self.0) }
    }
}

fn lend<'a>(headers: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<Header> {
    // Few messages have more.
    let mut lent = Vec::with_capacity(32);
    lent.extend(headers.map(|(name, value)| Header::of(name, value)));
    lent
}

/// The answer to a callout.
#[derive(Clone, Debug, Default)]
pub struct CallAnswer {
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

/// The event hooks of a module. A hook must not unwind.
pub trait Hooks {
    /// The module's side of a configuration.
    type Config;
    /// The module's side of a stream.
    type Stream;

    /// Handles the loading of the module.
    fn on_program_init();
    /// Creates the module's side of a configuration, on Envoy's main thread. `None` refuses the configuration.
    fn on_config_new(config: FilterConfig, name: &[u8], text: Vec<u8>)
    -> Option<Arc<Self::Config>>;
    /// Handles the end of a configuration, on any thread.
    fn on_config_destroy(config: Arc<Self::Config>);
    /// Creates the module's side of a stream. `None` closes the stream.
    fn on_new(config: &Arc<Self::Config>, filter: Filter) -> Option<Rc<Self::Stream>>;
    /// Handles the request's headers.
    fn on_request_headers(stream: &Rc<Self::Stream>, ends: bool) -> HeadersStatus;
    /// Handles a part of the request's body, or its end.
    fn on_request_body(stream: &Rc<Self::Stream>, ends: bool) -> DataStatus;
    /// Handles the request's trailers.
    fn on_request_trailers(stream: &Rc<Self::Stream>) -> TrailersStatus;
    /// Handles the response's headers.
    fn on_response_headers(stream: &Rc<Self::Stream>, ends: bool) -> HeadersStatus;
    /// Handles a part of the response's body, or its end.
    fn on_response_body(stream: &Rc<Self::Stream>, ends: bool) -> DataStatus;
    /// Handles the response's trailers.
    fn on_response_trailers(stream: &Rc<Self::Stream>) -> TrailersStatus;
    /// Handles the end of the stream. The access log is written after this.
    fn on_stream_complete(stream: &Rc<Self::Stream>);
    /// Handles the destruction of Envoy's side of the stream.
    fn on_destroy(stream: Rc<Self::Stream>);
    /// Handles the answer to a callout of the stream; `None` if the callout has failed.
    fn on_call_answered(stream: &Rc<Self::Stream>, call: u64, answer: Option<CallAnswer>);
    /// Handles a wake of the stream by its scheduler.
    fn on_scheduled(stream: &Rc<Self::Stream>);
    /// Handles an event of an exchange of the stream.
    fn on_exchange(stream: &Rc<Self::Stream>, exchange: u64, event: ExchangeEvent<'_>);
    /// Handles a change of a buffer of the client: it has become full, or is no longer full. It is called only for
    /// the last filter of a chain.
    fn on_client_buffer(stream: &Rc<Self::Stream>, is_full: bool);
}

/// An event of an exchange.
#[derive(Clone, Copy, Debug)]
pub enum ExchangeEvent<'a> {
    /// The headers of the answer have arrived.
    Headers(&'a [Header]),
    /// A part of the body of the answer has arrived.
    Data(&'a [Buffer]),
    /// The answer has ended.
    End,
    /// The exchange has failed.
    Failure,
}

impl<'a> ExchangeEvent<'a> {
    /// The event of headers that have arrived.
    ///
    /// # Safety
    /// Envoy lends the headers for that time.
    pub unsafe fn of_headers(headers: *const Header, size: usize) -> Self {
        Self::Headers(match headers.is_null() {
            true => &[],
            // SAFETY: see above.
            false => unsafe { slice::from_raw_parts(headers, size) },
        })
    }

    /// The event of data that have arrived.
    ///
    /// # Safety
    /// Envoy lends the data for that time.
    pub unsafe fn of_data(chunks: *const Buffer, size: usize) -> Self {
        Self::Data(match chunks.is_null() {
            true => &[],
            // SAFETY: see above.
            false => unsafe { slice::from_raw_parts(chunks, size) },
        })
    }
}

/// The names and values of headers of an [`ExchangeEvent`].
pub fn lent_headers(headers: &[Header]) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    // SAFETY: Envoy lends them as long as the event.
    let lent = |header: &Header| unsafe { (header.name.lent(), header.value.lent()) };
    headers.iter().map(lent)
}

/// The data of an [`ExchangeEvent`].
pub fn lent_data(chunks: &[Buffer]) -> impl Iterator<Item = &[u8]> {
    // SAFETY: Envoy lends them as long as the event.
    chunks.iter().map(|chunk| unsafe { chunk.lent() })
}

/// The version of the ABI, for Envoy.
pub fn version() -> *const c_char {
    VERSION.as_ptr()
}

/// Creates a configuration for Envoy.
pub fn config_new<H: Hooks>(config: *mut c_void, name: Buffer, text: Buffer) -> *const H::Config {
    let made = H::on_config_new(FilterConfig(config), &name.copied(), text.copied());
    made.map_or(ptr::null(), Arc::into_raw)
}

/// Creates a stream for Envoy.
///
/// # Safety
/// `config` is a pointer of [`config_new`], and Envoy has not destroyed that configuration.
pub unsafe fn filter_new<H: Hooks>(
    config: *const H::Config,
    filter: *mut c_void,
) -> *const H::Stream {
    // SAFETY: see above; the configuration outlives its streams.
    let config = unsafe {
        Arc::increment_strong_count(config);
        Arc::from_raw(config)
    };
    H::on_new(&config, Filter(filter)).map_or(ptr::null(), Rc::into_raw)
}

/// Returns a new reference to the stream, because a hook may destroy the stream.
///
/// # Safety
/// `pointer` is a pointer of [`filter_new`], and Envoy has not destroyed that stream.
pub unsafe fn stream<S>(pointer: *const S) -> Rc<S> {
    // SAFETY: see above.
    unsafe {
        Rc::increment_strong_count(pointer);
        Rc::from_raw(pointer)
    }
}

/// Reads the answer to a callout.
///
/// # Safety
/// Envoy lends both arrays.
pub unsafe fn answer(
    result: Status,
    headers: (*const Header, usize),
    chunks: (*const Buffer, usize),
) -> Option<CallAnswer> {
    if result != SUCCESS || headers.0.is_null() {
        return None;
    }
    // SAFETY: see above.
    let headers = unsafe { slice::from_raw_parts(headers.0, headers.1) };
    let header = |header: &Header| {
        let name = String::from_utf8_lossy(&header.name.copied()).into_owned();
        (name, header.value.copied())
    };
    let chunks = match chunks.0.is_null() {
        true => &[],
        // SAFETY: see above.
        false => unsafe { slice::from_raw_parts(chunks.0, chunks.1) },
    };
    Some(CallAnswer {
        headers: HeaderMap::of_lines(headers.iter().map(header).collect()),
        body: chunks.iter().flat_map(|chunk| chunk.copied()).collect(),
    })
}

/// Exports all hooks that Envoy needs, with the functions of a type that implements [`Hooks`].
#[macro_export]
macro_rules! export_hooks {
    ($hooks:ty) => {
        /// The functions that Envoy calls, with the signatures of `abi.h`. No other code exports these names.
        #[allow(unsafe_code)]
        mod exported {
            use std::ffi::{c_char, c_void};
            use std::ptr;
            use std::rc::Rc;
            use std::sync::Arc;

            use super::*;
            use $crate::abi::{self, Buffer, DataStatus, ExchangeEvent, Header, HeadersStatus, Hooks, Status, TrailersStatus};

            type Config = *const <$hooks as Hooks>::Config;
            type Stream = *const <$hooks as Hooks>::Stream;

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
                <$hooks>::on_program_init();
                abi::version()
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_config_new(config: *mut c_void, name: Buffer, text: Buffer) -> Config {
                abi::config_new::<$hooks>(config, name, text)
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_config_destroy(config: Config) {
                // SAFETY: it is the pointer that `config_new` has given, for the last time.
                <$hooks>::on_config_destroy(unsafe { Arc::from_raw(config) });
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_new(config: Config, filter: *mut c_void) -> Stream {
                // SAFETY: the configuration is there.
                unsafe { abi::filter_new::<$hooks>(config, filter) }
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_request_headers(_: *mut c_void, stream: Stream, ends: bool) -> HeadersStatus {
                // SAFETY: the stream is there; likewise below.
                <$hooks>::on_request_headers(&unsafe { abi::stream(stream) }, ends)
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_request_body(_: *mut c_void, stream: Stream, ends: bool) -> DataStatus {
                <$hooks>::on_request_body(&unsafe { abi::stream(stream) }, ends)
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_request_trailers(_: *mut c_void, stream: Stream) -> TrailersStatus {
                <$hooks>::on_request_trailers(&unsafe { abi::stream(stream) })
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_response_headers(_: *mut c_void, stream: Stream, ends: bool) -> HeadersStatus {
                <$hooks>::on_response_headers(&unsafe { abi::stream(stream) }, ends)
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_response_body(_: *mut c_void, stream: Stream, ends: bool) -> DataStatus {
                <$hooks>::on_response_body(&unsafe { abi::stream(stream) }, ends)
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_response_trailers(_: *mut c_void, stream: Stream) -> TrailersStatus {
                <$hooks>::on_response_trailers(&unsafe { abi::stream(stream) })
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_stream_complete(_: *mut c_void, stream: Stream) {
                <$hooks>::on_stream_complete(&unsafe { abi::stream(stream) });
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_destroy(stream: Stream) {
                // SAFETY: it is the pointer that `on_http_filter_new` has given, for the last time.
                <$hooks>::on_destroy(unsafe { Rc::from_raw(stream) });
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_http_callout_done(_: *mut c_void, stream: Stream, id: u64, result: Status, headers: *const Header, headers_size: usize, chunks: *const Buffer, chunks_size: usize) {
                // SAFETY: Envoy lends all until this returns.
                let (stream, answer) = unsafe { (abi::stream(stream), abi::answer(result, (headers, headers_size), (chunks, chunks_size))) };
                <$hooks>::on_call_answered(&stream, id, answer);
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_scheduled(_: *mut c_void, stream: Stream, _: u64) {
                <$hooks>::on_scheduled(&unsafe { abi::stream(stream) });
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_headers(_: *mut c_void, stream: Stream, id: u64, headers: *const Header, headers_size: usize, _: bool) {
                // SAFETY: Envoy lends all until this returns; likewise below.
                let (stream, event) = unsafe { (abi::stream(stream), ExchangeEvent::of_headers(headers, headers_size)) };
                <$hooks>::on_exchange(&stream, id, event);
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_data(_: *mut c_void, stream: Stream, id: u64, chunks: *const Buffer, chunks_size: usize, _: bool) {
                let (stream, event) = unsafe { (abi::stream(stream), ExchangeEvent::of_data(chunks, chunks_size)) };
                <$hooks>::on_exchange(&stream, id, event);
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_complete(_: *mut c_void, stream: Stream, id: u64) {
                <$hooks>::on_exchange(&unsafe { abi::stream(stream) }, id, ExchangeEvent::End);
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_reset(_: *mut c_void, stream: Stream, id: u64, _: Status) {
                <$hooks>::on_exchange(&unsafe { abi::stream(stream) }, id, ExchangeEvent::Failure);
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(_: *mut c_void, stream: Stream) {
                <$hooks>::on_client_buffer(&unsafe { abi::stream(stream) }, true);
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(_: *mut c_void, stream: Stream) {
                <$hooks>::on_client_buffer(&unsafe { abi::stream(stream) }, false);
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_local_reply(_: *mut c_void, _: Stream, _: u32, _: Buffer, _: bool) -> u32 {
                0
            }

            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_http_filter_per_route_config_new(_: Buffer, _: Buffer) -> *const c_void {
                ptr::null()
            }

            $crate::unused_hooks! {
                envoy_dynamic_module_on_http_filter_per_route_config_destroy(*const c_void);
                envoy_dynamic_module_on_http_filter_config_scheduled(*mut c_void, Config, u64);
                envoy_dynamic_module_on_http_filter_config_http_callout_done(*mut c_void, Config, u64, Status, *const Header, usize, *const Buffer, usize);
                envoy_dynamic_module_on_http_filter_config_http_stream_headers(*mut c_void, Config, u64, *const Header, usize, bool);
                envoy_dynamic_module_on_http_filter_config_http_stream_data(*mut c_void, Config, u64, *const Buffer, usize, bool);
                envoy_dynamic_module_on_http_filter_config_http_stream_trailers(*mut c_void, Config, u64, *const Header, usize);
                envoy_dynamic_module_on_http_filter_config_http_stream_complete(*mut c_void, Config, u64);
                envoy_dynamic_module_on_http_filter_config_http_stream_reset(*mut c_void, Config, u64, Status);
                envoy_dynamic_module_on_http_filter_http_stream_trailers(*mut c_void, Stream, u64, *const Header, usize);
            }
        }
    };
}

/// Exports hooks that Envoy needs and the filter does not.
#[macro_export]
macro_rules! unused_hooks {
    ($($name:ident($($argument:ty),*);)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name($(_: $argument),*) {}
        )*
    };
}
