// SPDX-License-Identifier: Apache-2.0
//! Slices in ORIGIN: the request for a part of one version of an object, and its response, which is stored like a
//! whole object.

use sluice_core::http::syntax::field_value::JoinedValue;
use sluice_core::internal_headers::BUCKET_ERROR_HEADER;
use sluice_core::key::vary::fit;
use sluice_core::metrics::Metric;
use sluice_core::slices::asked::SliceState;
use sluice_core::slices::origin_answer::{OriginAnswer, SliceOutcome};

use super::fetch::Fetch;
use crate::request::sliced::RequestedSlice;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use crate::worker::own_requests::indexes;
use crate::worker::roots::Roots;
use crate::worker::slices::KnownObjects;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// Requests exactly the bytes of the slice, of the version that its client reads.
pub fn ask(host: &dyn Host, slice: &RequestedSlice) -> host::Result<()> {
    let Some(request) = slice.request() else {
        return Ok(());
    };
    host.set_header(Map::Request, "range", request.range_value())?;
    host.set_header(Map::Request, "if-match", request.etag)
}

/// Turns the response to the request for a slice into one with status 200 if it has the slice. If the origin does not
/// have that version any more, the response becomes an error that is not stored. Returns the resulting headers, and
/// whether the version is gone.
pub fn receive(
    host: &dyn Host,
    fetch: &mut Fetch,
    headers: Headers,
) -> host::Result<(Headers, bool)> {
    let Some(slice) = fetch.slice.clone() else {
        return Ok((headers, false));
    };
    let status = headers.status().unwrap_or(502);
    let state = match outcome(fetch, &slice, &headers, status) {
        SliceOutcome::Good => {
            host.set_header(Map::Response, ":status", "200")?;
            host.remove_header(Map::Response, "content-range")?;
            return Ok((host.headers(Map::Response)?, false));
        }
        SliceOutcome::Changed => SliceState::Changed,
        SliceOutcome::Gone => SliceState::Gone,
        SliceOutcome::Failed => return Ok((headers, false)),
    };
    slice.becomes(state);
    fetch.response.refused = true;
    host.remove_header(Map::Response, BUCKET_ERROR_HEADER)?;
    host.set_header(Map::Response, ":status", "502")?;
    Ok((host.headers(Map::Response)?, true))
}

/// Makes all workers forget the version that the origin does not have any more.
pub fn forget_version(
    keys: &Keys,
    slices: &mut KnownObjects,
    roots: &mut Roots,
    calls: &mut Calls,
    fetch: &Fetch,
) {
    if let Some(slice) = &fetch.slice {
        calls.metrics.count_of(&fetch.policy, Metric::SlicesChanged);
        indexes::replace(keys, slices, roots, calls, &slice.of, &fetch.policy);
    }
}

/// The result of the request. A slice that varies with more headers than its key has is not the same for all clients.
fn outcome(fetch: &Fetch, slice: &RequestedSlice, headers: &Headers, status: u16) -> SliceOutcome {
    let Some(request) = slice.request() else {
        return SliceOutcome::Failed;
    };
    let answer = OriginAnswer {
        status,
        etag: headers.get("etag"),
        content_range: headers.get("content-range"),
        content_length: headers.content_length(),
    };
    let vary = headers.joined("vary");
    let vary = vary.as_ref().map(JoinedValue::value);
    let unkeyed = fit(&fetch.policy.policy, &fetch.cache_key, vary);
    match SliceOutcome::of(&request, &answer) {
        SliceOutcome::Good if !unkeyed.is_ok_and(|names| names.is_empty()) => SliceOutcome::Changed,
        outcome => outcome,
    }
}
