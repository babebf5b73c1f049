// SPDX-License-Identifier: Apache-2.0
//! A key on the hot path costs one allocation.

use sluice_core::policy::Policy;

use crate::support::allocations::ALLOCATIONS;
use crate::support::{bucket, canonicalize_path, http};

fn allocations(policy: &Policy, path: &str) -> usize {
    let before = ALLOCATIONS.get();
    let canonical = canonicalize_path(policy, path.as_bytes());
    let count = ALLOCATIONS.get() - before;
    assert!(canonical.is_ok(), "{path}: {canonical:?}");
    count
}

#[test]
fn a_key_costs_one_allocation() {
    for (name, policy, path) in [
        ("bucket", bucket(), "/assets/css/site.3f2a91.css"),
        (
            "bucket, escapes",
            bucket(),
            "/fotos/caf%C3%A9%20am%20See.jpg",
        ),
        ("bucket, dots and slashes", bucket(), "/a/./b//c/../d"),
        (
            "bucket, dropped query",
            bucket(),
            "/assets/app.js?v=12345&utm_source=x",
        ),
        ("http", http(), "/assets/app.js"),
        ("http, query", http(), "/search?q=caf%C3%A9&page=2"),
    ] {
        assert_eq!(allocations(&policy, path), 1, "{name}");
    }
}
