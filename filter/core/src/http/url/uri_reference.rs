// SPDX-License-Identifier: Apache-2.0
//! References in responses, such as `Location` and `Content-Location`, relative to the target URI of the request (RFC
//! 3986, 5.2; RFC 9110, 10.2.2 and 8.7).

use crate::http::url::authority::append_authority;

/// Target URI of a request.
#[derive(Clone, Copy, Debug)]
pub struct TargetUri<'a> {
    /// `http` or `https`.
    pub scheme: &'a str,
    /// Host and port.
    pub authority: &'a [u8],
    /// Path and query.
    pub path: &'a [u8],
}

/// Returns the path and query of `reference`, resolved against `base`, if both have the same origin (RFC 6454, 5):
/// the same scheme, host and port in any spelling. Dot segments are not resolved.
pub fn within_origin(base: &TargetUri<'_>, reference: &[u8]) -> Option<Vec<u8>> {
    let reference = until(reference, b"#");
    let rest = match split_scheme(reference) {
        Some((scheme, rest)) => {
            let same = base.scheme.as_bytes().eq_ignore_ascii_case(scheme);
            // A reference with a scheme but without an authority has no origin.
            return of_same_authority(base, rest).filter(|_| same);
        }
        None => reference,
    };
    let path = until(base.path, b"?");
    match rest {
        [b'/', b'/', ..] => of_same_authority(base, rest),
        [b'/', ..] => Some(rest.to_vec()),
        [] => Some(base.path.to_vec()),
        [b'?', ..] => Some([path, rest].concat()),
        _ => {
            let last = path.iter().rposition(|byte| *byte == b'/')?;
            Some([path.get(..=last)?, rest].concat())
        }
    }
}

/// Returns the path of `//AUTHORITY/PATH`, if the authority is that of `base`.
fn of_same_authority(base: &TargetUri<'_>, reference: &[u8]) -> Option<Vec<u8>> {
    let rest = reference.strip_prefix(b"//")?;
    let authority = until(rest, b"/?");
    let canonical = |authority: &[u8]| {
        let mut text = Vec::new();
        append_authority(&mut text, authority, Some(base.scheme)).ok()?;
        Some(text)
    };
    let same = canonical(authority)? == canonical(base.authority)?;
    let path = rest.get(authority.len()..).filter(|_| same)?;
    Some(match path {
        [b'/', ..] => path.to_vec(),
        _ => [b"/", path].concat(),
    })
}

/// Splits a reference at the colon behind its scheme; `None` for a reference without a scheme.
fn split_scheme(reference: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = reference.iter().position(|byte| !is_of_scheme(*byte))?;
    let (scheme, rest) = reference.split_at_checked(end)?;
    let begins = scheme.first().is_some_and(u8::is_ascii_alphabetic);
    let rest = rest.strip_prefix(b":").filter(|_| begins)?;
    Some((scheme, rest))
}

const fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// Returns the bytes in front of the first of these `ends`, or all bytes.
fn until<'a>(bytes: &'a [u8], ends: &[u8]) -> &'a [u8] {
    bytes
        .split(|byte| ends.contains(byte))
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::http::url::uri_reference::*;

    fn resolve(reference: &str) -> Option<String> {
        let base = TargetUri {
            scheme: "http",
            authority: b"shop.test",
            path: b"/a/b?q=1",
        };
        let path = within_origin(&base, reference.as_bytes())?;
        Some(String::from_utf8(path).unwrap())
    }

    #[test]
    fn each_spelling_of_the_same_origin_leads_to_its_path() {
        for (reference, path) in [
            ("/x?y", "/x?y"),
            ("/x#y", "/x"),
            ("http://shop.test/x", "/x"),
            ("HTTP://SHOP.test:80/x", "/x"),
            ("http://shop.test.:080/x", "/x"),
            ("http://shop.test", "/"),
            ("http://shop.test?y", "/?y"),
            ("//shop.test/x", "/x"),
            ("//shop.test:80", "/"),
            ("x", "/a/x"),
            ("x:y", ""),
            ("./x:y", "/a/./x:y"),
            ("../x", "/a/../x"),
            ("?y", "/a/b?y"),
            ("", "/a/b?q=1"),
            ("#y", "/a/b?q=1"),
            ("7:x", "/a/7:x"),
        ] {
            let expected = (!path.is_empty()).then(|| path.to_owned());
            assert_eq!(resolve(reference), expected, "{reference:?}");
        }
    }

    #[test]
    fn another_origin_is_none() {
        for reference in [
            "https://shop.test/x",
            "http://shop.test:8080/x",
            "http://shop.test:0/x",
            "http://other.test/x",
            "http://shop.test@other.test/x",
            "http:/x",
            "http:x",
            "//other.test/x",
            "///x",
            "mailto:x@shop.test",
        ] {
            assert_eq!(resolve(reference), None, "{reference:?}");
        }
    }
}
