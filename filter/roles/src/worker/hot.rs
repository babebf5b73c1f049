// SPDX-License-Identifier: Apache-2.0
//! A worker's part in the hot tier.

use std::rc::Rc;

use sluice_core::coalescing::FillVerdict;
use sluice_core::hot::{Capture, HotCopy, Still, Wanted};
use sluice_core::metrics::Metric;

use super::Worker;
use crate::reply::DueReply;
use crate::request::EdgeRequest;

impl Worker {
    /// The hot copy that the store would serve now.
    pub fn hot(&self, wanted: &Wanted<'_>) -> Option<(Rc<HotCopy>, Still)> {
        if self.known.hot.is_empty() {
            return None;
        }
        let key = self.entry_hash(wanted.key);
        let found = self.known.hot.get(key, wanted, self.host.unix_millis())?;
        self.metrics.count(Metric::RequestsHit, 1);
        self.metrics.count(Metric::HotHits, 1);
        Some(found)
    }

    /// Whether the body of `length` bytes that passes to this client should be copied.
    pub fn wants_copy(&mut self, stream: &EdgeRequest, length: usize) -> bool {
        let key = self.entry_hash(stream.target.cache_key());
        self.known.hot.wants(key, length)
    }

    /// Makes room for a copy. False if too many are being made.
    pub fn begin_capture(&mut self, capture: &Capture) -> bool {
        self.known.hot.begin(capture.length())
    }

    /// Takes what was copied of the response of `stream`, if it has come whole.
    pub fn end_capture(&mut self, stream: &EdgeRequest, capture: Capture) {
        self.known.hot.end(capture.length());
        let copy = capture.finish().map(Rc::new);
        self.share_copy(stream, copy.as_ref());
        let Some(copy) = copy else {
            return;
        };
        let key = self.entry_hash(&copy.key);
        let kept = self.known.hot.insert(key, Rc::unwrap_or_clone(copy));
        if kept.admitted {
            self.metrics.count(Metric::HotAdmissions, 1);
        }
        if kept.evicted > 0 {
            self.metrics.count(Metric::HotEvictions, kept.evicted);
        }
        self.publish_hot();
    }

    /// Gives the followers of `stream` the copy of its response, which the store does not have. Without a
    /// copy they go on by themselves.
    pub fn share_copy(&mut self, stream: &EdgeRequest, copy: Option<&Rc<HotCopy>>) {
        let Some(way) = stream.shares_copy.take() else {
            return;
        };
        let Some(copy) = copy else {
            return self.pass_without_room(stream);
        };
        self.answer_alike(stream, |follower| {
            let whole = follower.stand_in.is_none();
            whole.then(|| DueReply::Copied(Rc::clone(copy), Rc::clone(follower), way))
        });
        self.turn(stream.id.0, |coalescer, turn| {
            coalescer.fill_copied(stream.id, turn);
        });
    }

    /// Lets the followers of `stream` go to the origin: the store has no room for its response.
    pub fn pass_without_room(&mut self, stream: &EdgeRequest) {
        self.turn(stream.id.0, |coalescer, turn| {
            coalescer.fill_headers(stream.id, FillVerdict::NoRoom, turn);
        });
    }

    /// Gives up a copy that is being made.
    pub fn drop_capture(&mut self, capture: &Capture) {
        self.known.hot.end(capture.length());
    }

    /// Drops the hot copy of a key: the store has another response, or has asked the origin.
    pub fn drop_hot_copy(&mut self, cache_key: &str) {
        if !self.known.hot.is_empty() {
            self.known.hot.remove(self.entry_hash(cache_key));
        }
    }

    pub(super) fn publish_hot(&mut self) {
        let bytes = usize::try_from(self.known.hot.bytes()).unwrap_or(usize::MAX);
        let values = [
            (Metric::HotObjectsNow, self.known.hot.len()),
            (Metric::HotBytesNow, bytes),
        ];
        self.metrics.set_gauges(&values);
    }
}
