// SPDX-License-Identifier: Apache-2.0
//! Decisions on whether a response is stored, and for how long.

use std::time::Duration;

use proptest::prelude::*;
use sluice_core::freshness::{
    self, Freshened, Lifetime, ResponseFacts, Storage, UncacheableReason, Verdict,
};
use sluice_core::http::caching::cache_control::CacheControl;
use sluice_core::http::syntax::date;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::policy::{Cookies, Policy, SetCookie, Statuses, Ttl, TtlTable};

use crate::support::{bucket, http};

pub const NOW: i64 = 1_800_000_000;

/// A 200 whose only field about caching is a validator.
pub const PLAIN: ResponseFacts<'_> = ResponseFacts {
    status: 200,
    cache_control: None,
    targeted: &[],
    expires: None,
    date: None,
    last_modified: None,
    age: None,
    vary: None,
    has_unreadable_key: false,
    is_stream: false,
    has_set_cookie: false,
    answers_cookie: false,
    has_validator: true,
    content_length: Some(10),
    freshens: None,
    authenticated: false,
};

/// The verdict for a path without a rule.
fn judge(policy: &Policy, facts: &ResponseFacts<'_>, now: i64) -> Verdict {
    freshness::judge(policy, &policy.cache.default, facts, now)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn fixed(time: u64) -> Ttl {
    Ttl::Fixed(seconds(time))
}

/// An hour for 200, 10 s for 503, a minute for other 2xx, nothing for 418, 1 s for the rest.
fn policy() -> Policy {
    let mut policy = bucket();
    policy.cache.default.ttl = TtlTable(vec![
        (Statuses::Exact(200), fixed(3_600)),
        (Statuses::Exact(418), fixed(0)),
        (Statuses::Exact(500), fixed(0)),
        (Statuses::Exact(503), fixed(10)),
        (Statuses::Class(2), fixed(60)),
        (Statuses::Others, fixed(1)),
    ]);
    policy.cache.max_object_bytes = 1_000;
    policy.response.ignore_vary = vec!["origin".to_owned(), "accept-encoding".to_owned()];
    policy
}

/// A policy under which the origin's `Cache-Control` does not count.
fn dishonoring() -> Policy {
    let mut policy = policy();
    policy.cache.default.honor_cache_control = false;
    policy
}

fn stored(verdict: Verdict) -> Option<Storage> {
    match verdict {
        Verdict::Store(storage) => Some(storage),
        Verdict::NoRoom(_)
        | Verdict::ShareOnce
        | Verdict::Passing(UncacheableReason::RequestError)
        | Verdict::Passing(UncacheableReason::Authorization)
        | Verdict::Uncacheable(_)
        | Verdict::Passing(_) => None,
    }
}

fn control(text: &str) -> ResponseFacts<'_> {
    ResponseFacts {
        cache_control: Some(text.into()),
        ..PLAIN
    }
}

fn status(status: u16) -> ResponseFacts<'static> {
    ResponseFacts { status, ..PLAIN }
}

#[test]
fn headers_alone_are_stored_for_a_moment_and_never_served_stale() {
    let said = "max-age=100, stale-while-revalidate=50, stale-if-error=50";
    let aged = ResponseFacts {
        age: Some("40".into()),
        ..control(said)
    };
    for (name, facts, ttl) in [
        ("longer than a moment", control(said), 5),
        ("a moment from now, however old", aged, 45),
        ("shorter", control("max-age=2"), 2),
        ("an error", status(404), 1),
    ] {
        let storage = stored(judge(&policy(), &facts, NOW)).unwrap();
        let headers = storage.for_headers();
        let lifetime = Lifetime {
            ttl,
            ..Lifetime::default()
        };
        assert_eq!(headers.lifetime, lifetime, "{name}");
        assert_eq!(headers.age, storage.age, "{name}");
        assert_eq!(headers.disguise, storage.disguise, "{name}");
    }
}

#[test]
fn headers_of_an_object_in_slices_keep_its_times_and_the_store_asks_when_they_are_stale() {
    let said = "max-age=100, stale-while-revalidate=50, stale-if-error=70";
    let storage = stored(judge(&policy(), &control(said), NOW)).unwrap();
    let index = storage.for_index();
    assert_eq!(index.lifetime, storage.lifetime);
    assert_eq!((storage.unasked(), index.unasked()), (150, 100));
    assert!(storage.may_ask && !index.may_ask);
}

