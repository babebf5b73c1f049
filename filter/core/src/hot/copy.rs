// SPDX-License-Identifier: Apache-2.0
//! A whole response in the form that clients get.

use std::sync::Arc;

use super::store_check::{HotAnswer, StoreCheck};
use crate::workers::{KeyHash, Millis};

/// Size of a copy beside its texts, in bytes: the copy itself, its entries in the tier's tables, and the overhead of
/// an allocator for its four pieces of memory.
const OVERHEAD: usize = 256;

/// A lookup for one request.
#[derive(Clone, Copy, Debug)]
pub struct HotLookup<'a> {
    /// The whole cache key.
    pub key: &'a str,
    /// The hash under which workers hold the hint that the stored response is fresh.
    pub known_as: KeyHash,
    /// The number of the request's policy.
    pub policy: u32,
}

/// A response and what it was stored under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotCopy {
    /// The whole cache key, because short hashes may collide.
    pub key: String,
    /// The hash under which it was known to be fresh. It changes with a soft purge.
    pub known_as: KeyHash,
    /// The number of the policy that its headers were made with.
    pub policy: u32,
    /// The check that limits how long it stands for the stored response.
    pub sighting: StoreCheck,
    /// Its status.
    pub status: u16,
    /// Its header fields in the host's encoding, except fields that are made for each response.
    pub headers: Vec<u8>,
    /// Whether it has an `Age`.
    pub aged: bool,
    /// Whether it has a media type.
    pub typed: bool,
    /// Its body, which other workers' copies may share.
    pub body: Arc<[u8]>,
}

impl HotCopy {
    /// Its size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        OVERHEAD + self.key.capacity() + self.headers.capacity() + self.body.len()
    }

    /// Whether it is the response that the store would serve at `now` for that lookup.
    pub fn stands_for(&self, wanted: &HotLookup<'_>, now: Millis) -> Option<HotAnswer> {
        let known = self.policy == wanted.policy && self.known_as == wanted.known_as;
        if !known || self.key != wanted.key {
            return None;
        }
        self.sighting.at(now)
    }
}
