// SPDX-License-Identifier: Apache-2.0
//! The policy's document: its meaning, its defaults, and the errors for a wrong one.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_core::http::accept_encoding::Coding;
use sluice_core::policy::Statuses::{Class, Exact, Others};
use sluice_core::policy::{
    BucketOrigin, CachePolicy, Cookies, HotPolicy, HttpOrigin, NamePattern, Obedience, Origin,
    PassOrStrip, Policy, QueryRule, ResponsePolicy, Rule, SetCookie, Ttl, TtlBounds, TtlTable,
};

use crate::support::documents::{bucket_at, bucket_document, http_document, merge, parse, refusal};

fn bucket_origin(document: &Value) -> BucketOrigin {
    match parse(document).origin {
        Origin::Bucket(bucket) => bucket,
        Origin::Http(_) => panic!("a bucket should be one"),
    }
}

fn default_cache() -> CachePolicy {
    CachePolicy {
        default: Rule {
            ttl: TtlTable(vec![(Others, Ttl::Origin)]),
            bounds: TtlBounds::default(),
            honor_cache_control: true,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::from_secs(600),
            client_cache_control: None,
            headers: Vec::new(),
        },
        targeted_fields: vec![
            "cdn-cache-control".to_owned(),
            "surrogate-control".to_owned(),
        ],
        heuristic_percent: 10,
        heuristic_max: Duration::from_secs(3_600),
        stale_if_missing: false,
        stale_if_error_timeout: Duration::from_secs(4),
        retry_interval: Duration::from_secs(2),
        set_cookie: SetCookie::Pass,
        hit_for_miss: Duration::from_secs(120),
        max_object_bytes: 16 << 20,
    }
}

fn ttl_of_a_bucket() -> TtlTable {
    let hour = Ttl::Fixed(Duration::from_secs(3_600));
    let second = Ttl::Fixed(Duration::from_secs(1));
    let lasting = [200, 203, 301, 308].map(|status| (Exact(status), hour));
    let others = [(Exact(404), second), (Others, second)];
    TtlTable([lasting.as_slice(), &others].concat())
}

fn built_in_hidden_headers() -> Vec<NamePattern> {
    let prefixes = ["x-amz-", "x-minio-", "x-envoy-", "x-sluice-"];
    let prefixes = prefixes.map(|prefix| NamePattern::Prefix(prefix.to_owned()));
    let exact =
        ["cache-tag", "surrogate-key", "xkey"].map(|name| NamePattern::Exact(name.to_owned()));
    let control = NamePattern::Exact("surrogate-control".to_owned());
    sorted(exact.into_iter().chain(prefixes).chain([control]).collect())
}

/// Patterns in the order in which a policy stores them.
fn sorted(mut patterns: Vec<NamePattern>) -> Vec<NamePattern> {
    patterns.sort_by_key(|pattern| match pattern {
        NamePattern::Exact(name) | NamePattern::Prefix(name) => name.clone(),
    });
    patterns
}

/// The built-in hidden headers, and those in which a storage server describes itself.
fn hidden_headers_of_a_bucket() -> Vec<NamePattern> {
    let mut hidden = built_in_hidden_headers();
    let exact = |name: &str| NamePattern::Exact(name.to_owned());
    let prefix = |name: &str| NamePattern::Prefix(name.to_owned());
    hidden.extend(["content-security-policy", "strict-transport-security"].map(exact));
    hidden.extend(
        [
            "x-goog-",
            "x-guploader-",
            "x-oss-",
            "x-ratelimit-",
            "x-rgw-",
            "x-wasabi-",
        ]
        .map(prefix),
    );
    hidden.push(exact("x-xss-protection"));
    sorted(hidden)
}

#[test]
fn a_bucket_needs_no_more_than_its_name_and_host() {
    let expected = Policy {
        response: ResponsePolicy {
            remove_headers: hidden_headers_of_a_bucket(),
            ignore_vary: [
                "origin",
                "accept-encoding",
                "access-control-request-method",
                "access-control-request-headers",
            ]
            .map(str::to_owned)
            .into(),
            cache_status_key: false,
            maintenance_page: None,
            account: true,
        },
        cache: CachePolicy {
            default: Rule {
                ttl: ttl_of_a_bucket(),
                stale_while_revalidate: Duration::from_secs(60),
                stale_if_error: Duration::from_secs(86_400),
                ..default_cache().default
            },
            ..default_cache()
        },
        ..crate::support::bucket()
    };
    assert_eq!(parse(&bucket_document(json!({}))), expected);
}

