// SPDX-License-Identifier: Apache-2.0
//! The cache on files, which Envoy's store (v1) fills and reads, and the entry point looks after.
//!
//! - `folder`: the folder that one edge takes at its start, and the format of what is in it
//! - `journal`: the journal of purges
//! - `entries`: the files of Envoy's store: their names, how much they take, and what changes
//! - `keeper`: the thread that follows the entries and does the work of `recovery` and `eviction`
//!
//! The other folders each answer one behaviour of Envoy, and go with it:
//!
//! - `recovery`: a damaged file kills Envoy, so entries of earlier runs come back checked
//! - `early_deaths`: a cache may still kill Envoy, so after two early deaths it is given up
//! - `eviction`: Envoy reads the whole folder for each object that it evicts, so the keeper evicts many at once
//! - `free_space`: Envoy does not report a full disk, so nothing is stored on one

mod early_deaths;
mod entries;
mod eviction;
mod folder;
mod free_space;
mod journal;
mod keeper;
mod recovery;

pub use early_deaths::Life;
pub use folder::{CacheError, CacheFolder, ENTRIES};
pub use free_space::{FreeSpace, Shortage, Space};
pub use journal::{EarlierRuns, Journal};
pub use keeper::Keeper;
