// SPDX-License-Identifier: Apache-2.0
//! Access to the hot tier by key.

use std::rc::Rc;

use sluice_core::hot::{HotAnswer, HotCopy, HotLookup, SiteNumber};
use sluice_core::metrics::Metric;
use sluice_core::workers::Millis;

use super::Keys;

impl Keys {
    /// The hot copy of the response that the store would serve at `now`, a Unix time in milliseconds.
    pub fn hot_copy(
        &self,
        site: SiteNumber,
        wanted: &HotLookup<'_>,
        now: Millis,
    ) -> Option<(Rc<HotCopy>, HotAnswer)> {
        if self.hot.is_empty() {
            return None;
        }
        let key = self.entry_hash(wanted.key);
        self.hot.get(site, key, wanted, now)
    }

    /// Whether to copy a body of `length` bytes that passes to a client.
    pub fn wants_copy(&mut self, site: SiteNumber, cache_key: &str, length: usize) -> bool {
        self.hot.wants(site, self.entry_hash(cache_key), length)
    }

    /// Inserts a copy, if the hot tier admits it.
    pub fn keep_copy(&mut self, site: SiteNumber, mut copy: HotCopy) {
        let key = self.entry_hash(&copy.key);
        copy.body = self.host.share_body(key, copy.body);
        let kept = self.hot.insert(site, key, copy);
        if kept.admitted {
            self.metrics.count(Metric::HotAdmissions, 1);
        }
        if kept.evicted > 0 {
            self.metrics.count(Metric::HotEvictions, kept.evicted);
        }
        self.publish_hot();
    }

    /// Removes the hot copy of a key, because the store has another response or has asked the origin.
    pub fn drop_hot_copy(&mut self, site: SiteNumber, cache_key: &str) {
        if !self.hot.is_empty() {
            self.hot.remove(site, self.entry_hash(cache_key));
        }
    }

    /// Publishes the number of objects and bytes in the hot tier.
    pub fn publish_hot(&self) {
        let bytes = usize::try_from(self.hot.bytes()).unwrap_or(usize::MAX);
        let objects = self.hot.len();
        self.metrics.publish(&[
            (Metric::HotObjectsNow, objects),
            (Metric::HotBytesNow, bytes),
        ]);
    }
}
