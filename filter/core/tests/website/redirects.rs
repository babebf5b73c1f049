// SPDX-License-Identifier: Apache-2.0
//! Redirects of URLs that have moved: the URL to which a request is sent, and the redirects that are refused.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_core::key::Target;
use sluice_core::policy::Policy;
use sluice_core::website::redirect::Redirection;

use crate::support::documents::{bucket_document, http_document, parse, refusal};

fn redirects() -> Value {
    json!([
        { "from": "/feed.xml", "to": "/rss", "status": 302 },
        { "from": "/old/*", "to": "/new/*" },
        { "from": "/x/*", "to": "/*", "status": 308 },
        { "from": "/shop/*", "to": "https://shop.example.com:8443/*" },
        { "from": "/gone/*", "to": "/archive.html", "status": 303 },
        { "from": "www.example.com/*", "to": "https://example.com/*" },
    ])
}

fn redirect(policy: &Policy, method: &str, authority: &[u8], path: &[u8]) -> Option<(u16, String)> {
    let target = Target {
        scheme: Some("http"),
        authority,
        path,
    };
    let found = Redirection::of(policy, &target, method);
    found.map(|found| (found.status, found.location))
}

#[test]
fn a_redirect_keeps_the_path_below_and_the_query() {
    let policy = parse(&http_document(json!({ "redirects": redirects() })));
    for (host, path, expected) in [
        ("a.test", "/feed.xml?a=1", Some((302, "/rss?a=1"))),
        ("a.test", "/feed.xmls", None),
        (
            "a.test",
            "/old/a/b.html?q=/x",
            Some((301, "/new/a/b.html?q=/x")),
        ),
        ("a.test", "/old/", Some((301, "/new/"))),
        ("a.test", "/old", None),
        ("a.test", "/older/a", None),
        ("a.test", "/./old/../old/%61%2fb", Some((301, "/new/a%2Fb"))),
        (
            "a.test",
            "/shop/a",
            Some((301, "https://shop.example.com:8443/a")),
        ),
        ("a.test", "/gone/with/all", Some((303, "/archive.html"))),
        (
            "WWW.example.com:8080",
            "/a?b",
            Some((301, "https://example.com/a?b")),
        ),
        ("www.example.com", "/", Some((301, "https://example.com/"))),
        ("example.com", "/a", None),
        // An absolute form names the host (RFC 9112, 3.2.2).
        ("a.test", "http://a.test/old/a", Some((301, "/new/a"))),
    ] {
        let found = redirect(&policy, "GET", host.as_bytes(), path.as_bytes());
        let expected = expected.map(|(status, location)| (status, location.to_owned()));
        assert_eq!(found, expected, "{host}{path}");
    }
}

#[test]
fn a_bucket_has_redirects_in_the_spelling_of_its_keys_in_front_of_its_prefix() {
    let document = json!({
        "key": { "strip_prefix": "/static", "index_document": "index.html" },
        "redirects": [{ "from": "/a b/*", "to": "/static/ä/*" }, { "from": "/static/old/", "to": "/static/" }],
    });
    let policy = parse(&bucket_document(document));
    for (path, expected) in [
        ("/a%20b/c+d", "/static/%C3%A4/c%2Bd"),
        ("//a%20b//c", "/static/%C3%A4/c"),
        ("/static/old/?v=1", "/static/?v=1"),
    ] {
        let found = redirect(&policy, "GET", b"a.test", path.as_bytes());
        assert_eq!(found, Some((301, expected.to_owned())), "{path}");
    }
}

#[test]
fn another_method_is_repeated_as_it_was() {
    let policy = parse(&http_document(json!({ "redirects": redirects() })));
    for (path, get, post) in [
        ("/old/a", 301, 308),
        ("/feed.xml", 302, 307),
        ("/gone/a", 303, 303),
        ("/x/a", 308, 308),
    ] {
        for (method, expected) in [
            ("GET", get),
            ("HEAD", get),
            ("POST", post),
            ("OPTIONS", post),
        ] {
            let found = redirect(&policy, method, b"a.test", path.as_bytes());
            assert_eq!(found.unwrap().0, expected, "{method} {path}");
        }
    }
}

#[test]
fn slashes_and_backslashes_make_no_host_of_a_path() {
    let policy = parse(&http_document(json!({ "redirects": redirects() })));
    for (path, expected) in [
        ("/x//evil.example", "/evil.example"),
        ("/x////evil.example/", "/evil.example/"),
        ("/x/\\evil.example", "/%5Cevil.example"),
        ("/x/%5c%5Cevil.example", "/%5C%5Cevil.example"),
        ("/x/%2f%2fevil.example", "/%2F%2Fevil.example"),
        ("/x/https://evil.example", "/https://evil.example"),
        ("/x/@evil.example", "/@evil.example"),
    ] {
        let found = redirect(&policy, "GET", b"evil.example", path.as_bytes());
        assert_eq!(found, Some((308, expected.to_owned())), "{path}");
    }
}

#[test]
fn a_redirect_to_the_host_of_the_request_is_not_followed_in_a_circle() {
    let document = json!({ "redirects": [{ "from": "/*", "to": "https://example.com/*" }] });
    let policy = parse(&http_document(document));
    let other = redirect(&policy, "GET", b"www.example.com", b"/a");
    assert_eq!(other, Some((301, "https://example.com/a".to_owned())));
    assert_eq!(redirect(&policy, "GET", b"Example.com:443", b"/a"), None);
}

