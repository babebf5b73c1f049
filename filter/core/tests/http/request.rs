// SPDX-License-Identifier: Apache-2.0
//! The requests that use the cache, and the headers that are sent on.

use std::hash::Hasher;

use sluice_core::admission::{Disposition, PassReason, RequestFacts, classify, write_own_headers};
use sluice_core::key::Rejection;
use sluice_core::policy::forward_header;
use sluice_core::policy::{Cookies, PassOrStrip, Policy};

use crate::support::{bucket, bucket_policy, http, http_policy};

fn disposition(
    policy: &Policy,
    method: &str,
    headers: &[(&str, &str)],
) -> Result<Disposition, Rejection> {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let all = headers.chain([(b":method".as_slice(), method.as_bytes())]);
    classify(policy, &RequestFacts::of(policy, all, true))
}

fn open_ended(policy: &Policy, method: &str) -> Result<Disposition, Rejection> {
    let headers = [(b":method".as_slice(), method.as_bytes())];
    classify(policy, &RequestFacts::of(policy, headers, false))
}

fn with_cors() -> Policy {
    let mut policy = bucket();
    policy.request.forward_headers = ["origin", "access-control-request-method"]
        .map(str::to_owned)
        .to_vec();
    policy
}

fn without_cookies() -> Policy {
    let mut policy = http();
    policy.request.cookies = Cookies::Strip;
    policy
}

const CONDITIONS: [&str; 5] = [
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
];

#[test]
fn credentials_that_the_policy_strips_do_not_matter() {
    // RFC 9111, 3.5, applies only if the origin sees the credentials.
    let mut policy = http();
    let headers = [("authorization", "Basic x")];
    let asked = disposition(&policy, "GET", &headers);
    assert_eq!(asked, Ok(Disposition::Cacheable));
    let passed = Ok(Disposition::Pass(PassReason::Authorization));
    assert_eq!(disposition(&policy, "HEAD", &headers), passed);
    let further = [headers[0], ("x-api-key", "x")];
    assert_eq!(disposition(&policy, "GET", &further), passed);
    assert!(forward_header(&policy, false, "authorization"));
    policy.request.authorization = PassOrStrip::Strip;
    for method in ["GET", "HEAD"] {
        let stripped = disposition(&policy, method, &headers);
        assert_eq!(stripped, Ok(Disposition::Cacheable), "{method}");
    }
    for cacheable in [false, true] {
        assert!(!forward_header(&policy, cacheable, "authorization"));
    }
}

#[test]
fn a_request_with_credentials_of_any_name_is_treated_like_one_with_authorization() {
    let policy = http();
    let strip = http_policy("request: {authorization: strip}");
    for name in [
        "x-api-key",
        "x-auth-token",
        "x-access-token",
        "x-amz-security-token",
        "x-csrf-token",
        "x-forwarded-user",
        "x-auth-request-email",
        "private-token",
    ] {
        let headers = [(name, "secret")];
        let passed = Ok(Disposition::Pass(PassReason::Authorization));
        assert_eq!(disposition(&policy, "GET", &headers), passed, "{name}");
        assert!(forward_header(&policy, false, name), "{name}");
        let kept = disposition(&strip, "GET", &headers);
        assert_eq!(kept, Ok(Disposition::Cacheable), "{name}");
        assert!(!forward_header(&strip, true, name), "{name}");
        // A POST with the token of a form.
        assert!(forward_header(&strip, false, name), "{name}");
        let bucket = disposition(&bucket(), "GET", &headers);
        assert_eq!(bucket, Ok(Disposition::Cacheable), "{name}");
    }
    for name in ["x-forwarded-for", "x-requested-with", "accept", "x-author"] {
        let kept = disposition(&policy, "GET", &[(name, "x")]);
        assert_eq!(kept, Ok(Disposition::Cacheable), "{name}");
    }
    let own = http_policy("request: {credential_headers: [x-z, X-Member-*, x-a, x-member-1*]}");
    for (name, expected) in [
        (
            "x-member-id",
            Ok(Disposition::Pass(PassReason::Authorization)),
        ),
        (
            "x-member-12",
            Ok(Disposition::Pass(PassReason::Authorization)),
        ),
        (
            "x-member-",
            Ok(Disposition::Pass(PassReason::Authorization)),
        ),
        ("x-z", Ok(Disposition::Pass(PassReason::Authorization))),
        ("x-a", Ok(Disposition::Pass(PassReason::Authorization))),
        ("x-member", Ok(Disposition::Cacheable)),
        ("x-zz", Ok(Disposition::Cacheable)),
        ("a", Ok(Disposition::Cacheable)),
        ("x-api-key", Ok(Disposition::Cacheable)),
    ] {
        assert_eq!(disposition(&own, "GET", &[(name, "x")]), expected);
    }
}