/// Checks every row: a name, a response, and the seconds for which it is stored or the reason why it is not.
fn assert_rows(policy: &Policy, rows: &[(&str, ResponseFacts<'_>, Result<u64, Verdict>)]) {
    for (name, facts, expected) in rows {
        let verdict = judge(policy, facts, NOW);
        let actual = match verdict {
            Verdict::Store(storage) => Ok(storage.lifetime.ttl),
            other => Err(other),
        };
        assert_eq!(actual, *expected, "{name}");
    }
}

fn no(reason: UncacheableReason) -> Result<u64, Verdict> {
    Err(Verdict::Uncacheable(reason))
}

#[test]
fn the_table_decides_where_the_origin_is_silent() {
    assert_rows(
        &policy(),
        &[
            ("exact status", PLAIN, Ok(3_600)),
            ("class", status(204), Ok(60)),
            ("default", status(404), Ok(1)),
            ("a status of its own", status(503), Ok(10)),
            ("never", status(418), no(UncacheableReason::NoTtl)),
            (
                "never, an error of the origin's",
                status(500),
                Err(Verdict::Passing(UncacheableReason::ServerError)),
            ),
            (
                "no directive that matters",
                control("public, x=1"),
                Ok(3_600),
            ),
        ],
    );
}

#[test]
fn without_room_nothing_is_stored_and_errors_are_shared() {
    let storage = stored(judge(&policy(), &PLAIN, NOW)).unwrap();
    for (facts, verdict) in [
        (PLAIN, Verdict::NoRoom(storage)),
        (
            status(503),
            Verdict::Passing(UncacheableReason::ServerError),
        ),
        (
            status(500),
            Verdict::Passing(UncacheableReason::ServerError),
        ),
        (status(418), Verdict::Uncacheable(UncacheableReason::NoTtl)),
    ] {
        let judged = judge(&policy(), &facts, NOW);
        assert_eq!(judged.without_room(facts.status), verdict, "{facts:?}");
    }
}

/// Errors that the request itself may have caused.
const REQUEST_ERRORS: [u16; 23] = [
    400, 401, 403, 405, 406, 407, 408, 411, 412, 413, 414, 415, 416, 417, 421, 422, 425, 426, 428,
    429, 431, 501, 505,
];

#[test]
fn an_http_origins_silence_keeps_only_what_lasts() {
    let mut policy = http();
    policy.cache.default.ttl = TtlTable(vec![(Statuses::Others, fixed(1))]);
    let kept = |code| stored(judge(&policy, &status(code), NOW)).is_some();
    let lasting: Vec<u16> = (200..600).filter(|code| kept(*code)).collect();
    assert_eq!(lasting, [200, 203, 204, 300, 301, 308, 404, 410]);
    assert_rows(
        &policy,
        &[
            (
                "a redirect for the moment",
                status(302),
                Err(Verdict::Passing(UncacheableReason::NoLifetime)),
            ),
            (
                "an error",
                status(503),
                Err(Verdict::Passing(UncacheableReason::ServerError)),
            ),
            (
                "the origin says for how long",
                ResponseFacts {
                    status: 302,
                    ..control("max-age=60")
                },
                Ok(60),
            ),
            (
                "an error, the same",
                ResponseFacts {
                    status: 503,
                    ..control("max-age=60")
                },
                Ok(1),
            ),
        ],
    );
}

#[test]
fn a_policy_that_names_a_status_keeps_it_where_the_origin_is_silent() {
    let mut policy = http();
    policy.cache.default.ttl = TtlTable(vec![
        (Statuses::Exact(302), fixed(7)),
        (Statuses::Class(5), fixed(9)),
        (Statuses::Others, fixed(60)),
    ]);
    assert_rows(
        &policy,
        &[
            ("by its number", status(302), Ok(7)),
            ("by its class", status(503), Ok(9)),
            (
                "not at all",
                status(307),
                Err(Verdict::Passing(UncacheableReason::NoLifetime)),
            ),
            (
                "a request may have caused it",
                status(501),
                Err(Verdict::Passing(UncacheableReason::RequestError)),
            ),
        ],
    );
}

#[test]
fn an_error_that_a_request_may_have_caused_is_its_own_whatever_the_origin_says() {
    for code in 100..600 {
        let said = ResponseFacts {
            status: code,
            ..control("public, max-age=60")
        };
        let caused = REQUEST_ERRORS.contains(&code);
        for facts in [status(code), said] {
            let verdict = judge(&http(), &facts, NOW);
            assert_eq!(
                verdict == Verdict::Passing(UncacheableReason::RequestError),
                caused,
                "{code}"
            );
            assert_eq!(
                verdict.without_room(code) == Verdict::Passing(UncacheableReason::RequestError),
                caused,
                "{code}"
            );
        }
        let of_bucket = judge(&bucket(), &said, NOW);
        assert_ne!(
            of_bucket,
            Verdict::Passing(UncacheableReason::RequestError),
            "{code} of a bucket"
        );
    }
}

#[test]
fn what_no_cache_may_store_is_shared_with_those_who_wait() {
    // RFC 6585, 3 to 6.
    for code in [428, 429, 431, 511] {
        let said = ResponseFacts {
            status: code,
            ..control("public, max-age=60")
        };
        for facts in [status(code), said] {
            assert_eq!(
                judge(&bucket(), &facts, NOW),
                Verdict::Passing(UncacheableReason::ServerError)
            );
        }
    }
    let network = judge(&http(), &status(511), NOW);
    assert_eq!(network, Verdict::Passing(UncacheableReason::ServerError));
}

#[test]
fn of_an_http_origin_only_a_status_that_lasts_says_that_a_url_cannot_be_cached() {
    let said = |code, text| ResponseFacts {
        status: code,
        ..control(text)
    };
    for code in 200..500 {
        let lasts = [200, 203, 204, 300, 301, 308, 404, 410].contains(&code);
        let private = judge(&http(), &said(code, "private"), NOW);
        let reason = match code {
            _ if REQUEST_ERRORS.contains(&code) => continue,
            206 | 304 => UncacheableReason::Status,
            _ => UncacheableReason::Private,
        };
        let expected = if lasts {
            Verdict::Uncacheable(reason)
        } else {
            Verdict::Passing(reason)
        };
        assert_eq!(private, expected, "{code}");
    }
    let redirect = judge(&bucket(), &said(409, "private"), NOW);
    assert_eq!(redirect, Verdict::Uncacheable(UncacheableReason::Private));
}

#[test]
fn the_origin_decides_where_it_speaks() {
    // RFC 9111, 4.2.1.
    let dates = |expires: i64, date: Option<i64>| (date::format(expires), date.map(date::format));
    let (in_a_minute, its_now) = dates(NOW + 60, Some(NOW));
    // A clock that is one day late.
    let (late, late_now) = dates(NOW - 86_400 + 60, Some(NOW - 86_400));
    fn expires<'a>(expires: &'a str, date: Option<&'a str>) -> ResponseFacts<'a> {
        ResponseFacts {
            expires: Some(expires.into()),
            date: date.map(Into::into),
            ..PLAIN
        }
    }
    fn both<'a>(cache_control: &'a str, expires: &'a str) -> ResponseFacts<'a> {
        ResponseFacts {
            expires: Some(expires.into()),
            ..control(cache_control)
        }
    }
    let (now, minute) = (its_now.as_deref(), in_a_minute.as_str());
    assert_rows(
        &policy(),
        &[
            ("max-age", control("max-age=60"), Ok(60)),
            ("s-maxage first", control("max-age=60, s-maxage=5"), Ok(5)),
            ("max-age before Expires", both("max-age=5", minute), Ok(5)),
            ("s-maxage before Expires", both("s-maxage=5", minute), Ok(5)),
            ("Expires", expires(minute, now), Ok(60)),
            ("Expires without Date", expires(minute, None), Ok(60)),
            (
                "Expires, no such Date",
                expires(minute, Some("now")),
                Ok(60),
            ),
            (
                "Expires by its own clock",
                expires(&late, late_now.as_deref()),
                Ok(60),
            ),
            (
                "Expires in the past",
                expires(&late, now),
                no(UncacheableReason::Stale),
            ),
            (
                "Expires now",
                expires(minute, Some(minute)),
                no(UncacheableReason::Stale),
            ),
            (
                "Expires: 0",
                expires("0", now),
                no(UncacheableReason::Stale),
            ),
            (
                "two of them",
                expires("a, b", now),
                no(UncacheableReason::Stale),
            ),
            ("max-age before Expires: 0", both("max-age=5", "0"), Ok(5)),
            (
                "max-age=0",
                control("max-age=0"),
                no(UncacheableReason::Stale),
            ),
            (
                "no number",
                control("max-age=soon"),
                no(UncacheableReason::Stale),
            ),
            (
                "a status that is never stored",
                ResponseFacts {
                    status: 418,
                    ..control("max-age=7")
                },
                no(UncacheableReason::NoTtl),
            ),
            (
                "for ever",
                control("max-age=99999999999"),
                Ok(2_147_483_647),
            ),
        ],
    );
}

#[test]
fn a_policy_may_strip_what_keeps_a_response_from_the_store() {
    let mut policy = policy();
    policy.cache.set_cookie = SetCookie::Strip;
    let cookie = |cache_control| ResponseFacts {
        has_set_cookie: true,
        ..control(cache_control)
    };
    assert_rows(
        &policy,
        &[
            ("Set-Cookie", cookie("max-age=60"), Ok(60)),
            (
                "what is private for other reasons too",
                cookie("private"),
                no(UncacheableReason::Private),
            ),
        ],
    );
}

#[test]
fn a_policy_may_let_the_origin_say_that_cookies_make_no_difference() {
    let mut policy = policy();
    policy.cache.set_cookie = SetCookie::Store;
    let sets = |cache_control| ResponseFacts {
        has_set_cookie: true,
        ..control(cache_control)
    };
    let answers = |cache_control| ResponseFacts {
        answers_cookie: true,
        ..control(cache_control)
    };
    let set_cookie = no(UncacheableReason::SetCookie);
    let private = no(UncacheableReason::Private);
    assert_rows(
        &policy,
        &[
            ("public", sets("public, max-age=60"), Ok(60)),
            ("s-maxage", sets("s-maxage=60"), Ok(60)),
            ("max-age alone", sets("max-age=60"), set_cookie),
            ("public and private", sets("public, private"), private),
            ("to a cookie, public", answers("public, max-age=60"), Ok(60)),
            ("to a cookie, s-maxage", answers("s-maxage=60"), Ok(60)),
        ],
    );
}

#[test]
fn the_response_to_a_cookie_says_nothing_of_the_next_unless_it_is_for_all() {
    let policy = policy();
    let verdict = |status, cache_control| {
        let facts = ResponseFacts {
            status,
            answers_cookie: true,
            ..control(cache_control)
        };
        judge(&policy, &facts, NOW)
    };
    let passing = Verdict::Passing(UncacheableReason::Cookie);
    assert_eq!(verdict(200, "max-age=60"), passing);
    assert_eq!(verdict(404, ""), passing);
    assert_eq!(
        verdict(503, "max-age=60"),
        Verdict::Passing(UncacheableReason::ServerError)
    );
}

#[test]
fn what_is_not_for_all_is_not_stored() {
    let vary = |vary: &'static str| ResponseFacts {
        vary: Some(vary.into()),
        ..PLAIN
    };
    let length = |content_length| ResponseFacts {
        content_length,
        ..PLAIN
    };
    assert_rows(
        &policy(),
        &[
            (
                "private",
                control("private, max-age=60"),
                no(UncacheableReason::Private),
            ),
            (
                "no-store",
                control("no-store"),
                no(UncacheableReason::NoStore),
            ),
            (
                "no-cache without a validator",
                ResponseFacts {
                    has_validator: false,
                    ..control("no-cache, max-age=60")
                },
                no(UncacheableReason::NoCache),
            ),
            (
                "no-cache of what is not validated",
                ResponseFacts {
                    status: 404,
                    ..control("no-cache, max-age=60")
                },
                no(UncacheableReason::NoCache),
            ),
            (
                "Set-Cookie",
                ResponseFacts {
                    has_set_cookie: true,
                    ..control("public, max-age=60")
                },
                no(UncacheableReason::SetCookie),
            ),
            ("Vary: *", vary("*"), no(UncacheableReason::Vary)),
            (
                "Vary on what matters",
                vary("Origin, Cookie"),
                no(UncacheableReason::Vary),
            ),
            (
                "Vary on part of a name",
                vary("accept"),
                no(UncacheableReason::Vary),
            ),
            (
                "Vary on what does not matter",
                vary("Origin,ACCEPT-encoding"),
                Ok(3_600),
            ),
            ("Vary on nothing", vary(" , "), Ok(3_600)),
            (
                "too large",
                length(Some(1_001)),
                no(UncacheableReason::TooLarge),
            ),
            ("as large as may be", length(Some(1_000)), Ok(3_600)),
            ("of unknown size", length(None), Ok(3_600)),
            (
                "switching protocols",
                status(101),
                no(UncacheableReason::Status),
            ),
            ("early hints", status(103), no(UncacheableReason::Status)),
            ("a part", status(206), no(UncacheableReason::Status)),
            ("not modified", status(304), no(UncacheableReason::Status)),
            ("no status", status(0), no(UncacheableReason::Status)),
            (
                "beyond all classes",
                status(600),
                no(UncacheableReason::Status),
            ),
        ],
    );
}

#[test]
fn no_cache_with_a_validator_is_stored_and_never_fresh() {
    // RFC 9111, 5.2.2.4.
    for (policy, said) in [
        (policy(), "no-cache"),
        (policy(), "max-age=60, No-Cache"),
        (http(), "no-cache=\"set-cookie, x-user\", s-maxage=60"),
        (
            http(),
            "no-cache, stale-while-revalidate=9, stale-if-error=9",
        ),
        (http(), "no-cache, max-age=0"),
    ] {
        let storage = stored(judge(&policy, &control(said), NOW)).unwrap();
        assert_eq!(storage.lifetime, Lifetime::default(), "{said}");
        assert!(storage.lifetime.must_be_validated(), "{said}");
        assert!(storage.may_ask && storage.forbids_stale, "{said}");
    }
    // RFC 9111, 3.2: a 304 without directives changes nothing.
    for policy in [policy(), http()] {
        let silent = ResponseFacts {
            freshens: Some(Freshened {
                lifetime: Lifetime::default(),
                is_said: true,
            }),
            ..PLAIN
        };
        let storage = stored(judge(&policy, &silent, NOW)).unwrap();
        assert!(storage.lifetime.must_be_validated() && storage.forbids_stale);
    }
    let aged = ResponseFacts {
        age: Some("600".into()),
        ..control("no-cache, max-age=60")
    };
    assert!(stored(judge(&http(), &aged, NOW)).is_some());
    let mut policy = policy();
    policy.cache.default.ttl = TtlTable(vec![(Statuses::Exact(200), fixed(0))]);
    let never = judge(&policy, &control("no-cache"), NOW);
    assert_eq!(never, Verdict::Uncacheable(UncacheableReason::NoTtl));
}

#[test]
fn a_response_to_credentials_is_stored_only_where_it_says_so() {
    // RFC 9111, 3.5.
    let said = |status, text| ResponseFacts {
        status,
        authenticated: true,
        ..control(text)
    };
    for text in [
        "public, max-age=60",
        "s-maxage=60",
        "must-revalidate, max-age=60",
        "no-cache, public",
    ] {
        let storage = stored(judge(&http(), &said(200, text), NOW));
        assert!(storage.unwrap().allows_authenticated, "{text}");
        let anonymous = stored(judge(&http(), &control(text), NOW));
        assert!(anonymous.unwrap().allows_authenticated, "{text}");
    }
    for (status, text) in [
        (200, ""),
        (200, "max-age=60"),
        (200, "max-age=60, proxy-revalidate, immutable"),
        (200, "public, private"),
        (200, "public, no-store"),
        (200, "public, max-age=0"),
        (503, "public, max-age=60"),
        (503, ""),
        (429, "public, max-age=60"),
        (511, "public, max-age=60"),
    ] {
        let verdict = judge(&http(), &said(status, text), NOW);
        let own = [
            Verdict::Passing(UncacheableReason::Authorization),
            Verdict::Passing(UncacheableReason::RequestError),
        ];
        assert!(own.contains(&verdict), "{status} {text}: {verdict:?}");
    }
    let anonymous = stored(judge(&http(), &control("max-age=60"), NOW));
    assert!(!anonymous.unwrap().allows_authenticated);
    let mut deaf = http();
    deaf.cache.default.honor_cache_control = false;
    let verdict = judge(&deaf, &said(200, "public, max-age=60"), NOW);
    assert_eq!(verdict, Verdict::Passing(UncacheableReason::Authorization));
}

#[test]
fn an_error_that_is_not_stored_is_shared() {
    let error = |cache_control| ResponseFacts {
        status: 503,
        ..control(cache_control)
    };
    let share = Err(Verdict::Passing(UncacheableReason::ServerError));
    assert_rows(
        &policy(),
        &[
            ("no-store", error("no-store"), share),
            ("private", error("private"), share),
            ("no-cache", error("no-cache"), share),
            ("stale", error("max-age=0"), share),
            (
                "aged",
                ResponseFacts {
                    age: Some("10".into()),
                    ..status(503)
                },
                share,
            ),
            (
                "Set-Cookie",
                ResponseFacts {
                    has_set_cookie: true,
                    ..status(503)
                },
                share,
            ),
            (
                "Vary",
                ResponseFacts {
                    vary: Some("*".into()),
                    ..status(503)
                },
                share,
            ),
            (
                "too large",
                ResponseFacts {
                    content_length: Some(1_001),
                    ..status(503)
                },
                share,
            ),
            ("fresh", error("max-age=5"), Ok(5)),
            (
                "fresh for longer than errors are",
                error("max-age=31536000"),
                Ok(10),
            ),
        ],
    );
}

#[test]
fn an_http_origins_error_is_fresh_for_as_long_as_the_origin_says() {
    // RFC 9111, 3: any final status.
    let error = |status, cache_control| ResponseFacts {
        status,
        ..control(cache_control)
    };
    for code in [500, 502, 503, 504, 599] {
        for (said, ttl) in [("max-age=3600", 3_600), ("s-maxage=60, max-age=5", 60)] {
            let storage = stored(judge(&http(), &error(code, said), NOW)).unwrap();
            let lifetime = Lifetime {
                ttl,
                ..Lifetime::default()
            };
            assert_eq!(storage.lifetime, lifetime, "{code} {said}");
            assert!(storage.forbids_stale && !storage.may_ask, "{code} {said}");
        }
        let silent = judge(&http(), &status(code), NOW);
        assert_eq!(silent, Verdict::Passing(UncacheableReason::ServerError));
    }
    // RFC 9111, 5.2.2.3: the status is not understood.
    let unknown = error(599, "no-store, must-understand, max-age=60");
    assert_eq!(
        judge(&http(), &unknown, NOW),
        Verdict::Passing(UncacheableReason::ServerError)
    );
}

#[test]
fn age_is_time_already_spent() {
    // RFC 9111, 4.2.3 and 5.1.
    for (age, expected) in [
        (None, Some(0)),
        (Some("0"), Some(0)),
        (Some("59"), Some(59)),
        (Some(" 59 "), Some(59)),
        (Some("5, 70"), Some(5)),
        (Some("60"), None),
        (Some("99999999999999999999999"), None),
        (Some("-1"), Some(0)),
        (Some("x"), Some(0)),
        (Some(""), Some(0)),
    ] {
        let facts = ResponseFacts {
            age: age.map(Into::into),
            ..control("max-age=60")
        };
        let verdict = judge(&policy(), &facts, NOW);
        let actual = stored(verdict).map(|storage| storage.age);
        assert_eq!(actual, expected, "{age:?}");
        if expected.is_none() {
            assert_eq!(verdict, Verdict::Uncacheable(UncacheableReason::Stale));
        }
    }
}

#[test]
fn a_targeted_field_comes_first() {
    // RFC 9213, 2.2.
    fn of<'a>(
        targeted: &'a [(&'a str, FieldValue<'a>)],
        cache_control: &'a str,
    ) -> ResponseFacts<'a> {
        ResponseFacts {
            targeted,
            expires: Some("0".into()),
            ..control(cache_control)
        }
    }
    const CDN: &str = "cdn-cache-control";
    const SURROGATE: &str = "surrogate-control";
    assert_rows(
        &policy(),
        &[
            (
                "before Cache-Control and Expires",
                of(&[(CDN, "max-age=7".into())], "max-age=60"),
                Ok(7),
            ),
            (
                "before what forbids",
                of(&[(CDN, "max-age=7".into())], "no-store, private, no-cache"),
                Ok(7),
            ),
            (
                "it forbids",
                of(&[(CDN, "no-store".into())], "max-age=60"),
                no(UncacheableReason::NoStore),
            ),
            (
                "it gives no lifetime",
                of(&[(CDN, "must-revalidate".into())], "max-age=60"),
                Ok(3_600),
            ),
            (
                "in the policy's order",
                of(
                    &[(SURROGATE, "max-age=8".into()), (CDN, "max-age=7".into())],
                    "",
                ),
                Ok(7),
            ),
            (
                "Surrogate-Control",
                of(&[(SURROGATE, "max-age=8".into())], "max-age=60"),
                Ok(8),
            ),
            (
                "invalid",
                of(&[(CDN, "max-age=7,".into())], "max-age=60"),
                Ok(60),
            ),
            ("empty", of(&[(CDN, "".into())], "max-age=60"), Ok(60)),
        ],
    );
    assert_rows(
        &dishonoring(),
        &[("unheard", of(&[(CDN, "no-store".into())], ""), Ok(3_600))],
    );
}

