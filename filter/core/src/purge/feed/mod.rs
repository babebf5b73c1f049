// SPDX-License-Identifier: Apache-2.0
//! The purge feed: an object in the bucket that every edge reads, and to which the callers of purges append.
//!
//! ```text
//! sluice-purges/1 9f2c41d0
//! base 118 97
//! 119 2026-11-25T07:31:02Z url https://www.example.com/a.css
//! 120 2026-11-25T07:31:09Z soft prefix https://www.example.com/assets/
//! 121 2026-11-25T07:33:40Z keys assets article-7 home
//! 122 2026-11-25T07:40:00Z everything
//! 123 2026-11-25T07:41:12Z url s3://my-bucket/a.css#0055AED6DCD90281E5
//! 124 2026-11-25T07:42:30Z prefix shop /assets/
//! ```
//!
//! The first line has the feed's identity. `base` has the greatest number of a line that is no longer there, and the
//! greatest number of such a line that may have been a hard purge. Numbers decide which lines an edge has applied.
//! A URL may follow the name of its site. An object of a bucket may have the number of the event that has named it, so
//! that several writers of one event write one line. Times are for readers of the text, and for trimming. Whatever happens to a feed, an edge purges more, never less.

mod compaction;
mod document;
mod haste;
mod line;
mod news;
mod ordered;
mod time;
mod told;
mod turn;

pub use crate::policy::purge::{FeedId, FeedPosition};
pub use document::{Feed, FeedError, MAX_BYTES, MAX_LINES};
pub use haste::FeedHaste;
pub use line::{FeedLine, FeedPurge, FeedSubject, SubjectError};
pub use news::FeedNews;
pub use time::applied_by;
pub use told::FeedTold;
pub use turn::{FeedReadings, FeedTurn};
