// SPDX-License-Identifier: Apache-2.0
//! Streams: which one the calls are about, and how it goes on or is answered.

use super::headers::serialize;
use super::imports::{
    proxy_close_stream, proxy_continue_stream, proxy_send_local_response,
    proxy_set_effective_context,
};
use super::{Result, check};

/// Which half of a stream a call is about.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Half {
    /// From the client.
    Request = 0,
    /// To the client.
    Response = 1,
}

/// Directs the calls that follow at another context of this VM, until the callback returns.
pub fn set_effective_context(context: u32) -> Result<()> {
    check(unsafe { proxy_set_effective_context(context) })
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
    let headers = headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()));
    respond_with(status, details, &serialize(headers), body.as_bytes())
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
