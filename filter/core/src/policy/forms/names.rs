// SPDX-License-Identifier: Apache-2.0
//! The texts of a policy: names of headers, parameters, buckets, hosts.

use std::net::Ipv4Addr;

use crate::http::url::authority::append_authority;
use crate::http::url::escaping::is_unreserved;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, read_text};
use crate::policy::forms::glob::Glob;

/// A name, or with a trailing `*` a prefix of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    /// The whole name.
    Exact(String),
    /// The beginning of the name.
    Prefix(String),
}

impl NamePattern {
    /// The pattern with the text `text`.
    pub(in crate::policy) fn of(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.to_owned()),
            None => Self::Exact(text.to_owned()),
        }
    }

    /// Whether `name` fits.
    pub fn matches(&self, name: &str) -> bool {
        self.matches_bytes(name.as_bytes())
    }

    fn matches_bytes(&self, name: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => name == exact.as_bytes(),
            Self::Prefix(prefix) => name.starts_with(prefix.as_bytes()),
        }
    }

    fn literal(&self) -> &str {
        let (Self::Exact(literal) | Self::Prefix(literal)) = self;
        literal
    }

    /// Sorts patterns for [`any_matches`], and removes patterns that others cover.
    pub(in crate::policy) fn sort(patterns: &mut Vec<Self>) {
        let is_exact = |pattern: &Self| matches!(pattern, Self::Exact(_));
        patterns.sort_by(|one, other| {
            let by_literal = one.literal().cmp(other.literal());
            by_literal.then(is_exact(one).cmp(&is_exact(other)))
        });
        patterns.dedup_by(|next, kept| *next == *kept || kept.covers(next));
    }

    fn covers(&self, other: &Self) -> bool {
        matches!(self, Self::Prefix(prefix) if other.literal().starts_with(prefix.as_str()))
    }
}

/// Whether a site may have the name `text`.
pub fn is_site_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Whether `name` matches any of these patterns, which are sorted.
pub(in crate::policy) fn any_matches(sorted: &[NamePattern], name: &[u8]) -> bool {
    let after = sorted.partition_point(|pattern| pattern.literal().as_bytes() <= name);
    let last = after.checked_sub(1).and_then(|last| sorted.get(last));
    last.is_some_and(|pattern| pattern.matches_bytes(name))
}

