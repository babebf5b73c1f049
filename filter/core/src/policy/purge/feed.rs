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
