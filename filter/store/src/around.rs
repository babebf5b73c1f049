// SPDX-License-Identifier: Apache-2.0
//! Responses to requests that are sent around the store. If a fault of the filter lets Envoy's cache see such a
//! response, the cache must not store it. So ORIGIN forbids storing on each of these responses, and EDGE restores the
//! origin's `Cache-Control` for the client.

use crate::link::AROUND_HEADER;
use crate::stored::stored_fields::STORED_CACHE_CONTROL;

use sluice_host::{self as host, Host, Map};

const CACHE_CONTROL: &str = "cache-control";

/// Forbids Envoy's cache to store the response, and marks the response.
pub fn mark_around(host: &dyn Host) -> host::Result<()> {
    let own = host.header(Map::Response, CACHE_CONTROL)?;
    host.set_header(Map::Response, CACHE_CONTROL, "no-store")?;
    if let Some(own) = own {
        host.set_header(Map::Response, STORED_CACHE_CONTROL, &own)?;
    }
    host.set_header(Map::Response, AROUND_HEADER, "1")
}

/// Undoes [`mark_around`] for the client. True if the response is marked.
pub fn unmark_around(host: &dyn Host) -> host::Result<bool> {
    if host.header(Map::Response, AROUND_HEADER)?.is_none() {
        return Ok(false);
    }
    match host.header(Map::Response, STORED_CACHE_CONTROL)? {
        Some(own) => {
            host.set_header(Map::Response, CACHE_CONTROL, &own)?;
            host.remove_header(Map::Response, STORED_CACHE_CONTROL)?;
        }
        None => host.remove_header(Map::Response, CACHE_CONTROL)?,
    }
    host.remove_header(Map::Response, AROUND_HEADER)?;
    Ok(true)
}
