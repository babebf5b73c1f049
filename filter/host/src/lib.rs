// SPDX-License-Identifier: Apache-2.0
//! The interface between the roles and their host, which is Envoy in the shipped module and a fake one in native
//! tests. This file has the calls of the roles; the callbacks of the host are in [`crate::callbacks`].
//!
//! A call concerns the context whose callback runs, or the one that [`Host::act_as`] has named since. A call that
//! fails returns an error. Nothing here panics, because a panic would cost a worker its VM.

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod header_edit;
pub mod header_map;
pub mod headers;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use header_edit::HeaderEdit;
use headers::{Headers, serialize};
use sluice_core::host::{HostError, SharedStore};
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::metrics::MetricKind;
use sluice_core::workers::KeyHash;

/// Outcome of a host call.
pub type Result<T> = std::result::Result<T, HostError>;

/// The way in which a stream continues after a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// At once.
    Continue,
    /// When the filter resumes the stream or answers it.
    Pause,
}

/// The header map that a call concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// The request's headers.
    Request,
    /// The response's headers.
    Response,
    /// The headers of the answer to [`Host::call`].
    CallResponse,
}

/// The half of a stream that a call concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// From the client.
    Request,
    /// To the client.
    Response,
}

/// Levels of the host's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For the search for a fault.
    Debug,
    /// An abnormal event that the filter can handle.
    Warn,
    /// An event that prevents the filter from working.
    Error,
    /// A fault of the filter itself.
    Critical,
}

/// A queue of the host, through which workers send each other messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue(pub u32);

/// The calls of the roles to their host. Each failure of a call is the host's status.
#[allow(clippy::missing_errors_doc)]
pub trait Host: SharedStore {
    /// All headers of a map.
    fn headers(&self, map: Map) -> Result<Headers>;

    /// The value of one header, or the values of all headers of that name joined by commas. `None` if that is empty.
    /// Hosts do not use a call of Envoy's for it, because the one for Wasm only reads the first line.
    fn header(&self, map: Map, name: &str) -> Result<Option<Vec<u8>>> {
        let headers = self.headers(map)?;
        let value = headers
            .joined(name)
            .map(|value| value.into_bytes().into_owned());
        Ok(value.filter(|value| !value.is_empty()))
    }

    /// Replaces all headers of that name by one. With an empty value it removes all of them, on every host, because a
    /// native module cannot set an empty header.
    fn set_header_bytes(&self, map: Map, name: &str, value: &[u8]) -> Result<()>;

    /// Adds a header to those of its name. An empty value adds nothing, because a native module cannot set an empty
    /// header.
    fn add_header_bytes(&self, map: Map, name: &str, value: &[u8]) -> Result<()>;

    /// Removes all headers of that name.
    fn remove_header(&self, map: Map, name: &str) -> Result<()>;

    /// The plugin's configuration, of `size` bytes.
    fn plugin_configuration(&self, size: usize) -> Result<Vec<u8>>;

    /// The first `size` bytes of the request's body, up to the end of the buffered part.
    fn request_body(&self, size: usize) -> Result<Vec<u8>>;

    /// Bytes of the part of the response's body that is passing.
    fn response_body(&self, wanted: Range<usize>) -> Result<Vec<u8>>;

    /// Replaces the first `size` bytes of the part of the response's body that is passing by `bytes`.
    fn replace_response_body(&self, size: usize, bytes: &[u8]) -> Result<()>;

    /// The body of the answer to [`Host::call`], of `size` bytes.
    fn call_body(&self, size: usize) -> Result<Vec<u8>>;

    /// Answers the request. `details` is for the access log; the headers are in the form of [`serialize`].
    fn respond_with(
        &self,
        status: u16,
        details: &'static str,
        headers: &[u8],
        body: &[u8],
    ) -> Result<()>;

    /// Directs the following calls to another context of this VM, until the callback returns.
    fn act_as(&self, context: u32) -> Result<()>;

    /// Resumes a paused half of the stream.
    fn resume(&self, half: Half) -> Result<()>;

    /// Resets the stream.
    fn reset(&self, half: Half) -> Result<()>;

    /// An attribute, such as `response.code_details`. The parts of its path are separated by NULs.
    fn property(&self, path: &str) -> Result<Option<Vec<u8>>>;

    /// Sets filter state of the request. Its name in Envoy is `wasm.` and `path`.
    fn set_property(&self, path: &str, value: &str) -> Result<()>;

