// SPDX-License-Identifier: Apache-2.0
//! Keys of an HTTP origin, one row per URL.

use sluice_core::key::{Rejection::*, Target, canonicalize, origin_authority};
use sluice_core::policy::{HttpOrigin, NamePattern, Origin, Policy, QueryRule};

use crate::support::{Row, assert_rows, canonicalize_path, http};

fn canonical(policy: &Policy, scheme: &str, authority: &str, path: &str) -> (String, String) {
    let target = Target {
        scheme: Some(scheme),
        authority: authority.as_bytes(),
        path: path.as_bytes(),
    };
    let Ok(canonical) = canonicalize(policy, &target) else {
        return Default::default();
    };
    let origin = origin_authority(policy, canonical.authority()).to_owned();
    (canonical.cache_key().to_owned(), origin)
}

#[test]
fn only_what_rfc_3986_calls_equivalent_is_one_key() {
    let rows: &[Row] = &[
        ("root", b"/", Ok("/")),
        ("as it is", b"/a/b.html", Ok("/a/b.html")),
        ("unreserved, escaped", b"/%61%2d%7e", Ok("/a-~")),
        ("lower hex digits", b"/%c3%a9", Ok("/%C3%A9")),
        ("space, escaped", b"/a%20b", Ok("/a%20b")),
        ("plus stays", b"/a+b", Ok("/a+b")),
        ("plus, escaped, is another path", b"/a%2bb", Ok("/a%2Bb")),
        ("sub-delimiters stay", b"/!$&'()*,;=:@", Ok("/!$&'()*,;=:@")),
        (
            "sub-delimiters, escaped, stay",
            b"/%21%24%3b",
            Ok("/%21%24%3B"),
        ),
        (
            "not for URIs, but sent",
            b"/\"<>^`{|}[]",
            Ok("/\"<>^`{|}[]"),
        ),
        ("encoded slash stays", b"/a%2fb", Ok("/a%2Fb")),
        ("percent, escaped, stays", b"/%2561", Ok("/%2561")),
        ("escaped twice", b"/%252e%252e/a", Ok("/%252e%252e/a")),
        ("not UTF-8, escaped", b"/caf%e9", Ok("/caf%E9")),
        ("control byte, escaped", b"/a%0ab", Ok("/a%0Ab")),
        ("backslash, escaped", b"/a%5cb", Ok("/a%5Cb")),
        // Known changes: raw bytes that a URI must not contain, and that parsers treat differently.
        ("backslash", b"/a\\b", Ok("/a%5Cb")),
        ("beyond ASCII", "/é".as_bytes(), Ok("/%C3%A9")),
        ("not UTF-8", b"/\xff", Ok("/%FF")),
        ("dot", b"/./a", Ok("/a")),
        ("dot, escaped", b"/%2e/a", Ok("/a")),
        ("there and back", b"/x/../a", Ok("/a")),
        ("there and back, escaped", b"/x/%2e%2E/a", Ok("/a")),
        ("back at the end", b"/x/y/..", Ok("/x/")),
        ("empty segments stay", b"//a//b//", Ok("//a//b//")),
        ("back over an empty segment", b"/a//../b", Ok("/a/b")),
        ("path parameters", b"/a;x=1/../b;y", Ok("/b;y")),
        (
            "parameters of other dots",
            b"/.a;x/...;/b.;",
            Ok("/.a;x/...;/b.;"),
        ),
        ("folder", b"/a/", Ok("/a/")),
        ("absolute form", b"http://edge.test/a?b", Ok("/a?b")),
        ("absolute form, no path", b"http://edge.test?b", Ok("/?b")),
        ("absolute form, nothing", b"http://edge.test", Ok("/")),
    ];
    assert_rows(&http(), rows);
}

#[test]
fn what_two_parsers_could_read_differently_is_refused() {
    let rows: &[Row] = &[
        ("back", b"/../x", Err(AboveRoot)),
        ("back, escaped", b"/%2e%2e/x", Err(AboveRoot)),
        ("back, encoded slash", b"/..%2fx", Err(HiddenDotSegment)),
        (
            "back, escaped, encoded slash",
            b"/%2e%2e%2Fx",
            Err(HiddenDotSegment),
        ),
        ("encoded slash, back", b"/a%2f..", Err(HiddenDotSegment)),
        (
            "back between encoded slashes",
            b"/a%2f..%2fb",
            Err(HiddenDotSegment),
        ),
        (
            "dot between encoded slashes",
            b"/a%2f.%2fb",
            Err(HiddenDotSegment),
        ),
        ("back, backslash", b"/..\\x", Err(HiddenDotSegment)),
        (
            "back, escaped backslash",
            b"/a/..%5cx",
            Err(HiddenDotSegment),
        ),
        ("both", b"/a%2f..%5cx", Err(HiddenDotSegment)),
        (
            "hidden, but left again",
            b"/..%2fa/../x",
            Err(HiddenDotSegment),
        ),
        // Servlet containers remove the parameter first, and then resolve the dots.
        (
            "back, parameter",
            b"/assets/..;/account",
            Err(HiddenDotSegment),
        ),
        (
            "back, parameter with a value",
            b"/a/..;x=1",
            Err(HiddenDotSegment),
        ),
        (
            "back, escaped parameter",
            b"/a/%2e.%3bx/b",
            Err(HiddenDotSegment),
        ),
        ("dot, parameter", b"/a/.;/b", Err(HiddenDotSegment)),
        (
            "encoded slash, back, parameter",
            b"/a%2f..;/b",
            Err(HiddenDotSegment),
        ),
        ("NUL", b"/a%00", Err(NulByte)),
        ("raw NUL", b"/a\0", Err(ControlByte)),
        ("space", b"/a b", Err(ControlByte)),
        ("line feed", b"/a\r\nb", Err(ControlByte)),
        ("percent", b"/100%", Err(BrokenEscape)),
        ("one digit", b"/%4", Err(BrokenEscape)),
        ("no digits", b"/%zz", Err(BrokenEscape)),
        ("fragment", b"/a#b", Err(Fragment)),
        ("fragment after the query", b"/a?b#c", Err(Fragment)),
        ("asterisk", b"*", Err(RequestTarget)),
        ("empty", b"", Err(RequestTarget)),
        ("no leading slash", b"a", Err(RequestTarget)),
        (
            "absolute form, other host",
            b"http://other.test/",
            Err(Authority),
        ),
    ];
    assert_rows(&http(), rows);
}

