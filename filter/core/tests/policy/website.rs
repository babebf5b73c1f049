// SPDX-License-Identifier: Apache-2.0
//! The section `website` of a policy: accepted values, and the errors for others.

use std::time::Duration;

use sluice_core::policy::{ErrorDocument, FallbackFor, OriginPattern, WebsitePolicy};

use crate::support::{bucket_policy, bucket_refusal, http_policy, http_refusal};

#[test]
fn a_policy_that_says_nothing_makes_no_site() {
    let none = WebsitePolicy {
        redirect_directories: false,
        fallback_document: None,
        fallback_for: FallbackFor::Navigation,
        error_document: None,
        error_documents: Vec::new(),
        missing_statuses: vec![404],
        guess_content_type: false,
        content_types: Vec::new(),
        listing: None,
        cors: None,
    };
    assert_eq!(bucket_policy("").website, none);
    assert_eq!(http_policy("website: {}").website, none);
}

#[test]
fn every_field_of_a_site_counts() {
    let site = bucket_policy(
        "key: {index_document: index.html}\n\
         website:\n  redirect_directories: true\n  fallback_document: app/index.html\n  fallback_for: all\n  \
         error_document: 404.html\n  error_documents: [{statuses: [403, 503], document: a/b, status: 200}]\n  missing_statuses: [403, 404]\n  guess_content_type: true\n  \
         content_types: {ABC: x/y; z=1}\n  cors: {allowed_origins: ['*', 'https://a.test']}",
    )
    .website;
    assert!(site.redirect_directories && site.guess_content_type);
    assert_eq!(site.fallback_document.as_deref(), Some("app/index.html"));
    assert_eq!(site.fallback_for, FallbackFor::All);
    assert_eq!(site.error_document.as_deref(), Some("404.html"));
    let entry = ErrorDocument {
        statuses: vec![403, 503],
        document: "a/b".to_owned(),
        status: Some(200),
    };
    assert_eq!(site.error_documents, [entry]);
    assert_eq!(site.missing_statuses, [403, 404]);
    assert_eq!(
        site.content_types,
        [("abc".to_owned(), "x/y; z=1".to_owned())]
    );
    let cors = site.cors.unwrap();
    assert_eq!(cors.origins, None);
    assert_eq!(
        (cors.methods.as_str(), cors.max_age),
        ("GET, HEAD", Duration::from_secs(3_600))
    );
    let listed = http_policy(
        "website: {cors: {allowed_origins: ['https://*.A.test:444', 'http://b.test']}}",
    );
    let subdomains = OriginPattern::Subdomains {
        scheme: "https://".to_owned(),
        rest: ".a.test:444".to_owned(),
    };
    let exact = OriginPattern::Exact("http://b.test".to_owned());
    assert_eq!(
        listed.website.cors.unwrap().origins,
        Some(vec![subdomains, exact])
    );
}

#[test]
fn what_a_storage_server_says_of_itself_is_not_said_of_the_site() {
    let hidden = |policy: sluice_core::policy::Policy, name: &str| policy.response.hides(name);
    for name in [
        "strict-transport-security",
        "content-security-policy",
        "x-ratelimit-limit",
        "x-xss-protection",
    ] {
        assert!(hidden(bucket_policy(""), name), "{name}");
        assert!(!hidden(http_policy(""), name), "{name}");
    }
    assert!(!hidden(bucket_policy(""), "x-content-type-options"));
}

