// SPDX-License-Identifier: Apache-2.0
//! What a request may do: use the cache, go past it, or go nowhere; and which of its headers go
//! along.

use std::hash::Hasher;

use crate::http::caching::cache_name::CDN_LOOP;
use crate::http::conditional::demand::Demand;
use crate::http::syntax::field_value::FieldValue;
use crate::http::url::rejection::Rejection;
use crate::internal_headers::INTERNAL_PREFIX;
use crate::key::Target;
use crate::key::vary::{ACCEPT_ENCODING, keyed_names};
use crate::policy::{Cookies, Origin, PassOrStrip, Policy, RequestPolicy, forward_header};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Answered from the cache, coalesced on a miss.
    Cacheable,
    /// The same where the origin says that requests with `Authorization` may share the response (RFC 9111, 3.5).
    Authenticated,
    /// The same, or a request with a body: the first part of the body tells, which may be empty.
    AwaitsBody,
    /// Goes to the origin by itself, is neither stored nor parked.
    Pass(PassReason),
    /// Answered by the edge: a preflight of cross-origin resource sharing.
    Preflight,
    /// Answered by the edge.
    Reject(Rejection),
}

/// Why a request goes past the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassReason {
    /// Neither `GET` nor `HEAD`.
    Method,
    /// The connection becomes something else, such as a WebSocket.
    Upgrade,
    /// gRPC.
    Grpc,
    /// It has, or may have, a body.
    Body,
    /// It carries credentials.
    Authorization,
    /// It asks that nothing of it be stored, and the policy obeys.
    NoStore,
    /// It carries a cookie, and the policy lets the origin see it.
    Cookie,
    /// A header that its URL varies with is too long for a key.
    Vary,
    /// Another callback has the worker, so nothing can be coalesced.
    WorkerInUse,
}

impl PassReason {
    /// A token for metrics and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Upgrade => "upgrade",
            Self::Grpc => "grpc",
            Self::Body => "body",
            Self::Authorization => "authorization",
            Self::NoStore => "no-store",
            Self::Cookie => "cookie",
            Self::Vary => "vary",
            Self::WorkerInUse => "worker-in-use",
        }
    }
}

/// What of a request decides about it, gathered in one pass over its headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFacts<'a> {
    /// `:method`.
    pub method: &'a str,
    /// What it names.
    pub target: Target<'a>,
    /// A header of the filter's own namespace.
    pub internal: bool,
    /// There is a body, announced by its length.
    pub announced_body: bool,
    /// The request did not end with its headers. What follows may be an empty body, or trailers alone.
    pub open_ended: bool,
    /// `Upgrade`, or the `:protocol` of an extended `CONNECT`.
    pub upgrade: bool,
    /// A gRPC content type.
    pub grpc: bool,
    /// `Authorization`.
    pub authorization: bool,
    /// A header of `request.credential_headers`.
    pub credentials: bool,
    /// `Cache-Control` or `Pragma`: it asks something of caches.
    pub control: bool,
    /// `Cookie`.
    pub cookie: bool,
    /// `Range`, or any of the conditions of RFC 9110, 13.1.
    pub demand: bool,
    /// `CDN-Loop`: it comes from another cache, or has come back.
    pub cdn_loop: bool,
    /// `Origin`.
    pub origin: bool,
    /// `Access-Control-Request-Method`.
    pub asks_for_method: bool,
}

impl<'a> RequestFacts<'a> {
    /// Facts of these headers, with names in lower case; `end_of_stream` if nothing follows them.
    pub fn of(
        policy: &Policy,
        headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        end_of_stream: bool,
    ) -> Self {
        let mut facts = Self {
            open_ended: !end_of_stream,
            ..Self::default()
        };
        for (name, value) in headers {
            facts.observe(&policy.request, name, value);
        }
        facts
    }

