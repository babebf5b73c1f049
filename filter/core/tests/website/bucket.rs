// SPDX-License-Identifier: Apache-2.0
//! A bucket as a web site: paths, media types, pages for errors.

#![allow(clippy::unwrap_used)]

use sluice_core::key::{CanonicalTarget, Rejection, Target, canonicalize};
use sluice_core::policy::Policy;
use sluice_core::website::error_page;
use sluice_core::website::media_type::missing_media_type;
use sluice_core::website::{MissingObjectVisit, Substitute, document, root_location};

use crate::support::{bucket_policy, http_policy};

fn asked(policy: &Policy, path: &str) -> Result<CanonicalTarget, Rejection> {
    let target = Target {
        scheme: Some("http"),
        authority: b"edge.test",
        path: path.as_bytes(),
    };
    canonicalize(policy, &target)
}

#[test]
fn a_prefix_is_stripped_at_a_slash_and_nothing_else_is_there() {
    let bucket = bucket_policy("key: {strip_prefix: /a b/c/, index_document: index.html}");
    let http = http_policy("key: {strip_prefix: /a%20b/c}");
    let rows = [
        ("/a%20b/c/x.js", Some(("/site/x.js", "/x.js"))),
        ("/a%20b/./c/d/../x.js", Some(("/site/x.js", "/x.js"))),
        ("/a%20b/%63/", Some(("/site/index.html", "/"))),
        (
            "/a%20b/c/a%20b/c/x",
            Some(("/site/a%20b/c/x", "/a%20b/c/x")),
        ),
        ("/a%20b/c", None),
        ("/a%20b/cc/x", None),
        ("/a%20b/c/../x", None),
        ("/x", None),
        ("/", None),
    ];
    for (path, expected) in rows {
        for (policy, expected) in [
            (&bucket, expected.map(|(bucket, _)| bucket)),
            (&http, expected.map(|(_, http)| http)),
        ] {
            let target = asked(policy, path);
            let target = target.as_ref().map(CanonicalTarget::path);
            assert_eq!(target, expected.ok_or(&Rejection::NoObject), "{path}");
        }
    }
}

#[test]
fn what_has_no_media_type_gets_that_of_its_extension() {
    let guessing = bucket_policy(
        "website: {guess_content_type: true, content_types: {JS: text/x-own, abc: a/b}}",
    )
    .website;
    for none in [
        None,
        Some(""),
        Some("application/octet-stream"),
        Some("binary/Octet-Stream; x=y"),
    ] {
        for (path, expected) in [
            ("/site/index.html", Some("text/html; charset=utf-8")),
            (
                "/site/a.b/STYLE.CSS?v=1.js",
                Some("text/css; charset=utf-8"),
            ),
            ("/site/app.js", Some("text/x-own")),
            ("/site/x.abc#g=1", Some("a/b")),
            ("/site/x.unknown", None),
            ("/site.js/x", None),
            ("/site/js", None),
            ("/site/x.", None),
        ] {
            assert_eq!(
                missing_media_type(&guessing, path, none),
                expected,
                "{path} {none:?}"
            );
        }
    }
    assert_eq!(
        missing_media_type(&guessing, "/a.js", Some("text/plain")),
        None
    );
    let listed = bucket_policy("website: {content_types: {abc: a/b}}").website;
    assert_eq!(missing_media_type(&listed, "/x.abc", None), Some("a/b"));
    assert_eq!(missing_media_type(&listed, "/x.js", None), None);
    assert_eq!(
        missing_media_type(&bucket_policy("").website, "/x.js", None),
        None
    );
}

#[test]
fn an_error_has_a_page_that_names_nothing_but_the_error() {
    let page = error_page::page(404);
    assert!(page.contains("<h1>404 Not Found</h1>"), "{page}");
    assert!(error_page::page(599).contains("<h1>599</h1>"));
    for status in [301, 307, 400, 403, 404, 412, 416, 500, 503] {
        assert!(error_page::replaces(status), "{status}");
    }
    for status in [200, 204, 206, 304] {
        assert!(!error_page::replaces(status), "{status}");
    }
}

/// A visit of `path` by a browser or by another client, under a policy with these sections.
fn visit(
    sections: &str,
    path: &str,
    accept: Option<&str>,
) -> (Policy, CanonicalTarget, MissingObjectVisit) {
    let policy = bucket_policy(sections);
    let target = asked(&policy, path).unwrap();
    let visit =
        MissingObjectVisit::of(&policy, &target, path.as_bytes(), || accept.map(Into::into))
            .unwrap();
    (policy, target, visit)
}

