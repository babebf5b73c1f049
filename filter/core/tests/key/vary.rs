// SPDX-License-Identifier: Apache-2.0
//! The variants of a URL, and the headers that select them.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use proptest::prelude::*;
use sluice_core::freshness::UncacheableReason;
use sluice_core::http::syntax::field_value::{FieldValue, JoinedValue};
use sluice_core::key::qualifiers::qualifiers;
use sluice_core::key::vary::{
    self, HeaderTooLong, SelectingHeader, VaryNames, key_of_variant, qualify, qualify_variant,
    selected, variant_of,
};
use sluice_core::policy::Policy;

use crate::support::{bucket, bucket_policy, canonicalize_path, http_policy};

/// A policy of an HTTP origin whose keys only have the headers of `Vary`.
fn http() -> Policy {
    http_policy("key: {headers: []}")
}

type Decision = Result<VaryNames, UncacheableReason>;

const REFUSED: Decision = Err(UncacheableReason::Vary);
const UNREADABLE: Decision = Err(UncacheableReason::UnreadableHeader);

const URL: &str = "edge.test/page";

fn fit(policy: &Policy, key: &str, vary: Option<&str>) -> Decision {
    vary::fit(policy, key, vary.map(Into::into))
}

fn told(
    policy: &Policy,
    vary: Option<&str>,
    already: Option<&str>,
    chooses: bool,
) -> Option<String> {
    let [vary, already] = [vary, already].map(|value| value.map(Into::into));
    vary::told(policy, vary, already, chooses)
}

fn unkeyed(names: &str) -> Decision {
    Ok(VaryNames::parse(names))
}

fn keyed() -> Decision {
    Ok(VaryNames::default())
}

/// The qualifiers that a request with these headers gets.
fn key(policy: &Policy, names: &str, headers: &[(&str, &str)]) -> Result<String, HeaderTooLong> {
    let mut target = canonicalize_path(policy, b"/page").unwrap();
    let value = |name: &str| {
        let header = headers.iter().find(|(header, _)| *header == name);
        header.map(|(_, value)| JoinedValue::from(*value))
    };
    qualify(policy, &mut target, value)?;
    qualify_variant(policy, &mut target, &VaryNames::parse(names), value)?;
    Ok(target.path().trim_start_matches("/page").to_owned())
}

#[test]
fn what_the_key_does_not_have_is_learnt_unless_it_is_forbidden() {
    let policy = http();
    for (name, key, vary, expected) in [
        ("no Vary", URL, None, keyed()),
        ("an empty one", URL, Some(" , "), keyed()),
        (
            "one header",
            URL,
            Some("Accept-Language"),
            unkeyed("accept-language"),
        ),
        (
            "several, in any order and case",
            URL,
            Some("B, accept,b"),
            unkeyed("accept,b"),
        ),
        ("*", URL, Some("accept, *"), REFUSED),
        ("a forbidden one", URL, Some("accept, User-Agent"), REFUSED),
        ("another", URL, Some("user-agent"), REFUSED),
        ("too many", URL, Some("a, b, c, d, e, f, g, h, i"), REFUSED),
        (
            "just enough",
            URL,
            Some("a, b, c, d, e, f, g, h"),
            unkeyed("a,b,c,d,e,f,g,h"),
        ),
        (
            "one that the key has",
            "edge.test/page#vary-accept=",
            Some("accept"),
            keyed(),
        ),
        (
            "fewer than the key has",
            "edge.test/page#vary-a=;vary-b=x",
            Some("b"),
            keyed(),
        ),
        (
            "others than the key has",
            "edge.test/page#vary-a=",
            Some("b"),
            unkeyed("a,b"),
        ),
        (
            "too many with those that the key has",
            "edge.test/page#vary-a=;vary-b=",
            Some("c, d, e, f, g, h, i"),
            unkeyed("c,d,e,f,g,h,i"),
        ),
        (
            "the coding",
            URL,
            Some("accept-encoding"),
            unkeyed("accept-encoding"),
        ),
        (
            "the coding that the key has",
            "edge.test/page#ae=identity",
            Some("accept-encoding"),
            keyed(),
        ),
        // A cacheable request never sends these to the origin.
        ("a range", URL, Some("Range, If-None-Match"), keyed()),
        ("an override", URL, Some("X-Forwarded-Host"), keyed()),
    ] {
        assert_eq!(fit(&policy, key, vary), expected, "{name}");
    }
}

