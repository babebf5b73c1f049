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
//! ```text
//! the purge call ─► shared data: head (numbers, prefixes) and 64 shards (URLs)      authoritative
//!                └► news in each worker's queue ─► its own Purges, asked per request   replicas
//!                └► the journal of the entry point, read at the next start            on disk
//! ```
//!
//! URLs are remembered by 16 bits of a hash. State is therefore bounded without a limit at which
//! something breaks; a purge of one URL also covers one in 65,536 others.
//!
//! What clients change by unsafe requests counts as a soft purge of the URL. It takes its number from the same count, but
//! is in a table of its own, [`Invalidations`].

mod caller;
mod carry_out;
mod confirmations;
mod invalidations;
mod notification;
mod order;
mod order_error;
mod pending;
mod shared;
mod table;
mod tags;
mod url;

pub use caller::Caller;
pub use carry_out::{carry_out, discard, invalidate, invalidate_groups};
pub use confirmations::Confirmations;
pub use invalidations::{Invalidations, SharedInvalidations};
pub use notification::changed_objects;
pub use order::{Order, What};
pub use order_error::OrderError;
pub use pending::{JOURNAL_PATIENCE, PendingPurges, Receipt};
pub use shared::{Initial, SharedPurges};
pub use table::{Generations, MAX_PREFIX_BYTES, MAX_PREFIXES, Purges};
pub use tags::{MAX_TAGS, Noted, TagHash, Tags, groups_of, tags_of};
pub use url::{UrlError, url_of};
