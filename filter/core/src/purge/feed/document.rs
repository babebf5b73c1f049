// SPDX-License-Identifier: Apache-2.0
//! The text of a feed.

use std::fmt;

use super::compaction;
use super::line::{FeedLine, FeedPurge, MAX_NUMBER, SubjectError, parse_number};
use crate::policy::purge::FeedId;

/// Greatest size of a feed in bytes.
pub const MAX_BYTES: usize = 64 << 10;
/// Greatest number of purges in a feed.
pub const MAX_LINES: usize = 1_000;
/// Age in seconds from which a line may be dropped. Every edge has applied it by then, as the longest interval
/// between two readings is a tenth of it.
pub(super) const KEPT_SECONDS: i64 = 86_400;
/// Beginning of a feed.
const MAGIC: &str = "sluice-purges/1 ";

/// Reason for which a text is not a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedError {
    /// The text does not begin as a feed does.
    Form,
    /// The text is larger than a feed may be.
    Size,
}

/// A purge feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// Identity.
    pub id: FeedId,
    /// Greatest number of a line that was dropped; 0 if there is none.
    pub base: u64,
    /// Greatest number of a dropped line that may have been a hard purge; 0 if there is none.
    pub hard_base: u64,
    /// Lines with ascending numbers that are greater than `base`.
    pub lines: Vec<FeedLine>,
    /// Whether the text has lines that cannot be read.
    pub is_damaged: bool,
}

impl Feed {
    /// Creates a feed without lines.
    pub const fn new(id: FeedId) -> Self {
        Self {
            id,
            base: 0,
            hard_base: 0,
            lines: Vec::new(),
            is_damaged: false,
        }
    }

    /// Reads a feed. Lines that cannot be read make it damaged.
    ///
    /// # Errors
    /// The bytes are no feed.
    pub fn parse(bytes: &[u8]) -> Result<Self, FeedError> {
        if !bytes.starts_with(MAGIC.as_bytes()) {
            return Err(FeedError::Form);
        }
        if bytes.len() > MAX_BYTES {
            return Err(FeedError::Size);
        }
        let whole = std::str::from_utf8(bytes).ok();
        let text = whole.unwrap_or_else(|| valid_start(bytes));
        // A line without its end was cut.
        let complete = text.rfind('\n').and_then(|end| text.get(..end));
        let cut = whole.is_none() || !text.ends_with('\n');
        let mut lines = complete.ok_or(FeedError::Form)?.split('\n');
        let id = lines.next().and_then(|first| first.strip_prefix(MAGIC));
        let mut feed = Self::new(id.and_then(FeedId::parse).ok_or(FeedError::Form)?);
        let base = lines.next().and_then(parse_base);
        feed.is_damaged = cut || base.is_none();
        (feed.base, feed.hard_base) = base.unwrap_or_default();
        for text in lines {
            match FeedLine::parse(text).filter(|line| line.number > feed.newest()) {
                Some(_) if feed.lines.len() == MAX_LINES => return Err(FeedError::Size),
                Some(line) => feed.lines.push(line),
                None => feed.is_damaged = true,
            }
        }
        Ok(feed)
    }

    /// The greatest number.
    pub fn newest(&self) -> u64 {
        self.lines.last().map_or(self.base, |line| line.number)
    }

    /// Appends purges at the time `now`, in seconds since 1970. Returns the number of the last one. A purge of an event
    /// that has a line is not appended again, because another writer has heard the same event. Keeps the feed within its
    /// bounds: old lines are dropped, and lines with the longest common directory become one purge of this directory.
    ///
    /// # Errors
    /// A line cannot have one of the subjects, or the feed has no number for it. Then the feed is unchanged.
    pub fn append(&mut self, purges: Vec<FeedPurge>, now: i64) -> Result<u64, SubjectError> {
        let purges: Result<Vec<_>, _> = purges
            .into_iter()
            .map(|FeedPurge { hard, subject }| Ok((hard, subject.for_line()?)))
            .collect();
        let purges = purges?;
        if purges.len() as u64 > MAX_NUMBER.saturating_sub(self.newest()) {
            return Err(SubjectError(
                "the feed has no more numbers: expected a new feed",
            ));
        }
        let mut last = 0;
        for (hard, subject) in purges {
            let known = |line: &&FeedLine| line.hard == hard && line.subject == subject;
            let known = subject.is_of_event().then(|| self.lines.iter().find(known));
            if let Some(line) = known.flatten() {
                last = last.max(line.number);
                continue;
            }
            last = self.newest() + 1;
            self.lines.push(FeedLine {
                number: last,
                time: now,
                hard,
                subject,
            });
        }
        self.drop_old(now);
        let room = MAX_BYTES - self.head().len();
        compaction::compact(&mut self.lines, MAX_LINES, room);
        Ok(last)
    }

    /// Drops the lines in front that every edge has read.
    fn drop_old(&mut self, now: i64) {
        let is_old = |line: &FeedLine| now.saturating_sub(line.time) > KEPT_SECONDS;
        // The newest line stays, so that an operator sees it.
        let last = self.lines.len().saturating_sub(1);
        let kept = self.lines.iter().position(|line| !is_old(line));
        for line in self.lines.drain(..kept.unwrap_or(last).min(last)) {
            self.base = line.number;
            if line.hard {
                self.hard_base = line.number;
            }
        }
    }

    fn head(&self) -> String {
        let (id, base, hard) = (self.id, self.base, self.hard_base);
        format!("{MAGIC}{id}\nbase {base} {hard}\n")
    }
}

impl fmt::Display for Feed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.head())?;
        self.lines
            .iter()
            .try_for_each(|line| writeln!(out, "{line}"))
    }
}

/// The text in front of the first byte that is not UTF-8.
fn valid_start(bytes: &[u8]) -> &str {
    let chunk = bytes.utf8_chunks().next();
    chunk.map_or("", |chunk| chunk.valid())
}

fn parse_base(line: &str) -> Option<(u64, u64)> {
    let (base, hard) = line.strip_prefix("base ")?.split_once(' ')?;
    let (base, hard) = (parse_number(base)?, parse_number(hard)?);
    (hard <= base).then_some((base, hard))
}
