// SPDX-License-Identifier: Apache-2.0
//! How many keys Envoy's v2 store keeps open: it must be no more than it has files and memory for.
//!
//! The store has a session for each key that it was asked for: an open file and some kilobytes of headers, whether the
//! entry is evicted or not. A session's time is over five minutes after its last use, but then it only ends if it is the
//! first of all in the store's table when another request comes. So where anything at all is asked for again and again,
//! nearly all sessions stay for as long as that instance of the store does, and where no more files may be open,
//! connections fail too. The entry point replaces the store by another instance on the same folder before it is full.
//!
//! The filter sees each request before the store does, and counts:
//!
//! - [`Page`]: keys that the store was asked for. Pages are in shared data, so a key that all workers ask for counts
//!   once, and they last as long as the sessions do.
//! - [`OpenKeys`]: what one worker knows of them, so that it need not look at a page at each request.

mod page;
mod register;

/// What a bound may be at most: 32 GiB of memory.
pub const MOST_OPEN_KEYS: u64 = 1 << 22;

pub use page::{Asked, Page};
pub use register::{OpenKeys, OpenKeysBound};
