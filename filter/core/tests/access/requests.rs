// SPDX-License-Identifier: Apache-2.0
//! The signatures in a request, and the request without them.

use sluice_core::access::credentials::{SignedCookies, SignedPath};

#[test]
fn only_the_parameters_of_a_signature_leave_the_query() {
    for (path, rest, shown) in [
        ("/a?sluice-key=a", "/a", "/a?sluice-key=…"),
        (
            "/a?x=1&sluice-key=a&y=%2f",
            "/a?x=1&y=%2f",
            "/a?x=1&sluice-key=…&y=%2f",
        ),
        ("/a?SLUICE-key=a&x", "/a?x", "/a?SLUICE-key=…&x"),
        ("/a?sluice%2Dkey=a&x", "/a?x", "/a?sluice%2Dkey=…&x"),
        ("/a?&sluice-", "/a", "/a?&sluice-=…"),
        (
            "/a?x=?sluice-&sluice-a=?b",
            "/a?x=?sluice-",
            "/a?x=?sluice-&sluice-a=…",
        ),
        (
            "http://h/a?sluice-key=a&b",
            "http://h/a?b",
            "http://h/a?sluice-key=…&b",
        ),
    ] {
        let signed = SignedPath::of(path.as_bytes()).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(String::from_utf8_lossy(&signed.rest), rest);
        assert_eq!(String::from_utf8_lossy(&signed.shown), shown);
        // The text for logs has nothing that another step would take for a signature.
        let again = SignedPath::of(&signed.shown).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(again.rest, signed.rest);
    }
    for path in [
        "/a",
        "/a?",
        "/sluice-key=a",
        "/a?xsluice-key=a",
        "/a?x=sluice-key=a",
        "/a?sluice_key=a",
    ] {
        assert_eq!(SignedPath::of(path.as_bytes()), None, "{path}");
    }
}

#[test]
fn only_the_cookies_of_the_edge_leave_the_request() {
    for (lines, rest) in [
        (&["sluice-signed=x"][..], ""),
        (&["a=1; sluice-signed=x; b=2"], "a=1; b=2"),
        (&["sluice-signed=x; sluice-signed=y;a=1"], "a=1"),
        (&["a=1", "sluice-signed=x", "b=2;c"], "a=1; b=2; c"),
        (
            &["a=\"sluice-signed=x\"; sluice-signed = x"],
            "a=\"sluice-signed=x\"",
        ),
    ] {
        let lines_of = lines.iter().map(|line| line.as_bytes());
        let cookies =
            SignedCookies::of(lines_of, &|_| false).unwrap_or_else(|| panic!("{lines:?}"));
        assert_eq!(String::from_utf8_lossy(&cookies.rest), rest);
    }
    for line in [
        "",
        "a=1",
        "Sluice-Signed=x",
        "sluice-signed",
        "sluice-signed2=x",
        "a=sluice-signed=x",
    ] {
        assert_eq!(
            SignedCookies::of([line.as_bytes()].into_iter(), &|_| false),
            None,
            "{line}"
        );
    }
}

#[test]
fn a_request_with_many_cookies_has_few_of_them_read() {
    let many = "sluice-signed=x; ".repeat(1_000);
    let cookies = SignedCookies::of([many.as_bytes()].into_iter(), &|_| false);
    assert_eq!(cookies.map(|cookies| cookies.signatures.len()), Some(4));
}
