// SPDX-License-Identifier: Apache-2.0
//! Evicts the oldest entries of the sites that are above their shares, many at once, before Envoy evicts the oldest of
//! all one by one.
//!
//! Answers this behaviour of Envoy: above the bound, a thread of the v1 store reads the whole folder and evicts as many
//! objects as there are too many. When objects arrive one by one, it reads the folder for each of them. The entry point
//! knows the usage, reads the folder once shortly before the bound, and evicts a batch. The counters of Envoy's store
//! see neither these evictions nor the entries that come back after a restart. They go on to the bound, where Envoy
//! reads the folder, finds room, and counts right again.
//!
//! Envoy knows nothing of shares. It evicts by itself only while more comes into the cache than the keeper removes, and
//! what it evicts then is the oldest of all sites.
//!
//! The control is the edge `alone` in the test `envoy_reads_the_folder_once_for_many_objects`: Envoy without the entry
//! point reads the folder for each object. When Envoy evicts in batches, that part of the test fails. Then delete this
//! folder, `Entries::remove_unused`, and `make_room` and `evict` in [`crate::cache::keeper`], unless the keeper must
//! still evict for [`crate::cache::free_space::Shortage`], or for the shares of several sites.

mod bound;
mod surplus;
#[cfg(test)]
mod tests;

pub use bound::target;
pub use surplus::surplus;
