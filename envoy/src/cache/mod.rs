// SPDX-License-Identifier: Apache-2.0
//! The cache on files. Envoy's store (v1) fills and reads it, and the entry point manages it.
//!
//! - `folder`: the folder that one edge opens at its start, and the format of its contents
//! - `journal`: the journal of purges
//! - `entries`: the files of Envoy's store: their names, their sites, their usage, and changes
//! - `inventory`: the contents of the cache, read from the heads of its files when the operator asks
//! - `large_urls`: the list of the URLs whose objects are stored in slices
//! - `purge_log`: the log of purges for the operator
//! - `report`: the reports of the keeper for the metrics
//! - `shares`: the weights by which sites share the cache
//! - `keeper`: the thread that follows the entries and does the work of `recovery` and `eviction`
//!
//! Each of the other modules works around one behaviour of Envoy. Its header names the test that fails when the
//! module is no longer needed, and lists the code to delete then.
//!
//! - `recovery`: a damaged file kills Envoy, so entries of earlier runs are checked before they are restored
//! - `early_deaths`: an undamaged file may kill Envoy too, so a cache is given up after two early deaths
//! - `eviction`: Envoy reads the whole folder for each object that it evicts, so the keeper evicts many at once
//! - `free_space`: Envoy does not report a failed write, so nothing is stored on a full disk

mod early_deaths;
mod entries;
mod eviction;
mod folder;
mod free_space;
mod inventory;
mod journal;
mod keeper;
mod large_urls;
mod purge_log;
mod recovery;
mod report;
mod shares;

pub use early_deaths::EarlyDeaths;
pub use entries::Usage;
pub use eviction::envoys_bound;
pub use folder::{CacheFolder, ENTRIES, EntrySecret};
pub use free_space::{FreeSpace, Shortage, Space};
pub use inventory::{
    CacheContents, GroupUsage, Grouping, Inventory, StoredResponse, StoredResponses, StoredSlices,
    UsageQuestion,
};
pub use journal::{EarlierRuns, Journal};
pub use keeper::{Keeper, SharedState};
pub use purge_log::{LoggedPurge, LoggedPurges, PurgeLog};
pub use report::{CacheReport, ReportDesk, SiteFiles};
pub use shares::{MostVariants, Shares};
