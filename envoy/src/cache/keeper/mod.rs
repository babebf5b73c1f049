// SPDX-License-Identifier: Apache-2.0
//! The keeper: a thread beside Envoy that knows each file of the cache.
//!
//! The keeper follows the files that Envoy's store writes and removes. It takes their fingerprints and restores
//! files of earlier runs, see [`crate::cache::recovery`]. It bounds the variants of each URL. It evicts files
//! shortly below the bound of the cache, or when the disk lacks space, see [`crate::cache::eviction`].

mod sites;
mod slices;
#[cfg(test)]
mod tests;
mod variants;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use super::early_deaths::{EARLY, EarlyDeaths};
use super::entries::{Change, Entries, FolderWatch, SiteId, StoredKey, UrlId, Usage};
use super::eviction::{self, Candidate};
use super::folder::CacheFolder;
use super::free_space::Shortage;
use super::large_urls::LargeUrls;
use super::recovery::{Check, Fingerprint, Fingerprints, Manifest, UncheckedFiles};
use super::report::{CacheReport, EvictionReason, ReportDesk, SiteFiles};
use super::shares::{MostVariants, Shares};
use crate::log::{say, warn};
use crate::settings::Cache;
use crate::system::joining_thread::{JoiningThread, StopToken};
use sites::FileSites;
use slices::{FIRST_READING, SliceFiles};
use variants::Variants;

/// The time between two looks at the changes.
const LOOK: Duration = Duration::from_millis(50);
/// The time between two looks at a cache that grows and is nearly full.
const SHORT_LOOK: Duration = Duration::from_millis(5);
/// The longest pause between two batches of files. A longer batch has already let other threads work.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// The state that the keeper shares with other threads of the entry point.
#[derive(Clone, Debug)]
pub struct SharedState {
    /// The weights of the sites.
    pub shares: Shares,
    /// The bound on the variants of a URL.
    pub most_variants: MostVariants,
    /// The place at which scrapes ask for reports.
    pub reports: ReportDesk,
}

/// The keeper of a cache.
pub struct Keeper {
    live: Arc<Entries>,
    watch: FolderWatch,
    /// The fingerprints of the files in use.
    files: Fingerprints,
    /// The usage of the files in use.
    usage: Usage,
    sites: FileSites,
    variants: Variants,
    slices: SliceFiles,
    shared: SharedState,
    /// The numbers of removed files.
    evictions: HashMap<(SiteId, EvictionReason), u64>,
    unchecked: UncheckedFiles,
    /// `None`: the cache ends with the edge.
    manifest: Option<Manifest>,
    /// `None`: the cache ends with the edge.
    large_urls: Option<LargeUrls>,
    bound: Usage,
    shortage: Shortage,
    /// Whether an error has been logged. Later ones are not.
    complained: bool,
}

impl Keeper {
    /// Starts to keep the cache in `folder` within the bounds of `settings`, and to evict for `shortage`, until the
    /// thread is dropped. Sites share the cache by the weights in `shared`, which also bounds the variants. Must start
    /// before Envoy, which would otherwise store files unseen, and must end after it. Waits until all files of
    /// earlier runs have been checked, but no longer than `patience`.
    ///
    /// # Errors
    /// The folder cannot be watched, or the process can start no more threads.
    pub fn start(
        settings: &Cache,
        folder: &CacheFolder,
        shortage: Shortage,
        shared: SharedState,
        patience: Duration,
    ) -> io::Result<JoiningThread> {
        let bound = Usage {
            bytes: settings.max_bytes,
            files: settings.max_entries,
        };
        let manifest = (!folder.ends_with_edge).then(|| folder.root.clone());
        let mut keeper = Self::new(&folder.entries, manifest, bound, shortage, shared)?;
        keeper.large_urls.clone_from(&folder.large_urls);
        let (unchecked, deaths) = (folder.unchecked.clone(), folder.early_deaths());
        let (checks, checked) = mpsc::channel();
        let thread = JoiningThread::start("keeper", move |stop| {
            keeper.run(&stop, unchecked, checks, &deaths);
        });
        // The thread sends nothing: this waits for the end of its sender.
        let _ = checked.recv_timeout(patience);
        thread
    }

