// SPDX-License-Identifier: Apache-2.0
//! Cleans a bucket's response before the store and EDGE see it. An object without a media type gets one, and a page
//! of the edge replaces the XML of an error.

use crate::worker::metrics::Metrics;
use sluice_core::bucket_error::{BucketError, BucketTrouble, ErrorHeaders};
use sluice_core::http::caching::cache_control::with_spaces;
use sluice_core::http::connection::{HOP_FIELDS, named_fields};
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::internal_headers::{BUCKET_ERROR_HEADER, CONNECTION_HEADER, FAILURE_HEADER};
use sluice_core::policy::{Origin, Policy};
use sluice_core::website::cors::CORS_PREFIX;
use sluice_core::website::error_page::{self, MEDIA_TYPE, REPLACED_HEADERS};
use sluice_core::website::media_type::missing_media_type;

use crate::request::account::Account;
use crate::request::body::Body;
use crate::request::policy::NumberedPolicy;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// The facts about a request to the origin that its response depends on.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// `:path`.
    pub path: &'a str,
    /// Whether the method is `HEAD`.
    pub head: bool,
}

/// Cleans the response's headers; `ends` if no body follows.
pub fn clean_response(
    host: &dyn Host,
    policy: &Policy,
    asked: Asked<'_>,
    headers: &Headers,
    status: u16,
    ends: bool,
) -> host::Result<Body> {
    if policy.website.cors.is_some() {
        remove_all(host, headers, |name| name.starts_with(CORS_PREFIX))?;
    }
    if !matches!(policy.origin, Origin::Bucket(_)) {
        return Ok(Body::Kept);
    }
    if error_page::replaces(status) {
        return replace_error(host, asked.head, headers, status, ends);
    }
    let Ok(current) = headers
        .get("content-type")
        .map(FieldValue::text)
        .transpose()
    else {
        // The origin has set a media type, even though it is unreadable.
        return Ok(Body::Kept);
    };
    // A field that a 304 lacks remains as it is stored.
    if (status != 304 || current.is_some())
        && let Some(media_type) = missing_media_type(&policy.website, asked.path, current)
    {
        host.set_header(Map::Response, "content-type", media_type)?;
    }
    Ok(Body::Kept)
}

fn replace_error(
    host: &dyn Host,
    head: bool,
    headers: &Headers,
    status: u16,
    ends: bool,
) -> host::Result<Body> {
    remove_all(host, headers, |name| REPLACED_HEADERS.contains(&name))?;
    if ends && !head {
        // A filter cannot add a body to a response without one.
        host.remove_header(Map::Response, "content-type")?;
        host.set_header(Map::Response, "content-length", "0")?;
        return Ok(Body::Kept);
    }
    let page = error_page::page(status);
    host.set_header(Map::Response, "content-type", MEDIA_TYPE)?;
    host.set_header(Map::Response, "content-length", page.len().to_string())?;
    Ok(Body::Replaced(page.into_bytes()))
}

fn remove_all(host: &dyn Host, headers: &Headers, goes: impl Fn(&str) -> bool) -> host::Result<()> {
    for (name, _) in headers.iter().filter(|(name, _)| goes(name)) {
        host.remove_header(Map::Response, name)?;
    }
    Ok(())
}

/// Counts and logs the fault that a bucket's response with this `status` reports, and keeps the error code for the
/// access log. A fault that the operator must fix gets another status. A response about a name that no object can
/// have gets the status of a missing object. Returns the resulting status, and whether the response must not be
/// stored because it says nothing about the object.
pub fn note_bucket_error(
    host: &dyn Host,
    metrics: &Metrics,
    policy: &NumberedPolicy,
    account: Option<&Account>,
    headers: &Headers,
    status: u16,
) -> host::Result<(u16, bool)> {
    // Envoy has made a response with this mark.
    if status < 300 || !policy.policy.origin.is_bucket() || headers.has(FAILURE_HEADER) {
        return Ok((status, false));
    }
    let Some(error) = bucket_error(headers, status) else {
        return Ok((status, false));
    };
    if let (Some(account), Some(code)) = (account, error.code) {
        account.meets_bucket_error(code);
    }
    let trouble = error.trouble();
    if let Some(trouble) = trouble {
        metrics.count_of(policy, trouble.metric());
        metrics.warn(|| warning(&policy.policy.site.name, &error.message(trouble)));
    }
    let told = match trouble {
        Some(trouble) => trouble.client_status(status),
        None if error.names_nothing() => 404,
        None => status,
    };
    if told != status {
        host.set_header(Map::Response, ":status", told.to_string())?;
    }
    Ok((told, trouble.is_some_and(BucketTrouble::is_never_stored)))
}

/// The error that a bucket reports in a response with these headers and this `status`, if it is one.
pub fn bucket_error(headers: &Headers, status: u16) -> Option<BucketError<'_>> {
    let fields = ErrorHeaders {
        body: headers.get(BUCKET_ERROR_HEADER),
        code: headers.get("x-minio-error-code"),
        region: headers.get("x-amz-bucket-region"),
    };
    BucketError::of(status, fields)
}

/// Keeps the bucket's name for the request for the access log, with which the bucket's operator can find the request.
/// Clients do not see the header.
pub fn note_bucket_request_id(
    policy: &NumberedPolicy,
    account: Option<&Account>,
    headers: &Headers,
) {
    let policy = &policy.policy;
    let account = account.filter(|_| policy.response.account && policy.origin.is_bucket());
    let id = headers.get("x-amz-request-id").map(FieldValue::text);
    if let (Some(account), Some(Ok(id))) = (account, id) {
        account.learns_bucket_request_id(id);
    }
}

/// The line in the log about a site's bucket.
fn warning(site: &str, message: &str) -> String {
    match site {
        "" => format!("sluice: {message}"),
        site => format!("sluice: site {site}: {message}"),
    }
}

/// Removes the fields that concern only the origin's connection, and adds spaces between the directives of
/// `Cache-Control`, whose lines Envoy has joined.
pub fn undo_connection(host: &dyn Host, headers: &Headers) -> host::Result<()> {
    for name in HOP_FIELDS.into_iter().filter(|name| headers.has(name)) {
        host.remove_header(Map::Response, name)?;
    }
    if let Some(options) = headers.joined(CONNECTION_HEADER) {
        for name in named_fields(options.value()).filter(|name| headers.has(name)) {
            host.remove_header(Map::Response, &name)?;
        }
        host.remove_header(Map::Response, CONNECTION_HEADER)?;
    }
    let Some(joined) = headers.get("cache-control") else {
        return Ok(());
    };
    let spaced = with_spaces(joined);
    if spaced == joined.bytes() {
        return Ok(());
    }
    host.set_header(Map::Response, "cache-control", spaced)
}

/// Whether all of `names` reach the store: neither the policy nor `Connection` removes one.
pub fn has_kept(policy: &Policy, headers: &Headers, names: &[&str]) -> bool {
    let options = headers
        .get(CONNECTION_HEADER)
        .map_or(&b"close"[..], FieldValue::bytes);
    let usual = |option: &&[u8]| options.eq_ignore_ascii_case(option);
    [&b"close"[..], b"keep-alive"].iter().any(usual)
        && !names.iter().any(|name| policy.response.hides(name))
}

/// Removes the headers that the policy hides from clients.
pub fn remove_hidden(host: &dyn Host, policy: &Policy, headers: &Headers) -> host::Result<()> {
    remove_all(host, headers, |name| policy.response.hides(name))
}