#[test]
fn an_http_origin_needs_no_more_than_its_kind() {
    let expected = Policy {
        response: ResponsePolicy {
            remove_headers: built_in_hidden_headers(),
            ignore_vary: Vec::new(),
            cache_status_key: false,
            maintenance_page: None,
            account: true,
        },
        cache: default_cache(),
        ..crate::support::http()
    };
    assert_eq!(parse(&http_document(json!({}))), expected);
}

#[test]
fn a_section_that_says_nothing_is_as_good_as_none() {
    let empty = json!({
        "store": {}, "hot": {}, "key": { "query": {} }, "request": {}, "response": {}, "cache": {},
        "coalesce": {}, "limits": {},
    });
    assert_eq!(
        parse(&bucket_document(empty.clone())),
        parse(&bucket_document(json!({})))
    );
    assert_eq!(
        parse(&http_document(empty)),
        parse(&http_document(json!({})))
    );
}

#[test]
fn every_field_counts() {
    let policy = parse(&http_document(json!({
        "origin": { "kind": "http", "authority": "app.test" },
        "store": { "max_object_bytes": 5 },
        "hot": { "max_bytes": 1_000_000, "max_object_bytes": 1_000 },
        "key": {
            "host": false,
            "merge_slashes": true,
            "query": { "mode": "sort", "remove": ["utm_*", "fbclid"] },
            "max_bytes": 65_536,
            "headers": ["X-Plan", "X-Country"],
        },
        "request": { "forward_headers": ["X-Forwarded-Host"], "cookies": "strip", "authorization": "strip", "cache_control": "obey", "credential_headers": ["X-Member", "x-key-*", "x-key-*", "x-key-a", "x-key-b*"] },
        "response": { "remove_headers": ["Server", "X-Powered-*"], "ignore_vary": ["User-Agent"] },
        "cache": {
            "ttl": { "default": "0s", "5xx": "3s", "404": "1m", "200": "2000ms" },
            "min_ttl": "4s",
            "max_ttl": "4000s",
            "honor_cache_control": false,
            "targeted_fields": ["Site-Cache-Control"],
            "heuristic_percent": 20,
            "heuristic_max": "7s",
            "stale_while_revalidate": "2m",
            "stale_if_error": "3h",
            "stale_if_missing": true,
            "stale_if_error_timeout": "3s",
            "retry_interval": "500ms",
            "set_cookie": "strip",
            "hit_for_miss": "250ms",
        },
        "coalesce": { "enabled": false, "max_wait": "1h", "lease": "100ms" },
        "limits": { "waiters_per_key": 1, "keys_in_flight": 2, "hints": 3 },
    })));
    let seconds = Duration::from_secs;
    let (max_bytes, max_object_bytes) = (1_000_000, 1_000);
    let hot = HotPolicy {
        max_bytes,
        max_object_bytes,
    };
    assert_eq!(policy.edge.hot, hot);
    let authority = Some("app.test".to_owned());
    assert_eq!(policy.origin, Origin::Http(HttpOrigin { authority }));
    assert!(!policy.key.host);
    assert!(policy.key.merge_slashes);
    let remove = vec![
        NamePattern::Prefix("utm_".to_owned()),
        NamePattern::Exact("fbclid".to_owned()),
    ];
    assert_eq!(policy.key.query, QueryRule::Sort { remove });
    assert_eq!(policy.key.max_bytes, 65_536);
    assert_eq!(policy.key.headers, ["x-country", "x-plan"]);
    assert_eq!(policy.request.forward_headers, ["x-forwarded-host"]);
    assert_eq!(policy.request.cookies, Cookies::Strip);
    assert_eq!(policy.request.authorization, PassOrStrip::Strip);
    let credentials = [
        NamePattern::Prefix("x-key-".to_owned()),
        NamePattern::Exact("x-member".to_owned()),
    ];
    assert_eq!(policy.request.credential_headers, credentials);
    assert_eq!(policy.request.cache_control, Obedience::Obey);
    let mut hidden = built_in_hidden_headers();
    hidden.push(NamePattern::Exact("server".to_owned()));
    hidden.push(NamePattern::Prefix("x-powered-".to_owned()));
    assert_eq!(policy.response.remove_headers, sorted(hidden));
    assert_eq!(policy.response.ignore_vary, ["user-agent"]);
    let cache = CachePolicy {
        default: Rule {
            ttl: TtlTable(vec![
                (Exact(200), Ttl::Fixed(seconds(2))),
                (Exact(404), Ttl::Fixed(seconds(60))),
                (Class(5), Ttl::Fixed(seconds(3))),
                (Others, Ttl::Fixed(seconds(0))),
            ]),
            bounds: TtlBounds {
                min: seconds(4),
                max: Some(seconds(4_000)),
            },
            honor_cache_control: false,
            stale_while_revalidate: seconds(120),
            stale_if_error: seconds(3 * 3_600),
            client_cache_control: None,
            headers: Vec::new(),
        },
        targeted_fields: vec!["site-cache-control".to_owned()],
        heuristic_percent: 20,
        heuristic_max: seconds(7),
        stale_if_missing: true,
        stale_if_error_timeout: Duration::from_secs(3),
        retry_interval: Duration::from_millis(500),
        set_cookie: SetCookie::Strip,
        hit_for_miss: Duration::from_millis(250),
        max_object_bytes: 5,
    };
    assert_eq!(policy.cache, cache);
    assert!(!policy.coalesce.enabled);
    assert_eq!(policy.coalesce.max_wait, seconds(3_600));
    assert_eq!(policy.edge.lease, Duration::from_millis(100));
    assert_eq!(policy.edge.limits.waiters_per_key, 1);
    assert_eq!(policy.edge.limits.keys_in_flight, 2);
    assert_eq!(policy.edge.limits.hints, 3);
}

