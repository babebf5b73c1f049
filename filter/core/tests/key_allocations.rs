// SPDX-License-Identifier: Apache-2.0
//! A key on the hot path costs one allocation.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use sluice_core::policy::Policy;
use support::{bucket, canonicalize_path, http};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

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
