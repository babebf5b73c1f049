// SPDX-License-Identifier: Apache-2.0
//! Requests of the filter's own to a cluster.

use std::time::Duration;

use sluice_core::host::HostError;

use super::Result;

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
