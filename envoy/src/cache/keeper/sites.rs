// SPDX-License-Identifier: Apache-2.0
//! The sites of the files in use, and the ages of the files.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use crate::cache::entries::{Entries, SiteId};
use crate::cache::recovery::Fingerprints;
use crate::cache::report::SiteFiles;

/// The sites of the files in use, and the times at which they were written.
#[derive(Debug, Default)]
pub struct FileSites(HashMap<u64, (SiteId, SystemTime)>);

impl FileSites {
    /// Reads the site and the time of a file, if they are not known. A file that has just been written or checked is in
    /// memory.
    pub fn learn(&mut self, folder: &Entries, number: u64) {
        self.0.entry(number).or_insert_with(|| {
            let written = folder.look_at(number).map_or(0, |entry| entry.written);
            let written = Duration::from_secs(written.try_into().unwrap_or(0));
            (folder.site(number), SystemTime::UNIX_EPOCH + written)
        });
    }

    /// Forgets a file that is gone.
    pub fn forget(&mut self, number: u64) {
        self.0.remove(&number);
    }

    /// Forgets all files but these.
    pub fn retain(&mut self, files: &Fingerprints) {
        self.0.retain(|number, _| files.contains_key(number));
    }

    /// The site of a file.
    pub fn site(&self, number: u64) -> Option<SiteId> {
        self.0.get(&number).map(|(site, _)| *site)
    }

    /// The usage and the age of each site's files.
    pub fn sum(&self, files: &Fingerprints) -> HashMap<SiteId, SiteFiles> {
        let mut sites: HashMap<SiteId, SiteFiles> = HashMap::new();
        for (number, (site, written)) in &self.0 {
            if let Some(file) = files.get(number) {
                let sum = sites.entry(*site).or_default();
                sum.usage = sum.usage.with(file.bytes);
                sum.oldest = Some(sum.oldest.map_or(*written, |oldest| oldest.min(*written)));
            }
        }
        sites
    }
}
