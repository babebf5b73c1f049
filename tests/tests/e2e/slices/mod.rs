// SPDX-License-Identifier: Apache-2.0
//! Objects above `SLUICE_CACHE_MAX_OBJECT_BYTES` are fetched, stored and served in slices.

mod bucket;
mod changes;
mod cold;
mod departures;
mod failures;
mod figures;
mod forged;
mod operation;
mod parts;
mod purges;
mod renewals;
mod restart;
mod slow_readers;
mod stopped_readers;
mod store;
pub mod world;
