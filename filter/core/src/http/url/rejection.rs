// SPDX-License-Identifier: Apache-2.0
//! Why a request is answered by the edge itself, without the cache and without the origin.

/// A request that goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Neither origin-form nor absolute-form: `*`, an empty target, no leading slash, a foreign
    /// scheme.
    RequestTarget,
    /// The authority is not `host[:port]`, or differs from that of an absolute-form target.
    Authority,
    /// A raw control byte or space.
    ControlByte,
    /// A raw `#`, which no client may send.
    Fragment,
    /// A `%` without two hexadecimal digits.
    BrokenEscape,
    /// `%00`.
    NulByte,
    /// `%2F` towards a bucket, where it could not be told from a separator.
    EncodedSlash,
    /// A dot segment between `%2F`, `%5C` or `\`, or one with a parameter (`..;`) before an HTTP origin, which another
    /// parser would follow.
    HiddenDotSegment,
    /// `..` at the root.
    AboveRoot,
    /// The decoded path, or a decoded parameter, is not UTF-8 (bucket only).
    InvalidUtf8,
    /// A connection to a bucket becomes nothing else.
    Upgrade,
    /// A `GET` or `HEAD` for a bucket announces a body.
    UnexpectedBody,
    /// The path names no object: the root of a bucket without an index document, which S3 would
    /// answer with a listing.
    NoObject,
    /// The method is not for a bucket, or not for clients of an HTTP origin.
    MethodNotAllowed {
        /// Value of `Allow`.
        allow: &'static str,
    },
    /// The object key, or the path with its query, is longer than the policy's bound.
    KeyTooLong,
    /// The request has equal header lines by the dozen. Not 431: the listener has words of its own for that.
    RepeatedHeaders,
    /// No site has the host, or the connection is for another one's (RFC 9110, 15.5.20).
    Misdirected,
    /// No site has the path.
    NoSite,
    /// It has come through this cache before (RFC 8586).
    Loop,
}

impl Rejection {
    /// The response's status.
    pub fn status(&self) -> u16 {
        match self {
            Self::Upgrade => 403,
            Self::NoObject | Self::NoSite => 404,
            Self::MethodNotAllowed { .. } => 405,
            Self::KeyTooLong => 414,
            Self::Misdirected => 421,
            Self::Loop => 508,
            _ => 400,
        }
    }

    /// A sentence for the response's body.
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
            Self::Upgrade => "There is no other protocol for objects.",
            Self::UnexpectedBody => "A request for an object must not have a body.",
            Self::NoObject => "The path names no object.",
            Self::MethodNotAllowed { .. } => "The method is not allowed here.",
            Self::KeyTooLong => "The URL is too long.",
            Self::RepeatedHeaders => "The request repeats too many of its header lines.",
            Self::Misdirected => "The Host is not served here.",
            Self::NoSite => "The path is not served here.",
            Self::Loop => "The request has come back to this cache.",
        }
    }

    /// A token for metrics and logs.
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
        }
    }

    /// Value of the `Allow` header that the response must carry.
    pub fn allow(&self) -> Option<&'static str> {
        match self {
            Self::MethodNotAllowed { allow } => Some(allow),
            _ => None,
        }
    }
}
