// SPDX-License-Identifier: Apache-2.0
//! The sites of the files in use.

use std::collections::HashMap;

use crate::cache::entries::{Entries, Entry, SiteId};
use crate::cache::recovery::Fingerprints;

/// The known sites of the files in use. While the edge has only one site, none is read.
#[derive(Debug, Default)]
pub struct FileSites(HashMap<u64, SiteId>);

impl FileSites {
    /// Reads the site of a file, if it is not known. A file that has just been written or checked is in memory.
    pub fn learn(&mut self, folder: &Entries, number: u64) {
        let site = self.0.entry(number);
        site.or_insert_with(|| folder.site(number));
    }

    /// Number of files with a known site.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets a file that is gone.
    pub fn forget(&mut self, number: u64) {
        self.0.remove(&number);
    }

    /// Forgets all files but these.
    pub fn retain(&mut self, files: &Fingerprints) {
        self.0.retain(|number, _| files.contains_key(number));
    }

    /// The numbers of the entries whose sites are not known. There are many after the edge has got its second site.
    pub fn unknown(&self, entries: &[Entry]) -> Vec<u64> {
        let numbers = entries.iter().map(|entry| entry.number);
        let unknown = numbers.filter(|number| !self.0.contains_key(number));
        unknown.collect()
    }

    /// Adds sites that have been read.
    pub fn add(&mut self, sites: Vec<(u64, SiteId)>) {
        self.0.extend(sites);
    }

    /// The `entries` with a known site, each with its site.
    pub fn of(&self, entries: Vec<Entry>) -> Vec<(SiteId, Entry)> {
        let entries = entries.into_iter();
        let known = entries.filter_map(|entry| Some((*self.0.get(&entry.number)?, entry)));
        known.collect()
    }
}
