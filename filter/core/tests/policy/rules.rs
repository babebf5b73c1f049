// SPDX-License-Identifier: Apache-2.0
//! Rules for paths: the one that applies, and the fields that it takes from the rest of the policy.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sluice_core::policy::Statuses::{Class, Exact, Others};
use sluice_core::policy::{Policy, Ttl, TtlTable};

use crate::support::documents::{bucket_at, http_document, parse};

fn http(rules: &Value) -> Policy {
    parse(&http_document(json!({ "rules": rules })))
}

fn bucket(rules: &Value) -> Policy {
    let mut document = bucket_at(json!({ "prefix": "pub" }));
    document["rules"] = rules.clone();
    parse(&document)
}

/// Rules whose lifetime for 200 identifies the rule: 1 s for the first, 2 s for the second, …
fn numbered(patterns: &[&[&str]]) -> Value {
    let rule = |(number, patterns): (usize, &&[&str])| json!({ "match": patterns, "ttl": { "default": format!("{}s", number + 1) } });
    patterns.iter().enumerate().map(rule).collect()
}

/// The number of the rule for a path, 0 for none.
fn number(policy: &Policy, path: &str) -> u64 {
    match policy.rule(path).ttl.of(599) {
        Ttl::Fixed(number) if policy.rule(path) != &policy.cache.default => number.as_secs(),
        _ => 0,
    }
}

#[test]
fn the_first_rule_whose_pattern_fits_counts() {
    let policy = http(&numbered(&[
        &["/assets/*.map", "/private/*"],
        &["/assets/*"],
        &["*.js", "*.css"],
        &["/"],
    ]));
    for (path, expected) in [
        ("/assets/app.js.map", 1),
        ("/private/", 1),
        ("/assets/app.js", 2),
        ("/lib/a.css", 3),
        ("/", 4),
        ("/index.html", 0),
        ("/assets", 0),
    ] {
        assert_eq!(number(&policy, path), expected, "{path}");
    }
}

#[test]
fn query_and_qualifiers_are_no_part_of_the_path() {
    let policy = http(&numbered(&[&["*.js"], &["/a"]]));
    for (path, expected) in [
        ("/x.js?v=1", 1),
        ("/x.js#g=2;vary=a", 1),
        ("/x.js?y#g=2", 1),
        ("/a?b.js", 2),
        ("/b?x.js", 0),
    ] {
        assert_eq!(number(&policy, path), expected, "{path}");
    }
}

#[test]
fn a_buckets_name_and_prefix_are_no_part_of_the_path() {
    let policy = bucket(&numbered(&[&["/site/*"], &["/a%20b+c/é*"], &["/%61%20x"]]));
    for (path, expected) in [
        ("/site/pub/site/a", 1),
        ("/site/pub/a%20b%2Bc/%C3%A9t%C3%A9", 2),
        ("/site/pub/a%20x", 3),
        ("/site/pub/a", 0),
    ] {
        assert_eq!(number(&policy, path), expected, "{path}");
    }
}

#[test]
fn patterns_may_be_spelled_as_people_or_as_urls_do() {
    // In the form of an HTTP origin's paths: only unreserved characters are decoded.
    let policy = http(&numbered(&[
        &["/%7Euser/*"],
        &["/é"],
        &["/a%2fb"],
        &["/a+b"],
    ]));
    for (path, expected) in [
        ("/~user/x", 1),
        ("/%C3%A9", 2),
        ("/a%2Fb", 3),
        ("/a+b", 4),
        ("/a/b", 0),
    ] {
        assert_eq!(number(&policy, path), expected, "{path}");
    }
}