#[test]
fn redirects_that_contradict_each_other_or_lead_back_are_refused() {
    let rule = |from: &str, to: &str| json!({ "from": from, "to": to });
    for (rules, expected) in [
        (
            json!([rule("/a", "/b"), rule("/%61", "/c")]),
            "redirects[1].from: expected URLs that redirects[0] does not match already",
        ),
        (
            json!([rule("/a/*", "/b/*"), rule("a.test/a/x", "/c")]),
            "redirects[1].from: expected URLs that redirects[0] does not match already",
        ),
        (
            json!([rule("/a", "/b"), rule("/b", "/a")]),
            "redirects[0].to: expected a URL from which no",
        ),
        (
            json!([rule("/*", "/app/*")]),
            "redirects[0].to: expected a URL from which no",
        ),
        (
            json!([
                rule("/c", "/a/c"),
                rule("/a/*", "/b/*"),
                rule("/b/*", "/a/*")
            ]),
            "redirects[1].to: expected a URL",
        ),
        (
            json!([rule("/a", "https://a.test/x/a"), rule("/x/*", "/*")]),
            "redirects[0].to: expected a URL",
        ),
        (
            json!([rule("/*", "https://a.test/app/*")]),
            "redirects[0].to: expected a URL from which no",
        ),
        (
            json!([rule("a.test/*", "https://a.test/*")]),
            "redirects[0].to: expected a URL from which no",
        ),
        (
            json!([rule("/a", "/b/*")]),
            "redirects[0].to: expected a URL without *, because from has none",
        ),
        (
            json!([rule("/a*", "/b")]),
            "redirects[0].from: \"/a*\": expected a path such as",
        ),
        (
            json!([rule("/a//b", "/b")]),
            "redirects[0].from: \"/a//b\": expected a path such as",
        ),
        (
            json!([rule("a.test:80/a", "/b")]),
            "redirects[0].from: \"a.test:80/a\": expected a path such as",
        ),
        (
            json!([rule("/a", "//evil.example/")]),
            "redirects[0].to: \"//evil.example/\": expected a path such as",
        ),
        (
            json!([rule("/a", "/b?c")]),
            "redirects[0].to: \"/b?c\": expected a path such as",
        ),
        (
            json!([rule("/a", "ftp://a.test/")]),
            "redirects[0].to: \"ftp://a.test/\": expected a path such as",
        ),
        (
            json!([rule("/a", "https://a.test")]),
            "redirects[0].to: \"https://a.test\": expected a path such as",
        ),
        (
            json!([rule("/a", "/\\b")]),
            "redirects[0].to: \"/\\b\": expected a path such as",
        ),
        (
            json!([{ "from": "/a", "to": "/b", "status": 300 }]),
            "redirects[0].status: 300: expected 301, 302, 303, 307 or 308",
        ),
        (
            json!([{ "from": "/a" }]),
            "redirects[0].to: required, but missing",
        ),
    ] {
        let refused = refusal(&http_document(json!({ "redirects": rules.clone() })));
        assert!(refused.starts_with(expected), "{rules}: {refused}");
    }
    for accepted in [
        json!([
            rule("/a/x", "/c"),
            rule("/a/*", "/b/*"),
            rule("/b/x", "/c/")
        ]),
        json!([
            rule("www.a.test/*", "https://a.test/*"),
            rule("/old/*", "/new/*")
        ]),
        json!([rule("/*", "https://a.test/*")]),
        json!([rule("/a/*", "/b/*"), rule("/b/x/*", "/a/")]),
        json!([rule("/app/*", "/app/index.html")]),
    ] {
        parse(&http_document(json!({ "redirects": accepted })));
    }
}

/// Texts that parsers of URLs read in different ways.
fn path() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just("/x/".to_owned()),
        Just("/old/".to_owned()),
        Just("//".to_owned()),
        Just("\\".to_owned()),
        Just("/..".to_owned()),
        Just("/.".to_owned()),
        Just("%2f".to_owned()),
        Just("%5C".to_owned()),
        Just("evil.example".to_owned()),
        Just("http://evil.example".to_owned()),
        Just("?".to_owned()),
        Just("@".to_owned()),
        Just(":".to_owned()),
        "[ -~]{0,4}",
    ];
    let text = prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat().into_bytes());
    let bytes = prop::collection::vec(any::<u8>(), 0..12);
    prop_oneof![
        text.clone()
            .prop_map(|text| [b"/x/".as_slice(), &text].concat()),
        text,
        bytes.prop_map(|bytes| [b"/x/".as_slice(), &bytes].concat()),
    ]
}

proptest! {
    #[test]
    fn no_request_makes_a_location_with_another_host(
        path in path(),
        authority in "(evil[.]example|www[.]example[.]com|[ -~]{0,12})",
        is_bucket in any::<bool>(),
    ) {
        let document = json!({ "redirects": redirects() });
        let policy = match is_bucket {
            true => parse(&bucket_document(document)),
            false => parse(&http_document(document)),
        };
        if let Some((_, location)) = redirect(&policy, "GET", authority.as_bytes(), &path) {
            let hosts = ["https://shop.example.com:8443/", "https://example.com/"];
            let of_rule = hosts.iter().find_map(|host| location.strip_prefix(host));
            let second = location.as_bytes().get(1);
            let is_path = location.starts_with('/') && !matches!(second, Some(b'/' | b'\\'));
            prop_assert!(of_rule.is_some() || is_path, "{location}");
            prop_assert!(location.bytes().all(|byte| byte.is_ascii_graphic()), "{location}");
            let path = location.split('?').next().unwrap_or_default();
            prop_assert!(!path.contains('\\'), "{location}");
        }
    }
}
