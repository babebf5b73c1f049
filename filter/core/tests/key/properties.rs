// SPDX-License-Identifier: Apache-2.0
//! Properties of every URL in any spelling.
#![allow(clippy::unwrap_used)]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use sluice_core::http::url::escaping::escape_key;
use sluice_core::key::qualifiers::{self, unqualified};
use sluice_core::key::{Target, canonicalize};
use sluice_core::policy::{HttpOrigin, NamePattern, Origin, Policy, QueryRule};

use crate::support::{bucket, canonicalize_path, http};

/// Bytes and pieces with a meaning to a parser of paths, among others without one.
fn hostile_path() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&'static [u8]> = vec![
        b"/",
        b"/",
        b"/",
        b".",
        b".",
        b"..",
        b"/../",
        b"/./",
        b"//",
        b"%",
        b"%2",
        b"%2e",
        b"%2E",
        b"%2f",
        b"%2F",
        b"%5c",
        b"%5C",
        b"\\",
        b"%25",
        b"%252e",
        b"%00",
        b"%0a",
        b"%41",
        b"%7e",
        b"%c3",
        b"%a9",
        b"%C3%A9",
        b"\xc3\xa9",
        b"\xff",
        b"%ff",
        b"%zz",
        b";",
        b"+",
        b"%2b",
        b" ",
        b"%20",
        b"a",
        b"b",
        b"2",
        b"e",
        b"F",
        b"~",
        b"!",
        b":",
        b"@",
        b"?",
        b"&",
        b"=",
        b"v=",
        b"%76=1",
        b"acl",
        b"utm_a=1",
        b"#",
        b"\0",
        b"\n",
        b"|",
        b"http://edge.test",
    ];
    let mixed = vec(select(pieces), 0..24).prop_map(|pieces| pieces.concat());
    let rooted = mixed
        .clone()
        .prop_map(|path| [b"/", path.as_slice()].concat());
    prop_oneof![6 => rooted, 1 => mixed, 1 => vec(any::<u8>(), 0..40)]
}

fn query_rule() -> impl Strategy<Value = QueryRule> {
    let names = || subsequence(vec!["v", "acl", "a", "utm_a"], 0..=4);
    let patterns = || {
        subsequence(
            vec![
                NamePattern::Exact("v".to_owned()),
                NamePattern::Prefix("utm_".to_owned()),
            ],
            0..=2,
        )
    };
    prop_oneof![
        names().prop_map(|names| QueryRule::Drop {
            allow: names.into_iter().map(str::to_owned).collect()
        }),
        patterns().prop_map(|remove| QueryRule::Keep { remove }),
        patterns().prop_map(|remove| QueryRule::Sort { remove }),
    ]
}

const PREFIX: &str = "/site/pre%20fix";

fn any_bucket() -> impl Strategy<Value = Policy> {
    let index = proptest::option::of(Just("index.html".to_owned()));
    (any::<bool>(), query_rule(), index).prop_map(|(merge_slashes, query, index_document)| {
        let mut policy = bucket();
        policy.key.merge_slashes = merge_slashes;
        policy.key.query = query;
        policy.key.index_document = index_document;
        if let Origin::Bucket(bucket) = &mut policy.origin {
            bucket.path_prefix = PREFIX.to_owned();
            bucket.prefix_bytes = "pre fix/".len();
        }
        policy
    })
}

fn any_http() -> impl Strategy<Value = Policy> {
    (any::<bool>(), query_rule(), any::<bool>()).prop_map(|(merge_slashes, query, fixed)| {
        let mut policy = http();
        policy.key.merge_slashes = merge_slashes;
        policy.key.query = query;
        let authority = fixed.then(|| "origin.test".to_owned());
        policy.origin = Origin::Http(HttpOrigin { authority });
        policy
    })
}

/// Segments of a key, with everything that makes a path hard to read.
fn segment() -> impl Strategy<Value = String> {
    let odd = select(vec![
        "a", ".", "..", "%", "%2e", "+", " ", "\\", "é", "🦀", ";", "?", "#", "\n", "~", "!",
    ]);
    let odd = vec(odd, 1..5).prop_map(|parts| parts.concat());
    let any = "[^/\\x00]{1,6}";
    prop_oneof![odd, any].prop_filter("a dot segment", |segment| {
        !segment.split('\\').any(|piece| matches!(piece, "." | ".."))
    })
}

/// A key as its segments.
fn key() -> impl Strategy<Value = Vec<String>> {
    vec(segment(), 1..5)
}

