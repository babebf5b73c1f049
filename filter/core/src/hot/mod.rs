// SPDX-License-Identifier: Apache-2.0
//! The hot tier: small objects with frequent requests, in a worker's own memory, in front of Envoy's cache.
//!
//! A [`HotCopy`] is a copy of a response that the store has just served as a fresh hit, as its client got it. It is
//! looked up under the key of the store, purges included. It stands for the stored response only as long as its
//! [`StoreCheck`] allows; any other request is sent to the store. So a copy is never the only one, and its loss only
//! costs time. If the store has no room, a copy of a passing response takes its place, for the same time. Sites share
//! the memory by their weights, so that no site flushes the copies of another.

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