#[test]
fn accept_encoding_makes_no_difference_where_the_edge_decides_about_it() {
    let mut http = http();
    http.compression.enabled = true;
    assert_eq!(fit(&http, URL, Some("accept-encoding")), keyed());
    let mut bucket = bucket();
    bucket.response.ignore_vary.clear();
    bucket.compression.enabled = false;
    assert_eq!(fit(&bucket, URL, Some("Accept-Encoding")), keyed());
    assert_eq!(fit(&bucket, URL, Some("Origin")), REFUSED);
}

#[test]
fn what_the_policy_ignores_makes_no_difference_and_what_it_forbids_is_its_own() {
    let mut policy = http();
    policy.response.ignore_vary = vec!["cookie".to_owned()];
    policy.vary.forbid = vec!["accept".to_owned()];
    assert_eq!(fit(&policy, URL, Some("Cookie")), keyed());
    assert_eq!(fit(&policy, URL, Some("accept")), REFUSED);
    assert_eq!(fit(&policy, URL, Some("user-agent")), unkeyed("user-agent"));
    policy.vary.max_headers = 0;
    assert_eq!(fit(&policy, URL, Some("user-agent")), REFUSED);
}

#[test]
fn cookies_make_a_difference_only_where_a_shared_request_has_them() {
    for (cookies, expected) in [("pass", keyed()), ("strip", keyed()), ("ignore", REFUSED)] {
        let policy = http_policy(&format!("request: {{cookies: {cookies}}}"));
        assert_eq!(fit(&policy, URL, Some("Cookie")), expected, "{cookies}");
    }
}

#[test]
fn a_key_has_the_values_in_one_spelling() {
    let policy = http();
    for (names, headers, expected) in [
        (
            "accept-language",
            &[("accept-language", "de")][..],
            "#vary-accept-language=de",
        ),
        (
            "accept-language",
            &[("accept-language", " DE-at , en ; q = 0.5 ")],
            "#vary-accept-language=de-at,en%3Bq%3D0.5",
        ),
        (
            "accept-language",
            &[(
                "accept-language",
                "en;q=0.5, de-AT, fr; Q=0.9, de,,it;q=0.5",
            )],
            "#vary-accept-language=de-at,de,fr%3Bq%3D0.9,en%3Bq%3D0.5,it%3Bq%3D0.5",
        ),
        (
            "accept-language",
            &[("accept-language", "en;q=high, de")],
            "#vary-accept-language=en%3Bq%3Dhigh,de",
        ),
        ("accept-language", &[], "#vary-accept-language="),
        (
            "accept-language",
            &[("accept-language", "")],
            "#vary-accept-language=%00",
        ),
        (
            "x-plan,accept",
            &[("accept", "Text/HTML, */*;q=0.1"), ("x-plan", "Gold Plus")],
            "#vary-accept=Text/HTML,*/*%3Bq%3D0.1;vary-x-plan=Gold%20Plus",
        ),
        (
            "accept",
            &[("accept", "a/b; profile=\"x, y\"")],
            "#vary-accept=a/b%3B%20profile%3D%22x,%20y%22",
        ),
        (
            "accept-encoding",
            &[("accept-encoding", "gzip, br;q=0.1")],
            "#ae=br,gzip",
        ),
        (
            "accept-encoding",
            &[("accept-encoding", "deflate, gzip;q=0")],
            "#ae=identity",
        ),
        ("accept-encoding", &[], "#ae=identity"),
    ] {
        assert_eq!(key(&policy, names, headers).unwrap(), expected);
    }
}

#[test]
fn of_accept_only_the_listed_media_types_count_where_the_policy_lists_some() {
    let policy = http_policy("key: {headers: []}\nvary: {accept: [image/avif, Image/WebP]}");
    for (accept, expected) in [
        (
            "image/avif,image/webp,image/png,*/*;q=0.8",
            "image/avif,image/webp,*/*",
        ),
        ("IMAGE/webp ; q=0.1", "image/webp,*/*"),
        ("image/avif;q=0, text/html", "*/*"),
        ("image/*", "*/*"),
        ("", "*/*"),
    ] {
        let key = |accept| key(&policy, "accept", &[("accept", accept)]).unwrap();
        assert_eq!(key(accept), format!("#vary-accept={expected}"));
        assert_eq!(key(expected), key(accept), "it is asked for with that");
    }
    assert_eq!(key(&policy, "accept", &[]).unwrap(), "#vary-accept=*/*");
}

