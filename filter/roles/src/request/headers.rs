// SPDX-License-Identifier: Apache-2.0
//! Headers of a client's request that the filter removes, keeps, or restores.

use sluice_core::admission;
use sluice_core::http::conditional::demand::Demand;
use sluice_core::internal_headers::{METHOD_HEADER, ORIGINAL_PATH_HEADER};
use sluice_core::key::vary::{ACCEPT_ENCODING, selected};
use sluice_core::policy::Policy;
use sluice_store::BYPASS_SENTINEL;

use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// Whether a request with these headers may fetch for others under `key`. See [`admission::may_share`], which needs
/// no count if all headers together are within its bound.
pub fn may_share(policy: &Policy, key: &str, headers: &Headers) -> bool {
    headers.bytes().len() <= policy.edge.limits.lead_header_bytes
        || admission::may_share(policy, key, headers.iter())
}

/// The conditions and the range of a request.
pub fn demand_of(headers: &Headers) -> Demand {
    let mut demand = Demand::default();
    let demands = |(name, _): &(&str, &[u8])| Demand::concerns(name.as_bytes());
    for (name, value) in headers.iter().filter(demands) {
        demand.observe(name, value);
    }
    demand
}

/// Removes conditions and ranges from the request, so that neither the store nor a fill sees them.
pub fn set_aside(host: &dyn Host, headers: &Headers) -> host::Result<()> {
    headers
        .iter()
        .filter(|(name, _)| Demand::concerns(name.as_bytes()))
        .try_for_each(|(name, _)| host.remove_header(Map::Request, name))
}

/// Restores the conditions and the range of the effective context's request.
pub fn put_back(host: &dyn Host, demand: &Demand) -> host::Result<()> {
    demand
        .fields()
        .try_for_each(|(name, value)| host.set_header(Map::Request, name, value))
}

/// Whether the request has an `If-Range` that is not empty.
pub fn has_if_range(headers: &Headers) -> bool {
    let names =
        |(name, value): (&[u8], &[u8])| name == b"if-range" && !value.trim_ascii().is_empty();
    headers.fields().any(names)
}

/// Makes the effective context's request bypass Envoy's cache. The request must not be changed afterwards. The
/// client's own `If-Range` has the same effect, if the request has one.
pub fn avoid_the_store(host: &dyn Host, has_if_range: bool) -> host::Result<()> {
    match has_if_range {
        true => Ok(()),
        false => host.set_header(Map::Request, "if-range", BYPASS_SENTINEL),
    }
}

/// Sets the headers of a request to the values in the qualifiers of its `path`, byte for byte, so that the response
/// is the one that the key names. Content codings are not included.
pub fn select(host: &dyn Host, path: &str, headers: &Headers) -> host::Result<()> {
    selected(path)
        .filter(|selected| selected.name != ACCEPT_ENCODING)
        .try_for_each(|header| set_or_remove(host, headers, &header.name, header.value.as_deref()))
}

/// Replaces all lines of that name by one with the value `wanted`, or removes them.
pub fn set_or_remove(
    host: &dyn Host,
    headers: &Headers,
    name: &str,
    wanted: Option<&[u8]>,
) -> host::Result<()> {
    match wanted {
        // The header may have been removed meanwhile, and only one of several lines must remain.
        Some(value) => {
            host.remove_header(Map::Request, name)?;
            host.set_header(Map::Request, name, value)
        }
        None if headers.has(name) => host.remove_header(Map::Request, name),
        None => Ok(()),
    }
}

/// A header's name, and its value.
pub type Header = (String, Vec<u8>);

/// The headers of a request that a background call on its behalf has. They do not include the credentials, because
/// the response to the call is for all clients.
pub fn headers_for_calls(headers: &Headers) -> Vec<Header> {
    const CREDENTIALS: [&str; 2] = ["authorization", "cookie"];
    let theirs = headers
        .iter()
        .filter(|(name, _)| !name.starts_with(':') && !is_hop_by_hop(name))
        .filter(|(name, _)| !CREDENTIALS.contains(name));
    theirs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Whether a header concerns one connection, or is added to each request by Envoy or the filter.
fn is_hop_by_hop(name: &str) -> bool {
    const CONNECTION: [&str; 6] = [
        "connection",
        "content-length",
        "te",
        "transfer-encoding",
        "upgrade",
        "x-request-id",
    ];
    CONNECTION.contains(&name) || name.starts_with("x-envoy-") || name.starts_with("x-sluice-")
}

/// Keeps the path that the client has `sent` for the access log and traces, if the store gets the path `other`.
pub fn keep_path(host: &dyn Host, headers: &Headers, sent: &[u8], other: &str) -> host::Result<()> {
    if sent == other.as_bytes() {
        return Ok(());
    }
    host.write_header(Map::Request, headers, ORIGINAL_PATH_HEADER, sent)
}

/// Changes the effective context's HEAD into a GET, and keeps the method for the access log.
pub fn make_get(host: &dyn Host) -> host::Result<()> {
    host.set_header(Map::Request, METHOD_HEADER, "HEAD")?;
    host.set_header(Map::Request, ":method", "GET")
}
