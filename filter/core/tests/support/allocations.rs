// SPDX-License-Identifier: Apache-2.0
//! Memory that each thread allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Number of allocations.
    pub static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Bytes that are allocated and not freed.
    pub static BYTES: Cell<isize> = const { Cell::new(0) };
    /// The most bytes since a test has set this.
    pub static MOST: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(change: isize) {
    BYTES.set(BYTES.get() + change);
    MOST.set(MOST.get().max(BYTES.get()));
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        count(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;