#[test]
fn the_fields_of_a_bucket_count() {
    let policy = parse(&bucket_document(json!({
        "key": {
            "host": true,
            "merge_slashes": false,
            "query": { "mode": "drop", "allow": ["versionId"] },
            "index_document": "index.html",
        },
        "request": { "forward_headers": ["Origin", "access-control-request-method"] },
        "response": { "ignore_vary": [] },
    })));
    assert!(policy.key.host);
    assert!(!policy.key.merge_slashes);
    let allow = vec!["versionId".to_owned()];
    assert_eq!(policy.key.query, QueryRule::Drop { allow });
    assert_eq!(policy.key.index_document.as_deref(), Some("index.html"));
    let forwarded = ["origin", "access-control-request-method"];
    assert_eq!(policy.request.forward_headers, forwarded);
    assert!(policy.response.ignore_vary.is_empty());
}

#[test]
fn bucket_and_prefix_stand_before_every_path() {
    let rows = [
        ("no prefix", json!({}), "/site", 0),
        ("an empty prefix", json!({ "prefix": "" }), "/site", 0),
        ("a prefix", json!({ "prefix": "a/b" }), "/site/a/b", 4),
        (
            "a prefix with its slash",
            json!({ "prefix": "a/b/" }),
            "/site/a/b",
            4,
        ),
        (
            "a prefix to be escaped",
            json!({ "prefix": "é +" }),
            "/site/%C3%A9%20%2B",
            5,
        ),
        (
            "in the host",
            json!({ "addressing": "virtual_host", "authority": "site.s3.test" }),
            "",
            0,
        ),
        (
            "in the host, with a prefix",
            json!({ "addressing": "virtual_host", "authority": "Site:9000", "prefix": "a" }),
            "/a",
            2,
        ),
    ];
    for (name, origin, path_prefix, prefix_bytes) in rows {
        let bucket = bucket_origin(&bucket_at(origin));
        assert_eq!(bucket.path_prefix, path_prefix, "{name}");
        assert_eq!(bucket.prefix_bytes, prefix_bytes, "{name}");
    }
}

#[test]
fn a_virtual_host_names_the_bucket_so_that_no_path_can() {
    for authority in [
        "s3.test",
        "site-2.s3.test",
        "sites.s3.test",
        "sit",
        "s3.site.test",
    ] {
        let origin = json!({ "addressing": "virtual_host", "authority": authority });
        let expected = format!(
            "origin.authority: \"{authority}\": expected site.HOST, since addressing is virtual_host"
        );
        assert_eq!(refusal(&bucket_at(origin)), expected);
    }
}

#[test]
fn a_ttl_table_of_ones_own_replaces_the_default() {
    let policy = parse(&http_document(
        json!({ "cache": { "ttl": { "404": "5s" } } }),
    ));
    let expected = TtlTable(vec![
        (Exact(404), Ttl::Fixed(Duration::from_secs(5))),
        (Others, Ttl::Origin),
    ]);
    assert_eq!(policy.cache.default.ttl, expected);
}