#[test]
fn a_value_that_is_too_long_is_no_key() {
    let mut policy = http();
    policy.vary.max_value_bytes = 5;
    assert!(key(&policy, "x", &[("x", "12345")]).is_ok());
    assert!(key(&policy, "x", &[("x", " 12345 ")]).is_ok());
    assert_eq!(key(&policy, "x", &[("x", "123456")]), Err(HeaderTooLong));
}

#[test]
fn the_headers_of_the_policys_key_are_in_every_key_once() {
    let scheme = http_policy("");
    let https = [("x-forwarded-proto", "HTTPS"), ("accept", "a/b")];
    for (names, headers, expected) in [
        ("", &https[..], "#vary-x-forwarded-proto=https"),
        // The same as most requests, which adds nothing.
        ("", &[], ""),
        ("", &[("x-forwarded-proto", "http")], ""),
        (
            "accept",
            &https,
            "#vary-x-forwarded-proto=https;vary-accept=a/b",
        ),
        // Learned under a policy whose key did not have it.
        (
            "accept,x-forwarded-proto",
            &https,
            "#vary-x-forwarded-proto=https;vary-accept=a/b",
        ),
    ] {
        assert_eq!(key(&scheme, names, headers).unwrap(), expected);
    }
    let several = http_policy("key: {headers: [x-plan, X-Country, x-plan]}");
    let expected = "#vary-x-country=at";
    assert_eq!(key(&several, "", &[("x-country", "at")]).unwrap(), expected);
    let mut short = several;
    short.vary.max_value_bytes = 1;
    assert_eq!(key(&short, "", &[("x-country", "at")]), Err(HeaderTooLong));
}

#[test]
fn a_vary_that_names_what_every_key_has_asks_for_nothing_more() {
    let scheme = "edge.test/page#vary-x-forwarded-proto=https";
    let with = http_policy("key: {headers: [x-forwarded-proto, user-agent]}");
    for vary in ["X-Forwarded-Proto", "x-forwarded-proto, User-Agent"] {
        assert_eq!(fit(&with, scheme, Some(vary)), keyed(), "{vary}");
    }
    let learnt = unkeyed("a,b,c,d");
    let vary = Some("a, b, c, d, x-forwarded-proto");
    assert_eq!(fit(&with, scheme, vary), learnt, "they do not count");
    let bucket = bucket_policy("key: {headers: [origin]}\nresponse: {ignore_vary: []}");
    assert_eq!(fit(&bucket, URL, Some("Origin")), keyed());
}

#[test]
fn a_client_is_told_what_the_origin_said_and_what_the_edge_chooses_by() {
    let (http, bucket) = (http(), bucket());
    for (policy, vary, chooses, expected) in [
        (&http, None, false, None),
        (&http, Some("Accept"), false, Some("Accept")),
        (
            &http,
            Some("accept , Accept"),
            true,
            Some("accept, Accept-Encoding"),
        ),
        (
            &http,
            Some("accept-encoding"),
            true,
            Some("accept-encoding"),
        ),
        (&http, Some("*"), true, Some("*")),
        (&http, None, true, Some("Accept-Encoding")),
        (&bucket, Some("Origin, Accept-Encoding"), false, None),
        (&bucket, Some("Origin"), true, Some("Accept-Encoding")),
    ] {
        assert_eq!(told(policy, vary, None, chooses).as_deref(), expected);
    }
    for (already, expected) in [
        ("Origin", Some("accept, Accept-Encoding")),
        ("accept-encoding", Some("accept")),
        ("Accept,Accept-Encoding", None),
        ("*", None),
    ] {
        let told = told(&http, Some("accept"), Some(already), true);
        assert_eq!(told.as_deref(), expected);
    }
}

