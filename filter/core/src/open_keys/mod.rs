// SPDX-License-Identifier: Apache-2.0
//! How many keys Envoy's v2 store keeps open: it must be no more than it has files and memory for.
//!
//! The store has a session for each key that it was asked for: an open file and some kilobytes of headers. A session
//! lives for five minutes after its last use, whether its entry is evicted or not. Nothing looks for those that have
//! had their time: each request to the store looks at one session, the one that lies behind its own in a hash table,
//! and ends that if its time is over. So a flood of keys that are asked for once leaves sessions behind that only further
//! requests end, and where no more files may be open, connections fail as well.
//!
//! The filter sees each request before the store does, and counts:
//!
//! - [`Page`]: the keys that the store was asked for in the last minutes, and an estimate of the sessions behind them.
//!   Pages are in shared data, so a key that all workers ask for counts once.
//! - [`OpenKeys`]: what one worker knows of them, so that it looks at a page once a minute for each key.

mod page;
mod register;

pub use page::{Asked, KEPT_MINUTES, Page};
pub use register::OpenKeys;
