// SPDX-License-Identifier: Apache-2.0
//! Cross-origin resource sharing: the fields of responses and preflights, by the request's origin.

use sluice_core::admission::{Disposition, PassReason, RequestFacts, classify};
use sluice_core::policy::forward_header;
use sluice_core::policy::{CorsPolicy, Policy};
use sluice_core::website::cors::{Field, preflight_fields, response_fields, varies};

use crate::support::{bucket_policy, cors, http_policy};

fn value<'a>(fields: &'a [Field], name: &str) -> Option<&'a str> {
    let field = fields.iter().find(|(candidate, _)| *candidate == name);
    field.map(|(_, value)| value.as_str())
}

fn allowed(cors: &CorsPolicy, origin: &str) -> Option<String> {
    let fields = response_fields(cors, Some(origin));
    value(&fields, "access-control-allow-origin").map(str::to_owned)
}

#[test]
fn what_is_for_everybody_says_so_to_all() {
    let everybody = cors("allowed_origins: [\"*\"]");
    for origin in [None, Some("https://a.test"), Some("null")] {
        let fields = response_fields(&everybody, origin);
        assert_eq!(
            fields,
            [("access-control-allow-origin", "*".to_owned())],
            "{origin:?}"
        );
    }
    assert!(!varies(&everybody));
}

#[test]
fn listed_origins_are_named_and_no_other() {
    let listed = cors(
        "allowed_origins: [\"https://a.test\", \"http://B.test:8080\", \"https://c.test:443\"]",
    );
    for origin in ["https://a.test", "http://b.test:8080", "https://c.test"] {
        assert_eq!(allowed(&listed, origin).as_deref(), Some(origin));
    }
    for origin in [
        "http://a.test",
        "https://a.test:8443",
        "https://a.test.evil.test",
        "https://evil.test/https://a.test",
        "https://x.a.test",
        "https://c.test:443",
        "null",
        "",
    ] {
        assert_eq!(allowed(&listed, origin), None, "{origin}");
    }
    assert_eq!(response_fields(&listed, None), []);
    assert!(varies(&listed));
}

#[test]
fn a_wildcard_stands_for_subdomains_only() {
    let subdomains = cors("allowed_origins: [\"https://*.a.test\", \"http://*.b.test:8080\"]");
    for origin in [
        "https://x.a.test",
        "https://x.y.a.test",
        "http://x.b.test:8080",
    ] {
        assert_eq!(allowed(&subdomains, origin).as_deref(), Some(origin));
    }
    for origin in [
        "https://a.test",
        "https://.a.test",
        "http://x.a.test",
        "https://evil.test#.a.test",
        "https://evil.test/.a.test",
        "https://x@evil.test:.a.test",
        "https://xa.test",
        "http://x.b.test",
        "https://x.a.test.evil.test",
    ] {
        assert_eq!(allowed(&subdomains, origin), None, "{origin}");
    }
}

#[test]
fn a_preflight_is_told_methods_headers_and_for_how_long() {
    let policy = cors(
        "{allowed_origins: [\"https://a.test\"], allowed_methods: [GET, HEAD, POST], \
         allowed_headers: [X-One, x-two], exposed_headers: [ETag], max_age: 10m, allow_credentials: true}",
    );
    let fields = preflight_fields(&policy, Some("https://a.test"));
    let expected = [
        ("access-control-allow-origin", "https://a.test"),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "GET, HEAD, POST"),
        ("access-control-allow-headers", "x-one, x-two"),
        ("access-control-max-age", "600"),
    ];
    let expected = expected.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(fields, expected);
    let fields = response_fields(&policy, Some("https://a.test"));
    assert_eq!(
        value(&fields, "access-control-expose-headers"),
        Some("etag")
    );
    assert_eq!(preflight_fields(&policy, Some("https://b.test")), []);
}

#[test]
fn the_edge_answers_preflights_where_it_answers_for_origins() {
    let preflight = |policy: &Policy, headers: &[&str]| {
        let method: (&[u8], &[u8]) = (b":method", b"OPTIONS");
        let headers = headers
            .iter()
            .map(|name| (name.as_bytes(), b"GET".as_slice()));
        classify(
            policy,
            &RequestFacts::of(policy, headers.chain([method]), true),
        )
    };
    let all = ["origin", "access-control-request-method"];
    let section = "website: {cors: {allowed_origins: [\"*\"]}}";
    for policy in [bucket_policy(section), http_policy(section)] {
        assert_eq!(preflight(&policy, &all), Ok(Disposition::Preflight));
    }
    let plain = http_policy("");
    assert_eq!(
        preflight(&plain, &all),
        Ok(Disposition::Pass(PassReason::Method))
    );
    let bucket = bucket_policy(section);
    for some in [&all[..1], &all[1..]] {
        let Err(rejection) = preflight(&bucket, some) else {
            panic!("{some:?} is no preflight");
        };
        assert_eq!(rejection.allow(), Some("GET, HEAD, OPTIONS"));
    }
}

#[test]
fn the_origin_of_a_page_multiplies_nothing() {
    let policy = http_policy("website: {cors: {allowed_origins: [\"*\"]}}");
    for name in [
        "origin",
        "access-control-request-method",
        "access-control-request-headers",
    ] {
        assert!(!forward_header(&policy, true, name), "{name}");
        assert!(
            policy
                .response
                .ignore_vary
                .iter()
                .any(|ignored| ignored == name),
            "{name}"
        );
    }
    // Servers check the origin of a form.
    assert!(forward_header(&policy, false, "origin"));
    assert!(forward_header(&http_policy(""), true, "origin"));
}
