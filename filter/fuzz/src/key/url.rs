// SPDX-License-Identifier: Apache-2.0
//! Fuzzes request targets. Each is refused, or has one canonical form, which every parser reads in the same way.
//!
//! Input: the policy's number, `:authority` up to the first newline, `:path`.
#![no_main]
// A fuzz target reports what it finds by a panic.
#![allow(clippy::panic)]

use libfuzzer_sys::fuzz_target;
use sluice_core::key::secret::StoreSecret;
use sluice_core::key::{CanonicalTarget, Target, canonicalize};
use sluice_core::policy::{Origin, Policy};
use sluice_fuzz::policy;
use sluice_store::{store_path, without_hash};

const POLICIES: [&str; 5] = [
    r#"{"origin": {"kind": "bucket", "bucket": "site", "authority": "s3.test:9000"}}"#,
    r#"{"origin": {"kind": "bucket", "bucket": "site", "prefix": "a b/c", "authority": "s3.test"},
        "key": {"index_document": "index.html", "query": {"allow": ["v", "w"]}}}"#,
    r#"{"origin": {"kind": "bucket", "bucket": "site", "authority": "s3.test"},
        "key": {"merge_slashes": false, "max_bytes": 64}}"#,
    r#"{"origin": {"kind": "http"}}"#,
    r#"{"origin": {"kind": "http", "authority": "origin.test"},
        "key": {"merge_slashes": true, "query": {"mode": "sort", "remove": ["utm_*", "v"]}}}"#,
];

fuzz_target!(|input: &[u8]| {
    let Some((number, rest)) = input.split_first() else {
        return;
    };
    let policy = policy(&POLICIES, *number);
    let mut parts = rest.splitn(2, |byte| *byte == b'\n');
    let target = Target {
        scheme: Some("http"),
        authority: parts.next().unwrap_or_default(),
        path: parts.next().unwrap_or_default(),
    };
    if let Ok(canonical) = canonicalize(policy, &target) {
        check(policy, &canonical);
    }
});

fn check(policy: &Policy, canonical: &CanonicalTarget) {
    let key = canonical.cache_key();
    let harmless = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    assert!(key.bytes().all(harmless), "{key:?}");
    assert_eq!(canonical.path(), canonical.origin_path());
    let stored = store_path(&StoreSecret::new([1, 2]), canonical);
    assert_eq!(without_hash(&stored), canonical.path());

    let path = canonical.path();
    let resource = match &policy.origin {
        Origin::Http(_) => path,
        Origin::Bucket(bucket) => path
            .strip_prefix(&bucket.path_prefix)
            .unwrap_or_else(|| panic!("{path:?} has left {:?}", bucket.path_prefix)),
    };
    let path = resource.split('?').next().unwrap_or_default();
    assert!(!path.contains('\\'), "a backslash in {path:?}");
    let spelled = path.to_ascii_uppercase();
    // Some parsers treat a backslash as a slash, and some decode before they split.
    for segment in spelled.replace("%5C", "/").replace("%2F", "/").split('/') {
        assert!(!matches!(segment, "." | ".."), "a dot segment in {path:?}");
        // Servlet containers remove parameters before they resolve dots.
        let name = segment.replace("%3B", ";");
        let name = name.split(';').next().unwrap_or_default();
        let followed = matches!(policy.origin, Origin::Http(_)) && matches!(name, "." | "..");
        assert!(!followed, "a dot segment with a parameter in {path:?}");
    }
    let escapes: &[&str] = match &policy.origin {
        Origin::Bucket(_) => &["%2E", "%2F", "%00"],
        Origin::Http(_) => &["%2E"],
    };
    for escape in escapes {
        assert!(!spelled.contains(escape), "{escape} in {path:?}");
    }

    let again = Target {
        scheme: Some("http"),
        authority: canonical.authority().as_bytes(),
        path: resource.as_bytes(),
    };
    assert_eq!(
        canonicalize(policy, &again).as_ref(),
        Ok(canonical),
        "the canonical spelling has another one"
    );
}
