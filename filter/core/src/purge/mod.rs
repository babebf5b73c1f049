// SPDX-License-Identifier: Apache-2.0
//! Purge: content that must not be served, or must be revalidated, although the store still has it.
//!
//! A purge does not remove entries from the store, which has no call for that. Each purge has a number, greater than
//! all earlier numbers.
//!
//! A *hard* purge puts its number into the store's key of every URL that it covers, as `g=NUMBER`. So the old entry
//! is out of reach at once, in all its variants. A fill under way under the old key can never be served afterwards.
//! The store's LRU drops the old entries.
//!
//! A *soft* purge does not change the store's key. It changes the key of the workers' hints, under which an entry is
//! known as fresh, so that the next request revalidates the entry.
//!
//! Changes by unsafe requests of clients (RFC 9111, 4.4) are a third kind, *changed*. It is like a soft purge, but
//! the stored response is not served while the origin fails.
//!
//! ```text
//! the purge call ─► shared data: head (numbers, prefixes) and 256 parts (URLs)        authoritative
//!                └► news in each worker's queue ─► its own Purges, read on request    replicas
//!                └► the journal of the entry point, read at the next start            on disk
//! ```
//!
//! Each purge belongs to one site. The tables hold each URL by a hash of 64 bits under the store's secret, so a
//! caller cannot name a URL of another site, or find a URL with the hash of another one. Each site has its own share
//! of all tables. If a site purges more than its share holds, some or all of the site's other URLs also count as
//! purged, but never a URL of another site.

mod applied;
mod carry_out;
mod confirmations;
mod created;
mod feed;
mod orders;
mod pending;
mod shared;
mod site_records;
mod tables;
mod tags;

pub use applied::AppliedPurges;
pub use carry_out::{carry_out, invalidate_groups};
pub use confirmations::Confirmations;
pub use created::take_created;
pub use feed::{
    Feed, FeedError, FeedHaste, FeedId, FeedLine, FeedNews, FeedPosition, FeedPurge, FeedReadings,
    FeedSubject, FeedTold, FeedTurn, MAX_BYTES, MAX_LINES, SubjectError, applied_by,
};
pub use orders::caller::Caller;
pub use orders::notification::{CreatedObject, Effect, IgnoredEvent, Notification};
pub use orders::order::{PurgeOrder, PurgeSubject};
pub use orders::order_error::OrderError;
pub use orders::url::{UrlError, url_of};
pub use pending::{
    Awaited, FEED_PATIENCE, FeedOutcome, JOURNAL_PATIENCE, PendingPurges, PurgeReceipt,
    WORKERS_PATIENCE,
};
pub use shared::{InitialPurges, SharedPurges};
pub use tables::generations::Generations;
pub use tables::table::{MAX_PREFIX_BYTES, Purges};
pub use tags::{
    MAX_TAGS, TAG_FIELDS, TagHash, TagIndexing, Tags, groups_of, tags_in, tags_named, tags_of,
};

/// Returns the share of each of `sites` in a table with `room`: an equal part, but at least `least`.
const fn share(room: usize, sites: usize, least: usize) -> usize {
    let sites = if sites == 0 { 1 } else { sites };
    let share = room / sites;
    if share < least { least } else { share }
}
