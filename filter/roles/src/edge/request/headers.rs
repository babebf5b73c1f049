// SPDX-License-Identifier: Apache-2.0
//! The headers of a request on its way to the store.

use sluice_core::admission::RequestFacts;
use sluice_core::host::HostError;
use sluice_core::http::caching::client_control::ClientDemand;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::internal_headers::INTERNAL_PREFIX;
use sluice_core::key::{CanonicalTarget, Target};
use sluice_store::{PATH_HEADER, StoreRequest};

use crate::request::headers::{keep_path, select, set_aside};
use crate::worker::identity::Identity;
use sluice_host::headers::Headers;
use sluice_host::{Host, Map};

/// Takes from a client's request what only the filter may say.
pub fn strip_internal(host: &dyn Host, headers: &Headers) -> Result<(), HostError> {
    headers
        .iter()
        .filter(|(name, _)| name.starts_with(INTERNAL_PREFIX))
        .try_for_each(|(name, _)| host.remove_header(Map::Request, name))
}

/// Gives the request its canonical target in the place of the one that was `sent`. `path` is that towards the store, or
/// towards the origin. The scheme is part of Envoy's key but not of ours.
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

/// Passes on to the store what the client wants of it; the store's request of one that goes there by itself.
/// A HEAD is not worth a validation.
pub fn ask_the_store(
    host: &dyn Host,
    way: &ClientDemand,
    head: bool,
) -> Result<Option<StoreRequest>, HostError> {
    let (request, directives) = match way {
        ClientDemand::Checked(directives) if !head => (StoreRequest::Unshared, directives),
        ClientDemand::StoreOnly(directives) => (StoreRequest::StoreOnly, directives),
        ClientDemand::Shared | ClientDemand::Around | ClientDemand::Checked(_) => return Ok(None),
    };
    if !directives.is_empty() {
        host.set_header(Map::Request, "cache-control", directives)?;
    }
    Ok(Some(request))
}

/// The store obeys what is asked for here, which is the filter's to ask.
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

/// Gives a request of the filter's own its path with qualifiers, which Envoy takes from nobody but a filter, and the
/// headers that they name: the listener has set some itself, such as `X-Forwarded-Proto`.
pub fn take_path(host: &dyn Host, headers: &Headers) -> Result<(), HostError> {
    let Some(Ok(path)) = headers.get(PATH_HEADER).map(FieldValue::text) else {
        return Ok(());
    };
    host.set_header(Map::Request, ":path", path)?;
    select(host, path, headers)?;
    host.remove_header(Map::Request, PATH_HEADER)
}

/// Gives a client's request the form in which the store sees it: its `target`, and nothing that the store would obey
/// or that a fill must not see.
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
