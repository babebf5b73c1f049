// SPDX-License-Identifier: Apache-2.0
//! Admission: whether a request uses the cache, bypasses it or is refused, and which of its headers the origin gets.

use std::hash::Hasher;

use crate::http::caching::cache_name::CDN_LOOP;
use crate::http::conditional::demand::Demand;
use crate::http::syntax::field_value::FieldValue;
use crate::http::url::rejection::Rejection;
use crate::internal_headers::INTERNAL_PREFIX;
use crate::key::Target;
use crate::key::vary::{ACCEPT_ENCODING, keyed_names};
use crate::policy::{Cookies, Origin, PassOrStrip, Policy, RequestPolicy, forward_header};

/// Treatment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Answered from the cache, coalesced on a miss. A request with `Authorization` is, if the origin allows such
    /// requests to share the response (RFC 9111, 3.5).
    Cacheable,
    /// Undecided until the first part of the body arrives. If that is empty, the request may use the cache.
    AwaitsBody,
    /// Sent to the origin separately, neither stored nor parked.
    Pass(PassReason),
    /// Answered by the edge, as a preflight of cross-origin resource sharing.
    Preflight,
}

/// Reason for a request to bypass the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassReason {
    /// Neither `GET` nor `HEAD`.
    Method,
    /// The connection becomes something else, such as a WebSocket.
    Upgrade,
    /// gRPC.
    Grpc,
    /// A body, or possibly a body.
    Body,
    /// Credentials.
    Authorization,
    /// `no-store` in the request, which the policy obeys.
    NoStore,
    /// A cookie, which the policy forwards to the origin.
    Cookie,
    /// A header that the URL varies with is too long for a key.
    Vary,
    /// Another callback uses the worker, so nothing can be coalesced.
    WorkerInUse,
    /// A header with facts about the client from the server that was asked for access. The key does not have it.
    AccessHeaders,
    /// The edge has not applied all purges that a peer knows.
    Purges,
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
            Self::AccessHeaders => "access-headers",
            Self::Purges => "purges",
        }
    }
}

/// The facts that decide about a request, gathered in one pass over its headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFacts<'a> {
    /// `:method`.
    pub method: &'a str,
    /// The target.
    pub target: Target<'a>,
    /// A header whose name begins with [`INTERNAL_PREFIX`].
    pub internal: bool,
    /// A body, announced by its length.
    pub announced_body: bool,
    /// The request did not end with its headers. An empty body or trailers alone may follow.
    pub open_ended: bool,
    /// `Upgrade`, or the `:protocol` of an extended `CONNECT`.
    pub upgrade: bool,
    /// A gRPC content type.
    pub grpc: bool,
    /// `Authorization`.
    pub authorization: bool,
    /// A header of `request.credential_headers`.
    pub credentials: bool,
    /// `Cache-Control` or `Pragma`, with directives for caches.
    pub control: bool,
    /// `Cookie`.
    pub cookie: bool,
    /// `Range`, or any of the conditions of RFC 9110, 13.1.
    pub demand: bool,
    /// `CDN-Loop`: the request has passed another cache, or has already passed this edge.
    pub cdn_loop: bool,
    /// `Origin`.
    pub origin: bool,
    /// `Access-Control-Request-Method`.
    pub asks_for_method: bool,
}

impl<'a> RequestFacts<'a> {
    /// Gathers the facts of these headers, whose names are in lower case; `end_of_stream` if nothing follows them.
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
            // A method that is not text is not cacheable.
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

    /// Whether the origin gets the request's `Authorization`.
    pub fn shows_credentials(&self, policy: &Policy) -> bool {
        let passes = policy.request.authorization == PassOrStrip::Pass;
        self.authorization && passes && matches!(policy.origin, Origin::Http(_))
    }

    fn is_preflight(&self) -> bool {
        is_preflight(self.method, |name| match name {
            "origin" => self.origin,
            _ => self.asks_for_method,
        })
    }
}

/// Whether a browser asks if a page of another origin may send a request (Fetch, 4.8). `has` says whether the request
/// has a header.
pub fn is_preflight(method: &str, has: impl Fn(&str) -> bool) -> bool {
    method == "OPTIONS" && has("origin") && has("access-control-request-method")
}

fn is_grpc(content_type: &[u8]) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    content_type
        .get(..GRPC.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(GRPC))
}

/// Decides about a request with these facts.
///
/// `Authorization` and `Cookie` decide nothing for a bucket, because a bucket never gets them ([`forward_header`]).
/// `OPTIONS` reaches a bucket only if the policy forwards the headers of a CORS preflight.
///
/// # Errors
/// The edge refuses the request.
pub fn classify(policy: &Policy, request: &RequestFacts<'_>) -> Result<Disposition, Rejection> {
    if policy.website.cors.is_some() && request.is_preflight() {
        return Ok(Disposition::Preflight);
    }
    let reason = match &policy.origin {
        Origin::Bucket(_) => for_bucket(policy, request),
        Origin::Http(_) => for_http(policy, request),
    }?;
    let shows_credentials = request.shows_credentials(policy);
    Ok(match reason {
        // No body may be sent under the edge's signature.
        Some(_) if request.open_ended && policy.origin.is_bucket() => Disposition::AwaitsBody,
        Some(reason) => Disposition::Pass(reason),
        None if shows_credentials && (request.open_ended || request.method == "HEAD") => {
            Disposition::Pass(PassReason::Authorization)
        }
        None if request.open_ended => Disposition::AwaitsBody,
        None => Disposition::Cacheable,
    })
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
    // Envoy keeps the request open if its client wants a WebSocket.
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

/// Parts of the names of methods that change a cache, such as `XKEYPURGE` and `URIBAN`.
const CACHE_METHODS: [&str; 5] = ["PURGE", "BAN", "INVALIDATE", "PUSH", "REFRESH"];

/// Whether clients may never send a method, even if all others pass; the case does not matter. [`CACHE_METHODS`]
/// change a cache behind the edge, which may accept everything from the edge's address. `TRACE` and `TRACK` return
/// the request as it was received, with everything that proxies have added to it (RFC 9110, section 9.3.8). `CONNECT`
/// would turn a connection to the origin into a tunnel.
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

/// Whether a request may fetch `key` for others: the headers that it sends to the origin beside its key are within
/// the policy's limit. An origin may refuse a request with more headers. The names in `headers` are in lower case.
pub fn may_share<'a>(
    policy: &Policy,
    key: &str,
    headers: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> bool {
    let bytes = |(name, value): (&str, &[u8])| name.len() + value.len();
    let beside_key: usize = beside_key(policy, key, headers).map(bytes).sum();
    beside_key <= policy.edge.limits.lead_header_bytes
}

/// Writes the headers that a request sends to the origin beside `key` into `hasher`. The names in `headers` are in
/// lower case. Returns false if there are none.
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
            // No header contains a zero byte.
            hasher.write_u8(0);
        }
    }
    any
}

/// The headers that a request sends to the origin beside its key, with the values that its client has sent.
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
            // Envoy has added the address of the request's peer.
            let client = value.rsplitn(2, |byte| *byte == b',').nth(1)?;
            Some((name, client))
        } else {
            Some((name, value))
        }
    };
    headers.filter_map(own)
}

/// Whether the edge alone decides about a header towards the origin: the header is in the key or set by the edge,
/// Envoy adds one to each request, or the store consumes it.
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
