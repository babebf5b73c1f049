// SPDX-License-Identifier: Apache-2.0
//! The store's request to the origin: whether it is sent there, and in what form.

use crate::worker::keys::Keys;
use sluice_core::coalescing::Coalescer;
use sluice_store::Room;

use sluice_core::coalescing::StoreRequest;
use sluice_core::http::caching::cache_name::{CDN_LOOP, VIA};
use sluice_core::http::syntax::whitespace::collapsed;
use sluice_core::internal_headers::{AUTHORIZATION_HEADER, ORIGINAL_PATH_HEADER, PROOF_HEADER};
use sluice_core::key::origin_authority;
use sluice_core::key::qualifiers::{is_for_headers, unqualified};
use sluice_core::policy::Policy;
use sluice_core::policy::forward_header;
use sluice_store::Revalidation;
use sluice_store::without_hash;
use sluice_store::{BYPASS_SENTINEL, Link};

use super::variants::variance;
use crate::reply::complete_reply::CompleteReply;
use crate::request::headers::select;
use crate::worker::identity::Identity;
use crate::worker::own_requests::background;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Turns the store's request into one for the origin. `path` has the qualifiers of its key. A response that others
/// may get must not depend on headers that its key does not have.
pub fn prepare_request(
    host: &dyn Host,
    identity: &Identity,
    policy: &Policy,
    request: StoreRequest,
    headers: &Headers,
    path: &str,
) -> host::Result<()> {
    let (cacheable, shared) = (request.is_for_store(), request.is_shared());
    for (name, value) in headers.iter() {
        let of_store = matches!(
            name,
            "if-none-match" | "if-modified-since" | "cache-control" | "pragma"
        );
        let sentinel = name == "if-range" && value == BYPASS_SENTINEL.as_bytes();
        // EDGE has removed the client's own fields of that kind, so these are the store's.
        let keep = if sentinel || (cacheable && of_store) {
            false
        } else if name == ORIGINAL_PATH_HEADER {
            // The access log reads the path from this request. The hop removes the header from the request that it
            // sends.
            true
        } else {
            forward_header(policy, shared, name)
        };
        if !keep {
            host.remove_header(Map::Request, name)?;
        } else if cacheable && name == FORWARDED_FOR {
            let client = value.rsplitn(2, |byte| *byte == b',').nth(1);
            tell_clients(host, client)?;
        }
    }
    if let Some(credentials) = headers.get(AUTHORIZATION_HEADER) {
        host.set_header(Map::Request, "authorization", credentials)?;
    }
    let authority = written(headers, ":authority");
    let wanted = origin_authority(policy, authority);
    if wanted != authority {
        host.set_header(Map::Request, ":authority", wanted)?;
    }
    if shared {
        select(host, path, headers)?;
    }
    if cacheable {
        variance::ask(host, policy, path, headers)?;
    }
    if cacheable && is_for_headers(path) {
        host.set_header(Map::Request, ":method", "HEAD")?;
    }
    let sent = written(headers, ":path");
    if unqualified(sent) != sent {
        host.set_header(Map::Request, ":path", unqualified(sent))?;
    }
    if policy.origin.is_bucket() {
        collapse_spaces(host, policy, headers)?;
    }
    name_cache(host, identity, policy)?;
    host.write_header(Map::Request, headers, PROOF_HEADER, "1")
}

/// Sets the header values that S3 signs on a request for a bucket. Envoy signs a tab unchanged, but S3 signs a space
/// instead of it.
fn collapse_spaces(host: &dyn Host, policy: &Policy, headers: &Headers) -> host::Result<()> {
    let spaced = headers
        .iter()
        .filter(|(name, value)| !name.starts_with(':') && collapsed(value).is_some());
    // The headers of the key may have other values than the received headers.
    let keyed = policy.key.headers.iter().map(String::as_str);
    for name in spaced.map(|(name, _)| name).chain(keyed) {
        let value = host.header(Map::Request, name)?;
        if let Some(value) = value.as_deref().and_then(collapsed) {
            host.set_header(Map::Request, name, &value)?;
        }
    }
    Ok(())
}

/// Names this cache to the origin and to each cache on the way to it (RFC 8586; RFC 9110, 7.6.3). `Via` has the
/// version with which the hop sends requests, because many clients may share one request. A bucket does not get
/// `Via`, because its objects do not depend on it.
fn name_cache(host: &dyn Host, identity: &Identity, policy: &Policy) -> host::Result<()> {
    let name = &identity.name;
    host.add_header(Map::Request, CDN_LOOP, name.cdn_loop())?;
    if policy.origin.is_bucket() || !identity.tells_via {
        return Ok(());
    }
    host.add_header(Map::Request, VIA, format!("1.1 {name}"))
}

/// Sets `X-Forwarded-For` to the addresses of the clients and proxies in front of Envoy. The requests of the cache
/// filter also have Envoy's own address, as if Envoy were one more proxy.
fn tell_clients(host: &dyn Host, addresses: Option<&[u8]>) -> host::Result<()> {
    match addresses {
        Some(addresses) => host.set_header(Map::Request, FORWARDED_FOR, addresses),
        None => host.remove_header(Map::Request, FORWARDED_FOR),
    }
}

/// The key under which the store has the response, without the hash. EDGE has written it into the request.
pub fn stored_key(headers: &Headers) -> String {
    let path = without_hash(written(headers, ":path"));
    [written(headers, ":authority"), &path].concat()
}

/// The value that EDGE has written into a header, in canonical form. Empty for any other value, because no key
/// contains one.
pub fn written<'a>(headers: &'a Headers, name: &str) -> &'a str {
    let text = headers.get(name).and_then(|value| value.text().ok());
    text.unwrap_or_default()
}

/// The answer to a request that is only for the store.
pub fn not_served(
    host: &dyn Host,
    room: &Room,
    request: StoreRequest,
    headers: &Headers,
) -> CompleteReply {
    let revalidation = Revalidation::of_request(host, headers);
    let worth_it = |found: &Revalidation| found.conditional || found.left() > 0;
    match (request, revalidation) {
        // The stored response itself shows whether the lookup wants it.
        (StoreRequest::Lookup, Some(stored)) if stored.must_be_validated() => {
            CompleteReply::unwritten(&stored)
        }
        (StoreRequest::Lookup, Some(stored)) if worth_it(&stored) => CompleteReply::expired(),
        (StoreRequest::Lookup, _) if room.is_lacking() => CompleteReply::no_room(),
        _ => CompleteReply::not_stored(),
    }
}

/// Whether to serve the stored response without asking the origin, because the origin has just failed. The store does
/// not know about the failure, so each such request arrives here.
pub fn keeps_unasked(
    host: &dyn Host,
    keys: &Keys,
    coalescer: &mut Coalescer,
    link: Link,
    cache_key: &str,
) -> bool {
    let clients = !link.request.is_background();
    clients && {
        let key = keys.key_hash(cache_key);
        background::is_failing(host, coalescer, key)
    }
}