#[test]
fn no_store_is_for_caches_that_do_not_understand() {
    // RFC 9111, 5.2.2.3.
    let both = |status| ResponseFacts {
        status,
        ..control("must-understand, no-store, max-age=60")
    };
    for code in [200, 204, 301, 302, 404, 410, 451] {
        let storage = stored(judge(&policy(), &both(code), NOW)).unwrap();
        assert_eq!(storage.lifetime.ttl, 60, "{code}");
    }
    for code in [207, 226, 299, 306, 420, 499] {
        assert_eq!(
            judge(&policy(), &both(code), NOW),
            Verdict::Uncacheable(UncacheableReason::NotUnderstood),
            "{code}"
        );
    }
}

#[test]
fn what_has_not_changed_for_long_may_be_fresh_for_long() {
    // RFC 9111, 4.2.2.
    let mut policy = policy();
    policy.cache.default.ttl = TtlTable(vec![
        (Statuses::Exact(204), fixed(7)),
        (Statuses::Others, Ttl::Origin),
    ]);
    let ago = |seconds| date::format(NOW - seconds);
    let (recently, long_ago, tomorrow) = (ago(600), ago(1_000_000), ago(-86_400));
    fn modified(status: u16, last_modified: &str) -> ResponseFacts<'_> {
        ResponseFacts {
            status,
            last_modified: Some(last_modified.into()),
            ..PLAIN
        }
    }
    let public = |status| ResponseFacts {
        cache_control: Some("public".into()),
        ..modified(status, &recently)
    };
    let no_lifetime = || no(UncacheableReason::NoLifetime);
    assert_rows(
        &policy,
        &[
            ("recently", modified(200, &recently), Ok(60)),
            ("long ago", modified(200, &long_ago), Ok(3_600)),
            (
                "tomorrow",
                modified(200, &tomorrow),
                Err(Verdict::ShareOnce),
            ),
            (
                "no date",
                modified(200, "yesterday"),
                Err(Verdict::ShareOnce),
            ),
            ("unknown", PLAIN, Err(Verdict::ShareOnce)),
            (
                "by the origin's clock",
                ResponseFacts {
                    date: Some((&*long_ago).into()),
                    ..modified(200, &long_ago)
                },
                Err(Verdict::ShareOnce),
            ),
            (
                "the origin knows",
                ResponseFacts {
                    cache_control: Some("max-age=7".into()),
                    ..modified(200, &recently)
                },
                Ok(7),
            ),
            ("a missing object", modified(404, &recently), Ok(60)),
            ("a status with a time", modified(204, &long_ago), Ok(7)),
            (
                "a status without heuristics",
                modified(202, &recently),
                no_lifetime(),
            ),
            ("one for all", public(202), Ok(60)),
            ("one without a meaning for all", public(599), Ok(60)),
            (
                "an error",
                modified(503, &recently),
                Err(Verdict::Passing(UncacheableReason::ServerError)),
            ),
        ],
    );
    policy.cache.heuristic_percent = 50;
    policy.cache.heuristic_max = seconds(400);
    let rows = [
        ("half of it", modified(200, &recently), Ok(300)),
        ("at most", modified(200, &long_ago), Ok(400)),
    ];
    assert_rows(&policy, &rows);
    policy.cache.heuristic_percent = 0;
    let off = ("off", modified(200, &recently), Err(Verdict::ShareOnce));
    assert_rows(&policy, &[off]);
    let fixed = ("the policy", modified(200, &recently), Ok(3_600));
    assert_rows(&self::policy(), &[fixed]);
}

