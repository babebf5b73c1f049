// SPDX-License-Identifier: Apache-2.0
//! The headers of a request to the store.

use sluice_core::admission::RequestFacts;
use sluice_core::coalescing::StoreRequest;
use sluice_core::host::HostError;
use sluice_core::http::caching::client_control::ClientDemand;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::internal_headers::INTERNAL_PREFIX;
use sluice_core::key::{CanonicalTarget, Target};
use sluice_store::PATH_HEADER;

use crate::request::headers::{keep_path, select, set_aside};
use crate::worker::identity::Identity;
use sluice_host::headers::Headers;
use sluice_host::{Host, Map};

/// Removes the headers that only the filter may set from a client's request.
pub fn strip_internal(host: &dyn Host, headers: &Headers) -> Result<(), HostError> {
    headers
        .iter()
        .filter(|(name, _)| name.starts_with(INTERNAL_PREFIX))
        .try_for_each(|(name, _)| host.remove_header(Map::Request, name))
}

/// Replaces the target that was `sent` by the canonical one. `path` is the path in the store, or that at the origin.
/// The scheme is part of Envoy's key but not of Sluice's.
pub fn set_target(
    host: &dyn Host,
    headers: &Headers,
    sent: &Target<'_>,
    authority: &str,
    path: &str,
) -> Result<(), HostError> {
    keep_path(host, headers, sent.path, path)?;
    let scheme = sent.scheme.unwrap_or_default();
    let canonical = [
        (":authority", sent.authority, authority),
        (":path", sent.path, path),
        (":scheme", scheme.as_bytes(), "http"),
    ];
    for (name, sent, value) in canonical {
        if sent != value.as_bytes() {
            host.set_header(Map::Request, name, value)?;
        }
    }
    Ok(())
}

/// Sets the client's directives for the store. Returns the request to the store if these directives exempt the
/// client's request from coalescing. A HEAD does not cause a validation.
pub fn ask_the_store(
    host: &dyn Host,
    way: &ClientDemand,
    head: bool,
) -> Result<Option<StoreRequest>, HostError> {
    let (request, directives) = match way {
        ClientDemand::Checked(directives) if !head => (StoreRequest::Unshared, directives),
        ClientDemand::StoreOnly(directives) => (StoreRequest::StoreOnly, directives),
        ClientDemand::Shared | ClientDemand::Checked(_) => return Ok(None),
    };
    if !directives.is_empty() {
        host.set_header(Map::Request, "cache-control", directives)?;
    }
    Ok(Some(request))
}

/// Removes the headers that the store obeys, because only the filter may set them.
fn keep_to_the_store(
    host: &dyn Host,
    facts: &RequestFacts<'_>,
    headers: &Headers,
) -> Result<(), HostError> {
    if !facts.authorization && !facts.control {
        return Ok(());
    }
    for name in ["authorization", "cache-control", "pragma"] {
        if headers.has(name) {
            host.remove_header(Map::Request, name)?;
        }
    }
    Ok(())
}

/// Sets the path with qualifiers on a request of the filter, because Envoy accepts such a path only from a filter.
/// Also sets the headers that the qualifiers name, because the listener has overwritten some, such as
/// `X-Forwarded-Proto`.
pub fn take_path(host: &dyn Host, headers: &Headers) -> Result<(), HostError> {
    let Some(Ok(path)) = headers.get(PATH_HEADER).map(FieldValue::text) else {
        return Ok(());
    };
    host.set_header(Map::Request, ":path", path)?;
    select(host, path, headers)?;
    host.remove_header(Map::Request, PATH_HEADER)
}

/// Changes a client's request into the form that the store sees. It has `target`, and no header that the store would
/// obey or that a fill must not see.
pub fn prepare(
    host: &dyn Host,
    identity: &Identity,
    facts: &RequestFacts<'_>,
    headers: &Headers,
    target: &CanonicalTarget,
) -> Result<(), HostError> {
    let path = identity.store_path(target);
    set_target(host, headers, &facts.target, target.authority(), &path)?;
    keep_to_the_store(host, facts, headers)?;
    if facts.demand {
        set_aside(host, headers)?;
    }
    Ok(())
}
