// SPDX-License-Identifier: Apache-2.0
//! Replies that the filter makes itself, at once or in the root context's next turn.

pub mod complete_reply;
pub mod delivery;
pub mod demand_reply;
pub mod hot_copy;
pub mod receipt;
pub mod refusal;
pub mod substitute;

use std::rc::Rc;

use complete_reply::CompleteReply;
use sluice_core::hot::HotCopy;
use sluice_core::http::caching::cache_name::CacheName;
use sluice_core::http::caching::cache_status::{CacheStatus, detailed};
use sluice_core::key::Rejection;
use substitute::{Document, HeldResponse};

use crate::request::EdgeRequest;
use sluice_host::{self as host, Half, Host};

/// Name of the response header of RFC 9211.
pub const CACHE_STATUS: &str = "cache-status";
/// Detail of `Cache-Status` for a request for the store only, if the store does not have the response.
pub const NOT_STORED: &str = "only-if-cached";

/// A reply that a paused request gets in the root context's next turn.
#[derive(Clone, Debug)]
pub enum DueReply {
    /// A reply that is known already: of ORIGIN to the store, a follower's 304 or 412, the error that its leader got,
    /// the error for a request that its client has not completed, or the outcome of a request of the filter. The
    /// outcome is sent later, because the response's body may be on its way. If the outcome were sent while the
    /// response's headers are handled, Envoy would deliver the body to a context that has ended.
    Complete(CompleteReply),
    /// ORIGIN: no reply. The response that has begun is cut off.
    Reset,
    /// EDGE: a copy of the response that a follower has waited for, and that the store does not get.
    Copied(Rc<HotCopy>, Rc<EdgeRequest>, CacheStatus<'static>),
    /// EDGE: the document that replaces the held response of a missing object, or another error.
    Substitute(Rc<Document>, Rc<EdgeRequest>, HeldResponse),
}

impl DueReply {
    /// Answers the effective context's request. `name` is the name of the cache.
    pub fn send(&self, host: &dyn Host, name: &CacheName) -> host::Result<()> {
        match self {
            Self::Complete(reply) => reply.send(host),
            Self::Reset => host.reset(Half::Response),
            Self::Copied(copy, follower, way) => {
                hot_copy::answer_follower(host, copy, follower, &way.member_of(name))
            }
            Self::Substitute(document, stream, held) if held.response.is_dropped => {
                document.take_place_of_failure(host, name, stream, held.response.status)
            }
            Self::Substitute(document, stream, held) => document.take_place(host, stream, *held),
        }
    }
}

/// Rejects the effective context's request. `name` is the name of the cache, and `challenges` are the values of
/// `WWW-Authenticate`.
pub fn answer_rejection(
    host: &dyn Host,
    name: &CacheName,
    challenges: &[String],
    rejection: Rejection,
) -> host::Result<()> {
    let cache_status = detailed(name, "rejected");
    let mut headers = vec![
        ("content-type", "text/plain; charset=utf-8"),
        (CACHE_STATUS, cache_status.as_str()),
    ];
    if matches!(
        rejection,
        Rejection::Loop
            | Rejection::AccessDenied
            | Rejection::Unauthorized
            | Rejection::InvalidToken
            | Rejection::AccessUnknown
    ) {
        headers.push(("cache-control", "no-store"));
    }
    if rejection == Rejection::AccessUnknown {
        headers.push(("retry-after", "1"));
    }
    let challenges = challenges.iter();
    headers.extend(challenges.map(|challenge| ("www-authenticate", challenge.as_str())));
    if let Rejection::MethodNotAllowed { allow } = rejection {
        headers.push(("allow", allow));
    }
    let body = match rejection {
        // A body would make Envoy hold all of these headers until the client has received it.
        Rejection::RepeatedHeaders => String::new(),
        _ => format!("{}\n", rejection.reason()),
    };
    host.respond(rejection.status(), rejection.name(), &headers, &body)
}

/// Answers the effective context's request, to which the store has given the response of another key. The client's
/// next request bypasses the store.
pub fn answer_mismatch(host: &dyn Host, name: &CacheName) -> host::Result<()> {
    let cache_status = detailed(name, "key-mismatch");
    let headers = [
        ("content-type", "text/plain; charset=utf-8"),
        ("cache-control", "no-store"),
        ("retry-after", "1"),
        (CACHE_STATUS, cache_status.as_str()),
    ];
    let body = "The cache had another response. Try again.\n";
    host.respond(503, "sluice_key_mismatch", &headers, body)
}

/// Answers the effective context's request for the store only, because the store has no response that its client
/// accepts (RFC 9111, 5.2.1.7).
pub fn answer_not_stored(host: &dyn Host, name: &CacheName) -> host::Result<()> {
    let cache_status = detailed(name, NOT_STORED);
    let headers = [
        ("cache-control", "no-store"),
        (CACHE_STATUS, cache_status.as_str()),
    ];
    host.respond(504, "sluice_not_stored", &headers, "")
}
