// SPDX-License-Identifier: Apache-2.0
//! Policies for the tests, and helpers for them.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

pub mod allocations;
pub mod documents;

pub use documents::{bucket_policy, bucket_refusal, cors, http_policy, http_refusal};

use sluice_core::key::{CanonicalTarget, Rejection, Target, canonicalize};
use sluice_core::policy::Policy;

/// A bucket `site` without a prefix, path style, defaults.
pub fn bucket() -> Policy {
    let origin = r#"{"origin": {"kind": "bucket", "bucket": "site", "authority": "s3.test:9000"}}"#;
    Policy::parse(origin.as_bytes()).unwrap()
}

/// Any other origin, defaults.
pub fn http() -> Policy {
    Policy::parse(br#"{"origin": {"kind": "http"}}"#).unwrap()
}

/// The target, or the rejection, for a path on a host without special settings.
pub fn canonicalize_path(policy: &Policy, path: &[u8]) -> Result<CanonicalTarget, Rejection> {
    let target = Target {
        scheme: Some("http"),
        authority: b"edge.test",
        path,
    };
    canonicalize(policy, &target)
}

/// A table's row: its name, the path of the request, and the canonical path or the rejection.
pub type Row = (&'static str, &'static [u8], Result<&'static str, Rejection>);

/// Checks every row and shows all failures.
pub fn assert_rows(policy: &Policy, rows: &[Row]) {
    let failures: Vec<String> = rows
        .iter()
        .filter_map(|(name, path, expected)| {
            let canonical = canonicalize_path(policy, path);
            let actual = canonical
                .as_ref()
                .map(CanonicalTarget::path)
                .map_err(|&why| why);
            (actual != *expected).then(|| {
                let path = String::from_utf8_lossy(path);
                format!("{name}: {path} gave {actual:?}, expected {expected:?}")
            })
        })
        .collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
