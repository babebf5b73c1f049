// SPDX-License-Identifier: Apache-2.0
//! Responses that Envoy has made in place of the origin, and responses that ORIGIN refuses because of their headers.

use crate::worker::metrics::Metrics;
use sluice_core::inspection::recordings::origin_errors::OriginErrors;
use std::collections::BTreeSet;

use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::inspection::recordings::origin_errors::OriginError;
use sluice_core::inspection::recordings::recorded_url::RecordedUrl;
use sluice_core::internal_headers::FAILURE_HEADER;
use sluice_core::key::qualifiers::unqualified;
use sluice_core::origin_failure::{
    NOT_MODIFIED, OriginFailure, TOO_MANY_LINES, has_too_many_lines,
};

use super::clean::bucket_error;
use super::fetch::Fetch;
use crate::request::body::Body;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// The body that replaces that of a refused response.
const REFUSED: &str = "The origin's response has more headers than the edge takes.\n";

/// Refuses a response with too many header lines, as Envoy refuses one with too many bytes. Returns the resulting
/// headers.
pub fn bound_lines(host: &dyn Host, headers: Headers) -> host::Result<Headers> {
    if !has_too_many_lines(headers.fields().map(|(name, _)| name)) {
        return Ok(headers);
    }
    refuse(host, &headers, TOO_MANY_LINES)
}

/// Refuses a 304 to a request without a condition. A hop of the edge has already retried such a request. Returns the
/// resulting headers.
pub fn bound_statuses(
    host: &dyn Host,
    headers: Headers,
    is_conditional: bool,
) -> host::Result<Headers> {
    match headers.status() {
        Some(304) if !is_conditional => refuse(host, &headers, NOT_MODIFIED),
        _ => Ok(headers),
    }
}

/// Replaces a response by an empty one with status 502, as Envoy does if the origin sends no response.
fn refuse(host: &dyn Host, headers: &Headers, reason: &str) -> host::Result<Headers> {
    let names: BTreeSet<_> = headers.iter().map(|(name, _)| name).collect();
    for name in names.into_iter().filter(|name| *name != ":status") {
        host.remove_header(Map::Response, name)?;
    }
    host.set_header(Map::Response, ":status", "502")?;
    host.set_header(Map::Response, FAILURE_HEADER, reason)?;
    host.headers(Map::Response)
}

/// Logs Envoy's reason for the lack of an answer from the origin. Returns `None` if the origin has answered.
pub fn note_failure(
    host: &dyn Host,
    metrics: &Metrics,
    headers: &Headers,
) -> host::Result<Option<OriginFailure>> {
    let Some(details) = headers.get(FAILURE_HEADER) else {
        return Ok(None);
    };
    let failure = OriginFailure::of(details.bytes());
    metrics.warn(|| match failure {
        OriginFailure::ResponseHeaders => {
            "sluice: no answer from the origin: its response has more headers than 200 lines or 96 KiB"
                .to_owned()
        }
        OriginFailure::NotModified | OriginFailure::NotReached | OriginFailure::NoAnswer => {
            let details = details.to_string();
            let happened = details.split(' ').next().unwrap_or_default();
            format!("sluice: no answer from the origin: {happened}")
        }
    });
    host.remove_header(Map::Response, FAILURE_HEADER)?;
    Ok(Some(failure))
}

/// Records an error of the origin for the operator: a response with the status 429 or 5xx, or a bucket's error that
/// becomes one. `told` is the status for the client.
pub fn note_error(
    host: &dyn Host,
    origin_errors: &mut OriginErrors,
    fetch: &Fetch,
    headers: &Headers,
    told: u16,
) {
    if told < 500 && told != 429 {
        return;
    }
    let policy = &fetch.policy.policy;
    let status = headers.status().unwrap_or(told);
    let text = |value: FieldValue<'_>| value.text().ok().map(Box::from);
    let details = headers.get(FAILURE_HEADER).and_then(text);
    let error = match policy.origin.is_bucket() && details.is_none() {
        true => bucket_error(headers, status),
        false => None,
    };
    let code = error.and_then(|error| error.code).map(Box::from);
    let request_id = headers.get("x-amz-request-id").and_then(text);
    let error = OriginError {
        at_millis: host.unix_millis(),
        status,
        code: code.or(details),
        request_id: request_id.filter(|_| policy.origin.is_bucket()),
        url: RecordedUrl::new(unqualified(fetch.path()).as_bytes()),
    };
    origin_errors.note(&policy.site.name, error);
}

/// Replaces a body that has yet to arrive by a message of the edge, if the response is refused because of its
/// headers.
pub fn say(
    host: &dyn Host,
    failure: Option<OriginFailure>,
    body: Body,
    ends: bool,
) -> host::Result<Body> {
    if failure != Some(OriginFailure::ResponseHeaders) || ends || !matches!(body, Body::Kept) {
        return Ok(body);
    }
    host.set_header(Map::Response, "content-type", "text/plain")?;
    let length = REFUSED.len().to_string();
    host.set_header(Map::Response, "content-length", &length)?;
    Ok(Body::Replaced(REFUSED.into()))
}
