// SPDX-License-Identifier: Apache-2.0
//! Freshness and storability compared with `http-cache-semantics`, over generated responses.
//!
//! Both must agree, except for these deliberate differences:
//!
//! | case | the oracle | here |
//! |---|---|---|
//! | the origin says nothing | not fresh | the policy's table (RFC 9111, 4.2.2 leaves it to the cache) |
//! | a final status that it does not list | not stored | stored where the origin or the table says (RFC 9111, 3) |
//! | an error that the request may have caused | stored | never stored: it says nothing of other requests |
//! | `must-understand` | unknown | overrules `no-store` (5.2.2.3) |
//! | `proxy-revalidate` | not fresh | fresh, but never stale (5.2.2.8) |
//! | `Set-Cookie` with `public` or `immutable` | stored | never stored, unless the policy strips it |
//! | a lifetime without a number | ignored | 0 (4.2.1: consider it stale) |
//! | directives in capitals, semicolons, quoted lists | unknown | read |
//! | `Age` as a list | 0 | its first member (5.1) |

#![allow(clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use http::{HeaderName, HeaderValue, Request, Response};
use http_cache_semantics::{CacheOptions, CachePolicy};
use proptest::prelude::*;
use sluice_core::freshness::{ResponseFacts, Verdict, judge};
use sluice_core::http::syntax::date;
use sluice_core::policy::Policy;

const NOW: i64 = 1_800_000_000;

fn policy() -> Policy {
    let document = r#"{
        "origin": { "kind": "http" },
        "cache": { "ttl": "origin", "heuristic_percent": 25, "heuristic_max": "2000000000s" }
    }"#;
    Policy::parse(document.as_bytes()).unwrap()
}

/// A response in the form that both read.
#[derive(Clone, Debug)]
struct Case {
    status: u16,
    headers: Vec<(&'static str, String)>,
}

impl Case {
    fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        let found = fields.find(|(candidate, _)| *candidate == name)?;
        Some(&found.1)
    }

    fn says(&self, directive: &str) -> bool {
        self.get("cache-control").is_some_and(|control| {
            control
                .split(',')
                .any(|said| said.trim().split('=').next() == Some(directive))
        })
    }

    /// Seconds for which the oracle counts it as fresh after its arrival at [`NOW`].
    fn oracle(&self) -> u64 {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            let value = HeaderValue::from_str(value).unwrap();
            response = response.header(HeaderName::from_static(name), value);
        }
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW.unsigned_abs());
        let options = CacheOptions {
            shared: true,
            cache_heuristic: 0.25,
            immutable_min_time_to_live: Duration::ZERO,
            ignore_cargo_cult: false,
        };
        let request = Request::get("http://edge.test/a").body(()).unwrap();
        let response = response.body(()).unwrap();
        let oracle = CachePolicy::new_options(&request, &response, now, options);
        if oracle.is_storable() {
            oracle.time_to_live(now).as_secs()
        } else {
            0
        }
    }

    /// Seconds for which this cache counts it as fresh; 0 if it is not stored.
    fn ours(&self) -> u64 {
        let facts = ResponseFacts {
            status: self.status,
            cache_control: self.get("cache-control").map(Into::into),
            targeted: &[],
            expires: self.get("expires").map(Into::into),
            date: self.get("date").map(Into::into),
            last_modified: self.get("last-modified").map(Into::into),
            age: self.get("age").map(Into::into),
            vary: self.get("vary").map(Into::into),
            has_unreadable_key: false,
            is_stream: false,
            has_set_cookie: self.get("set-cookie").is_some(),
            answers_cookie: false,
            has_validator: false,
            content_length: Some(10),
            freshens: None,
            authenticated: false,
        };
        let policy = policy();
        match judge(&policy, policy.rule("/a"), &facts, NOW) {
            Verdict::Store(storage) => storage.lifetime.ttl - storage.age,
            Verdict::NoRoom(_)
            | Verdict::ShareOnce
            | Verdict::Uncacheable(_)
            | Verdict::Passing(_) => 0,
        }
    }
}

fn seconds() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..100_u64, 1..100_000_000_u64]
}

fn directive() -> impl Strategy<Value = String> {
    let plain = proptest::sample::select(vec![
        "public",
        "private",
        "no-store",
        "no-cache",
        "must-revalidate",
        "immutable",
        "no-transform",
        "x-unknown",
        "x-unknown=1",
        "private=x-user",
        "no-cache=\"x-user\"",
        "max-age=soon",
        "s-maxage=-1",
        "max-age=1.5",
    ]);
    // Lifetimes are more frequent than directives that forbid storing.
    prop_oneof![
        2 => plain.prop_map(str::to_owned),
        3 => seconds().prop_map(|seconds| format!("max-age={seconds}")),
        1 => seconds().prop_map(|seconds| format!("s-maxage={seconds}")),
        1 => seconds().prop_map(|seconds| format!("max-age=\"{seconds}\"")),
    ]
}

