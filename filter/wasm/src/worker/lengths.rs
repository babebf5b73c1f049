// SPDX-License-Identifier: Apache-2.0
//! A worker's part in knowing the lengths of stored bodies.

use sluice_core::board::Millis;
use sluice_core::body_lengths::BodyId;
use sluice_core::policy::StoreVersion;
use sluice_core::purge::News;
use sluice_core::range::ByteRange;

use super::Worker;
use crate::host;
use crate::stream::Stream;

/// How long a request may take to the store.
const ON_THE_WAY: Millis = 1_000;

impl Worker {
    /// The range that the store is to cut out, where it is sure to answer 206: the v2 store reads no more than
    /// that, and the v1 store does not end such a response. The v2 store cuts by the length of what it has, even if
    /// it asks the origin first and gets something else, so it is not sure where it may ask.
    pub(super) fn range_for_store(&mut self, stream: &Stream) -> Option<ByteRange> {
        let demand = stream.demand.as_ref()?;
        if stream.head || stream.policy.policy.store == StoreVersion::V1 {
            return None;
        }
        let length = self.lengths.get(stream.key).copied()?;
        let range = demand.range_within(length)?;
        let now = host::monotonic_millis();
        let asks = self.coalescer.hints().left(stream.key, now) < ON_THE_WAY;
        let sure = !asks && !self.may_change(stream.target.cache_key());
        sure.then_some(range)
    }

    /// The number of bytes of a stored body, if somebody has counted them.
    pub fn body_length(&mut self, cache_key: &str, body: BodyId) -> Option<u64> {
        let key = self.url_hash(cache_key);
        self.body_lengths.get(key, body)
    }

    /// All of a stored body has passed.
    pub fn note_body_length(&mut self, cache_key: &str, body: BodyId, bytes: u64) {
        let key = self.url_hash(cache_key);
        self.body_lengths.note(key, body, bytes);
    }

    /// All of a body has gone into the store. Other workers are told, so that all answer alike; who misses it
    /// learns it from the next whole response.
    pub fn tell_body_length(&mut self, cache_key: &str, body: BodyId, bytes: u64) {
        let key = self.url_hash(cache_key);
        self.body_lengths.note(key, body, bytes);
        let news = News::Length {
            worker: self.id(),
            key,
            body,
            bytes,
        };
        let others = self.others().unwrap_or_default();
        self.spread(&others, &news, "a worker was not told of a length");
    }
}