#[test]
fn a_ttl_is_origin_or_a_duration_as_a_whole_or_for_a_status() {
    let table = |document: Value| parse(&document).cache.default.ttl.0;
    let of = |ttl: Value| table(http_document(json!({ "cache": { "ttl": ttl } })));
    let second = Ttl::Fixed(Duration::from_secs(1));
    let lasting = [200, 203, 301, 308].map(|status| (Exact(status), second));
    let others = [(Others, Ttl::Origin)];
    assert_eq!(of(json!("origin")), others);
    assert_eq!(of(json!("1s")), [lasting.as_slice(), &others].concat());
    let mixed = json!({ "200": "origin", "default": "1s" });
    assert_eq!(of(mixed), [(Exact(200), Ttl::Origin), (Others, second)]);
    let bucket = bucket_document(json!({ "cache": { "ttl": { "404": "origin" } } }));
    assert_eq!(table(bucket), [(Exact(404), Ttl::Origin), (Others, second)]);
}

#[test]
fn numbers_may_come_as_floating_point() {
    // In the form of a google.protobuf.Struct.
    let document = br#"{"origin":{"kind":"http"},"store":{"max_object_bytes":2.68435456e8},
        "limits":{"hints":5.0}}"#;
    let policy = Policy::parse(document).unwrap();
    assert_eq!(policy.cache.max_object_bytes, 268_435_456);
    assert_eq!(policy.edge.limits.hints, 5);
}

#[test]
fn numbers_of_bytes_may_have_units() {
    let document =
        json!({ "store": { "max_object_bytes": "2Gi" }, "key": { "max_bytes": "4 KiB" } });
    let policy = parse(&http_document(document));
    assert_eq!(policy.cache.max_object_bytes, 2 << 30);
    for refused in [json!("2G"), json!("0"), json!("9PiB"), json!(0)] {
        let problem = refusal(&http_document(
            json!({ "store": { "max_object_bytes": refused } }),
        ));
        let expected =
            "expected a number of bytes from 1 to 9007199254740992, such as 4096 or 16Mi";
        assert_eq!(
            problem,
            format!("store.max_object_bytes: {refused}: {expected}")
        );
    }
}

#[test]
fn the_policies_that_come_with_the_edge_are_accepted() {
    let read = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
    // The entry point sets the bucket.
    let complete = |text| {
        let mut document = read(text);
        merge(
            &mut document["origin"],
            json!({ "bucket": "site", "authority": "s3.test:9000" }),
        );
        parse(&document)
    };
    let index_document = Some("index.html".to_owned());

    let policy = complete(include_str!("../../../../envoy/policies/bucket.yaml"));
    let mut expected = parse(&bucket_document(json!({})));
    expected.key.index_document.clone_from(&index_document);
    let entries = &mut expected.cache.default.ttl.0;
    entries.retain(|(statuses, _)| *statuses != Exact(404));
    assert_eq!(policy, expected);

    let policy = complete(include_str!(
        "../../../../envoy/policies/versioned-assets.yaml"
    ));
    let month = Ttl::Fixed(Duration::from_secs(30 * 86_400));
    for (statuses, ttl) in &mut expected.cache.default.ttl.0 {
        if *statuses != Others {
            *ttl = month;
        }
    }
    expected.cache.default.honor_cache_control = false;
    assert_eq!(policy, expected);

    let policy = parse(&read(include_str!("../../../../envoy/policies/http.yaml")));
    assert_eq!(policy, parse(&http_document(json!({}))));
}

