// SPDX-License-Identifier: Apache-2.0
//! The policy's bounds of the time for which a response is fresh.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_core::freshness::{
    Freshened, Lifetime, ResponseFacts, Storage, UncacheableReason, Verdict, judge,
};
use sluice_core::policy::Policy;

use super::decisions::{NOW, PLAIN};
use crate::support::documents::{http_document, parse, refusal};

fn policy(cache: Value) -> Policy {
    parse(&http_document(json!({ "cache": cache })))
}

fn verdict(policy: &Policy, facts: &ResponseFacts<'_>) -> Verdict {
    judge(policy, policy.rule("/page"), facts, NOW)
}

fn stored(policy: &Policy, facts: &ResponseFacts<'_>) -> Storage {
    match verdict(policy, facts) {
        Verdict::Store(storage) => storage,
        other => panic!("{other:?}"),
    }
}

fn control(text: &str) -> ResponseFacts<'_> {
    ResponseFacts {
        cache_control: Some(text.into()),
        ..PLAIN
    }
}

#[test]
fn the_floor_lengthens_what_the_origin_says_and_keeps_what_is_longer() {
    let policy = policy(json!({ "min_ttl": "1m" }));
    for (said, ttl) in [
        ("max-age=0", 60),
        ("max-age=0, must-revalidate", 60),
        ("max-age=59", 60),
        ("max-age=61", 61),
        ("s-maxage=5, max-age=900", 60),
    ] {
        assert_eq!(stored(&policy, &control(said)).lifetime.ttl, ttl, "{said}");
    }
    let expired = ResponseFacts {
        expires: Some("0".into()),
        ..PLAIN
    };
    assert_eq!(stored(&policy, &expired).lifetime.ttl, 60);
}

#[test]
fn both_bounds_count_from_the_arrival_of_a_response_of_some_age() {
    let policy = policy(json!({ "min_ttl": "1m", "max_ttl": "10m" }));
    for (said, ttl) in [
        ("max-age=0", 360),
        ("max-age=320", 360),
        ("max-age=86400", 900),
    ] {
        let facts = ResponseFacts {
            age: Some("300".into()),
            ..control(said)
        };
        let storage = stored(&policy, &facts);
        assert_eq!((storage.age, storage.lifetime.ttl), (300, ttl), "{said}");
    }
}

#[test]
fn the_ceiling_bounds_every_time_and_both_stale_windows() {
    let bounded = Lifetime {
        ttl: 60,
        stale_while_revalidate: 60,
        stale_if_error: 60,
    };
    let times = json!({ "max_ttl": "1m", "ttl": "1h", "stale_while_revalidate": "1h", "stale_if_error": "1d" });
    let by_policy = policy(times);
    assert_eq!(stored(&by_policy, &PLAIN).lifetime, bounded);
    let by_origin = policy(json!({ "max_ttl": "1m" }));
    let year = control("max-age=31536000, stale-while-revalidate=900, stale-if-error=900");
    assert_eq!(stored(&by_origin, &year).lifetime, bounded);
    let unchanged = ResponseFacts {
        last_modified: Some("Fri, 01 Jan 2010 00:00:00 GMT".into()),
        ..PLAIN
    };
    assert_eq!(stored(&by_origin, &unchanged).lifetime.ttl, 60);
}

/// A stored response keeps its time at a 304 without directives, but a policy that was reloaded may bound it now.
#[test]
fn a_304_gives_a_stored_response_no_time_beyond_the_bounds() {
    let freshened = |ttl| ResponseFacts {
        freshens: Some(Freshened {
            lifetime: Lifetime {
                ttl,
                ..Lifetime::default()
            },
            is_said: true,
        }),
        ..PLAIN
    };
    let policy = policy(json!({ "min_ttl": "10s", "max_ttl": "1m" }));
    for (before, after) in [(5, 10), (30, 30), (900, 60)] {
        let storage = stored(&policy, &freshened(before));
        assert_eq!(storage.lifetime.ttl, after);
    }
}

