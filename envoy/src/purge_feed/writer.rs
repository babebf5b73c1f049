// SPDX-License-Identifier: Apache-2.0
//! The writer of a feed. It replaces exactly the feed that it has read, so that writers at one time lose no line.

use std::fmt;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use sluice_core::purge::{Feed, FeedError, FeedId, FeedPosition, FeedPurge, MAX_BYTES};

use super::way::{FeedAnswer, FeedWay};
use crate::net::bucket_client::Precondition;

/// Number of times that a writer tries to replace the feed.
const ATTEMPTS: u32 = 30;
/// Longest pause in front of the second attempt. It grows with each attempt, because more writers are there.
const PAUSE: Duration = Duration::from_millis(40);
/// The time after which a missing feed is asked for again.
const DOUBT: Duration = Duration::from_millis(100);

/// Reason for which a feed cannot be written.
#[derive(Debug)]
pub enum FeedFailure {
    /// The bucket refuses to read the feed, or has none and refuses to say so.
    Reading(u16),
    /// The bucket refuses to write the feed.
    Writing(u16),
    /// The object is not a feed.
    NotAFeed(FeedError),
    /// Other writers were faster each time.
    Overtaken,
}

impl fmt::Display for FeedFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reading(403) => out.write_str(
                "status 403: the keys may not read the feed (s3:GetObject), or it does not exist and the keys may not \
                 list the bucket: `sluice purge --feed --init` makes it",
            ),
            Self::Writing(403) => {
                out.write_str("status 403: the keys may not write the feed: allow s3:PutObject for this key")
            }
            Self::Reading(status) => write!(out, "the feed cannot be read: status {status}"),
            Self::Writing(status) => write!(out, "the feed cannot be written: status {status}"),
            Self::NotAFeed(FeedError::Form) => out.write_str(
                "the object is no feed: something else has written it; delete it, and call `sluice purge --feed --init`",
            ),
            Self::NotAFeed(FeedError::Size) => write!(
                out,
                "the feed has more than {MAX_BYTES} bytes or too many lines: delete it, and call \
                 `sluice purge --feed --init`"
            ),
            Self::Overtaken => write!(
                out,
                "other writers were faster {ATTEMPTS} times, so nothing was written: try again"
            ),
        }
    }
}

impl std::error::Error for FeedFailure {}

impl FeedFailure {
    /// Whether the same write may succeed a moment later.
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::Reading(status) | Self::Writing(status) => *status >= 500 || *status == 429,
            Self::NotAFeed(_) => false,
            Self::Overtaken => true,
        }
    }
}

/// A writer of the feed at the end of a way.
#[derive(Clone, Copy)]
pub struct FeedWriter<'a>(pub &'a dyn FeedWay);

/// A feed that was read, and its entity tag.
struct ReadFeed {
    feed: Feed,
    tag: String,
}

impl FeedWriter<'_> {
    /// Appends purges. Makes a feed if there is none. Returns the position of the last line. A feed that has the lines of
    /// all of them, because another writer has heard the same events, stays as it is.
    ///
    /// # Errors
    /// A purge cannot be a line, the bucket does not answer, or [`FeedFailure`]. Then nothing was written.
    pub fn append(&self, purges: &[FeedPurge]) -> anyhow::Result<FeedPosition> {
        for attempt in 1..=ATTEMPTS {
            let read = self.read_twice()?;
            let mut feed = match &read {
                Some(read) if !read.feed.is_damaged => read.feed.clone(),
                // Edges purge everything with a new identity, so a line that cannot be read is not lost.
                _ => Feed::new(new_id()?),
            };
            let number = feed
                .append(purges.to_vec(), now()?)
                .map_err(|error| anyhow::anyhow!("{error}"))?;
            let position = FeedPosition {
                id: feed.id,
                number,
            };
            if read.as_ref().is_some_and(|read| read.feed == feed) {
                return Ok(position);
            }
            let condition = match &read {
                Some(read) => Precondition::HasTag(&read.tag),
                None => Precondition::IsMissing,
            };
            if self.replace(&feed, condition)? {
                return Ok(position);
            }
            sleep(pause(attempt)?);
        }
        Err(FeedFailure::Overtaken.into())
    }

    /// Makes an empty feed. Returns `false` if there is an object already, which stays as it is.
    ///
    /// # Errors
    /// The bucket does not answer, or [`FeedFailure`].
    pub fn create(&self) -> anyhow::Result<bool> {
        self.replace(&Feed::new(new_id()?), Precondition::IsMissing)
    }

    /// Reads the feed; `None` if there is none.
    ///
    /// # Errors
    /// The bucket does not answer, or [`FeedFailure`].
    pub fn read(&self) -> anyhow::Result<Option<Feed>> {
        Ok(self.read_twice()?.map(|read| read.feed))
    }

    fn read_twice(&self) -> anyhow::Result<Option<ReadFeed>> {
        let first = self.read_once()?;
        if first.is_some() {
            return Ok(first);
        }
        sleep(DOUBT);
        self.read_once()
    }

    fn read_once(&self) -> anyhow::Result<Option<ReadFeed>> {
        let answer = self.0.get()?;
        match answer.status {
            200 => read_feed(answer).map(Some),
            404 => Ok(None),
            status => Err(FeedFailure::Reading(status).into()),
        }
    }

    /// Replaces the feed if the condition holds. Returns whether it held.
    fn replace(&self, feed: &Feed, condition: Precondition<'_>) -> anyhow::Result<bool> {
        match self.0.put(condition, &feed.to_string())? {
            200..=299 => Ok(true),
            // 404: the object was deleted since it was read. 409: another write runs.
            404 | 409 | 412 => Ok(false),
            status => Err(FeedFailure::Writing(status).into()),
        }
    }
}

fn read_feed(answer: FeedAnswer) -> anyhow::Result<ReadFeed> {
    let feed = Feed::parse(&answer.body).map_err(FeedFailure::NotAFeed)?;
    let tag = answer.tag.context("the bucket's answer has no ETag")?;
    Ok(ReadFeed { feed, tag })
}

fn new_id() -> anyhow::Result<FeedId> {
    Ok(FeedId(getrandom::u32().context("random bits")?))
}

fn now() -> anyhow::Result<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.context("the clock of this machine")?;
    i64::try_from(now.as_secs()).context("the clock of this machine")
}

/// A random pause, so that writers do not meet again.
fn pause(attempt: u32) -> anyhow::Result<Duration> {
    let random = getrandom::u32().context("random bits")?;
    let part = f64::from(random) / f64::from(u32::MAX);
    Ok((PAUSE * attempt).mul_f64(part))
}