#[test]
fn reading_uses_the_cache() {
    for policy in [bucket(), http()] {
        for method in ["GET", "HEAD"] {
            assert_eq!(
                disposition(&policy, method, &[]),
                Ok(Disposition::Cacheable)
            );
            let headers = [
                ("accept", "*/*"),
                ("user-agent", "x"),
                ("content-length", "0"),
            ];
            assert_eq!(
                disposition(&policy, method, &headers),
                Ok(Disposition::Cacheable)
            );
        }
    }
}

#[test]
fn a_bucket_is_only_read() {
    let refused = |allow| Err(Rejection::MethodNotAllowed { allow });
    for method in [
        "PUT", "POST", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "get", "",
    ] {
        assert_eq!(
            disposition(&bucket(), method, &[]),
            refused("GET, HEAD"),
            "{method}"
        );
        assert_eq!(
            disposition(&with_cors(), method, &[]),
            refused("GET, HEAD, OPTIONS")
        );
    }
    assert_eq!(disposition(&bucket(), "OPTIONS", &[]), refused("GET, HEAD"));
    let passes = Ok(Disposition::Pass(PassReason::Method));
    assert_eq!(disposition(&with_cors(), "OPTIONS", &[]), passes);
}

#[test]
fn other_methods_pass_to_an_http_origin() {
    let passes = Ok(Disposition::Pass(PassReason::Method));
    for method in [
        "PUT", "POST", "DELETE", "OPTIONS", "M-SEARCH", "get", "BREW",
    ] {
        assert_eq!(disposition(&http(), method, &[]), passes, "{method}");
        assert_eq!(open_ended(&http(), method), passes, "{method} with a body");
    }
}

#[test]
fn a_client_reaches_no_cache_behind_the_edge_with_purge_and_sees_no_request_with_trace() {
    let allow = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    let refused = Err(Rejection::MethodNotAllowed { allow });
    for method in [
        "PURGE",
        "purge",
        "XKEYPURGE",
        "PURGEKEYS",
        "BAN",
        "uriban",
        "REFRESH",
        "PUSH",
        "INVALIDATE",
        "TRACE",
        "Track",
        "CONNECT",
    ] {
        assert_eq!(disposition(&http(), method, &[]), refused, "{method}");
        // No other reason to pass takes precedence.
        let headers = [
            ("upgrade", "websocket"),
            ("content-type", "application/grpc"),
        ];
        assert_eq!(disposition(&http(), method, &headers), refused, "{method}");
    }
}

#[test]
fn a_body_never_reaches_the_cache() {
    let announced = [("content-length", "5")];
    let refused = Err(Rejection::UnexpectedBody);
    let passes = Ok(Disposition::Pass(PassReason::Body));
    let awaits = Ok(Disposition::AwaitsBody);
    for method in ["GET", "HEAD"] {
        assert_eq!(disposition(&bucket(), method, &announced), refused);
        assert_eq!(open_ended(&bucket(), method), awaits);
        assert_eq!(disposition(&http(), method, &announced), passes);
        assert_eq!(open_ended(&http(), method), awaits);
    }
    let forwarded = open_ended(&with_cors(), "OPTIONS");
    assert_eq!(forwarded, awaits, "nothing is signed before its end");
}

