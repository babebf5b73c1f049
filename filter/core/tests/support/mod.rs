// SPDX-License-Identifier: Apache-2.0
//! Policies for the tests, and what each needs of them.
#![allow(dead_code)]

pub mod flights;

use std::time::Duration;

use sluice_core::key::{CanonicalTarget, Rejection, Target, canonicalize};
use sluice_core::policy::{
    BucketOrigin, CachePolicy, CoalescePolicy, CookieRule, HttpOrigin, KeyPolicy, Limits, Origin,
    Policy, QueryRule, RequestPolicy, ResponsePolicy, StoreVersion, TtlTable,
};

/// A bucket `site` without a prefix, path style, defaults.
pub fn bucket() -> Policy {
    policy(
        Origin::Bucket(BucketOrigin {
            authority: "s3.test:9000".to_owned(),
            path_prefix: "/site".to_owned(),
            prefix_bytes: 0,
        }),
        KeyPolicy {
            host: false,
            merge_slashes: true,
            query: QueryRule::Drop { allow: Vec::new() },
            max_bytes: 1024,
            index_document: None,
        },
    )
}

/// Any other origin, defaults.
pub fn http() -> Policy {
    policy(
        Origin::Http(HttpOrigin { authority: None }),
        KeyPolicy {
            host: true,
            merge_slashes: false,
            query: QueryRule::Keep { remove: Vec::new() },
            max_bytes: 1024,
            index_document: None,
        },
    )
}

fn policy(origin: Origin, key: KeyPolicy) -> Policy {
    Policy {
        store: StoreVersion::V2,
        origin,
        key,
        request: RequestPolicy {
            forward_headers: Vec::new(),
            cookies: CookieRule::Pass,
        },
        response: ResponsePolicy {
            remove_headers: Vec::new(),
            ignore_vary: Vec::new(),
        },
        cache: CachePolicy {
            ttl: TtlTable {
                exact: Vec::new(),
                class: [None; 5],
                default: Duration::from_secs(1),
            },
            honor_cache_control: true,
            hit_for_miss: Duration::from_secs(120),
            max_object_bytes: 1 << 28,
        },
        coalesce: CoalescePolicy {
            enabled: true,
            max_wait: Duration::from_secs(5),
            lease: Duration::from_secs(3),
        },
        limits: Limits {
            waiters_per_key: 10_000,
            keys_in_flight: 8192,
            hints: 65_536,
        },
    }
}

/// What becomes of a path on a host of which nothing special is known.
pub fn canonicalize_path(policy: &Policy, path: &[u8]) -> Result<CanonicalTarget, Rejection> {
    let target = Target {
        scheme: Some("http"),
        authority: b"edge.test",
        path,
    };
    canonicalize(policy, &target)
}

/// A table's row: its name, the path as sent, and the canonical path or why there is none.
pub type Row = (&'static str, &'static [u8], Result<&'static str, Rejection>);

/// Checks every row and shows all that fail.
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
