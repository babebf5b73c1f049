// SPDX-License-Identifier: Apache-2.0
//! The fields of a response that concern one connection only, which its `Connection` names (RFC 9110, 7.6.1).

use crate::http::syntax::field_value::FieldValue;

/// Fields of a response that concern one connection or one proxy, even if `Connection` does not name them (RFC 9110,
/// 7.6.1; RFC 9111, 3.1). Envoy removes the other fields of this kind.
pub const HOP_FIELDS: [&str; 4] = [
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "te",
];

/// Fields that an option of `Connection` never removes from a response: fields for all recipients, which a sender
/// must not name, and the fields with which Envoy frames the message.
const NEVER_NAMED: [&str; 14] = [
    "age",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "set-cookie",
    "transfer-encoding",
    "upgrade",
    "vary",
];

/// Returns the names, in lower case, of the fields that `connection` removes from a response. An option such as
/// `close` may not be the name of a field. An option that is not text is ignored.
pub fn named_fields(connection: FieldValue<'_>) -> impl Iterator<Item = String> {
    connection
        .members()
        .flatten()
        .map(str::to_ascii_lowercase)
        .filter(|name| !name.is_empty() && !name.starts_with(':'))
        .filter(|name| !NEVER_NAMED.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(connection: &str) -> Vec<String> {
        named_fields(connection.into()).collect()
    }

    #[test]
    fn options_name_fields_in_any_case() {
        assert_eq!(named("close"), ["close"]);
        assert_eq!(named("X-Hop,keep-alive ,  b"), ["x-hop", "keep-alive", "b"]);
        assert!(named("").is_empty());
        assert!(named(" , ,").is_empty());
    }

    #[test]
    fn what_is_for_all_recipients_and_what_frames_the_message_cannot_be_named() {
        assert!(named("Cache-Control, set-cookie, Content-Length, Upgrade, :status").is_empty());
    }
}
