// SPDX-License-Identifier: Apache-2.0
//! Reports of the keeper about the cache, made when a scrape of the metrics asks for one.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::entries::{SiteId, Usage};

/// Bound on the time in which the keeper makes a report. The keeper looks for changes every 50 ms.
const PATIENCE: Duration = Duration::from_millis(500);

/// The reason for which the keeper removes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvictionReason {
    /// The cache has reached its bound.
    Limit,
    /// The disk lacks space.
    Disk,
    /// The URL has too many variants.
    Variants,
}

impl EvictionReason {
    /// All reasons, each with its name in the metrics.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::Limit, "limit"),
        (Self::Disk, "disk"),
        (Self::Variants, "variants"),
    ];
}

/// The files of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteFiles {
    /// The bytes and the number of the files.
    pub usage: Usage,
    /// The time at which the oldest file was written.
    pub oldest: Option<SystemTime>,
}

impl SiteFiles {
    /// Both sets of files.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            usage: self.usage.and(other.usage),
            oldest: self.oldest.into_iter().chain(other.oldest).min(),
        }
    }
}

/// The state of the cache.
#[derive(Clone, Debug, Default)]
pub struct CacheReport {
    /// The files of each site in use, by name. Files of removed sites are those of the site without a name.
    pub sites: Vec<(String, SiteFiles)>,
    /// The files of earlier runs that have not been checked.
    pub unchecked: Usage,
    /// The numbers of files that the keeper has removed since the start.
    pub evictions: HashMap<(SiteId, EvictionReason), u64>,
}

impl CacheReport {
    /// The files of all sites in use.
    pub fn all_files(&self) -> SiteFiles {
        let files = self.sites.iter().map(|(_, files)| *files);
        files.fold(SiteFiles::default(), SiteFiles::and)
    }

    /// The evictions of all sites, by the name of their reason.
    pub fn all_evictions(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = EvictionReason::ALL.into_iter();
        all.map(|(reason, name)| {
            let of_reason = |((_, other), number): (&(SiteId, EvictionReason), &u64)| {
                (*other == reason).then_some(*number)
            };
            (name, self.evictions.iter().filter_map(of_reason).sum())
        })
    }

    /// The evictions of a site, by the name of their reason.
    pub fn evictions_of(&self, site: &str) -> impl Iterator<Item = (&'static str, u64)> {
        let site = SiteId::of(site.as_bytes());
        let all = EvictionReason::ALL.into_iter();
        all.map(move |(reason, name)| {
            let number = self.evictions.get(&(site, reason));
            (name, number.copied().unwrap_or(0))
        })
    }
}

/// The place at which a scrape asks the keeper for a report. Clones share the place.
#[derive(Clone, Debug, Default)]
pub struct ReportDesk(Arc<(Mutex<DeskState>, Condvar)>);

#[derive(Debug, Default)]
struct DeskState {
    is_asked: bool,
    /// The newest report and its number.
    newest: (Arc<CacheReport>, u64),
}

impl ReportDesk {
    /// Asks for a report, and waits for it. Returns the newest report if the keeper makes no other in time.
    pub fn ask(&self) -> Arc<CacheReport> {
        let mut state = self.lock();
        state.is_asked = true;
        let number = state.newest.1;
        let waits = |state: &mut DeskState| state.newest.1 == number;
        let waited = self.0.1.wait_timeout_while(state, PATIENCE, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&state.newest.0)
    }

    /// Answers with the report that `make` returns, if a scrape has asked for one.
    pub(super) fn answer(&self, make: impl FnOnce() -> CacheReport) {
        if !self.lock().is_asked {
            return;
        }
        let report = Arc::new(make());
        let mut state = self.lock();
        state.is_asked = false;
        state.newest = (report, state.newest.1 + 1);
        self.0.1.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_report_is_made_only_when_one_is_asked_for() {
        let desk = ReportDesk::default();
        desk.answer(|| panic!("no scrape has asked"));
        let keeper = desk.clone();
        let asked = thread::spawn(move || desk.ask());
        let mut made = false;
        while !made {
            keeper.answer(|| {
                made = true;
                CacheReport {
                    unchecked: Usage { bytes: 7, files: 1 },
                    ..CacheReport::default()
                }
            });
        }
        assert_eq!(asked.join().unwrap().unchecked.bytes, 7);
    }
}