#[test]
fn what_a_rule_does_not_say_is_as_in_the_policy() {
    let policy = parse(&json!({
        "origin": { "kind": "http" },
        "cache": {
            "ttl": { "200": "1h", "404": "1m", "410": "2m", "5xx": "3s", "default": "4s" },
            "honor_cache_control": false,
            "stale_while_revalidate": "5s",
            "stale_if_error": "6s",
        },
        "rules": [
            { "match": ["/none"] },
            { "match": ["/duration"], "ttl": "1d" },
            { "match": ["/table"], "ttl": { "404": "7s", "4xx": "8s", "5xx": "9s" } },
            { "match": ["/whole"], "ttl": { "default": "0s", "200": "1s" } },
            { "match": ["/origin"], "ttl": "origin" },
            {
                "match": ["/rest"],
                "honor_cache_control": true,
                "stale_while_revalidate": "7s",
                "stale_if_error": "0s",
                "client_cache_control": "public, max-age=31536000, immutable",
                "headers": { "X-Frame-Options": "DENY" },
            },
        ],
    }));
    let seconds = Duration::from_secs;
    let fixed = |time| Ttl::Fixed(seconds(time));
    let base = &policy.cache.default;
    assert_eq!(policy.rule("/none"), base);

    let day = fixed(86_400);
    let lasting = [200, 203, 301, 308].map(|status| (Exact(status), day));
    let others = [(Exact(404), fixed(60)), (Exact(410), fixed(120))];
    let of_base = base.ttl.0.iter().copied();
    let of_base = of_base.filter(|(statuses, _)| !matches!(statuses, Exact(_)));
    let expected = lasting.into_iter().chain(others).chain(of_base).collect();
    assert_eq!(policy.rule("/duration").ttl, TtlTable(expected));

    let expected = vec![
        (Exact(200), fixed(3_600)),
        (Exact(404), fixed(7)),
        (Class(4), fixed(8)),
        (Class(5), fixed(9)),
        (Others, fixed(4)),
    ];
    assert_eq!(policy.rule("/table").ttl, TtlTable(expected));

    let expected = vec![(Exact(200), fixed(1)), (Others, fixed(0))];
    assert_eq!(policy.rule("/whole").ttl, TtlTable(expected));

    let expected = vec![(Others, Ttl::Origin)];
    assert_eq!(policy.rule("/origin").ttl, TtlTable(expected));

    let rule = policy.rule("/rest");
    assert_eq!(rule.ttl, base.ttl);
    assert!(rule.honor_cache_control);
    assert_eq!(rule.stale_while_revalidate, seconds(7));
    assert_eq!(rule.stale_if_error, seconds(0));
    let told = "public, max-age=31536000, immutable";
    assert_eq!(rule.client_cache_control(200), Some(told));
    let headers = [("x-frame-options".to_owned(), "DENY".to_owned())];
    assert_eq!(rule.headers, headers);
}

#[test]
fn only_what_lasts_is_told_to_last() {
    let policy = http(&json!([{ "match": ["*"], "client_cache_control": "max-age=9" }]));
    for status in [200, 203, 204, 206, 301, 304, 308] {
        let told = policy.rule("/a").client_cache_control(status);
        assert_eq!(told, Some("max-age=9"), "{status}");
    }
    for status in [302, 303, 307, 400, 403, 404, 410, 416, 429, 500, 503] {
        let told = policy.rule("/a").client_cache_control(status);
        assert_eq!(told, None, "{status}");
    }
}

