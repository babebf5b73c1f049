// SPDX-License-Identifier: Apache-2.0
//! Objects that are known to be missing.

use sluice_core::workers::Millis;

use super::Keys;

/// The kind of a missing object.
#[derive(Clone, Copy, Debug)]
pub enum MissingObject {
    /// The object is a directory.
    Directory,
    /// The object is not a directory. The bucket has answered with this status.
    Missing(u16),
}

impl Keys {
    /// The kind of the missing object at `url`, if it is known to be missing.
    pub fn missing_object(&self, url: &str) -> Option<MissingObject> {
        let (missing, until) = self.missing.peek(self.key_hash(url))?;
        (*until > self.host.monotonic_millis()).then_some(*missing)
    }

    /// Remembers for `known_for` milliseconds that the object at `url` is missing.
    pub fn learn_missing(&mut self, url: &str, missing: MissingObject, known_for: Millis) {
        if known_for == 0 {
            return;
        }
        let until = self.host.monotonic_millis().saturating_add(known_for);
        self.missing.insert(self.key_hash(url), (missing, until));
    }
}
