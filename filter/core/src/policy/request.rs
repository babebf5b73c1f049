// SPDX-License-Identifier: Apache-2.0
//! The section `request`: which of a client's header fields go on to the origin.

use super::Policy;
use super::error::PolicyError;
use super::form::words;
use super::names::HeaderName;
use super::section::section;
use crate::http::demand::Demand;

section! {
    /// Which parts of a request go on to the origin.
    pub struct RequestPolicy {
        /// Further request headers that a bucket may see, or that a cacheable request may take to
        /// an HTTP origin although they can change the response.
        forward_headers: Vec<String> as Vec<HeaderName> = Vec::new(),
        /// HTTP origin only: how a request with Cookie is treated. pass: it goes on uncached.
        /// strip: the header is removed. A bucket never sees one.
        cookies: PassOrStrip = PassOrStrip::Pass,
        /// HTTP origin only: how a request with Authorization is treated. pass: it goes on
        /// uncached, whatever the response says of public or s-maxage. strip: the header is
        /// removed. A bucket never sees one.
        authorization: PassOrStrip = PassOrStrip::Pass,
        /// Whether a client's Cache-Control and Pragma count. ignore: they do not, since with
        /// no-cache, no-store or max-age any client could load the origin. obey: they do, for
        /// clients that may.
        cache_control: Obedience = Obedience::Ignore,
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
/// allows, `te: trailers`.
const MEANT_TO_GO_ON: [&str; 3] = ["connection", "te", "upgrade"];

/// Headers by which frameworks and proxies let a request claim another method, URL or host than its
/// own: with one of them a client could store, under an innocent key, the response to something
/// else.
const OVERRIDES: [&str; 19] = [
    "forwarded",
    "x-forwarded-host",
    "x-forwarded-path",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-scheme",
    "x-forwarded-server",
    "x-forwarded-uri",
    "x-host",
    "x-http-host-override",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-uri",
    "x-original-url",
    "x-override-url",
    "x-rewrite-url",
];

fn is_of_cors(name: &str) -> bool {
    name == "origin" || name.starts_with("access-control-request-")
}

/// Whether a request header goes on; `name` in lower case, `cacheable` if the response may be
/// shared with others.
///
/// - Nobody gets the internal namespace, Envoy's own, or what concerns one connection only.
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
    // What the edge answers for makes no difference to what is stored.
    if cacheable && policy.site.cors.is_some() && is_of_cors(name) {
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
        policy.request.cookies == PassOrStrip::Pass
    } else {
        listed || !cacheable || !OVERRIDES.contains(&name)
    }
}

/// Refuses names that have no effect, those by which a client would get at what is signed, framed or
/// asked for, and those of which the key has what they come to.
pub(super) fn check_headers(policy: &Policy) -> Result<(), PolicyError> {
    let never = |name: &str| {
        matches!(name, "authorization" | "content-length" | "host")
            || name.starts_with("x-amz-")
            || !forward_header(policy, true, name)
    };
    for (index, name) in policy.request.forward_headers.iter().enumerate() {
        if never(name) {
            let path = format!("request.forward_headers[{index}]");
            let expected = "a header that is the client's to set: not one of the connection's, \
                            Envoy's, the signature's or the filter's own, no range and no condition";
            return Err(PolicyError::text(&path, name, expected));
        }
    }
    for (index, name) in policy.key.headers.iter().enumerate() {
        if never(name) || matches!(name.as_str(), "accept-encoding" | "cookie") {
            let path = format!("key.headers[{index}]");
            let expected = "a header that tells responses apart: not one of the connection's, \
                            Envoy's, the signature's or the filter's own, no range, no condition, \
                            no credentials, and not accept-encoding, which the key has where it counts";
            return Err(PolicyError::text(&path, name, expected));
        }
    }
    Ok(())
}