#[test]
fn the_first_variant_of_a_url_has_a_key_of_its_own_and_is_stored_under_the_plain_one() {
    let policy = http();
    let plain = canonicalize_path(&policy, b"/page").unwrap();
    assert!(plain.is_stored_plainly() && plain.variant().is_empty());
    let mut variant = plain.clone();
    let names = VaryNames::parse("accept,x-plan");
    qualify_variant(&policy, &mut variant, &names, |_| Some("a/b".into())).unwrap();
    assert_eq!(variant.variant(), "vary-accept=a/b;vary-x-plan=a/b");
    assert!(!variant.is_stored_plainly());
    assert_eq!(variant.stored_key(), variant.cache_key());
    assert_eq!(variant.plain(), plain);
    let (plain_key, key) = (plain.cache_key(), variant.cache_key());
    assert_eq!(variant_of(plain_key, key), Some(variant.variant()));
    assert_eq!(key_of_variant(plain_key, variant.variant()), key);
    assert_eq!(VaryNames::beyond(plain_key, key), Some(names));
    let mut plain_variant = variant.clone();
    plain_variant.take_plain_key();
    assert_eq!(
        (plain_variant.cache_key(), plain_variant.stored_key()),
        (key, plain_key)
    );
    assert_eq!(plain_variant.stored_key(), plain.stored_key());
    assert_ne!(plain_variant.stored_key(), variant.stored_key());
    assert!(!plain_variant.for_headers().is_stored_plainly());
    assert_eq!(plain_variant.unqualified(), plain);
}

#[test]
fn what_is_no_variant_of_a_url_has_no_names() {
    for (plain, other) in [
        ("h/a", "h/a"),
        ("h/a", "h/b#vary-x=1"),
        ("h/a", "h/ab#vary-x=1"),
        ("h/a", "h/a#g=1"),
        ("h/a", "h/a#vary-x=1;method=HEAD"),
        ("h/a#g=1", "h/a#g=12;vary-x=1"),
        ("h/a#g=1", "h/a#vary-x=1"),
    ] {
        assert_eq!(VaryNames::beyond(plain, other), None, "{plain} {other}");
    }
    let names = VaryNames::beyond("h/a#g=1", "h/a#g=1;ae=br;vary-x=");
    assert_eq!(names, Some(VaryNames::parse("x,accept-encoding")));
}