    fn observe(&mut self, policy: &RequestPolicy, name: &[u8], value: &'a [u8]) {
        match name {
            // A method that is no text is none that may be cached.
            b":method" => self.method = FieldValue::new(value).text().unwrap_or_default(),
            b":scheme" => self.target.scheme = FieldValue::new(value).text().ok(),
            b":authority" => self.target.authority = value,
            b":path" => self.target.path = value,
            b"content-length" => self.announced_body |= !value.iter().all(|&byte| byte == b'0'),
            b"upgrade" | b":protocol" => self.upgrade = true,
            b"content-type" => self.grpc |= is_grpc(value),
            b"authorization" => self.authorization = true,
            b"cache-control" | b"pragma" => self.control = true,
            b"cookie" => self.cookie = true,
            b"origin" => self.origin = true,
            _ if name == CDN_LOOP.as_bytes() => self.cdn_loop = true,
            b"access-control-request-method" => self.asks_for_method = true,
            _ if name.starts_with(INTERNAL_PREFIX.as_bytes()) => self.internal = true,
            _ if Demand::concerns(name) => self.demand = true,
            _ => self.credentials |= policy.is_credential(name),
        }
    }

    /// Whether the origin sees its `Authorization`.
    pub fn shows_credentials(&self, policy: &Policy) -> bool {
        let passes = policy.request.authorization == PassOrStrip::Pass;
        self.authorization && passes && matches!(policy.origin, Origin::Http(_))
    }

    /// A browser asks whether a page of another origin may send a request (Fetch, 4.8).
    fn is_preflight(&self) -> bool {
        self.method == "OPTIONS" && self.origin && self.asks_for_method
    }
}

fn is_grpc(content_type: &[u8]) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    content_type
        .get(..GRPC.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(GRPC))
}

/// What becomes of a request with these facts.
///
/// A bucket never sees `Authorization` and `Cookie` ([`forward_header`]), so they decide nothing
/// there. `OPTIONS` reaches a bucket only if the policy forwards what a CORS preflight asks with.
pub fn classify(policy: &Policy, request: &RequestFacts<'_>) -> Disposition {
    if policy.website.cors.is_some() && request.is_preflight() {
        return Disposition::Preflight;
    }
    let verdict = match &policy.origin {
        Origin::Bucket(_) => for_bucket(policy, request),
        Origin::Http(_) => for_http(policy, request),
    };
    let shows_credentials = request.shows_credentials(policy);
    match verdict {
        Err(rejection) => Disposition::Reject(rejection),
        // No body goes out under the edge's signature.
        Ok(Some(_)) if request.open_ended && matches!(policy.origin, Origin::Bucket(_)) => {
            Disposition::AwaitsBody
        }
        Ok(Some(reason)) => Disposition::Pass(reason),
        Ok(None) if shows_credentials && (request.open_ended || request.method == "HEAD") => {
            Disposition::Pass(PassReason::Authorization)
        }
        Ok(None) if shows_credentials => Disposition::Authenticated,
        Ok(None) if request.open_ended => Disposition::AwaitsBody,
        Ok(None) => Disposition::Cacheable,
    }
}

fn for_bucket(
    policy: &Policy,
    request: &RequestFacts<'_>,
) -> Result<Option<PassReason>, Rejection> {
    let forwards_preflights = policy
        .request
        .forward_headers
        .iter()
        .any(|name| name == "access-control-request-method");
    let pass = match request.method {
        "GET" | "HEAD" => None,
        "OPTIONS" if forwards_preflights => Some(PassReason::Method),
        _ => {
            let allow = if forwards_preflights || policy.website.cors.is_some() {
                "GET, HEAD, OPTIONS"
            } else {
                "GET, HEAD"
            };
            return Err(Rejection::MethodNotAllowed { allow });
        }
    };
    // Envoy leaves the request of a client open that wants a WebSocket.
    if request.upgrade && request.open_ended {
        return Err(Rejection::Upgrade);
    }
    if request.announced_body {
        return Err(Rejection::UnexpectedBody);
    }
    Ok(pass)
}