#[test]
fn what_is_private_to_a_client_passes_to_an_http_origin() {
    for (header, value, reason) in [
        ("x-api-key", "x", PassReason::Authorization),
        ("cookie", "a=b", PassReason::Cookie),
        ("upgrade", "websocket", PassReason::Upgrade),
        (":protocol", "websocket", PassReason::Upgrade),
        ("content-type", "application/grpc", PassReason::Grpc),
        ("content-type", "Application/gRPC+proto", PassReason::Grpc),
        ("content-type", "application/grpc-web", PassReason::Grpc),
    ] {
        let passes = Ok(Disposition::Pass(reason));
        assert_eq!(
            disposition(&http(), "GET", &[(header, value)]),
            passes,
            "{header}"
        );
    }
    let json = [("content-type", "application/json")];
    assert_eq!(
        disposition(&http(), "GET", &json),
        Ok(Disposition::Cacheable)
    );
    let cookie = [("cookie", "a=b")];
    assert_eq!(
        disposition(&without_cookies(), "GET", &cookie),
        Ok(Disposition::Cacheable)
    );
}

#[test]
fn a_cookie_that_makes_no_difference_goes_on_and_keeps_nobody_from_the_cache() {
    let mut policy = http();
    policy.request.cookies = Cookies::Ignore;
    let cookie = [("cookie", "a=b")];
    let disposition = disposition(&policy, "GET", &cookie);
    assert_eq!(disposition, Ok(Disposition::Cacheable));
    assert!(forward_header(&policy, true, "cookie"));
    assert!(forward_header(&policy, false, "cookie"));
}

#[test]
fn a_bucket_has_no_web_socket() {
    let headers: [(&[u8], &[u8]); 2] = [(b":method", b"GET"), (b"upgrade", b"websocket")];
    let policy = bucket();
    let facts = RequestFacts::of(&policy, headers, false);
    let refused = Err(Rejection::Upgrade);
    assert_eq!(classify(&policy, &facts), refused);
    assert_eq!(Rejection::Upgrade.status(), 403);
}

#[test]
fn a_bucket_does_not_care_who_asks() {
    for header in ["authorization", "cookie", "upgrade"] {
        let headers = [(header, "x")];
        assert_eq!(
            disposition(&bucket(), "GET", &headers),
            Ok(Disposition::Cacheable),
            "{header}"
        );
        for cacheable in [true, false] {
            assert!(!forward_header(&bucket(), cacheable, header), "{header}");
        }
    }
}

#[test]
fn ranges_and_conditions_use_the_cache_but_never_go_into_it() {
    for policy in [bucket(), http()] {
        for header in CONDITIONS.into_iter().chain(["range"]) {
            for method in ["GET", "HEAD"] {
                let demanding = disposition(&policy, method, &[(header, "x")]);
                assert_eq!(demanding, Ok(Disposition::Cacheable), "{method} {header}");
            }
            assert!(forward_header(&policy, false, header), "{header}");
            assert!(!forward_header(&policy, true, header), "{header}");
        }
    }
}

#[test]
fn nobody_gets_an_internal_header() {
    let mut listed = bucket();
    let names = [
        "x-sluice-link",
        "x-sluice-proof",
        "x-envoy-original-path",
        "x-envoy-internal",
    ];
    listed.request.forward_headers = names.map(str::to_owned).to_vec();
    for policy in [bucket(), http(), listed] {
        for name in names {
            for cacheable in [true, false] {
                assert!(!forward_header(&policy, cacheable, name), "{name}");
            }
        }
    }
}