#[test]
fn what_makes_no_sense_is_refused_with_field_value_and_what_is_accepted() {
    let rows = [
        (
            "website: {fallback: x}",
            "website.fallback: unknown field, expected redirect_directories",
        ),
        (
            "website: {redirect_directories: true}",
            "website.redirect_directories: true: expected false, or key.index_document",
        ),
        (
            "website: {fallback_document: /index.html}",
            "website.fallback_document: \"/index.html\": expected the name of an object",
        ),
        (
            "website: {error_document: ../x}",
            "website.error_document: \"../x\": expected the name of an object",
        ),
        (
            "website: {error_documents: [{statuses: [399], document: a}]}",
            "website.error_documents[0].statuses[0]: 399: expected a whole number from 400 to 599",
        ),
        (
            "website: {error_documents: [{statuses: [], document: a}]}",
            "website.error_documents[0].statuses: an empty list: expected statuses",
        ),
        (
            "website: {error_documents: [{statuses: [404]}]}",
            "website.error_documents[0].document: required",
        ),
        (
            "website: {error_documents: [{statuses: [404], document: /a}]}",
            "website.error_documents[0].document: \"/a\": expected the name of an object",
        ),
        (
            "website: {error_documents: [{statuses: [404], document: a, status: 304}]}",
            "website.error_documents[0].status: 304: expected 200, or a status from 400 to 599",
        ),
        (
            "website: {error_documents: [{statuses: [404], document: a}, {statuses: [500, 404], document: b}]}",
            "website.error_documents[1].statuses: 404: expected a status that no entry before it names",
        ),
        (
            "website: {fallback_for: some}",
            "website.fallback_for: \"some\": expected navigation or all",
        ),
        (
            "website: {missing_statuses: [404, 500]}",
            "website.missing_statuses[1]: 500: expected a whole number from 400 to 499",
        ),
        (
            "website: {content_types: {js: text}}",
            "website.content_types.js: \"text\": expected a media type such as",
        ),
        (
            "website: {content_types: {.js: text/plain}}",
            "website.content_types..js: \".js\": expected an extension without its dot",
        ),
        (
            "website: {cors: {}}",
            "website.cors.allowed_origins: required, but missing",
        ),
        (
            "website: {cors: {allowed_origins: []}}",
            "website.cors.allowed_origins: an empty list: expected an origin",
        ),
        (
            "website: {cors: {allowed_origins: [a.test]}}",
            "website.cors.allowed_origins[0]: \"a.test\": expected an origin such as",
        ),
        (
            "website: {cors: {allowed_origins: ['https://a.test/']}}",
            "website.cors.allowed_origins[0]: \"https://a.test/\": expected an origin",
        ),
        (
            "website: {cors: {allowed_origins: ['https://a.*.test']}}",
            "website.cors.allowed_origins[0]:",
        ),
        (
            "website: {cors: {allowed_origins: ['*'], allow_credentials: true}}",
            "website.cors.allowed_origins: \"*\": expected names, since allow_credentials is true",
        ),
        (
            "website: {cors: {allowed_origins: ['https://a.test'], allowed_headers: ['*'], allow_credentials: true}}",
            "website.cors.allowed_headers: \"*\": expected names",
        ),
        (
            "website: {cors: {allowed_origins: ['*'], allowed_methods: [get]}}",
            "website.cors.allowed_methods[0]: \"get\": expected a method such as GET",
        ),
        (
            "key: {strip_prefix: static}",
            "key.strip_prefix: \"static\": expected the beginning of paths",
        ),
        (
            "key: {strip_prefix: /}",
            "key.strip_prefix: \"/\": expected the beginning of paths",
        ),
        (
            "key: {strip_prefix: /a/../b}",
            "key.strip_prefix: \"/a/../b\": expected the beginning of paths",
        ),
    ];
    for (text, expected) in rows {
        let refusal = bucket_refusal(text);
        assert!(refusal.starts_with(expected), "{text}: {refusal}");
    }
    for (text, expected) in [
        (
            "website: {fallback_document: a}",
            "website.fallback_document: \"a\": expected none for an HTTP origin",
        ),
        (
            "website: {error_document: a}",
            "website.error_document: \"a\": expected none for an HTTP origin",
        ),
        (
            "website: {error_documents: [{statuses: [404], document: a}]}",
            "website.error_documents: a list: expected none for an HTTP origin",
        ),
        (
            "website: {guess_content_type: true}",
            "website.guess_content_type: true: expected false for an HTTP origin",
        ),
        (
            "website: {content_types: {a: b/c}}",
            "website.content_types: an object: expected none for an HTTP origin",
        ),
        (
            "key: {strip_prefix: '/a b'}",
            "key.strip_prefix: \"/a b\": expected a path that is percent-encoded",
        ),
    ] {
        let refusal = http_refusal(text);
        assert!(refusal.starts_with(expected), "{text}: {refusal}");
    }
}