    /// Sends a request to a cluster. The context that runs now receives the answer, with the returned number.
    fn call(
        &self,
        cluster: &str,
        headers: &[(&str, &[u8])],
        body: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<u32>;

    /// The number of a root context that every VM has from its start. It may end with its configuration. `None` for
    /// hosts on which the number of a VM's context is never used again in a later VM.
    fn first_root(&self) -> Option<u32>;

    /// Makes this root context the receiver of the queue.
    fn register_queue(&self, name: &str) -> Result<Queue>;

    /// The queue that another worker of the VM `vm_id` has registered under `name`.
    fn resolve_queue(&self, vm_id: &str, name: &str) -> Result<Queue>;

    /// Puts a message into a queue and wakes its receiver.
    fn enqueue(&self, queue: Queue, message: &[u8]) -> Result<()>;

    /// Takes the next message, if there is one.
    fn dequeue(&self, queue: Queue) -> Result<Option<Vec<u8>>>;

    /// Returns the body that another worker already has for a key, if it is equal to `body`. Otherwise returns
    /// `body`, which other workers may share from now on. A host whose workers do not share memory returns `body`.
    fn share_body(&self, _key: KeyHash, body: Arc<[u8]>) -> Arc<[u8]> {
        body
    }

    /// Sets the period of the root context's timer; zero stops it.
    fn set_tick_period(&self, milliseconds: u32) -> Result<()>;

    /// A variable of the VM's environment, which is set in the host's configuration.
    fn environment(&self, name: &str) -> Result<Option<String>>;

    /// Fills the buffer with random bytes.
    fn fill_random(&self, bytes: &mut [u8]) -> Result<()>;

    /// Monotonic milliseconds, the same for all workers of the process.
    fn monotonic_millis(&self) -> u64;

    /// Milliseconds since the Unix epoch.
    fn unix_millis(&self) -> u64;

    /// Defines a metric, or finds it if another worker has defined it.
    fn define_metric(&self, kind: MetricKind, name: &str) -> Result<u32>;

    /// Adds to a counter or gauge.
    fn increment_metric(&self, metric: u32, offset: i64) -> Result<()>;

    /// Adds a value to a histogram.
    fn record_metric(&self, metric: u32, value: u64) -> Result<()>;

    /// Writes to the host's log.
    fn log(&self, level: Level, message: &str);
}

#[allow(clippy::missing_errors_doc)]
impl dyn Host + '_ {
    /// The value of one header, if it is a number.
    pub fn header_number(&self, map: Map, name: &str) -> Result<Option<u64>> {
        let value = self.header(map, name)?;
        Ok(value.and_then(|value| FieldValue::new(&value).number()))
    }

    /// Replaces all headers of that name by one, whose value may be any bytes.
    pub fn set_header(&self, map: Map, name: &str, value: impl AsRef<[u8]>) -> Result<()> {
        self.set_header_bytes(map, name, value.as_ref())
    }

    /// Adds a header to those of its name. Its value may be any bytes.
    pub fn add_header(&self, map: Map, name: &str, value: impl AsRef<[u8]>) -> Result<()> {
        self.add_header_bytes(map, name, value.as_ref())
    }

    /// Carries out `edits` on a header map.
    pub fn edit_headers(&self, map: Map, edits: Vec<HeaderEdit<'_>>) -> Result<()> {
        edits.into_iter().try_for_each(|edit| match edit {
            HeaderEdit::Set(name, value) => self.set_header(map, name, &value),
            HeaderEdit::Remove(name) => self.remove_header(map, name),
        })
    }

    /// Carries out `edits` on a header map that has at most these `headers`. A missing header is not removed.
    pub fn edit_known_headers(
        &self,
        map: Map,
        headers: &Headers,
        edits: Vec<HeaderEdit<'_>>,
    ) -> Result<()> {
        edits.into_iter().try_for_each(|edit| match edit {
            HeaderEdit::Set(name, value) => self.write_header(map, headers, name, &value),
            HeaderEdit::Remove(name) if headers.has(name) => self.remove_header(map, name),
            HeaderEdit::Remove(_) => Ok(()),
        })
    }

    /// Sets a header of a map that has at most these `headers`. A missing header is added, because Envoy does not
    /// have to index the names for that.
    pub fn write_header(
        &self,
        map: Map,
        headers: &Headers,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        match headers.has(name) {
            true => self.set_header(map, name, value),
            false => self.add_header(map, name, value),
        }
    }

    /// Removes the first `size` bytes of the part of the response's body that is passing.
    pub fn drop_response_body(&self, size: usize) -> Result<()> {
        match size {
            0 => Ok(()),
            _ => self.replace_response_body(size, &[]),
        }
    }

    /// Answers the request. `details` is for the access log.
    pub fn respond(
        &self,
        status: u16,
        details: &'static str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<()> {
        let headers = headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()));
        self.respond_with(status, details, &serialize(headers), body.as_bytes())
    }

    /// Random bytes.
    pub fn random<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill_random(&mut bytes)?;
        Ok(bytes)
    }

    /// Seconds since the Unix epoch.
    pub fn unix_seconds(&self) -> i64 {
        i64::try_from(self.unix_millis() / 1_000).unwrap_or(i64::MAX)
    }
}
