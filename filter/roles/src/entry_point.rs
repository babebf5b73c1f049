// SPDX-License-Identifier: Apache-2.0
//! The calls to the entry point's sockets, each behind the cluster of its socket.

use std::time::Duration;

use sluice_host::{self as host, Host};

/// Sends `body` to the socket behind `cluster`. Returns the host's number for the call, whose answer is delivered to the
/// context that is running now.
///
/// # Errors
/// Envoy refused to send the call.
pub fn post(host: &dyn Host, cluster: &str, body: &[u8], timeout: Duration) -> host::Result<u32> {
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", cluster),
        (":path", "/"),
    ]
    .map(|(name, value)| (name, value.as_bytes()));
    host.call(cluster, &headers, Some(body), timeout)
}