fn for_http(policy: &Policy, request: &RequestFacts<'_>) -> Result<Option<PassReason>, Rejection> {
    if is_for_operators(request.method) {
        let allow = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
        return Err(Rejection::MethodNotAllowed { allow });
    }
    Ok(why_to_pass(policy, request))
}

/// Parts of the names of methods that change what a cache has, such as `XKEYPURGE` and `URIBAN`.
const CACHE_METHODS: [&str; 5] = ["PURGE", "BAN", "INVALIDATE", "PUSH", "REFRESH"];

/// Whether a client may not send a method even where everything else passes, in whatever case. [`CACHE_METHODS`] change
/// what a cache behind the edge has, which may admit whatever comes from the edge's address. `TRACE` and `TRACK` answer
/// with the request as it came, and so with what has been added to it on its way (RFC 9110, section 9.3.8). `CONNECT`
/// would make a tunnel of a connection to the origin.
fn is_for_operators(method: &str) -> bool {
    let method = method.to_ascii_uppercase();
    let tells_a_cache = CACHE_METHODS.iter().any(|part| method.contains(part));
    tells_a_cache || matches!(method.as_str(), "TRACE" | "TRACK" | "CONNECT")
}

fn why_to_pass(policy: &Policy, request: &RequestFacts<'_>) -> Option<PassReason> {
    if request.upgrade {
        Some(PassReason::Upgrade)
    } else if request.grpc {
        Some(PassReason::Grpc)
    } else if !matches!(request.method, "GET" | "HEAD") {
        Some(PassReason::Method)
    } else if request.announced_body {
        Some(PassReason::Body)
    } else if request.credentials && policy.request.authorization == PassOrStrip::Pass {
        Some(PassReason::Authorization)
    } else if request.cookie && policy.request.cookies == Cookies::Pass {
        Some(PassReason::Cookie)
    } else {
        None
    }
}

/// Whether a request for that key may fetch for others: what it takes to the origin beside its key is within the
/// policy's bound. An origin may refuse one with more. `headers` have their names in lower case.
pub fn may_share<'a>(
    policy: &Policy,
    key: &str,
    headers: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> bool {
    let bytes = |(name, value): (&str, &[u8])| name.len() + value.len();
    let beside_key: usize = beside_key(policy, key, headers).map(bytes).sum();
    beside_key <= policy.edge.limits.lead_header_bytes
}

/// Writes the headers that a request for that key takes to the origin beside it, with names in lower case. False if there
/// are none.
pub fn write_own_headers<'a>(
    policy: &Policy,
    key: &str,
    headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    hasher: &mut impl Hasher,
) -> bool {
    if policy.origin.is_bucket() && policy.request.forward_headers.is_empty() {
        return false;
    }
    let mut any = false;
    for (name, value) in beside_key(policy, key, headers) {
        any = true;
        for part in [name.as_bytes(), value] {
            hasher.write(part);
            // No header contains it.
            hasher.write_u8(0);
        }
    }
    any
}

/// The headers of a request that it takes to the origin beside its key, as its client has sent them.
fn beside_key<'a>(
    policy: &Policy,
    key: &str,
    headers: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let keyed = keyed_names(key);
    let own = move |(name, value): (&'a str, &'a [u8])| {
        let sent = !is_of_the_edge(name) && forward_header(policy, true, name);
        if !sent || keyed.iter().any(|keyed| keyed == name) {
            None
        } else if name == "x-forwarded-for" {
            // Envoy has added the address from which the request came.
            let client = value.rsplitn(2, |byte| *byte == b',').nth(1)?;
            Some((name, client))
        } else {
            Some((name, value))
        }
    };
    headers.filter_map(own)
}

/// Whether the edge alone decides what the origin gets of a header: it is in the key or the edge's own choice, Envoy gives
/// one to each request, or the store takes it.
fn is_of_the_edge(name: &str) -> bool {
    const OF_THE_EDGE: [&str; 5] = [
        ACCEPT_ENCODING,
        "cache-control",
        "pragma",
        "x-forwarded-proto",
        "x-request-id",
    ];
    name.starts_with(':') || OF_THE_EDGE.contains(&name)
}
