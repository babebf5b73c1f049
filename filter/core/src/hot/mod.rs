// SPDX-License-Identifier: Apache-2.0
//! The hot tier: small objects that are asked for often, in a worker's own memory, before Envoy's cache.
//!
//! What is here is a [`HotCopy`] of a response that the store has just served as a fresh hit, as its client got it.
//! It is asked for under the key of the store, purges included, and stands for what is stored only as long as a
//! [`StoreCheck`] says; whatever is not so goes to the store. So a copy is never the only one, and losing it costs
//! nothing but time. Where the store has no room, a copy of what passes takes its place, for as long. Sites share the
//! memory by their weights, so that none flushes the copies of another.

mod bodies;
mod capture;
mod copy;
mod sites;
mod store_check;
mod table;
mod tier;

pub use bodies::SharedBodies;
pub use capture::Capture;
pub use copy::{HotCopy, HotLookup};
pub use sites::SiteNumber;
pub use store_check::{HotAnswer, REREAD_MILLIS, StoreCheck};
pub use tier::{HotAdmission, HotTier};
