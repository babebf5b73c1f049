// SPDX-License-Identifier: Apache-2.0
//! Every call to Envoy, through the raw proxy-wasm imports.
//!
//! The SDK's wrappers panic on statuses they do not expect, and a panic is a trap that kills the
//! worker's VM with every request parked in it. Here each status becomes a `Result`.
#![allow(unsafe_code)]

mod calls;
pub mod headers;
mod imports;
mod message;
mod metrics;
mod shared;
mod stream;
mod time;

use std::ptr;

use sluice_core::host::HostError;

use imports::{proxy_get_property, proxy_log, proxy_set_property};

pub use calls::{http_call, http_post};
pub use message::{
    Map, add_header, call_body, drop_response_body, edit_headers, header, header_number,
    header_pairs, plugin_configuration, remove_header, replace_response_body, request_body,
    response_body, set_header,
};
pub use metrics::{define_metric, increment_metric, record_metric};
pub use shared::{Queue, SharedData, dequeue, enqueue, register_queue, resolve_queue};
pub use stream::{Half, reset, respond, respond_with, resume, set_effective_context};
pub use time::{monotonic_millis, random, set_tick_period, unix_millis, unix_seconds};

/// Outcome of a host call.
pub type Result<T> = std::result::Result<T, HostError>;

const OK: u32 = 0;
const NOT_FOUND: u32 = 1;
/// Log levels of the host.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Level {
    /// Something abnormal that the filter copes with.
    Warn = 3,
    /// Something that keeps the filter from its work.
    Error = 4,
    /// A fault of the filter itself.
    Critical = 5,
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

/// An Envoy attribute, such as `response.code_details` with its parts NUL-separated.
pub fn property(path: &str) -> Result<Option<Vec<u8>>> {
    receive(|data, size| unsafe { proxy_get_property(path.as_ptr(), path.len(), data, size) })
}

/// Sets filter state of the effective context's request, which Envoy knows as `wasm.` and `path`.
pub fn set_property(path: &str, value: &str) -> Result<()> {
    check(unsafe { proxy_set_property(path.as_ptr(), path.len(), value.as_ptr(), value.len()) })
}
