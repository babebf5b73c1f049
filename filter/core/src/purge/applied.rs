// SPDX-License-Identifier: Apache-2.0
//! The purges that an edge has applied, as it tells its peers.

use std::fmt;

use crate::key::CanonicalTarget;
use crate::policy::Policy;
use crate::policy::purge::FeedPosition;

/// The purges that the sender of a request has applied to its URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppliedPurges {
    /// The last line of the purge feed.
    pub feed: Option<FeedPosition>,
    /// The hard and the soft number that the policy declares for the URL.
    pub declared: [u64; 2],
}

impl AppliedPurges {
    /// The purges of an edge at this position of the feed, for a target under its policy.
    pub fn of(feed: Option<FeedPosition>, policy: &Policy, target: &CanonicalTarget) -> Self {
        let declared = [
            policy.declared_hard(target.path()),
            policy.declared_soft(target.url()),
        ];
        Self { feed, declared }
    }

    /// Reads the text that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let feed = match words.next()? {
            "-" => None,
            position => Some(FeedPosition::parse(position)?),
        };
        let declared = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
        words.next().is_none().then_some(Self { feed, declared })
    }

    /// Whether an edge that has applied these purges may answer a request whose sender has applied `sent`. Numbers of
    /// different feeds are not compared, and a declared number may be replaced by a lower one.
    pub fn suffice_for(&self, sent: &Self) -> bool {
        let has_read = match (self.feed, sent.feed) {
            (_, None) => true,
            (Some(own), Some(sent)) => own.id == sent.id && own.number >= sent.number,
            (None, Some(_)) => false,
        };
        has_read && self.declared == sent.declared
    }
}

impl fmt::Display for AppliedPurges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [hard, soft] = self.declared;
        match self.feed {
            Some(position) => write!(out, "{position} {hard} {soft}"),
            None => write!(out, "- {hard} {soft}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_reads_what_another_one_has_written_and_nothing_else() {
        for text in [
            "- 0 0",
            "0000002a.0 1 2",
            "9f2c41d0.18446744073709551615 41 3",
        ] {
            assert_eq!(AppliedPurges::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "-",
            "- 0",
            "- 0 0 0",
            "- x 0",
            "9f2c41d0 1 0 0",
            "9f2c41d.1 0 0",
            "9f2c41d0.-1 0 0",
        ] {
            assert_eq!(AppliedPurges::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_edge_answers_only_by_as_many_purges_of_the_same_feed_and_by_the_same_numbers() {
        for (own, sent, expected) in [
            ("- 0 0", "- 0 0", true),
            ("9f2c41d0.2 0 0", "9f2c41d0.2 0 0", true),
            ("9f2c41d0.3 0 0", "9f2c41d0.2 0 0", true),
            ("9f2c41d0.3 0 0", "- 0 0", true),
            ("9f2c41d0.1 0 0", "9f2c41d0.2 0 0", false),
            ("- 0 0", "9f2c41d0.2 0 0", false),
            ("9f2c41d1.3 0 0", "9f2c41d0.2 0 0", false),
            ("- 41 0", "- 42 0", false),
            ("- 42 0", "- 41 0", false),
            ("- 0 1", "- 0 2", false),
        ] {
            let [own, sent] = [own, sent].map(|text| AppliedPurges::parse(text).unwrap());
            assert_eq!(own.suffice_for(&sent), expected, "{own}, {sent}");
        }
    }
}