/// The spelling of one byte, and of the text in front of one segment.
#[derive(Clone, Copy, Debug)]
enum Whim {
    AsItIs,
    Lower,
    Upper,
}

fn whims() -> impl Strategy<Value = Vec<Whim>> {
    vec(select(vec![Whim::AsItIs, Whim::Lower, Whim::Upper]), 97)
}

fn detours() -> impl Strategy<Value = Vec<&'static str>> {
    let detours = vec![
        "",
        "",
        "",
        "./",
        "%2e/",
        "/",
        "//./",
        "x/../",
        "x%20y/%2E./",
        "x/y/.%2e/../",
    ];
    vec(select(detours), 7)
}

/// One of the many ways to write a key into a URL.
fn spell(segments: &[String], whims: &[Whim], detours: &[&str]) -> Vec<u8> {
    let mut whims = whims.iter().cycle();
    let mut path = Vec::new();
    for (segment, detour) in segments.iter().zip(detours.iter().cycle()) {
        path.push(b'/');
        path.extend(detour.bytes());
        for byte in segment.bytes() {
            let may_be_raw = !matches!(byte, 0..=b' ' | 0x7f | b'#' | b'?' | b'%');
            match whims.next() {
                Some(Whim::AsItIs) if may_be_raw => path.push(byte),
                Some(Whim::Lower) => path.extend(format!("%{byte:02x}").bytes()),
                _ => path.extend(format!("%{byte:02X}").bytes()),
            }
        }
    }
    path
}

fn decode(path: &str) -> Vec<u8> {
    let mut bytes = path.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
            let digits = std::str::from_utf8(&digits).unwrap();
            assert!(
                !digits.contains(|digit: char| digit.is_ascii_lowercase()),
                "{path}"
            );
            decoded.push(u8::from_str_radix(digits, 16).unwrap());
        } else {
            decoded.push(byte);
        }
    }
    decoded
}

fn has_dot_segment(path: &[u8]) -> bool {
    path.split(|byte| matches!(byte, b'/' | b'\\'))
        .any(|piece| matches!(piece, b"." | b".."))
}

/// The rules for a bucket, written a second time in the simplest way: decode, split, resolve, encode. `None` is a
/// rejection.
fn plain_bucket_path(path: &[u8], merge_slashes: bool) -> Option<String> {
    if path
        .iter()
        .any(|byte| matches!(byte, 0..=b' ' | 0x7f | b'#'))
    {
        return None;
    }
    let path = path.split(|&byte| byte == b'?').next()?;
    let mut segments: Vec<Vec<u8>> = Vec::new();
    for raw in path.strip_prefix(b"/")?.split(|&byte| byte == b'/') {
        let mut segment = Vec::new();
        let mut rest = raw.iter();
        while let Some(&byte) = rest.next() {
            let digit = |byte: Option<&u8>| (*byte? as char).to_digit(16);
            let byte = if byte == b'%' {
                u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?
            } else {
                byte
            };
            if matches!(byte, 0 | b'/') {
                return None;
            }
            segment.push(byte);
        }
        std::str::from_utf8(&segment).ok()?;
        segments.push(segment);
    }
    let mut resolved: Vec<Vec<u8>> = Vec::new();
    let last = segments.len() - 1;
    for (index, segment) in segments.into_iter().enumerate() {
        let is_dot = segment == b"." || segment == b"..";
        match segment.as_slice() {
            b"" if merge_slashes && index < last => continue,
            b"." => {}
            b".." => drop(resolved.pop()?),
            other if has_dot_segment(other) => return None,
            _ => resolved.push(segment),
        }
        if is_dot && index == last {
            resolved.push(Vec::new());
        }
    }
    if resolved.iter().all(Vec::is_empty) {
        return None;
    }
    let key = String::from_utf8(resolved.join(&b'/')).ok()?;
    Some(format!("/{}", escape_key(&key)))
}

fn path_of(canonical: &str) -> &str {
    canonical.split('?').next().unwrap()
}