#[test]
fn a_304_that_says_nothing_leaves_the_lifetime_of_the_stored_response_as_it_is() {
    // RFC 9111, 3.2 and 4.3.4.
    let stored_for = |ttl, stale_if_error| Lifetime {
        ttl,
        stale_while_revalidate: 0,
        stale_if_error,
    };
    let ago = date::format(NOW - 1_000);
    let freshening_of = |lifetime, is_said| ResponseFacts {
        freshens: Some(Freshened { lifetime, is_said }),
        last_modified: Some((&*ago).into()),
        ..PLAIN
    };
    let freshening = |lifetime| freshening_of(lifetime, true);
    let judged = |policy: &Policy, facts| stored(judge(policy, &facts, NOW)).unwrap();
    let lenient = judged(&http(), freshening(stored_for(7, 60)));
    assert_eq!(lenient.lifetime, stored_for(7, 60));
    assert!(!lenient.forbids_stale);
    let strict = judged(&http(), freshening(stored_for(7, 0)));
    assert_eq!(
        (strict.lifetime, strict.forbids_stale),
        (stored_for(7, 0), true)
    );
    let told = ResponseFacts {
        cache_control: Some("max-age=9".into()),
        ..freshening(stored_for(7, 60))
    };
    assert_eq!(judged(&http(), told).lifetime.ttl, 9);
    // The origin's lifetime holds even if the policy has a time for responses without directives. The policy's time
    // may have changed since.
    let strict = judged(&policy(), freshening(stored_for(7, 0)));
    assert_eq!(
        (strict.lifetime, strict.forbids_stale, strict.is_said),
        (stored_for(7, 0), true, true)
    );
    let decided = judged(&policy(), freshening_of(stored_for(7, 60), false));
    assert_eq!((decided.lifetime.ttl, decided.is_said), (3_600, false));
    let guessed = judged(&http(), freshening_of(stored_for(7, 60), false));
    assert_eq!(guessed.lifetime.ttl, 7);
    // A time of 0 takes precedence over the origin, and a policy that overrides the origin reads none of its
    // directives.
    let mut never = policy();
    never.cache.default.ttl = TtlTable(vec![(Statuses::Exact(200), fixed(0))]);
    let verdict = judge(&never, &freshening(stored_for(7, 0)), NOW);
    assert_eq!(verdict, Verdict::Uncacheable(UncacheableReason::NoTtl));
    let mut deaf = policy();
    deaf.cache.default.honor_cache_control = false;
    assert_eq!(
        judged(&deaf, freshening(stored_for(7, 0))).lifetime.ttl,
        3_600
    );
    // A field for the edge without a directive about caching does not count as one.
    let capability = ResponseFacts {
        targeted: &[(
            "surrogate-control",
            FieldValue::new(br#"content="ESI/1.0""#),
        )],
        ..freshening(stored_for(7, 0))
    };
    assert_eq!(judged(&http(), capability).lifetime.ttl, 7);
}

#[test]
fn a_stream_without_a_lifetime_is_waited_for_by_nobody() {
    let stream = ResponseFacts {
        is_stream: true,
        ..PLAIN
    };
    let said = ResponseFacts {
        cache_control: Some("max-age=9".into()),
        ..stream
    };
    for policy in [policy(), http()] {
        let validated = ResponseFacts {
            cache_control: Some("no-cache".into()),
            has_validator: true,
            ..stream
        };
        for stream in [stream, validated] {
            let verdict = judge(&policy, &stream, NOW);
            assert_eq!(verdict, Verdict::Uncacheable(UncacheableReason::Stream));
        }
        assert_eq!(stored(judge(&policy, &said, NOW)).unwrap().lifetime.ttl, 9);
    }
}

#[test]
fn what_an_http_origin_says_nothing_of_is_shared_once_unless_it_is_for_one_client() {
    let policy = http();
    let of = |status| ResponseFacts { status, ..PLAIN };
    for status in [200, 203, 204, 300, 301, 308, 404, 410] {
        assert_eq!(
            judge(&policy, &of(status), NOW),
            Verdict::ShareOnce,
            "{status}"
        );
    }
    let cookie = ResponseFacts {
        has_set_cookie: true,
        ..PLAIN
    };
    let varying = ResponseFacts {
        vary: Some("accept".into()),
        ..PLAIN
    };
    let passing = |reason| Err(Verdict::Passing(reason));
    assert_rows(
        &policy,
        &[
            ("a cookie", cookie, no(UncacheableReason::SetCookie)),
            (
                "private",
                control("private"),
                no(UncacheableReason::Private),
            ),
            (
                "no-store",
                control("no-store"),
                no(UncacheableReason::NoStore),
            ),
            (
                "stale from the start",
                control("max-age=0"),
                no(UncacheableReason::Stale),
            ),
            (
                "others have other values",
                varying,
                no(UncacheableReason::Vary),
            ),
            (
                "for the moment",
                of(302),
                passing(UncacheableReason::NoLifetime),
            ),
            (
                "a request may have caused it",
                of(405),
                Err(Verdict::Passing(UncacheableReason::RequestError)),
            ),
        ],
    );
}

#[test]
fn where_cookies_are_ignored_nothing_is_shared_that_is_not_stored() {
    let mut policy = http();
    policy.request.cookies = Cookies::Ignore;
    let silent = ("silent", PLAIN, no(UncacheableReason::NoLifetime));
    assert_rows(&policy, &[silent]);
}

#[test]
fn an_http_origin_says_for_how_long_its_errors_are_fresh() {
    let of = |status| ResponseFacts {
        status,
        ..control("max-age=60")
    };
    for status in [500, 502, 503, 504, 599] {
        assert_rows(&http(), &[("as it says", of(status), Ok(60))]);
    }
}

#[test]
fn a_response_may_be_stale_for_as_long_as_somebody_says() {
    // RFC 5861; RFC 9111, 4.2.4.
    let mut policy = policy();
    policy.cache.default.stale_while_revalidate = seconds(60);
    policy.cache.default.stale_if_error = seconds(600);
    let windows = |policy: &Policy, facts| {
        let storage = stored(judge(policy, &facts, NOW)).unwrap();
        let lifetime = storage.lifetime;
        (lifetime.stale_while_revalidate, lifetime.stale_if_error)
    };
    let of = |status, cache_control| ResponseFacts {
        status,
        ..control(cache_control)
    };
    for (name, facts, expected) in [
        ("the policy", PLAIN, (60, 600)),
        ("beside a lifetime", control("max-age=5"), (60, 600)),
        (
            "the origin",
            control("max-age=5, stale-while-revalidate=1, stale-if-error=2"),
            (1, 2),
        ),
        (
            "the origin, one of them",
            control("stale-if-error=0"),
            (60, 0),
        ),
        (
            "must-revalidate",
            control("max-age=5, must-revalidate, stale-if-error=9"),
            (0, 0),
        ),
        (
            "proxy-revalidate",
            control("max-age=5, proxy-revalidate"),
            (0, 0),
        ),
        ("s-maxage", control("s-maxage=5"), (0, 0)),
        (
            "s-maxage, and windows",
            control("s-maxage=5, stale-while-revalidate=9, stale-if-error=9"),
            (0, 0),
        ),
        ("a redirect", status(302), (60, 600)),
        ("an object that may come", status(404), (0, 600)),
        (
            "the same, as the origin wants",
            of(404, "stale-while-revalidate=9"),
            (9, 600),
        ),
        (
            "an error",
            of(503, "stale-while-revalidate=9, stale-if-error=9"),
            (0, 0),
        ),
    ] {
        assert_eq!(windows(&policy, facts), expected, "{name}");
    }
    policy.cache.default.honor_cache_control = false;
    let unheard = control("must-revalidate, s-maxage=5, stale-if-error=9");
    assert_eq!(windows(&policy, unheard), (60, 600));
}

#[test]
fn a_policy_may_know_better_than_the_origin() {
    assert_rows(
        &dishonoring(),
        &[
            ("no-store", control("no-store"), Ok(3_600)),
            ("private", control("private"), Ok(3_600)),
            ("no-cache", control("no-cache"), Ok(3_600)),
            ("max-age", control("max-age=0, s-maxage=5"), Ok(3_600)),
            (
                "Expires",
                ResponseFacts {
                    expires: Some("0".into()),
                    ..PLAIN
                },
                Ok(3_600),
            ),
            (
                "Set-Cookie",
                ResponseFacts {
                    has_set_cookie: true,
                    ..PLAIN
                },
                no(UncacheableReason::SetCookie),
            ),
            (
                "Vary",
                ResponseFacts {
                    vary: Some("cookie".into()),
                    ..PLAIN
                },
                no(UncacheableReason::Vary),
            ),
            (
                "nothing of its own",
                ResponseFacts {
                    status: 418,
                    ..control("max-age=60")
                },
                no(UncacheableReason::NoTtl),
            ),
        ],
    );
}

#[test]
fn only_the_statuses_of_envoy_go_undisguised() {
    let envoy = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 451, 501];
    for code in (200..600).filter(|code| !matches!(code, 206 | 304 | 428 | 429 | 431 | 511)) {
        let facts = ResponseFacts {
            status: code,
            ..control("max-age=60")
        };
        let storage = stored(judge(&bucket(), &facts, NOW)).unwrap();
        assert_eq!(storage.disguise, !envoy.contains(&code), "{code}");
    }
}

