// SPDX-License-Identifier: Apache-2.0
//! The last decisions of a worker, each with a sequence number.

use std::collections::VecDeque;

use super::decision::Decision;

/// A bounded list of the last decisions. The first decision of a worker has the number 0.
#[derive(Debug, Default)]
pub struct DecisionRing {
    decisions: VecDeque<Decision>,
    next: u64,
}

/// Decisions from a ring.
#[derive(Debug)]
pub struct Decisions<'a> {
    /// The number of the first one.
    pub first: u64,
    /// The number of earlier decisions that were asked for, and are no longer in the ring.
    pub lost: u64,
    /// The decisions, the oldest first.
    pub decisions: Vec<&'a Decision>,
}

impl DecisionRing {
    /// Adds a decision. Removes the oldest ones, so that at most `most` remain.
    pub fn push(&mut self, decision: Decision, most: usize) {
        self.decisions.push_back(decision);
        self.next += 1;
        self.keep(most);
    }

    /// Removes the oldest decisions, so that at most `most` remain.
    pub fn keep(&mut self, most: usize) {
        let surplus = self.decisions.len().saturating_sub(most);
        self.decisions.drain(..surplus);
        if most == 0 {
            self.decisions = VecDeque::new();
        }
    }

    /// The number of the next decision.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The decisions from the number `start` on. A number of a former worker, which is above that of the next
    /// decision, is as good as 0.
    pub fn from(&self, start: u64) -> Decisions<'_> {
        let oldest = self.next.saturating_sub(self.decisions.len() as u64);
        let start = if start > self.next { oldest } else { start };
        let first = start.max(oldest);
        let skipped = usize::try_from(first - oldest).unwrap_or(usize::MAX);
        Decisions {
            first,
            lost: first - start,
            decisions: self.decisions.iter().skip(skipped).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::tests::hit;
    use super::*;

    fn ring(count: usize, most: usize) -> DecisionRing {
        let mut ring = DecisionRing::default();
        for number in 0..count {
            ring.push(hit(&format!("/{number}")), most);
        }
        ring
    }

    fn paths<'a>(decisions: &Decisions<'a>) -> Vec<&'a str> {
        let decisions = decisions.decisions.iter();
        decisions
            .map(|decision| decision.url.shown(false))
            .collect()
    }

    #[test]
    fn a_ring_keeps_the_last_decisions_and_says_how_many_are_lost() {
        let ring = ring(5, 3);
        assert_eq!(ring.next(), 5);
        for (start, first, lost, expected) in [
            (0, 2, 2, &["/2", "/3", "/4"][..]),
            (2, 2, 0, &["/2", "/3", "/4"]),
            (4, 4, 0, &["/4"]),
            (5, 5, 0, &[]),
            (99, 2, 0, &["/2", "/3", "/4"]),
        ] {
            let decisions = ring.from(start);
            assert_eq!((decisions.first, decisions.lost), (first, lost), "{start}");
            assert_eq!(paths(&decisions), expected, "{start}");
        }
    }

    #[test]
    fn a_ring_that_is_emptied_continues_its_numbers() {
        let mut ring = ring(4, 4);
        ring.keep(0);
        let decisions = ring.from(1);
        assert_eq!((decisions.first, decisions.lost), (4, 3));
        assert!(decisions.decisions.is_empty());
        ring.push(hit("/x"), 4);
        assert_eq!(paths(&ring.from(4)), ["/x"]);
    }
}