proptest! {
    #[test]
    fn the_value_of_a_key_is_the_same_once_more(
        name in "accept(-language|-charset)?|x-plan", value in "[a-cA ,;=q0.1]{0,24}",
    ) {
        let policy = http();
        let first = key(&policy, &name, &[(&name, &value)]).unwrap();
        let selected: Vec<_> = selected(&first).collect();
        let again = selected[0].value.clone().unwrap();
        let again = String::from_utf8(again).unwrap();
        prop_assert_eq!(key(&policy, &name, &[(&name, &again)]).unwrap(), first);
    }

    #[test]
    fn requests_with_different_values_have_different_keys_and_each_says_what_to_ask_for(
        one in proptest::option::of("[ -~]{0,12}"), other in proptest::option::of("[ -~]{0,12}"),
    ) {
        let policy = http();
        let of = |value: &Option<String>| {
            let headers: Vec<_> = value.iter().map(|value| ("x-plan", value.as_str())).collect();
            key(&policy, "x-plan", &headers).unwrap()
        };
        let trimmed = |value: &Option<String>| value.as_ref().map(|value| value.trim().to_owned());
        prop_assert_eq!(of(&one) == of(&other), trimmed(&one) == trimmed(&other));
        let expected = SelectingHeader {
            name: "x-plan".to_owned(),
            value: trimmed(&one).map(String::into_bytes),
        };
        prop_assert_eq!(selected(&of(&one)).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn what_is_learnt_fits(vary in "[a-d*, ]{0,12}", keyed in "([a-d](,[a-d]){0,3})?") {
        let policy = http();
        let mut target = canonicalize_path(&policy, b"/page").unwrap();
        qualify_variant(&policy, &mut target, &VaryNames::parse(&keyed), |_| None).unwrap();
        if let Ok(names) = fit(&policy, target.cache_key(), Some(&vary)) && !names.is_empty() {
            let mut target = canonicalize_path(&policy, b"/page").unwrap();
            qualify_variant(&policy, &mut target, &names, |_| Some("x".into())).unwrap();
            prop_assert!(qualifiers(target.path()).count() <= policy.vary.max_headers);
            prop_assert_eq!(fit(&policy, target.cache_key(), Some(&vary)), Ok(VaryNames::default()));
        }
    }

    #[test]
    fn values_of_whatever_bytes_have_keys_of_their_own_and_are_asked_for_byte_for_byte(
        one in proptest::collection::vec(1..=255_u8, 1..12),
        other in proptest::collection::vec(1..=255_u8, 1..12),
    ) {
        let policy = http_policy("key: {headers: [x-plan]}");
        let of = |value: &[u8]| {
            let mut target = canonicalize_path(&policy, b"/page").unwrap();
            qualify(&policy, &mut target, |_| Some(value.to_vec().into())).unwrap();
            target.path().to_owned()
        };
        let trimmed = |value: &[u8]| {
            let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
            let first = value.iter().position(|byte| !blank(byte)).unwrap_or(value.len());
            let last = value.iter().rposition(|byte| !blank(byte)).map_or(first, |last| last + 1);
            value[first..last].to_vec()
        };
        prop_assert_eq!(of(&one) == of(&other), trimmed(&one) == trimmed(&other));
        prop_assert!(of(&one).is_ascii());
        let key = of(&one);
        let asked: Vec<_> = selected(&key).collect();
        let expected = SelectingHeader {
            name: "x-plan".to_owned(),
            value: Some(trimmed(&one)),
        };
        prop_assert_eq!(asked, [expected]);
    }

    #[test]
    fn no_bytes_in_a_header_of_negotiation_panic(
        name in "accept(-language|-charset|-encoding)?",
        value in proptest::collection::vec(any::<u8>(), 0..24),
    ) {
        let policy = http_policy("vary: {accept: [image/avif]}");
        let mut target = canonicalize_path(&policy, b"/page").unwrap();
        let names = VaryNames::parse(&name);
        qualify_variant(&policy, &mut target, &names, |_| Some(value.clone().into())).unwrap();
        prop_assert!(target.path().is_ascii());
        let vary = FieldValue::new(&value);
        let _ = vary::fit(&policy, URL, Some(vary));
        let _ = vary::told(&policy, Some(vary), Some(vary), true);
    }
}

#[test]
fn a_value_that_is_no_text_is_in_the_key_by_its_bytes() {
    let policy = http();
    for (name, value, expected) in [
        ("x-plan", &b"evil;\xff"[..], "#vary-x-plan=evil%3B%FF"),
        (
            "accept-language",
            b"XX, \xff",
            "#vary-accept-language=xx,%FF",
        ),
        ("accept-encoding", b"br, \xff", "#ae=br"),
    ] {
        let mut target = canonicalize_path(&policy, b"/page").unwrap();
        let names = VaryNames::parse(name);
        qualify_variant(&policy, &mut target, &names, |_| {
            Some(value.to_vec().into())
        })
        .unwrap();
        assert_eq!(target.path().trim_start_matches("/page"), expected);
    }
}

#[test]
fn a_vary_that_is_no_text_is_unreadable_whatever_else_it_names() {
    for vary in [&b"\xff"[..], b"accept, \xff", b"\xff, *"] {
        let vary = Some(FieldValue::new(vary));
        assert_eq!(vary::fit(&http(), URL, vary), UNREADABLE);
        assert_eq!(vary::fit(&bucket(), URL, vary), UNREADABLE);
    }
}

#[test]
fn a_key_is_asked_for_by_a_spelling_of_its_value_and_by_nothing_that_it_leaves_out() {
    let policy = http_policy("vary: {accept: [image/avif, image/webp]}");
    let is_asked = |name: &str, sent: Option<&'static str>| {
        let mut target = canonicalize_path(&policy, b"/page").unwrap();
        let names = VaryNames::parse(name);
        let value = |_: &str| sent.map(JoinedValue::from);
        qualify_variant(&policy, &mut target, &names, value).unwrap();
        selected(target.path()).all(|selected| selected.is_asked_by(sent.map(Into::into)))
    };
    for (name, sent, expected) in [
        ("accept-language", Some("de-AT, en ;q=0.5"), true),
        ("accept-language", Some(""), true),
        ("accept-language", None, true),
        ("x-plan", Some(" Gold "), true),
        ("accept", Some("image/avif, image/webp, */*"), true),
        ("accept", Some("*/*"), true),
        ("accept", Some("image/webp,image/avif;q=0.1"), false),
        ("accept", Some("application/json,*/*"), false),
        ("accept", None, false),
    ] {
        assert_eq!(is_asked(name, sent), expected, "{name}: {sent:?}");
    }
}