#[test]
fn the_query_is_part_of_the_key() {
    let rows: &[Row] = &[
        ("as it is", b"/a?b=2&a=1", Ok("/a?b=2&a=1")),
        ("empty", b"/a?", Ok("/a?")),
        (
            "any bytes",
            b"/a?q=100%&x=/../%2f+",
            Ok("/a?q=100%&x=/../%2f+"),
        ),
    ];
    assert_rows(&http(), rows);
    let mut sorted = http();
    sorted.key.query = QueryRule::Sort {
        remove: vec![NamePattern::Prefix("utm_".to_owned())],
    };
    let rows: &[Row] = &[
        ("sorted", b"/a?b=2&utm_source=x&a=1", Ok("/a?a=1&b=2")),
        ("removed, escaped", b"/a?%75tm_source=x", Ok("/a")),
    ];
    assert_rows(&sorted, rows);
}

#[test]
fn slashes_are_merged_where_the_policy_says_so() {
    let mut policy = http();
    policy.key.merge_slashes = true;
    let rows: &[Row] = &[
        ("leading", b"//a", Ok("/a")),
        ("inner and trailing", b"/a//b//", Ok("/a/b/")),
        ("alone", b"//", Ok("/")),
        ("encoded slashes stay", b"/a%2f%2fb", Ok("/a%2F%2Fb")),
    ];
    assert_rows(&policy, rows);
}

#[test]
fn the_host_is_part_of_the_key_and_the_scheme_is_not() {
    let policy = http();
    for (scheme, authority, key, origin) in [
        ("http", "edge.test", "edge.test/a", "edge.test"),
        ("https", "edge.test", "edge.test/a", "edge.test"),
        ("http", "EDGE.test:80", "edge.test/a", "edge.test"),
        ("https", "edge.test.:443", "edge.test/a", "edge.test"),
        (
            "http",
            "edge.test:8080",
            "edge.test:8080/a",
            "edge.test:8080",
        ),
        ("http", "other.test", "other.test/a", "other.test"),
    ] {
        let expected = (key.to_owned(), origin.to_owned());
        assert_eq!(
            canonical(&policy, scheme, authority, "/a"),
            expected,
            "{scheme} {authority}"
        );
    }
}

#[test]
fn the_policys_authority_replaces_the_clients() {
    let mut policy = http();
    policy.origin = Origin::Http(HttpOrigin {
        authority: Some("origin.test:81".to_owned()),
    });
    // Different keys, but the same origin.
    let apart = ("edge.test/a".to_owned(), "origin.test:81".to_owned());
    assert_eq!(canonical(&policy, "http", "edge.test", "/a"), apart);
    policy.key.host = false;
    let together = ("origin.test:81/a".to_owned(), "origin.test:81".to_owned());
    assert_eq!(canonical(&policy, "http", "edge.test", "/a"), together);
}

#[test]
fn a_client_cannot_choose_the_host_of_others() {
    // A policy that validation refuses: without an authority, and without one in the key.
    let mut policy = http();
    policy.key.host = false;
    let ours = canonical(&policy, "http", "edge.test", "/a");
    assert_ne!(ours, canonical(&policy, "http", "other.test", "/a"));
}

#[test]
fn a_path_may_be_as_long_as_the_policy_says() {
    let path = |len: usize| format!("/{}", "a".repeat(len - 1));
    // RFC 9110, 4.1 requires at least 8,000 octets.
    assert!(canonicalize_path(&http(), path(8_000).as_bytes()).is_ok());
    assert_eq!(
        canonicalize_path(&http(), path(8_001).as_bytes()),
        Err(KeyTooLong)
    );
    let query = |len: usize| format!("{}?{}", path(4_000), "q".repeat(len - 4_001));
    assert!(canonicalize_path(&http(), query(8_000).as_bytes()).is_ok());
    assert_eq!(
        canonicalize_path(&http(), query(8_001).as_bytes()),
        Err(KeyTooLong),
        "the query counts"
    );
}
