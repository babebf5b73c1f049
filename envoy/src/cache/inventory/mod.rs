// SPDX-License-Identifier: Apache-2.0
//! The contents of the cache, read from the heads of its files when the operator asks.
//!
//! - `scan`: a bounded pass over the files
//! - `stored_response`: the facts about one file, for `sluice explain`
//! - `contents`: the totals of groups of files, for `sluice du`

mod contents;
mod scan;
mod stored_response;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::entries::Usage;
use super::shares::Shares;
use contents::Groups;
pub use contents::{CacheContents, GroupUsage, Grouping, UsageQuestion};
use scan::scan;
pub use stored_response::{StoredResponse, StoredResponses, StoredSlices};

/// Bound on the time of a scan, after which it is cut.
const PATIENCE: Duration = Duration::from_secs(8);
/// Bound on the variants of one URL in an answer.
const MAX_VARIANTS: usize = 1_000;

/// A reader of the cache's files.
#[derive(Clone, Debug)]
pub struct Inventory {
    /// The folder of the files.
    pub folder: PathBuf,
    /// The bound of the cache.
    pub bound: Usage,
    /// The shares of the sites.
    pub shares: Shares,
}

impl Inventory {
    /// The stored responses of the URL of `store_key`, the key under which the filter asks the store. All variants
    /// are found, because neither the qualifiers of the key nor its hash count.
    ///
    /// # Errors
    /// The folder of the cache cannot be read.
    pub fn stored_of(&self, store_key: &str) -> io::Result<StoredResponses> {
        let url = store_key.split('#').next().unwrap_or_default();
        let (host, path) = url.split_at(url.find('/').unwrap_or(url.len()));
        let (mut stored, mut slices) = (Vec::new(), StoredSlices::default());
        let scanned = scan(&self.folder, PATIENCE, &mut |file| {
            let key = file.head.key;
            let own = key.path.split(|byte| *byte == b'#').next();
            match key.host == host.as_bytes() && own == Some(path.as_bytes()) {
                true if file.is_slice() => {
                    slices.count += 1;
                    slices.body_bytes += file.head.body_bytes;
                }
                true => stored.push(StoredResponse::of(file)),
                false => {}
            }
            stored.len() < MAX_VARIANTS
        })?;
        stored.sort_unstable_by(|one, other| one.variant.cmp(&other.variant));
        let cut = scanned.is_cut;
        Ok(StoredResponses {
            stored,
            slices,
            cut,
        })
    }

    /// The totals of the groups of `question`, the largest first.
    ///
    /// # Errors
    /// The folder of the cache cannot be read.
    pub fn usage(&self, question: &UsageQuestion) -> io::Result<CacheContents> {
        let mut groups = Groups::new(question);
        let scanned = scan(&self.folder, PATIENCE, &mut |file| {
            groups.add(file);
            true
        })?;
        let shares = self.shares.of_bytes(self.bound.bytes);
        Ok(groups.finish(&shares, self.bound, scanned))
    }
}

#[cfg(test)]
mod tests;
