// SPDX-License-Identifier: Apache-2.0
//! The declared soft number of a cache key.

use super::qualifiers::is_for_slice;
use crate::policy::Policy;

impl Policy {
    /// The declared soft number for a cache key; 0 if there is none. Slices have none: the index of their object is
    /// validated instead.
    pub fn declared_soft(&self, cache_key: &str) -> u64 {
        if !self.declared.has_soft() || is_for_slice(cache_key) {
            return 0;
        }
        let path = cache_key.find('/').and_then(|start| cache_key.get(start..));
        self.declared
            .soft(self.client_path(path.unwrap_or_default()))
    }
}