#[test]
fn a_refusal_names_path_value_and_what_is_accepted() {
    let duration = "expected a duration such as 250ms, 5s, 1h30m or 30d";
    let ttl = |ttl| http_document(json!({ "cache": { "ttl": ttl } }));
    let time = "expected origin, or a duration such as 250ms, 5s, 1h30m or 30d";
    let rows = [
        (
            ttl(json!({ "200": "1 fortnight" })),
            format!("cache.ttl.200: \"1 fortnight\": {time}"),
        ),
        (
            ttl(json!({ "200": 3_600 })),
            format!("cache.ttl.200: 3600: {time}"),
        ),
        (
            ttl(json!({ "404": "250ms" })),
            "cache.ttl.404: \"250ms\": expected whole seconds, such as 1s, or 0s for none".to_owned(),
        ),
        (
            ttl(json!({ "700": "1s" })),
            "cache.ttl.700: not a status, expected a status from 100 to 599, a class such as 5xx \
             or default"
                .to_owned(),
        ),
        (
            ttl(json!({ "403": "5s" })),
            "cache.ttl.403: \"5s\": expected 0s or no entry, since no response with that status is stored".to_owned(),
        ),
        (
            ttl(json!({ "511": "5s" })),
            "cache.ttl.511: \"5s\": expected 0s or no entry, since no response with that status is stored".to_owned(),
        ),
        (
            ttl(json!([])),
            format!("cache.ttl: a list: {time}, or a table of both by status"),
        ),
        (
            ttl(json!("orign")),
            format!("cache.ttl: \"orign\": {time}, or a table of both by status"),
        ),
        (
            ttl(json!({ "429": "origin" })),
            "cache.ttl.429: \"origin\": expected 0s or no entry, since no response with that status is stored".to_owned(),
        ),
        (
            http_document(json!({ "cache": { "tll": {} } })),
            "cache.tll: unknown field, expected ttl, min_ttl, max_ttl, honor_cache_control, \
             targeted_fields, heuristic_percent, heuristic_max, stale_while_revalidate, stale_if_error, \
             stale_if_missing, stale_if_error_timeout, retry_interval, set_cookie or hit_for_miss"
                .to_owned(),
        ),
        (
            http_document(json!({ "coalesce": { "max_wait": null } })),
            format!("coalesce.max_wait: null: {duration}"),
        ),
        (
            http_document(json!({ "coalesce": { "lease": "99ms" } })),
            "coalesce.lease: \"99ms\": expected at least 100ms".to_owned(),
        ),
        (
            http_document(json!({ "coalesce": { "enabled": "yes" } })),
            "coalesce.enabled: \"yes\": expected true or false".to_owned(),
        ),
        (
            http_document(json!({ "limits": { "hints": 0 } })),
            "limits.hints: 0: expected a whole number from 1 to 10000000".to_owned(),
        ),
        (
            http_document(json!({ "store": { "version": "v2" } })),
            "store.version: unknown field, expected max_object_bytes or slices".to_owned(),
        ),
        (
            http_document(json!({ "key": { "query": { "remove": ["a", "b\n*c"] } } })),
            "key.query.remove[1]: \"b\\n*c\": expected the name of a parameter, or with a trailing \
             * the beginning of names"
                .to_owned(),
        ),
        (json!({}), "origin: required, but missing".to_owned()),
        (json!({ "origin": {} }), "origin.kind: required, but missing".to_owned()),
        (json!([]), "policy: a list: expected an object".to_owned()),
        (
            json!({ "origin": { "kind": "ftp" } }),
            "origin.kind: \"ftp\": expected bucket or http".to_owned(),
        ),
    ];
    for (document, expected) in rows {
        assert_eq!(refusal(&document), expected);
    }
}

