// SPDX-License-Identifier: Apache-2.0
//! The headers of a client's request that the filter takes out, keeps, or puts back.

use sluice_core::admission;
use sluice_core::http::conditional::demand::Demand;
use sluice_core::internal_headers::{METHOD_HEADER, ORIGINAL_PATH_HEADER};
use sluice_core::key::vary::{ACCEPT_ENCODING, selected};
use sluice_core::policy::Policy;
use sluice_store::BYPASS_SENTINEL;

use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// Whether a request with these headers may fetch for others under `key`. See [`admission::may_share`], which has nothing
/// to count where all headers together are within its bound.
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

/// Gives the effective context's request its conditions and its range back.
pub fn put_back(host: &dyn Host, demand: &Demand) -> host::Result<()> {
    demand
        .fields()
        .try_for_each(|(name, value)| host.set_header(Map::Request, name, value))
}

/// Whether the request has an `If-Range` that names something.
pub fn has_if_range(headers: &Headers) -> bool {
    let names =
        |(name, value): (&[u8], &[u8])| name == b"if-range" && !value.trim_ascii().is_empty();
    headers.fields().any(names)
}

/// Keeps Envoy's cache from the effective context's request, which nothing changes from now on. The client's own
/// `If-Range` does so too, where the request has one.
pub fn avoid_the_store(host: &dyn Host, has_if_range: bool) -> host::Result<()> {
    match has_if_range {
        true => Ok(()),
        false => host.set_header(Map::Request, "if-range", BYPASS_SENTINEL),
    }
}

/// Gives a request the values of headers that the qualifiers of its `path` have, byte for byte, so that the response is
/// the one that the key names. A content coding is not among them.
pub fn select(host: &dyn Host, path: &str, headers: &Headers) -> host::Result<()> {
    selected(path)
        .filter(|selected| selected.name != ACCEPT_ENCODING)
        .try_for_each(|header| set_or_remove(host, headers, &header.name, header.value.as_deref()))
}

/// Leaves the one line that is `wanted` of that name, in the place of those that the request had.
pub fn set_or_remove(
    host: &dyn Host,
    headers: &Headers,
    name: &str,
    wanted: Option<&[u8]>,
) -> host::Result<()> {
    match wanted {
        // NB: it may have been taken out meanwhile, and of several lines one must be left.
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

/// The headers of a request that a background call on its behalf takes along. Its credentials are not among them: what the
/// call brings is for all.
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

/// Whether a header is about one connection, or Envoy or the filter adds it to each request.
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

/// Keeps the path that the client has `sent` for the access log and traces, if the store gets `other`.
pub fn keep_path(host: &dyn Host, headers: &Headers, sent: &[u8], other: &str) -> host::Result<()> {
    if sent == other.as_bytes() {
        return Ok(());
    }
    host.write_header(Map::Request, headers, ORIGINAL_PATH_HEADER, sent)
}

/// Makes a GET of the effective context's HEAD, and keeps the method for the access log.
pub fn make_get(host: &dyn Host) -> host::Result<()> {
    host.set_header(Map::Request, METHOD_HEADER, "HEAD")?;
    host.set_header(Map::Request, ":method", "GET")
}