/// Names and values of qualifiers, often almost the same.
fn qualifiers() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let name = select(vec!["a", "ae", "a=", "a;b", "", "#", "%3B"]).prop_map(str::to_owned);
    let tricky: Vec<&'static [u8]> = vec![
        b"", b"a", b"a;b=c", b"#", b"=", b"%3B", b" ", b"\xff\n", b"a%",
    ];
    let value = prop_oneof![
        4 => select(tricky).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..8),
    ];
    vec((name, value), 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_spelling_of_a_key_has_one_path(
        segments in key(), whims in whims(), detours in detours(), query in "(\\?[a-z=&%+]{0,9})?",
    ) {
        let mut path = spell(&segments, &whims, &detours);
        path.extend(query.bytes());
        let canonical = canonicalize_path(&bucket(), &path).unwrap();
        let key = segments.join("/");
        let expected = format!("/site/{}", escape_key(&key));
        prop_assert_eq!(canonical.path(), &expected);
        // No other key has this path.
        prop_assert_eq!(decode(canonical.path()), format!("/site/{key}").into_bytes());
    }

    #[test]
    fn a_bucket_path_is_what_the_plain_rules_say(
        path in hostile_path(), merge_slashes in any::<bool>(),
    ) {
        prop_assume!(!path.starts_with(b"http"));
        let mut policy = bucket();
        policy.key.merge_slashes = merge_slashes;
        let canonical = canonicalize_path(&policy, &path).ok();
        let plain = plain_bucket_path(&path, merge_slashes).map(|path| format!("/site{path}"));
        prop_assert_eq!(canonical.map(|canonical| canonical.path().to_owned()), plain);
    }

    #[test]
    fn a_bucket_path_is_strict_and_below_the_prefix(
        policy in any_bucket(), path in hostile_path(),
    ) {
        let Ok(canonical) = canonicalize_path(&policy, &path) else { return Ok(()) };
        let (path, query) = canonical.path().split_once('?').unwrap_or((canonical.path(), ""));
        let below = path.strip_prefix(PREFIX).unwrap();
        prop_assert!(below.starts_with('/') && below.len() > 1);
        let strict = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte);
        prop_assert!(path.bytes().all(strict), "{}", path);
        let upper = path.to_ascii_uppercase();
        prop_assert!(!upper.contains("%2F") && !upper.contains("%2E") && !upper.contains("%00"));
        let decoded = decode(below);
        prop_assert!(std::str::from_utf8(&decoded).is_ok());
        prop_assert!(!has_dot_segment(&decoded), "{}", path);
        if policy.key.merge_slashes {
            prop_assert!(!path.contains("//"), "{}", path);
        }
        // Only listed parameters of the query are kept.
        let listed: &[String] = match &policy.key.query {
            QueryRule::Drop { allow } => allow,
            _ => &[],
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let name = decode(parameter.split('=').next().unwrap());
            prop_assert!(listed.iter().any(|listed| listed.as_bytes() == name), "{}", query);
        }
    }

    #[test]
    fn a_canonical_bucket_path_is_its_own_canonical_path(
        policy in any_bucket(), path in hostile_path(),
    ) {
        let Ok(once) = canonicalize_path(&policy, &path) else { return Ok(()) };
        let below = once.path().strip_prefix(PREFIX).unwrap();
        prop_assert_eq!(canonicalize_path(&policy, below.as_bytes()), Ok(once.clone()));
    }

    #[test]
    fn a_canonical_http_path_is_its_own_canonical_path(
        policy in any_http(), path in hostile_path(),
    ) {
        let Ok(once) = canonicalize_path(&policy, &path) else { return Ok(()) };
        prop_assert_eq!(canonicalize_path(&policy, once.path().as_bytes()), Ok(once.clone()));
    }

    #[test]
    fn an_http_path_has_nothing_to_resolve(policy in any_http(), path in hostile_path()) {
        let Ok(canonical) = canonicalize_path(&policy, &path) else { return Ok(()) };
        let path = path_of(canonical.path());
        prop_assert!(path.starts_with('/'));
        prop_assert!(canonical.path().bytes().all(|byte| matches!(byte, b'!'..=b'~')), "{}", path);
        prop_assert!(!has_dot_segment(&decode(path)), "{}", path);
    }

    #[test]
    fn an_http_path_without_dots_keeps_its_meaning(path in "/[a-zA-Z0-9~!$&'()*+,;=:@|%/-]{0,20}") {
        // Every `%` becomes a whole escape.
        let mut bytes = (1..=u8::MAX).filter(|&byte| byte != b'.').cycle().skip(path.len() * 7);
        let mut next = || format!("%{:02X}", bytes.next().unwrap_or_default());
        let sent: String =
            path.chars().map(|c| if c == '%' { next() } else { c.to_string() }).collect();
        let canonical = canonicalize_path(&http(), sent.as_bytes()).unwrap();
        prop_assert_eq!(decode(canonical.path()), decode(&sent));
        let separators = |path: &str| path.matches('/').count();
        prop_assert_eq!(separators(canonical.path()), separators(&sent));
    }

    #[test]
    fn sorted_parameters_give_one_key_in_any_order(
        order in Just(vec!["a=1", "b=%2f", "c", "%64=4"]).prop_shuffle(),
    ) {
        let mut policy = http();
        policy.key.query = QueryRule::Sort { remove: Vec::new() };
        let path = format!("/x?{}", order.join("&"));
        let canonical = canonicalize_path(&policy, path.as_bytes()).unwrap();
        prop_assert_eq!(canonical.path(), "/x?a=1&b=%2f&c&%64=4");
    }

    #[test]
    fn a_key_tells_authority_and_path_apart(
        policy in any_http(), authority in "[a-z.:0-9\\[\\]/@-]{0,12}", path in hostile_path(),
    ) {
        let target = Target { scheme: None, authority: authority.as_bytes(), path: &path };
        let Ok(canonical) = canonicalize(&policy, &target) else { return Ok(()) };
        prop_assert!(!canonical.authority().contains('/') && canonical.path().starts_with('/'));
        let whole = format!("{}{}", canonical.authority(), canonical.path());
        prop_assert_eq!(canonical.cache_key(), whole);
        // A canonical authority is canonical.
        let authority = canonical.authority().as_bytes();
        let again = Target { scheme: None, authority, path: canonical.path().as_bytes() };
        prop_assert_eq!(canonicalize(&policy, &again), Ok(canonical.clone()));
    }

    #[test]
    fn different_qualifiers_are_different_keys_of_one_url(
        policy in any_http(), path in hostile_path(),
        one in qualifiers(), other in qualifiers(),
    ) {
        let Ok(plain) = canonicalize_path(&policy, &path) else { return Ok(()) };
        prop_assert!(!plain.cache_key().contains('#'));
        let qualified = |qualifiers: &[(String, Vec<u8>)]| {
            let mut target = plain.clone();
            for (name, value) in qualifiers {
                target.qualify(name, value);
            }
            target
        };
        let (a, b) = (qualified(&one), qualified(&other));
        prop_assert_eq!(a.cache_key() == b.cache_key(), one == other);
        prop_assert_eq!(a.url(), plain.cache_key());
        prop_assert_eq!(a.origin_path(), plain.path());
        prop_assert_eq!(unqualified(a.path()), plain.path());
        prop_assert_eq!(a.cache_key(), format!("{}{}", a.authority(), a.path()));
        prop_assert_eq!(qualifiers::qualifiers(a.path()).collect::<Vec<_>>(), one.clone());
        let added = a.cache_key().strip_prefix(a.url()).unwrap();
        prop_assert!(added.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'?'));
        prop_assert_eq!(added.matches('#').count(), usize::from(!one.is_empty()));
    }

    #[test]
    fn no_url_and_no_variant_is_taken_for_its_headers_alone(
        policy in any_http(), path in hostile_path(), variant in qualifiers(),
    ) {
        let mut tricky = path.clone();
        tricky.extend(b"#method=HEAD");
        for path in [path, tricky] {
            let Ok(mut target) = canonicalize_path(&policy, &path) else { continue };
            for (name, value) in &variant {
                target.qualify(name, value);
            }
            prop_assert!(!target.is_for_headers());
            let headers = target.for_headers();
            prop_assert!(headers.is_for_headers());
            prop_assert_eq!(headers.url(), target.url());
            prop_assert_eq!(headers.origin_path(), target.origin_path());
            prop_assert_eq!(headers.unqualified(), target.unqualified());
        }
    }

    #[test]
    fn no_bytes_are_too_strange(
        bucket in any_bucket(), http in any_http(), scheme in proptest::option::of(".{0,6}"),
        authority in vec(any::<u8>(), 0..40), path in vec(any::<u8>(), 0..200),
        host in any::<bool>(),
    ) {
        for mut policy in [bucket, http] {
            policy.key.host = host;
            for path in [path.clone(), [b"/", path.as_slice()].concat()] {
                for authority in [authority.as_slice(), b"edge.test"] {
                    let target = Target { scheme: scheme.as_deref(), authority, path: &path };
                    if let Ok(canonical) = canonicalize(&policy, &target) {
                        prop_assert!(canonical.cache_key().is_ascii());
                    }
                }
            }
        }
    }
}
