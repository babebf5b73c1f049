// SPDX-License-Identifier: Apache-2.0
//! The reasons why the edge answers a request without the cache and the origin.

/// Reason to reject a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A target in neither origin-form nor absolute-form: `*`, an empty target, no leading slash, a foreign scheme.
    RequestTarget,
    /// An authority that is not `host[:port]`, or that differs from the authority of an absolute-form target.
    Authority,
    /// A raw control byte or space.
    ControlByte,
    /// A raw `#`, which a client must not send.
    Fragment,
    /// A `%` without two hexadecimal digits.
    BrokenEscape,
    /// `%00`.
    NulByte,
    /// `%2F` towards a bucket, where the edge could not distinguish it from a separator.
    EncodedSlash,
    /// A dot segment between `%2F`, `%5C` or `\`, or one with a parameter (`..;`) towards an HTTP origin. Another
    /// parser would resolve it.
    HiddenDotSegment,
    /// `..` at the root.
    AboveRoot,
    /// A decoded path or a decoded parameter that is not UTF-8 (bucket only).
    InvalidUtf8,
    /// A request to upgrade a connection to a bucket, which has no other protocol.
    Upgrade,
    /// A `GET` or `HEAD` for a bucket with a body.
    UnexpectedBody,
    /// A path without an object: the root of a bucket without an index document, which S3 would answer with a
    /// listing.
    NoObject,
    /// A method that is not for a bucket, or not for clients of an HTTP origin.
    MethodNotAllowed {
        /// Value of `Allow`.
        allow: &'static str,
    },
    /// An object key, or a path with its query, that is longer than the policy's bound.
    KeyTooLong,
    /// A request with dozens of equal header lines. The status is 400, because the listener has its own texts for
    /// 431.
    RepeatedHeaders,
    /// A host without a site, or a connection that belongs to another site's host (RFC 9110, 15.5.20).
    Misdirected,
    /// A path without a site.
    NoSite,
    /// A request that has passed this cache before (RFC 8586).
    Loop,
    /// A client that may not read the site.
    AccessDenied,
    /// A client that may read the site only with credentials (RFC 9110, 15.5.2).
    Unauthorized,
    /// A client with a token that is not valid (RFC 6750, 3.1).
    InvalidToken,
    /// A client about which no server could decide.
    AccessUnknown,
}

impl Rejection {
    /// Returns the status of the response.
    pub fn status(&self) -> u16 {
        match self {
            Self::Unauthorized | Self::InvalidToken => 401,
            Self::AccessUnknown => 503,
            Self::Upgrade | Self::AccessDenied => 403,
            Self::NoObject | Self::NoSite => 404,
            Self::MethodNotAllowed { .. } => 405,
            Self::KeyTooLong => 414,
            Self::Misdirected => 421,
            Self::Loop => 508,
            _ => 400,
        }
    }

    /// Returns a sentence for the body of the response.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::RequestTarget => "The request target must be a path that starts with a slash.",
            Self::Authority => "The Host is not a host name with an optional port.",
            Self::ControlByte => {
                "The URL contains a control character or a space that is not percent-encoded."
            }
            Self::Fragment => "The URL contains a '#' that is not percent-encoded.",
            Self::BrokenEscape => {
                "The URL contains a '%' that is not followed by two hexadecimal digits."
            }
            Self::NulByte => "The URL contains a NUL byte.",
            Self::EncodedSlash => "The path contains a percent-encoded slash.",
            Self::HiddenDotSegment => {
                "The path hides a dot segment behind an encoded slash, a backslash or a parameter."
            }
            Self::AboveRoot => "The path leads above the root.",
            Self::InvalidUtf8 => "The URL is not valid UTF-8 once it is decoded.",
            Self::Upgrade => "A request for an object must not ask for another protocol.",
            Self::UnexpectedBody => "A request for an object must not have a body.",
            Self::NoObject => "The path does not name an object.",
            Self::MethodNotAllowed { .. } => "The method is not allowed here.",
            Self::KeyTooLong => "The URL is too long.",
            Self::RepeatedHeaders => "The request repeats too many of its header lines.",
            Self::Misdirected => "The Host is not served here.",
            Self::NoSite => "The path is not served here.",
            Self::Loop => "The request has come back to this cache.",
            Self::AccessDenied => "Access denied.",
            Self::Unauthorized => "Credentials are required.",
            Self::InvalidToken => "The token is not valid.",
            Self::AccessUnknown => "Access could not be checked. Try again.",
        }
    }

    /// Returns a token for metrics and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RequestTarget => "request_target",
            Self::Authority => "authority",
            Self::ControlByte => "control_byte",
            Self::Fragment => "fragment",
            Self::BrokenEscape => "broken_escape",
            Self::NulByte => "nul_byte",
            Self::EncodedSlash => "encoded_slash",
            Self::HiddenDotSegment => "hidden_dot_segment",
            Self::AboveRoot => "above_root",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::Upgrade => "upgrade",
            Self::UnexpectedBody => "unexpected_body",
            Self::NoObject => "no_object",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::KeyTooLong => "key_too_long",
            Self::RepeatedHeaders => "repeated_headers",
            Self::Misdirected => "misdirected",
            Self::NoSite => "no_site",
            Self::Loop => "loop",
            Self::AccessDenied => "access_denied",
            Self::Unauthorized => "unauthorized",
            Self::InvalidToken => "invalid_token",
            Self::AccessUnknown => "access_unknown",
        }
    }

    /// Returns the value of the `Allow` header that the response must have.
    pub fn allow(&self) -> Option<&'static str> {
        match self {
            Self::MethodNotAllowed { allow } => Some(allow),
            _ => None,
        }
    }
}
