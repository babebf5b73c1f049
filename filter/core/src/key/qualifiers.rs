// SPDX-License-Identifier: Apache-2.0
//! Qualifiers: the part of a cache key that distinguishes several responses of one URL. They are
//! `#name=value;name=value` behind the path towards the store. A canonical path contains no `#`.
//!
//! | name | value |
//! |---|---|
//! | `l` | the page of the listing that takes the place of a missing index document; the first one |
//! | `g` | the number of the newest hard purge that covers the URL |
//! | `d` | the number that the policy declares for the URL's path |
//! | `ae` | the content coding of a path on which there are several |
//! | `vary-NAME` | the value of a request header that the policy puts into the key, or that the URL varies with |
//! | `s` | the number of a slice and the version of its object; the last one |
//! | `method` | `HEAD` for the headers alone; the last one |
//!
//! Towards the store, the keyed hash of the key is in front of the qualifiers, without a name.

use crate::http::url::escaping::{is_unreserved, push_escape, unescaped};

/// Name of the qualifier for a page of a listing.
pub const LISTING: &str = "l";
/// Name of the qualifier with the number of the newest hard purge that covers the URL.
pub const GENERATION: &str = "g";
/// Name of the qualifier with the number that the policy declares for the URL's path.
pub const DECLARED: &str = "d";
/// Name of the qualifier with the content coding.
pub const CODING: &str = "ae";
/// Beginning of the names of qualifiers with a request header's value.
pub const VARY: &str = "vary-";
/// Name of the qualifier for a slice.
pub const SLICE: &str = "s";
/// Name of the qualifier for the headers alone.
pub const METHOD: &str = "method";
/// Value of the qualifier for the headers alone.
pub const HEAD: &str = "HEAD";

/// A store's `:path` without its qualifiers, which is the origin's `:path`.
pub fn unqualified(path: &str) -> &str {
    path.split_once('#').map_or(path, |(path, _)| path)
}

/// The names and values that qualify a store's `:path`, or a cache key.
pub fn qualifiers(path: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
    let list = path.split_once('#').map(|(_, list)| list);
    let pairs = list.into_iter().flat_map(|list| list.split(';'));
    pairs.filter_map(parse)
}

/// The name and the value of one qualifier.
pub fn parse(pair: &str) -> Option<(String, Vec<u8>)> {
    let (name, value) = pair.split_once('=')?;
    let decoded = |text: &str| unescaped(text.as_bytes()).collect();
    Some((String::from_utf8(decoded(name)).ok()?, decoded(value)))
}

/// Whether a store's `:path`, or a cache key, is for the headers alone.
pub fn is_for_headers(path: &str) -> bool {
    last(path) == Some((METHOD, HEAD))
}

/// Whether a store's `:path`, or a cache key, is for a slice.
pub fn is_for_slice(path: &str) -> bool {
    last(path).is_some_and(|(name, _)| name == SLICE)
}

/// Whether a store's `:path`, or a cache key, is for a page of a listing.
pub fn is_for_listing(path: &str) -> bool {
    let list = path.split_once('#').map(|(_, list)| list);
    let first = list.and_then(|list| list.split_once('='));
    first.is_some_and(|(name, _)| name == LISTING)
}

/// A store's `:path`, or a cache key, without the qualifier for the headers alone.
pub fn without_method(path: &str) -> &str {
    let is_last = is_for_headers(path);
    match path.rfind(['#', ';']) {
        Some(start) if is_last => path.get(..start).unwrap_or(path),
        _ => path,
    }
}

/// The last qualifier of a store's `:path`, or of a cache key.
fn last(path: &str) -> Option<(&str, &str)> {
    let (_, list) = path.split_once('#')?;
    list.rsplit(';').next()?.split_once('=')
}

/// Appends a name or a value, and escapes bytes that could end it.
pub fn push(out: &mut String, bytes: &[u8]) {
    let mut escape = Vec::with_capacity(3);
    for &byte in bytes {
        if is_unreserved(byte) || matches!(byte, b'*' | b',' | b'/') {
            out.push(char::from(byte));
        } else {
            escape.clear();
            push_escape(&mut escape, byte);
            out.extend(escape.iter().copied().map(char::from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_qualifier_tells_the_headers_alone_from_the_whole() {
        for path in ["/a#method=HEAD", "/a?b#g=1;ae=br;method=HEAD"] {
            assert!(is_for_headers(path), "{path}");
            let whole = path.strip_suffix("method=HEAD").unwrap();
            assert_eq!(without_method(path), &whole[..whole.len() - 1]);
            assert_eq!(unqualified(path), path.split('#').next().unwrap());
        }
        for path in [
            "/a",
            "/a;method=HEAD",
            "/method=HEAD",
            "/a?method=HEAD",
            "/a#method=GET",
            "/a#vary-method=HEAD",
            "/a#method=HEAD;ae=br",
        ] {
            assert!(!is_for_headers(path), "{path}");
            assert_eq!(without_method(path), path);
        }
    }

    #[test]
    fn only_the_last_qualifier_tells_a_slice_from_the_whole() {
        for path in ["/a#s=0.1f", "/a?b#g=1;s=12.1f"] {
            assert!(is_for_slice(path), "{path}");
        }
        for path in [
            "/a",
            "/a?s=1",
            "/s=1",
            "/a#s=1;g=2",
            "/a#vary-s=1",
            "/a#ss=1",
        ] {
            assert!(!is_for_slice(path), "{path}");
        }
    }

    #[test]
    fn only_the_first_qualifier_tells_a_page_of_a_listing() {
        for path in ["/a#l=html/", "/a?b#l=json/c%2Fd/;g=1"] {
            assert!(is_for_listing(path), "{path}");
        }
        for path in [
            "/a",
            "/a?l=html/",
            "/a#g=1;l=html/",
            "/a#vary-l=html/",
            "/l=html/",
        ] {
            assert!(!is_for_listing(path), "{path}");
        }
    }

    #[test]
    fn what_is_no_qualifier_is_passed_over() {
        for path in ["/a", "/a?b=c;d=e", "/a#", "/a#;", "/a#b"] {
            assert_eq!(qualifiers(path).count(), 0, "{path}");
        }
        let found: Vec<_> = qualifiers("/a?b=c#ae=br;x;vary-a%3B=%C3%BC,d;e=").collect();
        let expected = [("ae", "br"), ("vary-a;", "ü,d"), ("e", "")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        assert_eq!(found, expected);
    }
}