#[test]
fn only_content_with_a_validator_is_revalidated() {
    for (code, has_validator, may_ask) in [
        (200, true, true),
        (203, true, true),
        (200, false, false),
        (203, false, false),
        (204, true, false),
        (301, true, false),
        (404, true, false),
        (503, true, false),
    ] {
        let facts = ResponseFacts {
            has_validator,
            ..status(code)
        };
        let storage = stored(judge(&policy(), &facts, NOW)).unwrap();
        assert_eq!(storage.may_ask, may_ask, "{code} {has_validator}");
    }
}

proptest! {
    #[test]
    fn what_is_stored_is_fresh_for_whole_seconds(
        status in any::<u16>(),
        cache_control in proptest::option::of("(max-age|s-maxage|private|x)(=[0-9]{0,22})?"),
        expires in proptest::option::of(any::<i64>().prop_map(date::format)),
        date in proptest::option::of(any::<i64>().prop_map(date::format)),
        age in proptest::option::of("[-0-9,]{0,22}"),
        vary in proptest::option::of("\\PC{0,20}"),
        now in any::<i64>(),
        honor in any::<bool>(),
    ) {
        let facts = ResponseFacts {
            status,
            cache_control: cache_control.as_deref().map(Into::into),
            expires: expires.as_deref().map(Into::into),
            date: date.as_deref().map(Into::into),
            age: age.as_deref().map(Into::into),
            vary: vary.as_deref().map(Into::into),
            ..PLAIN
        };
        let policy = if honor { policy() } else { dishonoring() };
        match judge(&policy, &facts, now) {
            Verdict::Store(storage) => {
                let fresh = storage.lifetime.ttl > storage.age;
                prop_assert!(fresh || storage.lifetime.must_be_validated());
            }
            Verdict::Passing(UncacheableReason::ServerError) => {
                prop_assert!((500..600).contains(&status) || [428, 429, 431].contains(&status));
            }
            Verdict::NoRoom(_)
            | Verdict::ShareOnce
            | Verdict::Passing(UncacheableReason::RequestError | UncacheableReason::Authorization) => {
                prop_assert!(false, "not for this response to say, nor of such a bucket");
            }
            Verdict::Uncacheable(_) | Verdict::Passing(_) => prop_assert!(!(500..600).contains(&status)),
        }
    }
}

