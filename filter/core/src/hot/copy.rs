// SPDX-License-Identifier: Apache-2.0
//! A whole response as clients get it.

use std::sync::Arc;

use super::store_check::{HotAnswer, StoreCheck};
use crate::workers::{KeyHash, Millis};

/// Bytes of a copy beside its texts: the copy itself, its place in the tier's tables, and what an allocator needs
/// for its four pieces of memory.
const OVERHEAD: usize = 256;

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub struct HotLookup<'a> {
    /// The whole cache key.
    pub key: &'a str,
    /// The hash under which workers know what is stored there to be fresh.
    pub known_as: KeyHash,
    /// The number of its policy.
    pub policy: u32,
}

/// A response and what it was stored under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotCopy {
    /// The whole cache key: hashes are short.
    pub key: String,
    /// The hash under which it was known to be fresh, which is another one after a soft purge.
    pub known_as: KeyHash,
    /// The number of the policy by which its headers were made.
    pub policy: u32,
    /// Up to when it stands for what is stored.
    pub sighting: StoreCheck,
    /// Its status.
    pub status: u16,
    /// Its header fields but those that are made anew each time, in the encoding of the host.
    pub headers: Vec<u8>,
    /// Whether it says its `Age`.
    pub aged: bool,
    /// Whether it says its media type.
    pub typed: bool,
    /// Its body, which other workers' copies may share.
    pub body: Arc<[u8]>,
}

impl HotCopy {
    /// What it takes of the memory.
    pub fn bytes(&self) -> usize {
        OVERHEAD + self.key.capacity() + self.headers.capacity() + self.body.len()
    }

    /// Whether it is what the store would serve at `now` for that request.
    pub fn stands_for(&self, wanted: &HotLookup<'_>, now: Millis) -> Option<HotAnswer> {
        let known = self.policy == wanted.policy && self.known_as == wanted.known_as;
        if !known || self.key != wanted.key {
            return None;
        }
        self.sighting.at(now)
    }
}
