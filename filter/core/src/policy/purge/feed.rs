// SPDX-License-Identifier: Apache-2.0
//! The section `purge.feed`: the object from which every edge learns purges.

use std::time::Duration;

use crate::policy::forms::form::AtLeast;
use crate::policy::forms::names::SiteName;
use crate::policy::forms::section::section;

/// Name of the feed's object below the prefix of its bucket.
pub const FEED_NAME: &str = ".sluice/purges";
/// Usual interval between two readings.
pub const USUAL_EVERY: Duration = Duration::from_secs(2);
/// Longest interval between two readings. Writers keep each line for more than ten times as long.
pub(super) const MOST_EVERY: Duration = Duration::from_secs(3_600);

section! {
    /// The purge feed: the object .sluice/purges below the bucket's prefix, which every edge reads. Who may write
    /// that object may purge.
    pub struct FeedPolicy {
        /// The time between two readings of the feed, at most 1h. Up to a tenth of it is added or taken at random.
        every: Duration as AtLeast<100> = USUAL_EVERY,
        /// The age of the last reading from which everything that is stored is revalidated, once. Default: never;
        /// what is stored is served on while the feed cannot be read.
        max_age: Option<Duration> as Option<AtLeast<1_000>>,
        /// The name of the site whose bucket has the feed. An edge with several sites needs it.
        site: Option<String> as Option<SiteName>,
    }
}

/// Part of the interval that a reader adds or takes at random.
const SPREAD: f64 = 0.1;
/// Longest time of a reading, until its purges are in effect.
const READING: Duration = Duration::from_secs(1);

/// Longest time from the writing of a purge until every edge that can read the feed has applied it.
pub fn applied_within(every: Duration) -> Duration {
    every.mul_f64(1.0 + SPREAD) + READING
}