/// Values that cannot be read: bytes that are not UTF-8 text, among any other bytes.
fn unreadable() -> impl Strategy<Value = Vec<u8>> {
    let part = || proptest::collection::vec(any::<u8>(), 0..12);
    (part(), part()).prop_map(|(before, after)| [&before[..], b"\xff", &after].concat())
}

#[test]
fn what_cannot_be_read_is_not_stored() {
    const BYTES: FieldValue<'_> = FieldValue::new(b"max-age=60, x=\"M\xfcller\"");
    const CDN: &[(&str, FieldValue<'_>)] = &[("cdn-cache-control", BYTES)];
    let unreadable = || no(UncacheableReason::UnreadableHeader);
    let (vary, control_of_targeted) = (Some(BYTES), control("max-age=60"));
    let passing = Err(Verdict::Passing(UncacheableReason::UnreadableHeader));
    let cache_control = ResponseFacts {
        cache_control: Some(BYTES),
        ..PLAIN
    };
    let expires = ResponseFacts {
        expires: Some(BYTES),
        ..PLAIN
    };
    let rows = [
        ("Cache-Control", cache_control, unreadable()),
        (
            "of a status that does not last",
            ResponseFacts {
                status: 202,
                ..cache_control
            },
            passing,
        ),
        (
            "of an error",
            ResponseFacts {
                status: 503,
                ..cache_control
            },
            Err(Verdict::Passing(UncacheableReason::ServerError)),
        ),
        (
            "a targeted field",
            ResponseFacts {
                targeted: CDN,
                ..control_of_targeted
            },
            unreadable(),
        ),
        ("Expires", expires, unreadable()),
        (
            "Expires beside max-age",
            ResponseFacts {
                expires: Some(BYTES),
                ..control("max-age=60")
            },
            Ok(60),
        ),
        (
            "Vary",
            ResponseFacts {
                vary,
                ..control("max-age=60")
            },
            unreadable(),
        ),
        (
            "a surrogate key",
            ResponseFacts {
                has_unreadable_key: true,
                ..control("max-age=60")
            },
            unreadable(),
        ),
        (
            "Age and Date",
            ResponseFacts {
                age: Some(BYTES),
                date: Some(BYTES),
                ..control("max-age=60")
            },
            Ok(60),
        ),
    ];
    let mut lasting = policy();
    lasting.origin = http().origin;
    lasting.request.cookies = http().request.cookies;
    assert_rows(&lasting, &rows);
    let known_better = [
        (
            "Cache-Control that does not count",
            cache_control,
            Ok(3_600),
        ),
        ("Expires that does not count", expires, Ok(3_600)),
    ];
    assert_rows(&dishonoring(), &known_better);
}

proptest! {
    #[test]
    fn no_bytes_are_stored_where_a_text_would_not_be(
        bytes in unreadable(), directive in "(no-store|private|max-age=60|x),",
    ) {
        let said = [directive.as_bytes(), &bytes].concat();
        let value = FieldValue::new(&said);
        let targeted = [("cdn-cache-control", value)];
        let facts = [
            ResponseFacts { cache_control: Some(value), ..PLAIN },
            ResponseFacts { targeted: &targeted, ..control("max-age=60") },
            ResponseFacts { expires: Some(value), ..PLAIN },
            ResponseFacts { vary: Some(value), ..control("max-age=60") },
        ];
        for facts in facts {
            for policy in [policy(), http()] {
                prop_assert_eq!(stored(judge(&policy, &facts, NOW)), None, "{:?}", facts);
            }
        }
        let ignored = ResponseFacts {
            age: Some(value),
            date: Some(value),
            last_modified: Some(value),
            ..control("max-age=60")
        };
        prop_assert!(stored(judge(&policy(), &ignored, NOW)).is_some());
    }

    #[test]
    fn a_directive_is_read_beside_whatever_bytes(bytes in unreadable(), first in any::<bool>()) {
        prop_assume!(!bytes.contains(&b'"'));
        let parts = if first {
            [&b"no-store,"[..], &bytes].concat()
        } else {
            [&bytes[..], b",no-store"].concat()
        };
        prop_assert!(CacheControl::parse(&parts[..]).no_store);
    }
}