#[test]
fn a_bucket_gets_only_what_is_listed() {
    let mut policy = bucket();
    let listed = [
        "x-trace",
        "origin",
        "authorization",
        "x-amz-date",
        "x-amz-acl",
        "connection",
    ];
    policy.request.forward_headers = listed.map(str::to_owned).to_vec();
    for (name, expected) in [
        (":path", true),
        ("x-trace", true),
        ("origin", true),
        ("authorization", false),
        ("x-amz-date", false),
        ("x-amz-acl", false),
        ("connection", false),
        ("x-trace-2", false),
        ("user-agent", false),
        ("accept-encoding", false),
        ("x-forwarded-for", false),
        ("x-forwarded-host", false),
        ("content-length", false),
        ("cache-control", false),
        ("te", false),
    ] {
        for cacheable in [true, false] {
            assert_eq!(forward_header(&policy, cacheable, name), expected, "{name}");
        }
    }
}

#[test]
fn an_http_origin_gets_all_but_what_could_change_the_response_of_others() {
    let mut listing = http();
    listing.request.forward_headers = vec!["x-forwarded-host".to_owned()];
    for (name, cacheable, passing) in [
        (":path", true, true),
        ("accept", true, true),
        ("accept-encoding", true, true),
        ("user-agent", true, true),
        ("x-custom", true, true),
        ("x-forwarded-for", true, true),
        ("x-forwarded-proto", true, true),
        ("content-type", true, true),
        ("cookie", true, true),
        ("authorization", true, true),
        ("x-forwarded-host", false, true),
        ("x-forwarded-prefix", false, true),
        ("forwarded", false, true),
        ("x-original-url", false, true),
        ("x-rewrite-url", false, true),
        ("x-http-method-override", false, true),
        ("connection", false, true),
        ("upgrade", false, true),
        ("te", false, true),
        ("keep-alive", false, false),
        ("transfer-encoding", false, false),
        ("proxy-authorization", false, false),
    ] {
        assert_eq!(
            forward_header(&http(), true, name),
            cacheable,
            "{name} into the cache"
        );
        assert_eq!(
            forward_header(&http(), false, name),
            passing,
            "{name} past the cache"
        );
    }
    assert!(forward_header(&listing, true, "x-forwarded-host"));
    for cacheable in [true, false] {
        assert!(!forward_header(&without_cookies(), cacheable, "cookie"));
    }
}

#[test]
fn what_is_known_to_change_responses_goes_only_where_the_response_is_not_shared() {
    let keyed = http_policy("key: {headers: [x-original-host]}");
    let listing = http_policy("request: {forward_headers: [front-end-https]}");
    for name in [
        "$wssc",
        "cf-visitor",
        "fastly-ssl",
        "surrogate-capability",
        "wl-proxy-ssl",
        "x-accel-mapping",
        "x-astro-path",
        "x-nextjs-data",
        "x-nuxt-no-ssr",
        "x-prerender-revalidate",
        "x-react-router-prerender-data",
        "x-react-router-spa-mode",
        "x-replaced-path",
        "x-sendfile-type",
        "cloudfront-forwarded-proto",
        "forwarded-proto",
        "front-end-https",
        "max-forwards",
        "proxy",
        "proxy-host",
        "x-arr-ssl",
        "x-backend-host",
        "x-forwarded",
        "x-forwarded-client-cert",
        "x-forwarded-protocol",
        "x-forwarded-ssl",
        "x-http-destinationurl",
        "x-http-path-override",
        "x-invoke-path",
        "x-matched-path",
        "x-middleware-subrequest",
        "x-ms-original-url",
        "x-now-route-matches",
        "x-original-host",
        "x-proxy-host",
        "x-request-uri",
        "x-scheme",
        "x-url-scheme",
    ] {
        assert!(!forward_header(&http(), true, name), "{name}");
        assert!(forward_header(&http(), false, name), "{name}");
        let goes_on = forward_header(&keyed, true, name);
        assert_eq!(goes_on, name == "x-original-host", "{name}");
        let goes_on = forward_header(&listing, true, name);
        assert_eq!(goes_on, name == "front-end-https", "{name}");
    }
    for name in [
        "x-forwarded-for",
        "x-requested-with",
        "x-request-id",
        "x-real-ip",
        "rsc",
        "next-router-state-tree",
        "turbo-frame",
    ] {
        assert!(forward_header(&http(), true, name), "{name}");
    }
}

