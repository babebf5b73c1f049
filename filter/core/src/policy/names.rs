// SPDX-License-Identifier: Apache-2.0
//! The texts of a policy: names of headers, parameters, buckets, hosts.

use std::net::Ipv4Addr;

#[cfg(test)]
use serde_json::Value;

use super::NamePattern;
use super::field::Text;
use crate::http::authority::append_authority;
use crate::policy::glob::Glob;

/// Defines a text that must be of a certain form: what is expected, a regular expression for the
/// schema (which may accept more), and how it is read.
macro_rules! text {
    ($(#[doc = $doc:literal])* $name:ident($inner:ty), $expected:literal, $pattern:literal,
     $accept:expr, $shown:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub(super) struct $name(pub(super) $inner);

        impl Text for $name {
            fn expected() -> String {
                $expected.to_owned()
            }

            fn accept(text: &str) -> Option<Self> {
                let accept: fn(&str) -> Option<$inner> = $accept;
                accept(text).map(Self)
            }

            #[cfg(test)]
            fn constraint() -> (&'static str, Value) {
                ("pattern", $pattern.into())
            }

            #[cfg(test)]
            fn to_text(&self) -> String {
                let shown: fn(&$inner) -> String = $shown;
                shown(&self.0)
            }
        }
    };
}
pub(super) use text;

text!(
    /// The name of a header, in lower case.
    HeaderName(String),
    "the name of a header",
    "^[-!#$%&'+.^_`|~0-9A-Za-z]+$",
    |text| is_token(text).then(|| text.to_ascii_lowercase()),
    String::clone
);

text!(
    /// The name of a header, or the beginning of names, in lower case.
    HeaderPattern(NamePattern),
    "the name of a header, or with a trailing * the beginning of names",
    "^[-!#$%&'+.^_`|~0-9A-Za-z]+\\*?$",
    |text| {
        let lower = text.to_ascii_lowercase();
        is_token(lower.strip_suffix('*').unwrap_or(&lower)).then(|| pattern(&lower))
    },
    spelled
);

text!(
    /// The decoded name of a query parameter.
    ParameterName(String),
    "the name of a parameter, without *",
    "^[^\\x00-\\x1F\\x7F*]+$",
    |text| is_parameter(text).then(|| text.to_owned()),
    String::clone
);

text!(
    /// The decoded name of a query parameter, or the beginning of names.
    ParameterPattern(NamePattern),
    "the name of a parameter, or with a trailing * the beginning of names",
    "^[^\\x00-\\x1F\\x7F*]+\\*?$",
    |text| is_parameter(text.strip_suffix('*').unwrap_or(text)).then(|| pattern(text)),
    spelled
);

text!(
    /// The name of a bucket.
    BucketName(String),
    "a bucket's name: 3 to 63 lower-case letters, digits, dots and hyphens, no IP address",
    "^[a-z0-9][-.a-z0-9]{1,61}[a-z0-9]$",
    |text| is_bucket_name(text).then(|| text.to_owned()),
    String::clone
);

text!(
    /// What object keys begin with, without the slash at its end; empty for nothing.
    KeyPrefix(String),
    "the beginning of object keys: no slash at its start, no empty segment, no . or .. between slashes, no control character",
    "^([^/]|[^/].*)?$",
    |text| {
        let prefix = text.strip_suffix('/').unwrap_or(text);
        (text.is_empty() || is_key(prefix)).then(|| prefix.to_owned())
    },
    String::clone
);

text!(
    /// The name of an object.
    ObjectName(String),
    "the name of an object, such as index.html",
    "^[^/]([^\\x00-\\x1F\\x7F]*[^/])?$",
    |text| is_key(text).then(|| text.to_owned()),
    String::clone
);

text!(
    /// A host with or without a port.
    Authority(String),
    "HOST or HOST:PORT",
    "^[^/?#@ ]+$",
    |text| {
        append_authority(&mut Vec::new(), text.as_bytes(), None).ok()?;
        Some(text.to_owned())
    },
    String::clone
);

text!(
    /// A media type without parameters, in lower case.
    MediaType(String),
    "a media type without parameters, such as text/html",
    "^[-!#$%&'+.^_`|~0-9A-Za-z]+/[-!#$%&'+.^_`|~0-9A-Za-z]+$",
    |text| {
        let (kind, subtype) = text.split_once('/')?;
        (is_token(kind) && is_token(subtype)).then(|| text.to_ascii_lowercase())
    },
    String::clone
);

text!(
    /// A pattern of paths.
    PathGlob(Glob),
    "a path, with * for any characters, that starts with a slash or with *",
    "^[/*][^\\x00-\\x20\\x7F?#]*$",
    |text| is_path_glob(text).then(|| Glob::new(text)),
    |glob| glob.as_str().to_owned()
);

/// The pattern of names that this text stands for.
pub(super) fn pattern(text: &str) -> NamePattern {
    match text.strip_suffix('*') {
        Some(prefix) => NamePattern::Prefix(prefix.to_owned()),
        None => NamePattern::Exact(text.to_owned()),
    }
}

#[cfg(test)]
fn spelled(pattern: &NamePattern) -> String {
    match pattern {
        NamePattern::Exact(name) => name.clone(),
        NamePattern::Prefix(prefix) => format!("{prefix}*"),
    }
}

/// RFC 9110, 5.6.2, but for `*`.
pub(super) fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}

fn is_parameter(text: &str) -> bool {
    !text.is_empty() && !text.contains(|character: char| character.is_control() || character == '*')
}

fn is_path_glob(text: &str) -> bool {
    text.starts_with(['/', '*'])
        && !text.contains(|character: char| {
            character.is_control() || matches!(character, ' ' | '?' | '#')
        })
}

/// S3's rules for the names of buckets.
fn is_bucket_name(name: &str) -> bool {
    let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    let is_outer = |end: Option<u8>| end.is_some_and(|byte| byte.is_ascii_alphanumeric());
    (3..=63).contains(&name.len())
        && name.bytes().all(is_inner)
        && is_outer(name.bytes().next())
        && is_outer(name.bytes().next_back())
        && !name.contains("..")
        && name.parse::<Ipv4Addr>().is_err()
}

/// A key that no path can leave or respell.
pub(super) fn is_key(key: &str) -> bool {
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
    key.split('/').all(is_segment) && !key.contains(char::is_control)
}