fn date(around: i64) -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (-100_000..100_000_i64).prop_map(move |skew| date::format(around + skew)),
        1 => proptest::sample::select(vec!["0", "-1", "tomorrow", ""]).prop_map(str::to_owned),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let statuses = proptest::sample::select(vec![
        200, 200, 200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501,
    ]);
    let control = proptest::collection::vec(directive(), 1..4);
    let control = control.prop_map(|directives| directives.join(", "));
    let age = prop_oneof![
        3 => seconds().prop_map(|seconds| seconds.to_string()),
        1 => proptest::sample::select(vec!["-1", "old", "1.5", ""]).prop_map(str::to_owned),
    ];
    let field = |name, value: BoxedStrategy<String>, chance| {
        proptest::option::weighted(chance, value).prop_map(move |value| Some((name, value?)))
    };
    (
        statuses,
        field("cache-control", control.boxed(), 0.7),
        field("expires", date(NOW).boxed(), 0.4),
        field("date", date(NOW).boxed(), 0.7),
        field("last-modified", date(NOW - 1_000_000).boxed(), 0.3),
        field("age", age.boxed(), 0.3),
        field("set-cookie", Just("a=1".to_owned()).boxed(), 0.05),
        field("vary", Just("*".to_owned()).boxed(), 0.05),
    )
        .prop_map(|(status, a, b, c, d, e, f, g)| Case {
            status,
            headers: [a, b, c, d, e, f, g].into_iter().flatten().collect(),
        })
}

/// Whether the two differ according to the table above.
fn differs(case: &Case) -> bool {
    let cookie =
        case.get("set-cookie").is_some() && (case.says("public") || case.says("immutable"));
    let unguessed = case
        .get("last-modified")
        .is_some_and(|date| date::parse(date).is_none());
    let caused = matches!(case.status, 405 | 414 | 501);
    cookie || unguessed || caused
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_048))]

    #[test]
    fn freshness_and_storability_are_those_of_the_oracle(case in case()) {
        if !differs(&case) {
            prop_assert_eq!(case.ours(), case.oracle());
        }
    }

    #[test]
    fn what_the_oracle_must_not_store_is_not_stored(case in case(), forbidden in "(no-store|private|no-cache)") {
        let control = case.get("cache-control").unwrap_or("x").to_owned();
        let mut case = case;
        case.headers.retain(|(name, _)| *name != "cache-control");
        case.headers.push(("cache-control", format!("{control}, {forbidden}")));
        prop_assert_eq!(case.oracle(), 0);
        prop_assert_eq!(case.ours(), 0);
    }
}

fn told(status: u16, headers: &[(&'static str, &str)]) -> Case {
    let owned = headers
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()));
    Case {
        status,
        headers: owned.collect(),
    }
}

#[test]
fn the_deliberate_differences_are_as_stated() {
    let control = "cache-control";
    for (name, case, oracle, ours) in [
        ("silent", told(200, &[]), 0, 0),
        (
            "silent but for the word public",
            told(200, &[(control, "public")]),
            0,
            0,
        ),
        (
            "another status",
            told(451, &[(control, "max-age=60")]),
            0,
            60,
        ),
        (
            "the request may have caused it",
            told(414, &[(control, "max-age=60")]),
            60,
            0,
        ),
        ("an error", told(503, &[(control, "max-age=60")]), 0, 60),
        (
            "must-understand",
            told(200, &[(control, "max-age=60, no-store, must-understand")]),
            0,
            60,
        ),
        (
            "proxy-revalidate",
            told(200, &[(control, "max-age=60, proxy-revalidate")]),
            0,
            60,
        ),
        (
            "Set-Cookie",
            told(
                200,
                &[(control, "max-age=60, public"), ("set-cookie", "a=1")],
            ),
            60,
            0,
        ),
        (
            "no number",
            told(200, &[(control, "s-maxage, max-age=60")]),
            60,
            0,
        ),
        ("capitals", told(200, &[(control, "Max-Age=60")]), 0, 60),
        (
            "semicolons",
            told(200, &[(control, "max-age=60; private")]),
            0,
            0,
        ),
        (
            "a directive within quotes",
            told(200, &[(control, "max-age=60, x=\"a, no-store\"")]),
            60,
            60,
        ),
        (
            "two ages",
            told(200, &[(control, "max-age=60"), ("age", "5, 70")]),
            60,
            55,
        ),
    ] {
        assert_eq!((case.oracle(), case.ours()), (oracle, ours), "{name}");
    }
}
