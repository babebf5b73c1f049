// SPDX-License-Identifier: Apache-2.0
//! The purges of a feed that an edge has not applied.

use super::document::Feed;
use super::line::FeedLine;
use crate::policy::purge::{FeedPosition, Kind};

/// The purges that a reader has to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedNews<'a> {
    /// A purge of everything, because lines are missing.
    pub everything: Option<Kind>,
    /// Lines that are new.
    pub lines: &'a [FeedLine],
    /// The position after them.
    pub position: FeedPosition,
    /// Whether the text is older than what was applied, like that of a replica. Nothing is to be applied then.
    pub is_older: bool,
}

impl Feed {
    /// Returns the news for a reader that has applied the feed up to `applied`; `None` if it has applied none.
    pub fn news(&self, applied: Option<FeedPosition>) -> FeedNews<'_> {
        let number = match applied {
            Some(applied) if applied.id == self.id => applied.number,
            Some(_) => return self.news_of(Some(Kind::Hard), &[]),
            None => 0,
        };
        if self.newest() < number {
            let position = applied.unwrap_or(FeedPosition {
                id: self.id,
                number,
            });
            return FeedNews {
                position,
                is_older: true,
                ..self.news_of(None, &[])
            };
        }
        if self.is_damaged || self.hard_base > number {
            return self.news_of(Some(Kind::Hard), &[]);
        }
        let known = self.lines.partition_point(|line| line.number <= number);
        let everything = (self.base > number).then_some(Kind::Soft);
        self.news_of(everything, self.lines.get(known..).unwrap_or_default())
    }

    fn news_of<'a>(&self, everything: Option<Kind>, lines: &'a [FeedLine]) -> FeedNews<'a> {
        FeedNews {
            everything,
            lines,
            position: FeedPosition {
                id: self.id,
                number: self.newest(),
            },
            is_older: false,
        }
    }
}