    /// Watches `folder` from now on. The manifest is in the folder `manifest`.
    ///
    /// # Errors
    /// The folder cannot be watched.
    fn new(
        folder: &Path,
        manifest: Option<PathBuf>,
        bound: Usage,
        shortage: Shortage,
        shared: SharedState,
    ) -> io::Result<Self> {
        Ok(Self {
            live: Arc::new(Entries::open(folder)?),
            watch: FolderWatch::start(folder)?,
            files: Fingerprints::new(),
            usage: Usage::default(),
            sites: FileSites::default(),
            variants: Variants::default(),
            slices: SliceFiles::default(),
            shared,
            evictions: HashMap::new(),
            unchecked: UncheckedFiles::default(),
            manifest: manifest.map(Manifest::new),
            large_urls: None,
            bound,
            shortage,
            complained: false,
        })
    }

    /// Checks the files in the folders `unchecked` and drops `checks`, then follows the cache until `stop` ends it.
    fn run(
        mut self,
        stop: &StopToken,
        unchecked: Vec<PathBuf>,
        checks: Sender<()>,
        deaths: &EarlyDeaths,
    ) {
        let start = Instant::now();
        self.check(stop, unchecked);
        drop(checks);
        let mut early = true;
        let mut look = LOOK;
        while stop.wait(look) {
            let grows = self.follow();
            look = if grows && self.is_nearly_full() {
                SHORT_LOOK
            } else {
                LOOK
            };
            self.make_room(stop);
            if early && start.elapsed() > EARLY {
                early = false;
                deaths.forget();
            }
        }
        // Envoy has ended, and may have stored files since the last look.
        self.follow();
    }

    /// Restores the files of earlier runs that are whole.
    fn check(&mut self, stop: &StopToken, folders: Vec<PathBuf>) {
        let Some(root) = self.manifest.as_ref().map(Manifest::folder) else {
            return;
        };
        let known = Manifest::read(root);
        let known = self.complain(
            known,
            "the manifest is not read, and files of earlier runs are removed",
        );
        let some = !folders.is_empty();
        let goes_on = &mut || stop.wait(Duration::ZERO);
        let unchecked = UncheckedFiles::list(folders, known.unwrap_or_default(), goes_on);
        let consequence = "files of earlier runs are neither checked nor served";
        let Some(unchecked) = self.complain(unchecked, consequence) else {
            return;
        };
        self.unchecked = unchecked;
        self.record(&[]);
        let mut looked = Instant::now();
        while stop.wait(Duration::ZERO) {
            if looked.elapsed() > LOOK {
                self.follow();
                self.make_room(stop);
                looked = Instant::now();
            }
            match self.unchecked.check() {
                Some(Check::Whole(file)) => {
                    // A file of the same name may have been stored and removed again meanwhile.
                    self.follow();
                    self.unchecked.restore(&file, &self.live);
                }
                Some(Check::Removed) => {}
                None => {
                    self.follow();
                    let counts = self.unchecked.finish();
                    if some {
                        say(&format!("the cache: {counts}"));
                    }
                    return;
                }
            }
        }
    }

    /// Notes the files that have been stored and removed since the last call. Returns whether any was stored.
    fn follow(&mut self) -> bool {
        let changes = self.watch.take();
        let changes = self.complain(changes, "eviction is left to Envoy");
        let mut stored = Vec::new();
        for change in changes.into_iter().flatten() {
            match change {
                Change::Stored(number) => stored.extend(self.learn(number)),
                Change::Moved(number) => match self.unchecked.known.remove(&number) {
                    Some(file) => self.add(number, file),
                    None => stored.extend(self.learn(number)),
                },
                Change::Gone(number) => self.forget(number),
                Change::Lost => stored.extend(self.rescan()),
            }
        }
        self.record(&stored);
        while let Some(slice) = self.slices.take_grown(Instant::now()) {
            self.live.take_back_readings(slice, FIRST_READING);
        }
        let reports = self.shared.reports.clone();
        reports.answer(|| self.report());
        !stored.is_empty()
    }