#[test]
fn the_floor_stores_nothing_that_would_not_be_stored_without_it() {
    let policy = policy(json!({ "min_ttl": "1m" }));
    let stale = control("max-age=0");
    let named = |value: &'static str| ResponseFacts {
        vary: Some(value.into()),
        ..stale
    };
    for (name, facts, reason) in [
        (
            "no-store",
            control("no-store, max-age=0"),
            UncacheableReason::NoStore,
        ),
        (
            "private",
            control("private, max-age=0"),
            UncacheableReason::Private,
        ),
        ("Vary: *", named("*"), UncacheableReason::Vary),
        (
            "Set-Cookie",
            ResponseFacts {
                has_set_cookie: true,
                ..stale
            },
            UncacheableReason::SetCookie,
        ),
        (
            "Authorization",
            ResponseFacts {
                authenticated: true,
                ..control("max-age=0, must-revalidate")
            },
            UncacheableReason::Authorization,
        ),
        (
            "no-cache without a validator",
            ResponseFacts {
                has_validator: false,
                ..control("no-cache")
            },
            UncacheableReason::NoCache,
        ),
        (
            "an error",
            ResponseFacts {
                status: 404,
                ..stale
            },
            UncacheableReason::Stale,
        ),
        ("no lifetime", PLAIN, UncacheableReason::NoLifetime),
    ] {
        assert_eq!(verdict(&policy, &facts).reason(), Some(reason), "{name}");
    }
}

#[test]
fn the_floor_does_not_reach_a_response_without_its_cookie_and_one_that_is_validated() {
    let policy = policy(json!({ "min_ttl": "1m", "set_cookie": "strip" }));
    let cookie = ResponseFacts {
        has_set_cookie: true,
        ..control("max-age=5")
    };
    assert_eq!(stored(&policy, &cookie).lifetime.ttl, 5);
    assert_eq!(stored(&policy, &control("no-cache")).lifetime.ttl, 0);
}

#[test]
fn a_lengthened_response_is_for_credentials_only_if_it_is_public() {
    let policy = policy(json!({ "min_ttl": "1m" }));
    for (said, allowed) in [
        ("max-age=0, must-revalidate", false),
        ("s-maxage=5", false),
        ("s-maxage=60", true),
        ("max-age=60, must-revalidate", true),
        ("public, max-age=0", true),
    ] {
        let storage = stored(&policy, &control(said));
        assert_eq!(storage.allows_authenticated, allowed, "{said}");
    }
}

#[test]
fn a_rule_has_its_own_bounds_and_else_those_of_the_cache() {
    let document = json!({
        "cache": { "min_ttl": "10s", "max_ttl": "1h" },
        "rules": [{ "match": ["/feed/*"], "max_ttl": "30s" }, { "match": ["/static/*"], "min_ttl": "1m" }],
    });
    let policy = parse(&http_document(document));
    let ttl = |path: &str, said: &str| match judge(&policy, policy.rule(path), &control(said), NOW)
    {
        Verdict::Store(storage) => storage.lifetime.ttl,
        other => panic!("{other:?}"),
    };
    for (path, least, greatest) in [
        ("/feed/a", 10, 30),
        ("/static/a", 60, 3_600),
        ("/", 10, 3_600),
    ] {
        assert_eq!(ttl(path, "max-age=1"), least, "{path}");
        assert_eq!(ttl(path, "max-age=99999"), greatest, "{path}");
    }
}

#[test]
fn bounds_without_a_time_between_them_are_refused() {
    for (sections, expected) in [
        (
            json!({ "cache": { "min_ttl": "2m", "max_ttl": "90s" } }),
            "cache.max_ttl: 90s: expected at least min_ttl, which is 2m",
        ),
        (
            json!({ "cache": { "max_ttl": "0s" } }),
            "cache.max_ttl: 0s: expected at least 1s; with ttl: 0s nothing is stored",
        ),
        (
            json!({ "cache": { "min_ttl": "2m" }, "rules": [{ "match": ["/a"], "max_ttl": "1m" }] }),
            "rules[0].max_ttl: 1m: expected at least min_ttl, which is 2m",
        ),
        (
            json!({ "cache": { "min_ttl": "500ms" } }),
            "cache.min_ttl: \"500ms\": expected whole seconds, such as 1s, or 0s for none",
        ),
    ] {
        assert_eq!(refusal(&http_document(sections)), expected);
    }
}

proptest! {
    #[test]
    fn a_stored_response_is_fresh_for_a_time_within_the_bounds(
        said in 0_u64..100_000,
        age in 0_u64..100_000,
        (min, more) in (1_u64..5_000, 0_u64..5_000),
    ) {
        let max = min + more;
        let policy = policy(json!({ "min_ttl": format!("{min}s"), "max_ttl": format!("{max}s") }));
        let (said, age) = (format!("max-age={said}"), age.to_string());
        let facts = ResponseFacts { age: Some(age.as_str().into()), ..control(&said) };
        let storage = stored(&policy, &facts);
        let left = storage.lifetime.ttl - storage.age;
        prop_assert!((min..=max).contains(&left), "{left} of {min} to {max}");
    }
}
