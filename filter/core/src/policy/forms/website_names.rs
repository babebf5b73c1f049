// SPDX-License-Identifier: Apache-2.0
//! The texts of a site's policy: prefixes, origins of pages, extensions, media types.

use crate::http::url::authority::append_authority;
use crate::policy::forms::error::PolicyError;
use crate::policy::forms::form::{Form, Kind, read_text};
use crate::policy::forms::names::{is_token, text};

/// An origin (`https://example.com:8443`), or all of its subdomains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginPattern {
    /// One origin, in lower case.
    Exact(String),
    /// All subdomains of a host.
    Subdomains {
        /// Scheme with `://`.
        scheme: String,
        /// Host with the dot in front of it, and with the port behind it.
        rest: String,
    },
}

text!(
    /// Origins that may read responses; `None` for all.
    AllowedOrigin => Option<OriginPattern>,
    "an origin such as https://example.com or https://*.example.com, or *",
    "^([*]|[A-Za-z][-+.A-Za-z0-9]*://[^/?#@ ]+)$",
    |text| match text {
        "*" => Some(None),
        text => origin_pattern(&text.to_ascii_lowercase()).map(Some),
    }
);

text!(
    /// A request method.
    AllowedMethod => String,
    "a method such as GET",
    "^[A-Z]+$",
    |text| {
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase());
        fits.then(|| text.to_owned())
    }
);

text!(
    /// The name of a header in lower case, or `*`.
    HeaderNameOrAny => String,
    "the name of a header, or *",
    "^([*]|[-!#$%&'+.^_`|~0-9A-Za-z]+)$",
    |text| (text == "*" || is_token(text)).then(|| text.to_ascii_lowercase())
);

text!(
    /// The part of a name behind its last dot, in lower case.
    FileExtension => String,
    "an extension without its dot, such as webmanifest",
    "^[-_A-Za-z0-9]+$",
    |text| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let fits = !text.is_empty() && text.bytes().all(is_inner);
        fits.then(|| text.to_ascii_lowercase())
    }
);

text!(
    /// A media type with or without parameters (RFC 9110, 8.3.1).
    ContentType => String,
    "a media type such as text/html; charset=utf-8",
    "^[^/; ]+/[^/; ]+( *;[ -~]*)?$",
    |text| {
        let (kind, parameters) = text.split_once(';').unwrap_or((text, ""));
        let (kind, subtype) = kind.trim_end().split_once('/')?;
        let visible = |byte: u8| matches!(byte, b' '..=b'~');
        let fits = is_token(kind) && is_token(subtype) && parameters.bytes().all(visible);
        fits.then(|| text.to_owned())
    }
);

/// `SCHEME://HOST[:PORT]`, whose host may begin with `*.`.
fn origin_pattern(text: &str) -> Option<OriginPattern> {
    let (scheme, host) = text.split_once("://")?;
    let starts = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    if !starts || !is_token(scheme) {
        return None;
    }
    let mut named = Vec::new();
    let name = host.strip_prefix("*.").unwrap_or(host);
    // A browser leaves out the default port of the scheme.
    append_authority(&mut named, name.as_bytes(), Some(scheme)).ok()?;
    let named = String::from_utf8(named).ok()?;
    Some(if host.starts_with("*.") {
        OriginPattern::Subdomains {
            scheme: format!("{scheme}://"),
            rest: format!(".{named}"),
        }
    } else {
        OriginPattern::Exact(format!("{scheme}://{named}"))
    })
}
