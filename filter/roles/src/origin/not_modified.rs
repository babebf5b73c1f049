// SPDX-License-Identifier: Apache-2.0
//! A 304 of the origin: whether it is about the stored response, and which of its fields it may change (RFC 9111,
//! 4.3.4).

use crate::worker::coalescing::Coalescing;
use crate::worker::keys::Keys;
use crate::worker::own_requests::calls::Calls;
use std::rc::Rc;

use sluice_core::coalescing::StoreRequest;
use sluice_core::metrics::Metric;
use sluice_core::workers::message::FlightOutcome;
use sluice_host::header_edit::HeaderEdit;

use super::fetch::Fetch;
use crate::request::{EdgeRequest, OriginReport};
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// Fields that describe a body. A 304 has no body, and the stored body may have a coding of the edge.
const OF_THE_BODY: [&str; 3] = ["content-encoding", "content-length", "content-range"];

/// Whether a 304 with these headers is about the response that `fetch` wants to validate.
pub fn is_about_stored(fetch: &Fetch, headers: &Headers) -> bool {
    let (etag, last_modified) = (headers.get("etag"), headers.get("last-modified"));
    let bucket = fetch.policy.policy.origin.is_bucket();
    let stored = fetch.revalidation.as_ref();
    stored.is_none_or(|stored| stored.is_about(etag, last_modified, bucket))
}

/// Keeps the fields of the stored response that describe its body. Returns false if the 304 has no such fields.
pub fn keep_body_fields(host: &dyn Host, headers: &Headers) -> host::Result<bool> {
    let mut found = false;
    for name in OF_THE_BODY.into_iter().filter(|name| headers.has(name)) {
        host.remove_header(Map::Response, name)?;
        found = true;
    }
    Ok(found)
}

/// Refuses a 304 that is about another response. The object is fetched again without a condition: by a call for this
/// client, or by the next waiting request. If no call is possible, the client gets the stored response, if that may
/// be served stale.
pub fn fetch_anew(
    keys: &mut Keys,
    calls: &Calls,
    coalescing: &mut Coalescing,
    fetch: &mut Fetch,
    headers: &Headers,
) -> host::Result<()> {
    const STATUS: u16 = 503;
    coalescing.metrics.count(Metric::ValidationsRefused, 1);
    keys.doubt(&fetch.stored_key);
    let refreshes = fetch.link.request == StoreRequest::Refresh;
    let fits = |stream: &Rc<EdgeRequest>| {
        refreshes
            || (!stream.authenticated
                && stream.stand_in.is_none()
                && !stream.for_others
                && calls.has_room_to_prepare())
    };
    let stream = coalescing.requests.get(fetch.link.stream).filter(fits);
    let names = headers.iter().map(|(name, _)| name);
    if stream.is_none()
        && let Some(stored) = fetch.servable()
    {
        let edits = stored.keep(names);
        coalescing.host.edit_headers(Map::Response, edits)?;
        fetch.keep(coalescing, STATUS, &stored);
        return Ok(());
    }
    let removed = names.filter(|name| !name.starts_with(':'));
    let mut edits: Vec<_> = removed.map(HeaderEdit::Remove).collect();
    edits.push(HeaderEdit::set(":status", STATUS.to_string()));
    edits.push(HeaderEdit::set("cache-control", "no-store"));
    coalescing.host.edit_headers(Map::Response, edits)?;
    fetch.response.ended = true;
    if let Some(stream) = stream {
        stream.progress.report.set(OriginReport::Lost);
    }
    coalescing.end_flight(fetch.link.stream, FlightOutcome::NothingShared);
    Ok(())
}
