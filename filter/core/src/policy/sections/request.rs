// SPDX-License-Identifier: Apache-2.0
//! The section `request`: which of a client's header fields the origin gets.

use crate::http::caching::cache_name::CDN_LOOP;
use crate::http::conditional::demand::Demand;
use crate::policy::Policy;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::words;
use crate::policy::forms::names::{HeaderName, HeaderPattern, NamePattern, any_matches};
use crate::policy::forms::section::section;
use crate::policy::sections::connection_headers::{HOP_BY_HOP, MEANT_TO_GO_ON};
use crate::policy::sections::known_headers;
use crate::policy::sections::set_headers::{SetHeader, SetHeaders};

/// Headers by which clients, and proxies that have authenticated clients, identify a client, and headers of a
/// session.
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
    /// Which parts of a request the origin gets.
    pub struct RequestPolicy {
        /// Further request headers that a bucket may get, or that a cacheable request may send to an HTTP origin
        /// although they can change the response.
        forward_headers: Vec<String> as Vec<HeaderName> = Vec::new(),
        /// HTTP origin only: headers that each request to the origin gets in place of the client's, such as a secret by
        /// which the origin knows the edge: the name of a header, and {env: NAME} for the value of that variable of the
        /// environment, or {file: PATH} for the text of that file. The values are in no key and in no log, and Vary may
        /// name these headers. In the mesh they have no effect.
        set_headers: Vec<SetHeader> as SetHeaders = Vec::new(),
        /// HTTP origin only: how a request with Cookie is treated. pass: it is sent to the origin uncached. strip:
        /// the header is removed. ignore: the request is answered from the cache like others; if it is sent to the
        /// origin, the origin gets its Cookie, and the response is stored only if it has public or s-maxage. A bucket
        /// never gets a Cookie.
        cookies: Cookies = Cookies::Pass,
        /// HTTP origin only: how a request with Authorization is treated. pass: the origin gets the header, and the
        /// request shares only responses with public, s-maxage or must-revalidate (RFC 9111, 3.5). strip: the header
        /// is removed. A bucket never gets it.
        authorization: PassOrStrip = PassOrStrip::Pass,
        /// HTTP origin only: further request headers by which a response may be for one client only. A trailing *
        /// matches any rest of the name. With authorization: pass, a request with one of them is sent to the origin
        /// uncached. With strip, they are removed only if the response may be shared.
        credential_headers: Vec<NamePattern> as Vec<HeaderPattern> =
            CREDENTIALS.map(NamePattern::of).into(); bucket: Vec::new(),
        /// Whether a client's Cache-Control and Pragma count. ignore: they do not, because with no-cache, no-store or
        /// max-age any client could load the origin. obey: they do; set it only if the clients may load the origin.
        cache_control: Obedience = Obedience::Ignore,
    }
}

impl RequestPolicy {
    /// Whether a request header identifies its client, beside `Authorization` and `Cookie`.
    pub fn is_credential(&self, name: impl AsRef<[u8]>) -> bool {
        any_matches(&self.credential_headers, name.as_ref())
    }
}

/// Treatment of a header by which a response is for one client only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOrStrip {
    /// The origin gets the header. The response is not stored, unless it says that requests with `Authorization` may
    /// share it.
    Pass,
    /// The header is removed, and does not prevent the response from being stored.
    Strip,
}

words!(PassOrStrip { Pass = "pass", Strip = "strip" });

/// Treatment of a request with `Cookie`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// The request is sent to the origin separately, and the response is not stored.
    Pass,
    /// The header is removed.
    Strip,
    /// The cookie has no effect on the choice of the response. A response of the origin is stored only if it says
    /// that it is for all clients.
    Ignore,
}

words!(Cookies { Pass = "pass", Strip = "strip", Ignore = "ignore" });

/// Treatment of a request's directives for caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obedience {
    /// The directives have no effect.
    Ignore,
    /// The directives have the effect of RFC 9111, 5.2.1.
    Obey,
}

words!(Obedience { Ignore = "ignore", Obey = "obey" });

fn is_of_cors(name: &str) -> bool {
    name == "origin" || name.starts_with("access-control-request-")
}

/// Whether the origin gets a request header; `name` is in lower case, and `cacheable` is true if the response may be
/// shared with other clients.
///
/// - No origin gets the internal namespace, Envoy's own headers, or headers that concern one connection only.
/// - Each origin gets `CDN-Loop`, which is not signed.
/// - A bucket gets the headers that the policy lists or has in the key. With a request that bypasses the cache it also
///   gets `Range` and the conditions. The client never decides about a header that the signer sets.
/// - Another origin gets the other headers. With a cacheable request it does not get the headers that ask for something
///   else than the key says, unless the policy lists such a header, or has it in the key.
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
    // Each cache on the way must find its own name there (RFC 8586, 2).
    if name == CDN_LOOP {
        return true;
    }
    // Headers that the edge itself answers make no difference to the stored response.
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

/// Refuses names that have no effect, names by which a client could change the signed or framed parts of a request or
/// its target, and names whose meaning the key already has in another form.
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
    let mut set = policy.request.set_headers.iter();
    match set.find(|header| policy.key.has_header(&header.name)) {
        Some(SetHeader { name, .. }) => {
            let message = "expected a header that is not one of key.headers";
            Err(PolicyError::new(
                &format!("request.set_headers.{name}"),
                message,
            ))
        }
        None => Ok(()),
    }
}

/// The expected header if `name` cannot be listed; `None` if it can.
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