#[test]
fn impossible_values_are_refused() {
    let key = |key| http_document(json!({ "key": key }));
    let query = |query| http_document(json!({ "key": { "query": query } }));
    let rows = [
        (
            "no wait",
            http_document(json!({ "coalesce": { "max_wait": "0s" } })),
            "coalesce.max_wait: \"0s\"",
        ),
        (
            "no lease",
            http_document(json!({ "coalesce": { "lease": "0s" } })),
            "coalesce.lease: \"0s\"",
        ),
        (
            "less than nothing",
            http_document(json!({ "limits": { "unread_fill_bytes": -1 } })),
            "limits.unread_fill_bytes: -1: expected a number of bytes from 0",
        ),
        (
            "no hit-for-miss",
            http_document(json!({ "cache": { "hit_for_miss": "0s" } })),
            "cache.hit_for_miss: \"0s\"",
        ),
        (
            "no waiters",
            http_document(json!({ "limits": { "waiters_per_key": 0 } })),
            "limits.waiters_per_key: 0",
        ),
        (
            "no keys",
            http_document(json!({ "limits": { "keys_in_flight": 0 } })),
            "limits.keys_in_flight: 0",
        ),
        (
            "less than none",
            http_document(json!({ "limits": { "hints": -1 } })),
            "limits.hints: -1",
        ),
        (
            "half of one",
            http_document(json!({ "limits": { "hints": 1.5 } })),
            "limits.hints: 1.5",
        ),
        (
            "too many",
            http_document(json!({ "limits": { "hints": 1e300 } })),
            "limits.hints: 1e",
        ),
        (
            "no objects",
            http_document(json!({ "store": { "max_object_bytes": 0 } })),
            "store.max_object_bytes: 0",
        ),
        ("no key", key(json!({ "max_bytes": 0 })), "key.max_bytes: 0"),
        (
            "too long a path",
            key(json!({ "max_bytes": 65_537 })),
            "key.max_bytes: 65537",
        ),
        (
            "too long a key",
            bucket_document(json!({ "key": { "max_bytes": 1_025 } })),
            "key.max_bytes: 1025: expected at most 1024",
        ),
        (
            "a host that counts, but not in the key",
            key(json!({ "host": false })),
            "key.host: false: expected true",
        ),
        (
            "an index of no folder",
            key(json!({ "index_document": "i.html" })),
            "key.index_document: \"i.html\"",
        ),
        (
            "drop and remove",
            query(json!({ "mode": "drop", "remove": ["a"] })),
            "key.query.remove: ",
        ),
        (
            "keep and allow",
            query(json!({ "mode": "keep", "allow": ["a"] })),
            "key.query.allow: ",
        ),
        (
            "sort and allow",
            query(json!({ "mode": "sort", "allow": ["a"] })),
            "key.query.allow: ",
        ),
        (
            "keep by default, and allow",
            query(json!({ "allow": ["a"] })),
            "key.query.allow: ",
        ),
        (
            "drop by default, and remove",
            bucket_document(json!({ "key": { "query": { "remove": ["a"] } } })),
            "key.query.remove: ",
        ),
        (
            "all of a bucket's parameters",
            bucket_document(json!({ "key": { "query": { "mode": "keep" } } })),
            "key.query.mode: expected drop",
        ),
        (
            "no parameter",
            query(json!({ "mode": "drop", "allow": [""] })),
            "key.query.allow[0]: \"\"",
        ),
        (
            "a pattern where names belong",
            query(json!({ "mode": "drop", "allow": ["a*"] })),
            "key.query.allow[0]: \"a*\"",
        ),
        (
            "all parameters",
            query(json!({ "remove": ["*"] })),
            "key.query.remove[0]: \"*\"",
        ),
        (
            "class 6",
            http_document(json!({ "cache": { "ttl": { "6xx": "1s" } } })),
            "cache.ttl.6xx: ",
        ),
        (
            "class 0",
            http_document(json!({ "cache": { "ttl": { "0xx": "1s" } } })),
            "cache.ttl.0xx: ",
        ),
        (
            "status 99",
            http_document(json!({ "cache": { "ttl": { "99": "1s" } } })),
            "cache.ttl.99: ",
        ),
        (
            "status with a sign",
            http_document(json!({ "cache": { "ttl": { "+20": "1s" } } })),
            "cache.ttl.+20: ",
        ),
        (
            "more than all of it",
            http_document(json!({ "cache": { "heuristic_percent": 101 } })),
            "cache.heuristic_percent: 101",
        ),
        (
            "a fraction of staleness",
            http_document(json!({ "cache": { "stale_if_error": "1ms" } })),
            "cache.stale_if_error: \"1ms\"",
        ),
        (
            "a fraction of a ttl",
            http_document(json!({ "cache": { "ttl": { "200": "1500ms" } } })),
            "cache.ttl.200: \"1500ms\"",
        ),
        (
            "all headers",
            http_document(json!({ "response": { "remove_headers": ["*"] } })),
            "response.remove_headers[0]: \"*\"",
        ),
        (
            "a pseudo-header",
            http_document(json!({ "response": { "remove_headers": [":status"] } })),
            "response.remove_headers[0]: \":status\"",
        ),
        (
            "Vary on everything",
            http_document(json!({ "response": { "ignore_vary": ["*"] } })),
            "response.ignore_vary[0]: \"*\"",
        ),
        (
            "another kind's field",
            http_document(json!({ "origin": { "kind": "http", "bucket": "site" } })),
            "origin.bucket: unknown field, expected kind or authority",
        ),
        (
            "a URL for a host",
            http_document(json!({ "origin": { "kind": "http", "authority": "http://a" } })),
            "origin.authority: \"http://a\"",
        ),
        (
            "no host",
            bucket_at(json!({ "authority": "" })),
            "origin.authority: \"\"",
        ),
        (
            "no host at all",
            json!({ "origin": { "kind": "bucket", "bucket": "site" } }),
            "origin.authority: required",
        ),
        (
            "no bucket",
            json!({ "origin": { "kind": "bucket", "authority": "a" } }),
            "origin.bucket: required",
        ),
        (
            "a wish",
            bucket_at(json!({ "addressing": "magic" })),
            "origin.addressing: \"magic\": expected path or virtual_host",
        ),
        (
            "a cookie rule of one's own",
            http_document(json!({ "request": { "cookies": "eat" } })),
            "request.cookies: \"eat\": expected pass, strip or ignore",
        ),
    ];
    for (name, document, beginning) in rows {
        let refusal = refusal(&document);
        assert!(refusal.starts_with(beginning), "{name}: {refusal}");
    }
}

