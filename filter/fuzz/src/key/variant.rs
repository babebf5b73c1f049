// SPDX-License-Identifier: Apache-2.0
//! Fuzzes `Accept-Encoding`, `Vary` and request headers. A chosen coding is one that the client accepts. The `Vary`
//! of a response is learned in one step. The request to the origin has the headers that are in the key.
//!
//! Input: the policy's number, then a line each for `Accept-Encoding`, `Vary`, another `Vary`, and for the values of
//! the request headers that they name.
#![no_main]
// A fuzz target reports what it finds by a panic.
#![allow(clippy::expect_used, clippy::panic)]

use libfuzzer_sys::fuzz_target;
use sluice_core::http::accept_encoding::{Coding, negotiate};
use sluice_core::http::syntax::field_value::{FieldValue, JoinedValue};
use sluice_core::key::qualifiers::{qualifiers, unqualified};
use sluice_core::key::secret::StoreSecret;
use sluice_core::key::vary::{VaryNames, fit, qualify_variant, selected, told};
use sluice_core::key::{CanonicalTarget, Target, canonicalize};
use sluice_core::policy::Policy;
use sluice_fuzz::policy;
use sluice_store::{store_path, without_hash};

const POLICIES: [&str; 4] = [
    r#"{"origin": {"kind": "http"}}"#,
    r#"{"origin": {"kind": "http"}, "vary": {"max_headers": 8, "max_value_bytes": 16, "forbid": ["x"]}}"#,
    r#"{"origin": {"kind": "http"}, "compression": {"enabled": true, "codings": ["gzip", "br"]}}"#,
    r#"{"origin": {"kind": "bucket", "bucket": "site", "authority": "s3.test"}}"#,
];
const CODINGS: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

fuzz_target!(|input: &[u8]| {
    let Some((number, text)) = input.split_first() else {
        return;
    };
    let policy = policy(&POLICIES, *number);
    let mut lines = text.split(|byte| *byte == b'\n').map(FieldValue::new);
    let mut line = || lines.next().unwrap_or(FieldValue::new(b""));
    let (accept_encoding, vary, other_vary) = (line(), line(), line());
    let values: Vec<FieldValue<'_>> = lines.collect();
    check_coding(accept_encoding);
    check_told(policy, vary, other_vary);
    let mut target = page(policy);
    for vary in [vary, other_vary] {
        if let Some(learnt) = learn(policy, &target, vary, &values) {
            target = learnt;
        }
    }
});

fn page(policy: &Policy) -> CanonicalTarget {
    let target = Target {
        scheme: Some("http"),
        authority: b"edge.test",
        path: b"/page",
    };
    canonicalize(policy, &target).expect("a URL")
}

/// Checks that a coding that is chosen among several is also chosen if it is the only one, and that no coding is
/// acceptable if none is chosen.
fn check_coding(header: FieldValue<'_>) {
    let chosen = negotiate(Some(header), &CODINGS);
    for coding in CODINGS {
        let alone = negotiate(Some(header), &[coding]);
        if chosen == Some(coding) {
            assert_eq!(alone, chosen);
            let lower = String::from_utf8_lossy(header.bytes()).to_ascii_lowercase();
            assert!(lower.contains(coding.token()) || lower.contains('*'));
        }
        assert!(chosen.is_some() || alone.is_none(), "{coding:?} was missed");
        assert_eq!(
            negotiate(Some(coding.token().into()), &CODINGS),
            Some(coding)
        );
    }
}

/// Checks that the client's `Vary` names all headers that a response varies with, whatever it names already.
fn check_told(policy: &Policy, stored: FieldValue<'_>, already: FieldValue<'_>) {
    let more = told(policy, Some(stored), Some(already), true).unwrap_or_default();
    // A `Vary` that is not text is sent unchanged, and its response is not stored.
    let (Ok(stored), Ok(already)) = (stored.text(), already.text()) else {
        return;
    };
    let said = format!("{already},{more}").to_ascii_lowercase();
    let said: Vec<&str> = said.split(',').map(str::trim).collect();
    let ignored = |name: &str| {
        policy
            .response
            .ignore_vary
            .iter()
            .any(|listed| listed == name)
    };
    for name in stored.to_ascii_lowercase().split(',').map(str::trim) {
        assert!(
            name.is_empty() || ignored(name) || said.contains(&name) || said.contains(&"*"),
            "{name:?} is not in {said:?}"
        );
    }
}

/// The target for the same request after a response with `vary`; `None` if the response is not stored, or if the
/// target stays the same.
fn learn(
    policy: &Policy,
    target: &CanonicalTarget,
    vary: FieldValue<'_>,
    values: &[FieldValue<'_>],
) -> Option<CanonicalTarget> {
    let names = fit(policy, target.cache_key(), Some(vary)).ok()?;
    if names.is_empty() {
        return None;
    }
    assert!(names.iter().count() <= policy.vary.max_headers);
    let forbidden = |name: &str| name == "*" || policy.vary.forbid.iter().any(|no| no == name);
    assert!(!names.iter().any(forbidden), "{names:?}");
    assert_eq!(VaryNames::parse(names.as_str()), names);
    let sent = |name: &str| {
        let position = names.iter().position(|other| other == name)?;
        values
            .get(position)
            .map(|value| JoinedValue::from(value.bytes().to_vec()))
    };
    let mut learnt = target.unqualified();
    qualify_variant(policy, &mut learnt, &names, sent).ok()?;
    assert_eq!(
        fit(policy, learnt.cache_key(), Some(vary)),
        Ok(VaryNames::default())
    );
    assert_eq!(unqualified(learnt.path()), target.origin_path());
    // The request has no header of the policy's key, so these add no qualifiers.
    assert_eq!(qualifiers(learnt.path()).count(), names.iter().count());
    check_selected(policy, &learnt, &names);
    Some(learnt)
}

/// Checks that the request to the origin makes the same key.
fn check_selected(policy: &Policy, target: &CanonicalTarget, names: &VaryNames) {
    // The request to the origin has the path that the store has.
    let stored = store_path(&StoreSecret::new([1, 2]), target);
    assert_eq!(without_hash(&stored), target.path());
    let asked: Vec<_> = selected(&stored).collect();
    let value = |name: &str| {
        let header = asked.iter().find(|header| header.name == name);
        header.and_then(|header| header.value.clone().map(JoinedValue::from))
    };
    let mut again = target.unqualified();
    if qualify_variant(policy, &mut again, names, value).is_err() {
        panic!("{asked:?} is longer than what was sent");
    }
    assert_eq!(again.cache_key(), target.cache_key());
}