/// Defines a form of texts: the type that the text is read as, the expected text for messages, a regular expression
/// for the schema (which may accept more), and the function that reads it.
macro_rules! text {
    ($(#[doc = $doc:literal])* $form:ident => $value:ty, $expected:literal, $pattern:literal,
     $accept:expr) => {
        $(#[doc = $doc])*
        pub(in crate::policy) struct $form;

        impl Form<$value> for $form {
            fn read(value: &serde_json::Value, _: Kind) -> Result<$value, PolicyError> {
                read_text(value, $expected, $accept)
            }
        }

        #[cfg(test)]
        impl $crate::policy::tests::Described<$value> for $form {
            fn schema() -> serde_json::Value {
                serde_json::json!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}
pub(in crate::policy) use text;

text!(
    /// The name of a header, in lower case.
    HeaderName => String,
    "the name of a header",
    "^[-!#$%&'+.^_`|~0-9A-Za-z]+$",
    |text| is_token(text).then(|| text.to_ascii_lowercase())
);

text!(
    /// The name of a header, or the beginning of names, in lower case.
    HeaderPattern => NamePattern,
    "the name of a header, or with a trailing * the beginning of names",
    "^[-!#$%&'+.^_`|~0-9A-Za-z]+\\*?$",
    |text| {
        let lower = text.to_ascii_lowercase();
        is_token(lower.strip_suffix('*').unwrap_or(&lower)).then(|| NamePattern::of(&lower))
    }
);

text!(
    /// The decoded name of a query parameter.
    ParameterName => String,
    "the name of a parameter, without *",
    "^[^\\x00-\\x1F\\x7F*]+$",
    |text| is_parameter(text).then(|| text.to_owned())
);

text!(
    /// The decoded name of a query parameter, or the beginning of names.
    ParameterPattern => NamePattern,
    "the name of a parameter, or with a trailing * the beginning of names",
    "^[^\\x00-\\x1F\\x7F*]+\\*?$",
    |text| is_parameter(text.strip_suffix('*').unwrap_or(text)).then(|| NamePattern::of(text))
);

text!(
    /// The name of a bucket.
    BucketName => String,
    "a bucket's name: 3 to 63 lower-case letters, digits, dots and hyphens, no IP address",
    "^[a-z0-9][-.a-z0-9]{1,61}[a-z0-9]$",
    |text| is_bucket_name(text).then(|| text.to_owned())
);

text!(
    /// The beginning of object keys, without the slash at its end; empty for none.
    KeyPrefix => String,
    "the beginning of object keys: no slash at its start, no empty segment, no . or .. between slashes, no control character",
    "^([^/]|[^/].*)?$",
    |text| {
        let prefix = text.strip_suffix('/').unwrap_or(text);
        let is_prefix = is_key(prefix) && !is_for_edges(prefix.as_bytes());
        (text.is_empty() || is_prefix).then(|| prefix.to_owned())
    }
);

text!(
    /// The name of an object.
    ObjectName => String,
    "the name of an object, such as index.html, not below .sluice",
    "^[^/]([^\\x00-\\x1F\\x7F]*[^/])?$",
    |text| (is_key(text) && !is_for_edges(text.as_bytes())).then(|| text.to_owned())
);

/// The greatest size of a maintenance page, in bytes.
pub const MAX_PAGE_BYTES: usize = 64 << 10;

text!(
    /// An HTML page.
    HtmlPage => String,
    "an HTML page, which begins with < and has at most 64 KiB",
    "^[</]",
    |text| (text.starts_with('<') && text.len() <= MAX_PAGE_BYTES).then(|| text.to_owned())
);

text!(
    /// The path in front of all paths that the edge serves, without a slash at its end.
    StripPrefix => String,
    "the beginning of paths, such as /static: a slash at its start, no empty segment, no . or .. between slashes, no control character",
    "^/[^/].*$",
    |text| {
        let path = text.strip_prefix('/')?;
        let path = path.strip_suffix('/').unwrap_or(path);
        is_key(path).then(|| format!("/{path}"))
    }
);

text!(
    /// The name of a site.
    SiteName => String,
    "a name of 1 to 63 lower-case letters, digits and hyphens, with no hyphen at either end",
    "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    |text| is_site_name(text).then(|| text.to_owned())
);

text!(
    /// The name of one of a site's servers.
    ServerName => String,
    "the name of a site, or that and a dot and a number",
    "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][0-9]+)?$",
    |text| {
        let (site, number) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        (is_site_name(site) && is_number).then(|| text.to_owned())
    }
);

text!(
    /// A host without a port, or all hosts that are one label below a name.
    HostPattern => String,
    "a host without a port, such as www.example.com, or *.example.com",
    "^[^/?#@: ]+$",
    |text| {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let mut canonical = Vec::new();
        append_authority(&mut canonical, name.as_bytes(), None).ok()?;
        let canonical = String::from_utf8(canonical).ok().filter(|host| !host.contains(':'))?;
        Some(if name.len() < text.len() { format!("*.{canonical}") } else { canonical })
    }
);

text!(
    /// The beginning of a site's paths.
    SitePath => String,
    "whole segments of paths, such as /static: a slash at its start, of letters, digits, -, ., _ and ~, no . or ..",
    "^(/[-._~A-Za-z0-9]+)*/?$",
    |text| {
        let path = text.strip_suffix('/').unwrap_or(text);
        let mut segments = path.strip_prefix('/').into_iter().flat_map(|path| path.split('/'));
        let is_segment = |segment: &str| {
            !matches!(segment, "" | "." | "..") && segment.bytes().all(is_unreserved)
        };
        let is_path = path.is_empty() || path.starts_with('/');
        (is_path && segments.all(is_segment)).then(|| path.to_owned())
    }
);

text!(
    /// A host with or without a port.
    Authority => String,
    "HOST or HOST:PORT",
    "^[^/?#@ ]+$",
    |text| {
        append_authority(&mut Vec::new(), text.as_bytes(), None).ok()?;
        Some(text.to_owned())
    }
);

text!(
    /// A media type without parameters, in lower case.
    MediaType => String,
    "a media type without parameters, such as text/html",
    "^[-!#$%&'+.^_`|~0-9A-Za-z]+/[-!#$%&'+.^_`|~0-9A-Za-z]+$",
    |text| {
        let (kind, subtype) = text.split_once('/')?;
        (is_token(kind) && is_token(subtype)).then(|| text.to_ascii_lowercase())
    }
);

text!(
    /// A pattern of paths.
    PathGlob => Glob,
    "a path, with * for any characters, that starts with a slash or with *",
    "^[/*][^\\x00-\\x20\\x7F?#]*$",
    |text| is_path_glob(text).then(|| Glob::new(text))
);

/// Whether the text is a token without `*` (RFC 9110, 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
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

/// Whether `name` can be the name of a bucket (the naming rules of Amazon S3).
pub fn is_bucket_name(name: &str) -> bool {
    let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    let is_outer = |end: Option<u8>| end.is_some_and(|byte| byte.is_ascii_alphanumeric());
    (3..=63).contains(&name.len())
        && name.bytes().all(is_inner)
        && is_outer(name.bytes().next())
        && is_outer(name.bytes().next_back())
        && !name.contains("..")
        && name.parse::<Ipv4Addr>().is_err()
}

/// Folder of the objects that only edges read, such as the feed of purges. No bucket serves a path with a segment of
/// this name.
const EDGE_FOLDER: &str = ".sluice";

/// Whether a path or key has a segment that is [`EDGE_FOLDER`], in any case of its letters, as some servers ignore it.
pub fn is_for_edges(path: &[u8]) -> bool {
    let mut segments = path.split(|byte| *byte == b'/');
    segments.any(|segment| segment.eq_ignore_ascii_case(EDGE_FOLDER.as_bytes()))
}

/// Whether a path with `key` always names this key: the key has no empty segments, no dot segments and no control
/// characters, so no path can leave it or spell it in another way.
pub fn is_key(key: &str) -> bool {
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..");
    key.split('/').all(is_segment) && !key.contains(char::is_control)
}
