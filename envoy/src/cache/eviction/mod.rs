// SPDX-License-Identifier: Apache-2.0
//! Evicts the oldest entries of the sites that are above their shares, many at a time, so that Envoy does not evict
//! the oldest entries of all sites one by one.
//!
//! Works around a behaviour of Envoy: above the bound, a thread of the v1 store reads the whole folder and evicts
//! only the surplus objects. When objects arrive one by one, it reads the folder for each of them. The entry point
//! knows the usage, reads the folder once shortly below the bound, and evicts a batch. The counters of Envoy's
//! store see neither these evictions nor the entries that are restored after a restart. When the counters reach the
//! bound, Envoy reads the folder, finds room, and has the right counts again.
//!
//! Envoy does not know the shares, nor which slices should go first. Its bound on the bytes is larger, so it evicts only
//! while the cache grows much faster than the keeper removes entries. Then it evicts the oldest entries of all sites.
//!
//! The control is the edge `alone` in the test `envoy_reads_the_folder_once_for_many_objects`: Envoy without the
//! entry point reads the folder for each object. If Envoy evicts in batches, that part of the test fails. Then
//! delete this folder, `Entries::remove_unused`, and `make_room` and `evict` in [`crate::cache::keeper`], unless
//! the keeper must still evict for [`crate::cache::free_space::Shortage`] or for the shares of several sites.

mod bound;
mod candidate;
mod surplus;
#[cfg(test)]
mod tests;

pub use bound::{envoys_bound, target};
pub use candidate::Candidate;
pub use surplus::surplus;
