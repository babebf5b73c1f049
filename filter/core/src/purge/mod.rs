// SPDX-License-Identifier: Apache-2.0
//! Purge: what is gone, or has to be revalidated, although the store still has it.
//!
//! Nothing is taken out of the store, which has no call for it. Each purge has a number, greater than
//! all before it. A *hard* purge puts its number into the store's key of every URL that it covers, as
//! `g=NUMBER`: the old entry is out of reach at once, in all its variants, a fill under way under the old
//! key can never be served afterwards, and the store's LRU drops what is left. A *soft* purge leaves the
//! store's key and changes the key under which workers know an entry to be fresh, so that the next
//! request revalidates.
//!
//! What clients change by unsafe requests (RFC 9111, 4.4) counts as a third kind, *changed*: as a soft purge, but what was
//! stored is not served while the origin fails.
//!
//! ```text
//! the purge call ─► shared data: head (numbers, prefixes) and 256 parts (URLs)      authoritative
//!                └► news in each worker's queue ─► its own Purges, asked per request   replicas
//!                └► the journal of the entry point, read at the next start            on disk
//! ```
//!
//! Each purge is bound to one site. Its URLs are remembered by a hash of 64 bits under the store's secret, so nobody can
//! name a URL of another site, or one whose hash is that of another. Each site has room of its own in all tables: of more
//! than it has room for, a part of the site's own URLs counts as purged, or all of them, and nothing of another site.

mod carry_out;
mod confirmations;
mod orders;
mod pending;
mod shared;
mod tables;
mod tags;

pub use carry_out::{carry_out, invalidate_groups};
pub use confirmations::Confirmations;
pub use orders::caller::Caller;
pub use orders::notification::{Effect, IgnoredEvent, Notification};
pub use orders::order::{PurgeOrder, PurgeSubject};
pub use orders::order_error::OrderError;
pub use orders::url::{UrlError, url_of};
pub use pending::{JOURNAL_PATIENCE, PendingPurges, PurgeReceipt};
pub use shared::{InitialPurges, SharedPurges};
pub use tables::generations::Generations;
pub use tables::table::{MAX_PREFIX_BYTES, Purges};
pub use tags::{MAX_TAGS, TagHash, TagIndexing, Tags, groups_of, tags_of};

/// The room of each of so many sites in a table with that much: an equal share, and no less than `least`.
const fn share(room: usize, sites: usize, least: usize) -> usize {
    let sites = if sites == 0 { 1 } else { sites };
    let share = room / sites;
    if share < least { least } else { share }
}
