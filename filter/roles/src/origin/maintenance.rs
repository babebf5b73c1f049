// SPDX-License-Identifier: Apache-2.0
//! The maintenance page, which clients get if the origin fails and nothing stored can be served.

use sluice_core::origin_failure::OriginFailure;
use sluice_core::policy::Policy;
use sluice_core::website::error_page::{MEDIA_TYPE, REPLACED_HEADERS};

use super::fetch::Fetch;
use crate::reply::complete_reply::{MAINTENANCE_STATUS, RETRY_AFTER};
use crate::request::body::Body;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// The page of the site, if it replaces the response with this `status`: the origin has sent none, or a bucket has
/// failed. An HTTP origin's own error is for its clients.
pub fn page<'a>(
    policy: &'a Policy,
    fetch: &Fetch,
    failure: Option<OriginFailure>,
    status: u16,
) -> Option<&'a str> {
    let page = policy.response.maintenance_page.as_deref()?;
    let silent = failure.is_some_and(OriginFailure::is_silence);
    let failed = status >= 500 && (silent || (failure.is_none() && policy.origin.is_bucket()));
    (failed && fetch.reads).then_some(page)
}

/// Replaces a failure with these headers by the page. `ends` says that no body follows, which a filter cannot add. The
/// store decides by `Cache-Control`, so EDGE sets that of the client.
pub fn replace(
    host: &dyn Host,
    headers: &Headers,
    page: &str,
    head: bool,
    ends: bool,
) -> host::Result<Body> {
    for name in REPLACED_HEADERS.iter().filter(|name| headers.has(name)) {
        host.remove_header(Map::Response, name)?;
    }
    host.set_header(Map::Response, ":status", MAINTENANCE_STATUS.to_string())?;
    if !headers.has("retry-after") {
        host.set_header(Map::Response, "retry-after", RETRY_AFTER)?;
    }
    if ends && !head {
        host.remove_header(Map::Response, "content-type")?;
        host.set_header(Map::Response, "content-length", "0")?;
        return Ok(Body::Kept);
    }
    host.set_header(Map::Response, "content-type", MEDIA_TYPE)?;
    host.set_header(Map::Response, "content-length", page.len().to_string())?;
    Ok(Body::Replaced(page.into()))
}
