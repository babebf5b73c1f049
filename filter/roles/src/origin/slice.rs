// SPDX-License-Identifier: Apache-2.0
//! Slices in ORIGIN: the request for a part of one version of an object, and its response, which is stored like a
//! whole object.

use sluice_core::http::syntax::field_value::JoinedValue;
use sluice_core::internal_headers::BUCKET_ERROR_HEADER;
use sluice_core::key::vary::fit;
use sluice_core::slices::asked::SliceState;
use sluice_core::slices::origin_answer::{OriginAnswer, SliceOutcome};

use super::fetch::Fetch;
use crate::request::sliced::RequestedSlice;
use crate::worker::own_requests::indexes;
use crate::worker::{Worker, slices};
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
/// have that version any more, all workers forget it, and the response becomes an error that is not stored. Returns
/// the resulting headers.
pub fn receive(worker: &mut Worker, fetch: &mut Fetch, headers: Headers) -> host::Result<Headers> {
    let Some(slice) = fetch.slice.clone() else {
        return Ok(headers);
    };
    let status = headers.status().unwrap_or(502);
    let state = match outcome(fetch, &slice, &headers, status) {
        SliceOutcome::Good => {
            worker.host.set_header(Map::Response, ":status", "200")?;
            worker.host.remove_header(Map::Response, "content-range")?;
            return worker.host.headers(Map::Response);
        }
        SliceOutcome::Changed => SliceState::Changed,
        SliceOutcome::Gone => SliceState::Gone,
        SliceOutcome::Failed => return Ok(headers),
    };
    slice.becomes(state);
    fetch.response.refused = true;
    slices::forget(
        worker,
        &fetch.policy,
        slice.of.object,
        slice.of.index.etag(),
    );
    indexes::renew(worker, &slice.of, &fetch.policy);
    worker
        .host
        .remove_header(Map::Response, BUCKET_ERROR_HEADER)?;
    worker.host.set_header(Map::Response, ":status", "502")?;
    worker.host.headers(Map::Response)
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
