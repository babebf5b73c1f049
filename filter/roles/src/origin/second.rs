// SPDX-License-Identifier: Apache-2.0
//! Responses of a site's second origin in ORIGIN.

use sluice_core::internal_headers::{MISSING_HEADER, SECOND_ORIGIN_HEADER};
use sluice_core::second_origin::SecondOrigin;

use super::fetch::Fetch;
use crate::worker::coalescing::requests::OpenRequests;
use crate::worker::metrics::Metrics;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// Removes the marks of the servers and of the hop from a response of the second origin, and counts the response unless
/// it is an error of that origin. `None`: the response is not marked.
pub fn receive(
    host: &dyn Host,
    metrics: &Metrics,
    fetch: &Fetch,
    headers: &Headers,
) -> host::Result<Option<SecondOrigin>> {
    if headers.has(MISSING_HEADER) {
        host.remove_header(Map::Response, MISSING_HEADER)?;
    }
    let Some(words) = headers.get(SECOND_ORIGIN_HEADER) else {
        return Ok(None);
    };
    let second = SecondOrigin::of(words.bytes());
    host.remove_header(Map::Response, SECOND_ORIGIN_HEADER)?;
    if headers.status().is_some_and(|status| status < 500) {
        metrics.count_of(&fetch.policy, second.metric());
    }
    Ok(Some(second))
}

/// Records in the request of the client that the second origin has sent its response.
pub fn tell(fetch: &Fetch, requests: &OpenRequests) {
    if let Some(stream) = fetch.stream(requests) {
        let second = fetch.response.second;
        stream.progress.second_origin.set(second);
    }
}
