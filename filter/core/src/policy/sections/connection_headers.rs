// SPDX-License-Identifier: Apache-2.0
//! Headers that concern one connection only (RFC 9110, 7.6.1).

/// Headers that concern one connection only (RFC 9110, 7.6.1), and never the next connection.
pub(in crate::policy) const HOP_BY_HOP: [&str; 6] = [
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "trailer",
    "transfer-encoding",
];

/// Headers that Envoy has already removed unless the origin should get them: an upgrade that the listener allows, and
/// `te: trailers`. `expect` is one of them because its client waits for an answer before it sends the body.
pub(in crate::policy) const MEANT_TO_GO_ON: [&str; 4] = ["connection", "expect", "te", "upgrade"];

/// Whether a header concerns one connection only.
pub(in crate::policy) fn concerns_connection(name: &str) -> bool {
    HOP_BY_HOP.contains(&name) || MEANT_TO_GO_ON.contains(&name)
}