    /// Whether less than an eighth of a bound is free.
    fn is_nearly_full(&self) -> bool {
        let used = self.usage.and(self.unchecked.usage);
        !used.is_within(self.bound.less_part(8))
    }

    /// The state of the cache for the metrics.
    fn report(&self) -> CacheReport {
        let mut sums = self.sites.sum(&self.files);
        let names = self.shared.shares.names();
        let sites = names.iter().map(|(name, site)| {
            let files = sums.remove(site).unwrap_or_default();
            (name.clone(), files)
        });
        let mut sites: Vec<_> = sites.collect();
        let of_removed_sites = sums.into_values().reduce(SiteFiles::and);
        sites.extend(of_removed_sites.map(|files| (String::new(), files)));
        CacheReport {
            sites,
            unchecked: self.unchecked.usage,
            evictions: self.evictions.clone(),
        }
    }

    fn count_eviction(&mut self, site: Option<SiteId>, reason: EvictionReason) {
        if let Some(site) = site {
            *self.evictions.entry((site, reason)).or_default() += 1;
        }
    }

    /// Adds a file that has been stored, with its fingerprint if there is a manifest. The file replaces one of the
    /// same name that waits for its check. `None`: the file cannot be read, so it is not known to be whole.
    fn learn(&mut self, number: u64) -> Option<(u64, Fingerprint)> {
        self.unchecked.known.remove(&number);
        let file = if self.manifest.is_some() {
            Fingerprint::of(&self.live, number).ok()??
        } else {
            let (bytes, hash) = (self.live.look_at(number)?.bytes, 0);
            Fingerprint { bytes, hash }
        };
        self.add(number, file);
        Some((number, file))
    }

    fn add(&mut self, number: u64, file: Fingerprint) {
        self.forget(number);
        self.files.insert(number, file);
        self.usage = self.usage.with(file.bytes);
        self.sites.learn(&self.live, number);
        self.learn_key(number);
    }

    fn forget(&mut self, number: u64) {
        if let Some(file) = self.files.remove(&number) {
            self.usage = self.usage.without(file.bytes);
            self.sites.forget(number);
            self.variants.forget(number);
            self.slices.forget(number);
        }
    }

    /// Counts a file among the variants of its URL or the slices of its object if it is one, and lists the URL of a
    /// slice.
    fn learn_key(&mut self, number: u64) {
        let Some(head) = self.live.key_head(number) else {
            return;
        };
        if let Some(url) = UrlId::read_variant(&head) {
            self.keep_variant(number, url);
        }
        let Some(key) = StoredKey::read(&head) else {
            return;
        };
        if let Some(object) = key.sliced_object() {
            self.slices.add(number, object, Instant::now());
        }
        if let Some(list) = &mut self.large_urls {
            let added = list.add_slice(key.host, key.path);
            let consequence = "a large object may pass in one piece after the next start";
            self.complain(added, consequence);
        }
    }

    /// Counts a file among the variants of its URL, and removes the oldest variant if there are too many.
    fn keep_variant(&mut self, number: u64, url: UrlId) {
        let most = self.shared.most_variants.get();
        if let Some(oldest) = self.variants.add(number, url, most) {
            // The watch reports the removal. If Envoy has meanwhile stored the variant again, the new one is lost
            // too and is fetched again.
            self.live.remove(oldest);
            self.count_eviction(self.sites.site(oldest), EvictionReason::Variants);
            self.variants.forget(oldest);
        }
    }

