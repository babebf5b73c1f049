// SPDX-License-Identifier: Apache-2.0
//! The section `request`: which of a client's header fields go on to the origin.

use crate::http::caching::cache_name::CDN_LOOP;
use crate::http::conditional::demand::Demand;
use crate::policy::Policy;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::words;
use crate::policy::forms::names::{HeaderName, HeaderPattern, NamePattern, any_matches};
use crate::policy::forms::section::section;
use crate::policy::sections::known_headers;

/// Headers by which clients, and proxies that have authenticated them, say who they are, and those that
/// go with a session.
const CREDENTIALS: [&str; 31] = [
    "api-key",
    "apikey",
    "cf-access-*",
    "job-token",
    "private-token",
    "remote-user",
    "x-access-token",
    "x-amz-security-token",
    "x-amzn-oidc-*",
    "x-api-key",
    "x-api-token",
    "x-apikey",
    "x-auth-*",
    "x-authenticated-*",
    "x-csrf-token",
    "x-csrftoken",
    "x-forwarded-access-token",
    "x-forwarded-email",
    "x-forwarded-groups",
    "x-forwarded-preferred-username",
    "x-forwarded-user",
    "x-goog-authenticated-*",
    "x-goog-iap-*",
    "x-jwt-assertion",
    "x-ms-client-principal*",
    "x-ms-token-*",
    "x-remote-user",
    "x-session-*",
    "x-vault-token",
    "x-webauth-*",
    "x-xsrf-token",
];

section! {
    /// Which parts of a request go on to the origin.
    pub struct RequestPolicy {
        /// Further request headers that a bucket may see, or that a cacheable request may take to
        /// an HTTP origin although they can change the response.
        forward_headers: Vec<String> as Vec<HeaderName> = Vec::new(),
        /// HTTP origin only: how a request with Cookie is treated. pass: it goes on uncached.
        /// strip: the header is removed. ignore: it is answered from the cache like others; where it
        /// goes to the origin, its Cookie goes too, and the response is stored only if it says public
        /// or s-maxage. A bucket never sees one.
        cookies: Cookies = Cookies::Pass,
        /// HTTP origin only: how a request with Authorization is treated. pass: it goes on, and
        /// shares only responses with public, s-maxage or must-revalidate (RFC 9111, 3.5). strip:
        /// the header is removed. A bucket never sees one.
        authorization: PassOrStrip = PassOrStrip::Pass,
        /// HTTP origin only: further request headers by which a response may be one client's, and a
        /// trailing * for any rest of the name. With authorization: pass, a request with one of them
        /// goes on uncached; strip removes them only where the response may be shared.
        credential_headers: Vec<NamePattern> as Vec<HeaderPattern> =
            CREDENTIALS.map(NamePattern::of).into(); bucket: Vec::new(),
        /// Whether a client's Cache-Control and Pragma count. ignore: they do not, since with
        /// no-cache, no-store or max-age any client could load the origin. obey: they do, for
        /// clients that may.
        cache_control: Obedience = Obedience::Ignore,
    }
}

impl RequestPolicy {
    /// Whether a request header says who its client is, beside `Authorization` and `Cookie`.
    pub fn is_credential(&self, name: impl AsRef<[u8]>) -> bool {
        any_matches(&self.credential_headers, name.as_ref())
    }
}

/// What becomes of a header by which a response is one client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOrStrip {
    /// It goes on, and the response is not stored.
    Pass,
    /// It is removed, and does not keep the response from the store.
    Strip,
}

words!(PassOrStrip { Pass = "pass", Strip = "strip" });

/// What becomes of a request with `Cookie`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// It goes on by itself, and the response is not stored.
    Pass,
    /// The header is removed.
    Strip,
    /// It makes no difference to what the request gets. The response to it is stored only if it is said to be for all.
    Ignore,
}

words!(Cookies { Pass = "pass", Strip = "strip", Ignore = "ignore" });

/// What the directives by which a request asks caches for more than its response mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obedience {
    /// Nothing.
    Ignore,
    /// What RFC 9111, 5.2.1 says.
    Obey,
}