#[test]
fn the_prefix_of_a_site_without_its_slash_is_a_directory() {
    const POLICY: &str = "key: {strip_prefix: /static, index_document: index.html}\n\
                          website: {redirect_directories: true}";
    let location = |sections: &str, path: &[u8]| {
        let target = Target {
            scheme: Some("http"),
            authority: b"edge.test",
            path,
        };
        root_location(&bucket_policy(sections), &target)
    };
    for (path, expected) in [
        (&b"/static"[..], Some("/static/")),
        (b"/static?a=1", Some("/static/?a=1")),
        (b"/%73tatic", Some("/static/")),
        (b"//static", Some("/static/")),
        (b"/statics", None),
        (b"/static/", None),
        (b"/", None),
        (b"/static\xff", None),
    ] {
        assert_eq!(location(POLICY, path).as_deref(), expected, "{path:?}");
    }
    let plain = "key: {strip_prefix: /static, index_document: index.html}";
    assert_eq!(location(plain, b"/static"), None);
}

#[test]
fn substitutes_are_looked_for_in_a_fixed_order() {
    let all = "key: {index_document: i.html}\n\
               website: {redirect_directories: true, fallback_document: f.html, error_document: e.html}";
    let (policy, target, visit) = visit(all, "/a/b?x", Some("text/html"));
    let mut tried = None;
    let mut documents = Vec::new();
    while let Some(substitute) = visit.next(&policy.website, 404, tried) {
        let document = document(&policy, &target, substitute, 404).unwrap();
        documents.push((substitute, document.path().to_owned()));
        tried = Some(substitute);
    }
    let expected = [
        (Substitute::Directory, "/site/a/b/i.html"),
        (Substitute::Fallback, "/site/f.html"),
        (Substitute::Error, "/site/e.html"),
    ];
    assert_eq!(
        documents,
        expected.map(|(each, path)| (each, path.to_owned()))
    );
    let status = |(each, _)| policy.website.substitute_status(each, 404);
    assert_eq!(expected.map(status), [302, 200, 404]);
}

#[test]
fn other_errors_of_the_bucket_have_only_the_document_of_their_status() {
    let all = "key: {index_document: i.html}\n\
               website: {redirect_directories: true, fallback_document: f.html, fallback_for: all, \
               error_document: e.html, error_documents: [{statuses: [403, 404], document: d.html, status: 200}, \
               {statuses: [503], document: s.html}]}";
    let (policy, target, visit) = visit(all, "/a", None);
    for (status, name, shown) in [
        (403, Some("/site/d.html"), 200),
        (404, Some("/site/d.html"), 200),
        (503, Some("/site/s.html"), 503),
        (500, None, 500),
    ] {
        let last = Some(Substitute::Fallback).filter(|_| status == 404);
        let substitute = visit.next(&policy.website, status, last);
        assert_eq!(substitute, name.map(|_| Substitute::Error), "{status}");
        let document = document(&policy, &target, Substitute::Error, status);
        let document = document.map(|document| document.path().to_owned());
        assert_eq!(document.as_deref(), name);
        let told = policy.website.substitute_status(Substitute::Error, status);
        assert_eq!(told, shown);
    }
}

#[test]
fn a_document_does_not_replace_itself() {
    let site = "website: {error_documents: [{statuses: [404], document: lost.html}]}";
    let (policy, target, _) = visit(site, "/lost.html", None);
    assert_eq!(document(&policy, &target, Substitute::Error, 404), None);
    let (policy, target, _) = visit(site, "/other.html", None);
    assert!(document(&policy, &target, Substitute::Error, 404).is_some());
}

#[test]
fn only_a_browser_that_goes_to_a_page_falls_back() {
    const FALLBACK: &str = "website: {fallback_document: f.html}";
    for (accept, expected) in [
        (
            Some("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"),
            true,
        ),
        (Some("*/*, Text/HTML; q=0.1"), true),
        (Some("*/*"), false),
        (Some("text/html;q=0"), false),
        (Some("text/html; q=0.0, */*"), false),
        (Some("text/htmlx, text/*"), false),
        (None, false),
    ] {
        let (policy, _, visit) = visit(FALLBACK, "/a", accept);
        assert_eq!(
            visit.next(&policy.website, 404, None).is_some(),
            expected,
            "{accept:?}"
        );
        assert!(policy.website.varies_by_accept());
    }
    let (policy, ..) = visit(
        "website: {fallback_document: f.html, fallback_for: all}",
        "/a",
        None,
    );
    assert!(!policy.website.varies_by_accept());
}

#[test]
fn a_redirect_stays_on_the_host_and_keeps_the_query() {
    const REDIRECT: &str = "key: {index_document: index.html, merge_slashes: false, strip_prefix: /s}\n\
                            website: {redirect_directories: true}";
    for (path, expected) in [
        ("/s/docs", Some("/s/docs/")),
        ("/s/a%20b/%63", Some("/s/a%20b/c/")),
        ("/s/docs?x=//evil.test&y", Some("/s/docs/?x=//evil.test&y")),
        ("/s/docs?\u{e9}", Some("/s/docs/")),
        ("/s/docs/", None),
        ("/s/docs/index.html", None),
        ("/s//evil.test", None),
    ] {
        let (_, _, visit) = visit(REDIRECT, path, None);
        assert_eq!(visit.location(), expected, "{path}");
    }
}