/// The hashed headers that a request sends to the origin beside its key, as bytes that differ between different
/// requests.
#[derive(Default)]
struct Written(Vec<u8>);

impl Hasher for Written {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }
}

#[test]
fn what_a_request_takes_along_beside_its_key_is_what_its_client_has_sent() {
    let own = |policy: &Policy, key: &str, headers: &[(&'static str, &'static str)]| {
        let mut written = Written::default();
        let headers = headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()));
        let any = write_own_headers(policy, key, headers, &mut written);
        assert_eq!(any, !written.0.is_empty());
        String::from_utf8(written.0).unwrap().replace('\0', ";")
    };
    let keyed = "a.test/x#vary-accept-language=de";
    for (key, header, expected) in [
        ("a.test/x", ("accept-language", "de"), "accept-language;de;"),
        (keyed, ("accept-language", "de"), ""),
        (keyed, ("user-agent", "x"), "user-agent;x;"),
        ("a.test/x", ("referer", ""), "referer;;"),
        ("a.test/x", ("rsc", "1"), "rsc;1;"),
        ("a.test/x", (":path", "/x"), ""),
        ("a.test/x", ("accept-encoding", "br"), ""),
        ("a.test/x", ("cache-control", "no-cache"), ""),
        ("a.test/x", ("if-none-match", "x"), ""),
        ("a.test/x", ("range", "bytes=0-1"), ""),
        ("a.test/x", ("x-forwarded-host", "b.test"), ""),
        ("a.test/x", ("x-forwarded-proto", "https"), ""),
        ("a.test/x", ("x-request-id", "1"), ""),
        ("a.test/x", ("x-forwarded-for", "192.0.2.1"), ""),
        (
            "a.test/x",
            ("x-forwarded-for", "%,192.0.2.1"),
            "x-forwarded-for;%;",
        ),
        ("a.test/x", ("x-envoy-attempt-count", "1"), ""),
    ] {
        assert_eq!(own(&http(), key, &[header]), expected, "{header:?}");
        assert_eq!(own(&bucket(), key, &[header]), "", "{header:?} to a bucket");
    }
}

#[test]
fn what_the_key_has_goes_on() {
    let keyed = http_policy("key: {headers: [x-forwarded-host]}");
    assert!(forward_header(&keyed, true, "x-forwarded-host"));
    // The policy has not included it in the key.
    assert!(!forward_header(&keyed, true, "x-forwarded-proto"));
    assert!(forward_header(&keyed, false, "x-forwarded-proto"));
    let bucket = bucket_policy("key: {headers: [x-plan]}");
    assert!(forward_header(&bucket, true, "x-plan"));
    assert!(!forward_header(&bucket, true, "x-forwarded-proto"));
}

#[test]
fn every_rejection_has_a_status_a_token_and_a_sentence() {
    let all = [
        (Rejection::RequestTarget, 400),
        (Rejection::Authority, 400),
        (Rejection::ControlByte, 400),
        (Rejection::Fragment, 400),
        (Rejection::BrokenEscape, 400),
        (Rejection::NulByte, 400),
        (Rejection::EncodedSlash, 400),
        (Rejection::HiddenDotSegment, 400),
        (Rejection::AboveRoot, 400),
        (Rejection::InvalidUtf8, 400),
        (Rejection::UnexpectedBody, 400),
        (Rejection::NoObject, 404),
        (Rejection::MethodNotAllowed { allow: "GET" }, 405),
        (Rejection::KeyTooLong, 414),
        (Rejection::RepeatedHeaders, 400),
    ];
    let mut names = std::collections::BTreeSet::new();
    for (rejection, status) in all {
        assert_eq!(rejection.status(), status, "{rejection:?}");
        assert!(rejection.reason().ends_with('.'), "{rejection:?}");
        assert!(names.insert(rejection.name()), "{rejection:?}");
        assert_eq!(rejection.allow().is_some(), status == 405, "{rejection:?}");
    }
}