words!(Obedience { Ignore = "ignore", Obey = "obey" });

/// What concerns one connection only (RFC 9110, 7.6.1), and never means another.
const HOP_BY_HOP: [&str; 6] = [
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "trailer",
    "transfer-encoding",
];

/// What Envoy has removed already, but where it is meant to go on: an upgrade that the listener
/// allows, `te: trailers`; and what a client waits for before it sends its body.
const MEANT_TO_GO_ON: [&str; 4] = ["connection", "expect", "te", "upgrade"];

fn is_of_cors(name: &str) -> bool {
    name == "origin" || name.starts_with("access-control-request-")
}

/// Whether a request header goes on; `name` in lower case, `cacheable` if the response may be
/// shared with others.
///
/// - Nobody gets the internal namespace, Envoy's own, or what concerns one connection only.
/// - Each origin gets `CDN-Loop`, which is not signed.
/// - A bucket gets what the policy lists or has in the key, and `Range` and the conditions of a request that goes
///   past the cache. What the signer sets is never the client's.
/// - Another origin gets the rest, but for what would let a cacheable request ask for something
///   else than its key says, unless the policy lists it, or has it in the key.
pub fn forward_header(policy: &Policy, cacheable: bool, name: &str) -> bool {
    if name.starts_with(':') {
        return true;
    }
    if name.starts_with("x-sluice-") || name.starts_with("x-envoy-") || HOP_BY_HOP.contains(&name) {
        return false;
    }
    if Demand::concerns(name.as_bytes()) {
        return !cacheable;
    }
    // Each cache on the way must find itself there (RFC 8586, 2).
    if name == CDN_LOOP {
        return true;
    }
    // What the edge answers for makes no difference to what is stored.
    if cacheable && policy.website.cors.is_some() && is_of_cors(name) {
        return false;
    }
    let is_bucket = policy.origin.is_bucket();
    if MEANT_TO_GO_ON.contains(&name) {
        return !is_bucket && !cacheable;
    }
    let mut forwarded = policy.request.forward_headers.iter();
    let listed = policy.key.has_header(name) || forwarded.any(|listed| listed == name);
    if is_bucket {
        listed && name != "authorization" && !name.starts_with("x-amz-")
    } else if name == "authorization" {
        policy.request.authorization == PassOrStrip::Pass
    } else if name == "cookie" {
        policy.request.cookies != Cookies::Strip
    } else if policy.request.is_credential(name) {
        !cacheable
    } else {
        listed || !cacheable || !known_headers::overrides(name)
    }
}

/// Refuses names that have no effect, those by which a client would get at what is signed, framed or
/// asked for, and those of which the key has what they come to.
pub(in crate::policy) fn check_headers(policy: &Policy) -> Result<(), PolicyError> {
    let lists = [
        ("request.forward_headers", &policy.request.forward_headers),
        ("key.headers", &policy.key.headers),
    ];
    for (list, names) in lists {
        for (index, name) in names.iter().enumerate() {
            let Some(expected) = wrong(policy, list == "key.headers", name) else {
                continue;
            };
            let path = format!("{list}[{index}]");
            return Err(PolicyError::text(&path, name, expected));
        }
    }
    Ok(())
}

/// What is expected of a listed header instead of `name`, if that is none.
fn wrong(policy: &Policy, keyed: bool, name: &str) -> Option<&'static str> {
    if policy.request.is_credential(name) && !policy.origin.is_bucket() {
        return Some(
            "a header that is not one of request.credential_headers, with which no response is shared",
        );
    }
    if keyed && matches!(name, "accept-encoding" | "cookie") {
        return Some(
            "a header that tells responses apart: not a cookie, and not accept-encoding, which a key \
             has where it counts",
        );
    }
    let reserved = matches!(name, "authorization" | "content-length" | "host" | CDN_LOOP)
        || name.starts_with("x-amz-")
        || !forward_header(policy, true, name);
    reserved.then_some(
        "a header that is the client's to set: not one of the connection's, Envoy's, the signature's \
         or the filter's own, no range and no condition",
    )
}
