// SPDX-License-Identifier: Apache-2.0
//! Budget of fills that no client reads.
//!
//! A client that requests one byte of each of many URLs would have the origin send every object whole. Therefore each
//! worker limits such fills: the number at one time, and the bytes per minute. An object of unknown length counts as
//! the largest possible until its headers arrive.

use std::collections::HashMap;

use crate::minute_budget::MinuteBudget;
use crate::policy::Policy;
use crate::workers::{KeyHash, Millis, StreamId};

/// A fill that no client reads, or less than half of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnreadFill {
    /// A fill in the background, for a key.
    Background(KeyHash),
    /// The fill of a client that needs less than half of the object.
    Client(StreamId),
}

/// The unread fills of one worker.
#[derive(Debug, Default)]
pub struct UnreadFills {
    /// The fills under way, each with the bytes that it counts for, and whether these are known from its headers.
    under_way: HashMap<UnreadFill, (u64, bool)>,
    /// Bytes requested.
    asked: MinuteBudget,
}

impl UnreadFills {
    /// Whether a fill of an object of `bytes` fits into the limits of `policy`.
    pub fn has_room(&mut self, policy: &Policy, bytes: Option<u64>, now: Millis) -> bool {
        let most = policy.edge.limits.unread_fill_bytes;
        let bytes = bytes.unwrap_or(policy.cache.max_object_bytes);
        self.asked.has_room(bytes, most, now)
            && self.under_way.len() < policy.edge.limits.unread_fills
    }

    /// Begins a fill of an object of `bytes`. Returns false if it does not fit into the limits of `policy`.
    pub fn begin(
        &mut self,
        fill: UnreadFill,
        policy: &Policy,
        bytes: Option<u64>,
        now: Millis,
    ) -> bool {
        if !self.has_room(policy, bytes, now) {
            return false;
        }
        let assumed = bytes.unwrap_or(policy.cache.max_object_bytes);
        self.count(fill, assumed, false);
        true
    }

    /// Counts the `bytes` of a fill that no client reads, once its headers have arrived. It counts even beyond the
    /// limits.
    pub fn learn(&mut self, fill: UnreadFill, bytes: u64) {
        self.count(fill, bytes, true);
    }

    /// Ends a fill, or cancels one that did not take place.
    pub fn end(&mut self, fill: UnreadFill) {
        if let Some((assumed, false)) = self.under_way.remove(&fill) {
            // The origin has not sent any of it.
            self.asked.refund(assumed);
        }
    }

    fn count(&mut self, fill: UnreadFill, bytes: u64, known: bool) {
        let before = self.under_way.insert(fill, (bytes, known));
        let (assumed, _) = before.unwrap_or_default();
        self.asked.refund(assumed);
        self.asked.spend(bytes);
    }
}

#[cfg(test)]
mod tests {
    use crate::coalescing::beside::unread::*;

    const LARGEST: u64 = 1_000;

    fn policy(fills: usize, bytes: u64) -> Policy {
        let policy = format!(
            r#"{{"origin": {{"kind": "http"}}, "store": {{"max_object_bytes": {LARGEST}}},
                "limits": {{"unread_fills": {fills}, "unread_fill_bytes": {bytes}}}}}"#
        );
        Policy::parse(policy.as_bytes()).unwrap()
    }

    fn fill(number: u64) -> UnreadFill {
        UnreadFill::Background(KeyHash(number))
    }

    #[test]
    fn there_are_no_more_than_the_number_at_one_time() {
        let (mut fills, policy) = (UnreadFills::default(), policy(2, 1 << 30));
        assert!(fills.begin(fill(1), &policy, Some(1), 0));
        assert!(fills.begin(fill(2), &policy, Some(1), 0));
        assert!(!fills.begin(fill(3), &policy, Some(1), 0));
        fills.end(fill(1));
        assert!(fills.begin(fill(3), &policy, Some(1), 0));
        assert!(!UnreadFills::default().has_room(
            &crate::coalescing::beside::unread::tests::policy(0, 1),
            Some(1),
            0
        ));
    }

    #[test]
    fn no_more_bytes_are_asked_for_within_a_minute() {
        let (mut fills, policy) = (UnreadFills::default(), policy(100, 6_000));
        for number in 0..3 {
            assert!(fills.begin(fill(number), &policy, Some(2_000), 0));
            fills.learn(fill(number), 2_000);
            fills.end(fill(number));
        }
        assert!(!fills.has_room(&policy, Some(2_000), 0));
        assert!(!fills.has_room(&policy, Some(2_000), 10_000));
        assert!(fills.has_room(&policy, Some(2_000), 20_000));
        assert!(!fills.has_room(&policy, Some(6_000), 50_000));
        assert!(fills.has_room(&policy, Some(6_000), 60_000));
    }

    #[test]
    fn an_object_of_unknown_length_counts_as_the_largest_until_its_headers_come() {
        let (mut fills, policy) = (UnreadFills::default(), policy(100, LARGEST));
        assert!(fills.begin(fill(1), &policy, None, 0));
        assert!(!fills.has_room(&policy, Some(1), 0));
        fills.learn(fill(1), 10);
        assert!(fills.has_room(&policy, Some(LARGEST - 10), 0));
        assert!(!fills.has_room(&policy, None, 0));
    }

    #[test]
    fn a_fill_that_brings_nothing_costs_nothing() {
        let (mut fills, policy) = (UnreadFills::default(), policy(100, LARGEST));
        assert!(fills.begin(fill(1), &policy, None, 0));
        fills.end(fill(1));
        fills.end(fill(1));
        assert!(fills.has_room(&policy, None, 0));
    }

    #[test]
    fn a_client_that_proves_to_need_less_counts_whatever_the_bounds() {
        let (mut fills, policy) = (UnreadFills::default(), policy(1, LARGEST));
        fills.learn(UnreadFill::Client(StreamId(1)), LARGEST);
        fills.learn(UnreadFill::Client(StreamId(2)), LARGEST);
        fills.end(UnreadFill::Client(StreamId(1)));
        fills.end(UnreadFill::Client(StreamId(2)));
        assert!(!fills.has_room(&policy, Some(1), 30_000));
    }
}