    /// Reads the whole folder, after the system has lost changes. Returns the files that were not known.
    fn rescan(&mut self) -> Vec<(u64, Fingerprint)> {
        let found = self.live.list(&mut || true);
        let Some(found) = self.complain(found, "eviction is left to Envoy") else {
            return Vec::new();
        };
        let mut before = std::mem::take(&mut self.files);
        self.usage = Usage::default();
        self.slices = SliceFiles::default();
        let mut stored = Vec::new();
        for entry in found {
            match before.remove(&entry.number) {
                Some(file) if file.bytes == entry.bytes => self.add(entry.number, file),
                _ => {
                    self.sites.forget(entry.number);
                    stored.extend(self.learn(entry.number));
                }
            }
        }
        self.sites.retain(&self.files);
        stored
    }

    /// Writes the files that have been stored into the manifest.
    fn record(&mut self, stored: &[(u64, Fingerprint)]) {
        if let Some(manifest) = &mut self.manifest {
            let recorded = manifest.record(stored, &self.files, &self.unchecked.known);
            let consequence = "files that are stored now may be lost at the next start";
            self.complain(recorded, consequence);
        }
    }

    /// Removes the least recently used files if the cache exceeds its bound. Unchecked files are removed first.
    fn make_room(&mut self, stop: &StopToken) {
        let used = self.usage.and(self.unchecked.usage);
        let Some(target) = eviction::target(used, self.bound, self.shortage.bytes()) else {
            return;
        };
        let live = self.usage;
        self.unchecked
            .shrink(|left| live.and(left).is_within(target));
        if !live.is_within(target) {
            let reason = match self.shortage.bytes() {
                0 => EvictionReason::Limit,
                _ => EvictionReason::Disk,
            };
            let evicted = self.evict(stop, target, reason);
            self.complain(evicted, "eviction is left to Envoy");
        }
        // A measurement from before the eviction must not be acted on again.
        self.shortage.publish(0);
    }

    /// Removes files in use of the sites that are above their shares, until the others are within `target`.
    fn evict(&mut self, stop: &StopToken, target: Usage, reason: EvictionReason) -> io::Result<()> {
        let live = Arc::clone(&self.live);
        let weights = self.shared.shares.weights();
        let listed = live.list(&mut self.pace(stop))?;
        let candidates = listed.into_iter().filter_map(|entry| {
            let site = match weights {
                Some(_) => self.sites.site(entry.number)?,
                None => SiteId::default(),
            };
            let unread_slice_of = self.slices.unread(&entry);
            Some(Candidate {
                site,
                entry,
                unread_slice_of,
            })
        });
        let candidates = candidates.collect();
        let gone = eviction::surplus(candidates, &weights.unwrap_or_default(), target);
        let sites: HashMap<_, _> = gone
            .iter()
            .map(|entry| entry.number)
            .filter_map(|number| Some((number, self.sites.site(number)?)))
            .collect();
        let mut removed = Vec::new();
        let result = live.remove_unused(&gone, &mut self.pace(stop), &mut |number| {
            removed.push(number)
        });
        for number in removed {
            self.count_eviction(sites.get(&number).copied(), reason);
        }
        self.follow();
        result
    }

    /// A pause between two batches of files. The eviction sleeps for half of the time, unless the cache grows
    /// faster than the eviction removes files.
    fn pace(&mut self, stop: &StopToken) -> impl FnMut() -> bool {
        let mut worked = Instant::now();
        move || {
            self.follow();
            let late = !self.usage.is_within(self.bound);
            let pause = worked.elapsed().min(LONGEST_PAUSE);
            let goes_on = stop.wait(if late { Duration::ZERO } else { pause });
            worked = Instant::now();
            goes_on
        }
    }

    /// Logs an error and its consequence, unless an error has been logged. Returns the value, if there was no
    /// error.
    fn complain<T>(&mut self, result: io::Result<T>, consequence: &str) -> Option<T> {
        if let Err(error) = &result
            && !self.complained
        {
            self.complained = true;
            let folder = self.live.path.display();
            warn(&format!("{folder}: {error}: {consequence}"));
        }
        result.ok()
    }
}
