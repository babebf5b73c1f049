// SPDX-License-Identifier: Apache-2.0
//! Which of a client's header fields go on to the origin.

use super::{Origin, PassOrStrip, Policy};
use crate::http::demand::Demand;

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
const OVERRIDES: [&str; 18] = [
    "forwarded",
    "x-forwarded-host",
    "x-forwarded-path",
    "x-forwarded-port",
    "x-forwarded-prefix",
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
/// - A bucket gets what the policy lists, and `Range` and the conditions of a request that goes
///   past the cache. What the signer sets is never the client's.
/// - Another origin gets the rest, but for what would let a cacheable request ask for something
///   else than its key says, unless the policy lists it.
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
    let is_bucket = matches!(policy.origin, Origin::Bucket(_));
    if MEANT_TO_GO_ON.contains(&name) {
        return !is_bucket && !cacheable;
    }
    let listed = policy
        .request
        .forward_headers
        .iter()
        .any(|listed| listed == name);
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