#[test]
fn a_bucket_is_named_as_s3_wants_it() {
    for name in ["abc", "my.site-1", "0-0", &"a".repeat(63)] {
        let bucket = bucket_origin(&bucket_at(json!({ "bucket": name })));
        assert_eq!(bucket.path_prefix, format!("/{name}"));
    }
    for name in [
        "",
        "ab",
        "Site",
        "si_te",
        "-site",
        "site-",
        ".site",
        "site.",
        "a..b",
        "192.168.5.4",
        "a/b",
        "../x",
        "sité",
        &"a".repeat(64),
    ] {
        let refusal = refusal(&bucket_at(json!({ "bucket": name })));
        assert!(refusal.starts_with("origin.bucket: "), "{name}: {refusal}");
    }
}

#[test]
fn no_path_can_leave_or_respell_a_prefix() {
    let too_long = "a".repeat(1_023);
    for prefix in [
        "/", "/a", "a//", "a//b", ".", "..", "a/..", "a/../b", "./a", "a\u{0}", "a\nb", &too_long,
    ] {
        let refusal = refusal(&bucket_at(json!({ "prefix": prefix })));
        assert!(
            refusal.starts_with("origin.prefix: "),
            "{prefix:?}: {refusal}"
        );
    }
    let longest = "a".repeat(1_022);
    let bucket = bucket_origin(&bucket_at(json!({ "prefix": longest })));
    assert_eq!(bucket.prefix_bytes, 1_023);
}

#[test]
fn only_what_is_the_clients_to_say_goes_on() {
    for name in [
        "",
        ":path",
        "a b",
        "x*",
        "Host",
        "Authorization",
        "content-length",
        "connection",
        "keep-alive",
        "TE",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "proxy-authorization",
        "range",
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "If-Range",
        "x-amz-date",
        "X-Amz-Meta-A",
        "x-envoy-original-path",
        "x-sluice-link",
    ] {
        let forward = json!({ "request": { "forward_headers": ["origin", name] } });
        for document in [
            bucket_document(forward.clone()),
            http_document(forward.clone()),
        ] {
            let refusal = refusal(&document);
            let beginning = "request.forward_headers[1]: ";
            assert!(refusal.starts_with(beginning), "{name}: {refusal}");
        }
    }
}

#[test]
fn a_key_has_no_header_that_decides_otherwise_or_goes_nowhere() {
    for name in [
        "Accept-Encoding",
        "authorization",
        "connection",
        "Cookie",
        "host",
        "range",
        "if-none-match",
        "x-amz-date",
        "x-sluice-link",
    ] {
        let headers = json!({ "key": { "headers": ["x-plan", name] } });
        for document in [
            bucket_document(headers.clone()),
            http_document(headers.clone()),
        ] {
            let refusal = refusal(&document);
            let beginning = "key.headers[1]: ";
            assert!(refusal.starts_with(beginning), "{name}: {refusal}");
        }
    }
    let cors = json!({ "key": { "headers": ["origin"] }, "website": { "cors": { "allowed_origins": ["*"] } } });
    let refusal = refusal(&bucket_document(cors));
    assert!(refusal.starts_with("key.headers[0]: "), "{refusal}");
}