#[test]
fn a_wrong_rule_is_refused_with_its_path() {
    let rule = |rule: Value| json!([{ "match": ["/ok"] }, rule]);
    let with = |field: &str, value: Value| rule(json!({ "match": ["/a"], field: value }));
    for (rules, beginning) in [
        (rule(json!({})), "rules[1].match: required"),
        (
            rule(json!({ "match": [] })),
            "rules[1].match: expected at least one",
        ),
        (
            rule(json!({ "match": "/a" })),
            "rules[1].match: \"/a\": expected a list",
        ),
        (
            rule(json!({ "match": ["a"] })),
            "rules[1].match[0]: \"a\": expected a path,",
        ),
        (
            rule(json!({ "match": ["/a", "/a?b"] })),
            "rules[1].match[1]: \"/a?b\"",
        ),
        (
            rule(json!({ "match": ["/a#b"] })),
            "rules[1].match[0]: \"/a#b\"",
        ),
        (
            rule(json!({ "match": ["/%zz"] })),
            "rules[1].match[0]: \"/%zz\": expected a path without",
        ),
        (
            rule(json!({ "match": ["/%00"] })),
            "rules[1].match[0]: \"/%00\"",
        ),
        (
            with("matches", json!("/a")),
            "rules[1].matches: unknown field, expected match, ttl",
        ),
        (with("ttl", json!("soon")), "rules[1].ttl: \"soon\""),
        (with("ttl", json!("250ms")), "rules[1].ttl: \"250ms\""),
        (with("ttl", json!({ "6xx": "1s" })), "rules[1].ttl.6xx"),
        (
            with("stale_if_error", json!(1)),
            "rules[1].stale_if_error: 1",
        ),
        (
            with("client_cache_control", json!("")),
            "rules[1].client_cache_control: \"\"",
        ),
        (
            with("client_cache_control", json!("a b")),
            "rules[1].client_cache_control: \"a b\"",
        ),
        (
            with("client_cache_control", json!("a,,b")),
            "rules[1].client_cache_control",
        ),
        (
            with("client_cache_control", json!("a\r\nb: c")),
            "rules[1].client_cache_control",
        ),
        (
            with("headers", json!([])),
            "rules[1].headers: a list: expected an object",
        ),
        (
            with("headers", json!({ "a b": "c" })),
            "rules[1].headers.a b: expected a header",
        ),
        (
            with("headers", json!({ "Vary": "*" })),
            "rules[1].headers.Vary: expected a header",
        ),
        (
            with("headers", json!({ ":status": "1" })),
            "rules[1].headers.:status",
        ),
        (
            with("headers", json!({ "X-Sluice-Entry": "1" })),
            "rules[1].headers.X-Sluice-Entry",
        ),
        (
            with("headers", json!({ "a": "b\nc" })),
            "rules[1].headers.a: \"b\\nc\": expected visible",
        ),
        (with("headers", json!({ "a": " b" })), "rules[1].headers.a"),
        (with("headers", json!({ "a": "é" })), "rules[1].headers.a"),
        (with("headers", json!({ "a": 1 })), "rules[1].headers.a: 1"),
    ] {
        let document = json!({ "origin": { "kind": "http" }, "rules": rules }).to_string();
        let error = Policy::parse(document.as_bytes()).expect_err("it should be refused");
        let error = error.to_string();
        assert!(
            error.starts_with(beginning),
            "{error}\nexpected {beginning}"
        );
    }
}

#[test]
fn a_thousand_rules_cost_hardly_more_than_ten() {
    let time = |count: usize, pattern: &dyn Fn(usize) -> String| {
        let patterns: Vec<_> = (0..count).map(pattern).collect();
        let rules: Value = patterns
            .iter()
            .map(|pattern| json!({ "match": [pattern], "ttl": "1d" }))
            .collect();
        let policy = http(&rules);
        let start = Instant::now();
        for _ in 0..10_000 {
            std::hint::black_box(policy.rule("/assets/fonts/site-7/regular.3f9c2d.woff2"));
        }
        start.elapsed()
    };
    let shapes: [&dyn Fn(usize) -> String; 3] = [
        &|number| format!("/assets/fonts/site-{number}x/*"),
        &|number| format!("*-{number}.woff2"),
        &|number| format!("/assets/fonts/*.{number}.woff2"),
    ];
    for shape in shapes {
        let (ten, thousand) = (time(10, shape), time(1_000, shape));
        println!("{}: {ten:?} for ten, {thousand:?} for a thousand", shape(0));
        // Trying all of them would take a hundred times as long.
        assert!(thousand < ten * 20, "{ten:?}, {thousand:?}");
    }
}
