// SPDX-License-Identifier: Apache-2.0
//! How much space the disk under the cache lacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes that the watch over the free space asks for, and that the keeper gives back by evicting files.
#[derive(Clone, Debug, Default)]
pub struct Shortage(Arc<AtomicU64>);

impl Shortage {
    /// Says that the cache should give back so many bytes; 0: none. This replaces what was published before.
    pub fn publish(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// How many bytes the cache should give back now; 0: none.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Says that the cache has given back what it could: what was measured before that is not acted on again.
    pub fn settle(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