#[test]
fn a_credential_is_in_no_key_and_not_let_through() {
    for (field, lists) in [
        (
            "key.headers[0]: ",
            json!({ "key": { "headers": ["x-api-key"] } }),
        ),
        (
            "request.forward_headers[0]: ",
            json!({ "request": { "forward_headers": ["x-auth-me"] } }),
        ),
    ] {
        let refusal = refusal(&http_document(lists.clone()));
        assert!(refusal.starts_with(field), "{refusal}");
        assert!(refusal.contains("request.credential_headers"), "{refusal}");
        let _ = parse(&bucket_document(lists));
    }
    let _ = parse(&http_document(json!({
        "key": { "headers": ["x-api-key"] },
        "request": { "credential_headers": [] },
    })));
}

#[test]
fn what_is_no_json_is_refused() {
    for text in ["", "origin: {kind: http}", "{", "{}{}", "\u{feff}{}", "\0"] {
        let error = Policy::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error.path(), "", "{text:?}");
    }
    assert!(Policy::parse(b"\xff").is_err());
    assert!(Policy::parse("[".repeat(100_000).as_bytes()).is_err());
}

/// Any JSON, with words of a policy in it.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "\\PC{0,8}",
        proptest::sample::select(vec![
            "origin",
            "kind",
            "bucket",
            "http",
            "prefix",
            "authority",
            "key",
            "query",
            "mode",
            "allow",
            "cache",
            "ttl",
            "200",
            "5xx",
            "default",
            "1h",
            "0s",
            "limits",
            "hints",
            "*",
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(word.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in any::<Vec<u8>>()) {
        let _ = Policy::parse(&bytes);
    }

    #[test]
    fn no_document_panics(section in "(store|hot|key|request|response|site|cache|coalesce|limits)",
                          value in any_json(), origin in any_json()) {
        let _ = Policy::parse(http_document(json!({ section.clone(): value.clone() })).to_string().as_bytes());
        let _ = Policy::parse(bucket_document(json!({ section: value })).to_string().as_bytes());
        let _ = Policy::parse(json!({ "origin": origin }).to_string().as_bytes());
    }

    #[test]
    fn a_refusal_is_one_line(text in "\\PC{0,99}|(?s).{0,99}") {
        let value = bucket_at(json!({ "bucket": text }));
        let field = bucket_document(json!({ text.clone(): {} }));
        let list = bucket_document(json!({ "request": { "forward_headers": [text] } }));
        for document in [value, field, list] {
            if let Err(error) = Policy::parse(document.to_string().as_bytes()) {
                let error = error.to_string();
                prop_assert!(!error.contains(char::is_control), "{error:?}");
                prop_assert!(error.chars().count() < 400, "{error}");
            }
        }
    }
}

#[test]
fn a_bucket_compresses_by_default_and_an_http_origin_when_asked() {
    let bucket = parse(&bucket_document(json!({}))).compression;
    assert!(bucket.enabled && bucket.applies("/a.css") && !bucket.applies("/a.jpg"));
    assert_eq!(bucket.codings, [Coding::Brotli, Coding::Zstd, Coding::Gzip]);
    assert_eq!(bucket.min_bytes, 1_024);
    assert!(!parse(&http_document(json!({}))).compression.enabled);
    let section = json!({
        "enabled": true, "codings": ["gzip"], "min_bytes": 0,
        "content_types": ["Text/HTML"], "paths": ["/pages/*"],
    });
    let http = parse(&http_document(json!({ "compression": section }))).compression;
    assert!(http.applies("/pages/x.jpg") && !http.applies("/a.css"));
    assert_eq!(http.content_types, ["text/html"]);
}

#[test]
fn impossible_compressions_and_variants_are_refused() {
    for (section, expected) in [
        (
            json!({ "compression": { "codings": ["br", "gzip", "br"] } }),
            "compression.codings[2]",
        ),
        (
            json!({ "compression": { "codings": ["deflate"] } }),
            "compression.codings[0]",
        ),
        (
            json!({ "compression": { "content_types": ["text"] } }),
            "compression.content_types[0]",
        ),
        (
            json!({ "compression": { "paths": ["x"] } }),
            "compression.paths[0]",
        ),
        (
            json!({ "compression": { "paths": ["/a?b"] } }),
            "compression.paths[0]",
        ),
        (json!({ "vary": { "max_headers": 17 } }), "vary.max_headers"),
        (json!({ "vary": { "forbid": ["*"] } }), "vary.forbid[0]"),
        (json!({ "vary": { "accept": ["image"] } }), "vary.accept[0]"),
    ] {
        let refused = refusal(&bucket_document(section));
        assert!(refused.starts_with(expected), "{refused}");
    }
}
