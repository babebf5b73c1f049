// SPDX-License-Identifier: Apache-2.0
//! The name by which a cache calls itself in `Cache-Status` (RFC 9211), `CDN-Loop` (RFC 8586) and `Via` (RFC 9110,
//! 7.6.3).

use std::fmt;

/// Name of the request header that lists the caches that a request has passed (RFC 8586).
pub const CDN_LOOP: &str = "cdn-loop";
/// Name of the request header that lists the proxies that a request has passed (RFC 9110, 7.6.3).
pub const VIA: &str = "via";

/// Environment variable with the name of the cache.
pub const NAME_VARIABLE: &str = "SLUICE_CACHE_NAME";
/// Environment variable that says whether the edge sends [`VIA`] to HTTP origins: a [switch](crate::switch), by default
/// on.
pub const VIA_VARIABLE: &str = "SLUICE_VIA";

/// Name of a cache that the operator has not named.
const USUAL: &str = "sluice";
/// Greatest length of a name in bytes.
const MAX_BYTES: usize = 64;

/// Name of a cache, which is a token in each of the three fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheName {
    name: String,
    /// Parameter in `CDN-Loop` that distinguishes this cache from others with the same name. `None` if the caches of
    /// this name are one fleet.
    parameter: Option<String>,
}

impl CacheName {
    /// Description of the names that [`CacheName::parse`] accepts, for error messages.
    pub const ACCEPTED: &str =
        "a letter, and at most 63 letters, digits, hyphens, dots and underscores after it";

    /// Reads the name of a cache, which all caches of a fleet may share; `None` if the text is not a name.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let starts = text.starts_with(|first: char| first.is_ascii_alphabetic());
        let is_name = starts && text.len() <= MAX_BYTES && text.bytes().all(fits);
        is_name.then(|| Self {
            name: text.to_owned(),
            parameter: None,
        })
    }

    /// Returns the default name, for a cache that the operator has not named. Each such cache in a chain has another
    /// `number`.
    pub fn usual(number: u32) -> Self {
        Self {
            name: USUAL.to_owned(),
            parameter: Some(format!("id={number:08x}")),
        }
    }

    /// Returns the member of `CDN-Loop` that lists this cache.
    pub fn cdn_loop(&self) -> String {
        match &self.parameter {
            Some(parameter) => format!("{};{parameter}", self.name),
            None => self.name.clone(),
        }
    }

    /// Whether a line of `CDN-Loop` lists this cache (RFC 8586, 2). Quotes are not parsed, because a client could
    /// hide a member behind a quote that it never closes.
    pub fn is_listed_in(&self, cdn_loop: &[u8]) -> bool {
        let mut members = cdn_loop.split(|byte| *byte == b',');
        members.any(|member| self.is_member(member))
    }

    fn is_member(&self, member: &[u8]) -> bool {
        let mut parts = member.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let id = parts.next().unwrap_or_default();
        id.eq_ignore_ascii_case(self.name.as_bytes())
            && self.parameter.as_ref().is_none_or(|parameter| {
                parts.any(|part| part.eq_ignore_ascii_case(parameter.as_bytes()))
            })
    }
}

impl fmt::Display for CacheName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::http::caching::cache_name::*;

    #[test]
    fn a_name_is_a_token_in_each_field() {
        let longest = format!("a{}", "b".repeat(63));
        for text in ["sluice", "edge-1.example.com", "A_b", &longest] {
            let name = CacheName::parse(text).unwrap();
            assert_eq!([name.to_string(), name.cdn_loop()], [text, text]);
        }
        let too_long = format!("{longest}c");
        for text in [
            "", "1edge", "-a", "a b", "a,b", "a;b", "a\"", "a:80", "\u{e9}", &too_long,
        ] {
            assert_eq!(CacheName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_cache_finds_itself_in_any_place_and_case() {
        let name = CacheName::parse("edge.example").unwrap();
        let listed: [&[u8]; 7] = [
            b"edge.example",
            b"EDGE.Example",
            b"a, edge.example",
            b"a;x=\"b,c\" ,\tedge.example;y",
            b"edge.example ; trace=\"1\", b",
            b"\xff, edge.example",
            b"a;x=\", edge.example",
        ];
        for line in listed {
            assert!(name.is_listed_in(line), "{line:?}");
        }
        let others: [&[u8]; 6] = [
            b"",
            b",",
            b"edge.example.com",
            b"a edge.example",
            b"a;edge.example",
            b"edge.example:8080",
        ];
        for line in others {
            assert!(!name.is_listed_in(line), "{line:?}");
        }
    }

    #[test]
    fn caches_without_a_name_of_their_own_are_told_apart() {
        let [one, other] = [0xab, 0xcd].map(CacheName::usual);
        assert_eq!(one.to_string(), "sluice");
        assert_eq!(one.cdn_loop(), "sluice;id=000000ab");
        for line in [
            "sluice;id=000000ab",
            "b, sluice; x=1; id=000000AB",
            "sluice ; id=000000ab,b",
        ] {
            assert!(one.is_listed_in(line.as_bytes()), "{line}");
            assert!(!other.is_listed_in(line.as_bytes()), "{line}");
        }
        for line in [
            "sluice",
            "sluice;id=000000abc",
            "id=000000ab",
            "other;id=000000ab",
        ] {
            assert!(!one.is_listed_in(line.as_bytes()), "{line}");
        }
    }
}
