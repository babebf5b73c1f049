// SPDX-License-Identifier: Apache-2.0
//! The bytes of free space that the disk under the cache lacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes that the cache should give back. The watch publishes them, and the keeper evicts for them.
#[derive(Clone, Debug, Default)]
pub struct Shortage(Arc<AtomicU64>);

impl Shortage {
    /// Sets the bytes that the cache should give back; 0: none. This replaces the value that was published before.
    pub fn publish(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// The bytes that the cache should give back now; 0: none.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
