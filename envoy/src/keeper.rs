// SPDX-License-Identifier: Apache-2.0
//! Keeps the files of the cache: knows each of them, checks those of earlier runs, and makes room.
//!
//! Envoy's v1 store serves what it finds in its folder, and dies of a file that is not whole. So it begins with an empty
//! folder. A thread follows what is stored there, and writes the fingerprint of each file into the [`manifest`]. What
//! earlier runs have left stands aside, and comes back file by file, when it is what the manifest says.
//!
//! Envoy also evicts by itself: above its bound, a thread of its own reads the whole folder and removes what is too much,
//! which is one object where they come one by one, and begins again with the next one. This thread knows how much there is,
//! and shortly before the bound it reads the folder once and removes many. Envoy's own counters know nothing of that, nor of
//! files that have come back. They go on to the bound, where Envoy reads the folder, finds room, and counts right again.

mod bound;
mod changes;
mod entries;
mod fingerprint;
mod manifest;
#[cfg(test)]
mod tests;
mod unchecked;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use crate::cache_folder::CacheFolder;
use crate::early_deaths::{EARLY, EarlyDeaths};
use crate::joining_thread::{JoiningThread, StopToken};
use crate::run::say;
use crate::settings::Settings;
use crate::shortage::Shortage;
use bound::Usage;
use changes::{Change, Changes};
use entries::Entries;
use fingerprint::{Fingerprint, Reader};
use manifest::Fingerprints;
pub use manifest::Manifest;
use unchecked::{Unchecked, Verdict};

/// Between two looks at what has changed.
const LOOK: Duration = Duration::from_millis(50);
/// What slow work is followed by at most, as it has let others work.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// The manifest is written anew when it has so many records for each file that there is, and some.
const STALE_RECORDS: u64 = 2;
const FEW_RECORDS: u64 = 10_000;
/// Between two attempts to write it anew.
const RETRY: Duration = Duration::from_secs(5);

/// The thread that keeps a cache. It ends when this is dropped.
#[derive(Debug)]
pub struct Keeper {
    /// Ends when the check has.
    checked: Receiver<()>,
    _thread: JoiningThread,
}

/// Keeps `cache`, from before Envoy's start until after its end. The disk may have it give way by `shortage`.
///
/// # Errors
/// The folder cannot be watched, or there can be no more threads.
pub fn start(settings: &Settings, cache: &CacheFolder, shortage: Shortage) -> io::Result<Keeper> {
    let (checks, checked) = mpsc::channel();
    let (folder, unchecked) = (cache.entries().to_owned(), cache.unchecked().to_vec());
    let manifest = cache.outlives_the_edge().then(|| cache.root().to_owned());
    // NB: before Envoy stores anything.
    let (live, changes) = (Entries::open(&folder)?, Changes::watch(&folder)?);
    let deaths = cache.early_deaths();
    let bound = Usage {
        bytes: settings.cache.max_bytes,
        files: settings.cache.max_entries,
    };
    let work = move |stop| {
        let work = Work {
            folder,
            live,
            changes,
            reader: Reader::new(),
            files: Fingerprints::new(),
            usage: Usage::default(),
            unchecked: Unchecked::default(),
            manifest: manifest.map(Records::new),
            bound,
            shortage,
            stop,
            complained: false,
        };
        work.run(unchecked, checks, &deaths);
    };
    let thread = JoiningThread::start("keeper", work)?;
    Ok(Keeper {
        checked,
        _thread: thread,
    })
}

impl Keeper {
    /// Waits until all files of earlier runs have been checked, but no longer than this.
    pub fn wait_for_check(&self, patience: Duration) {
        // It is the end of the sender that is waited for.
        let _ = self.checked.recv_timeout(patience);
    }
}

/// What the thread has.
struct Work {
    folder: PathBuf,
    live: Entries,
    changes: Changes,
    reader: Reader,
    /// The files that are in use.
    files: Fingerprints,
    usage: Usage,
    unchecked: Unchecked,
    /// `None`: the cache ends with the edge.
    manifest: Option<Records>,
    bound: Usage,
    shortage: Shortage,
    stop: StopToken,
    /// Whether it has been said that something does not work.
    complained: bool,
}

/// The manifest, as long as it can be written.
struct Records {
    root: PathBuf,
    manifest: Option<Manifest>,
    written: Option<Instant>,
}

impl Records {
    const fn new(root: PathBuf) -> Self {
        Self {
            root,
            manifest: None,
            written: None,
        }
    }
}

impl Work {
    fn run(mut self, unchecked: Vec<PathBuf>, checks: Sender<()>, deaths: &EarlyDeaths) {
        let start = Instant::now();
        self.check(unchecked);
        drop(checks);
        let mut early = true;
        while self.stop.rest(LOOK) {
            self.follow();
            self.make_room();
            if early && start.elapsed() > EARLY {
                early = false;
                deaths.forget();
            }
        }
        // Envoy has ended.
        self.follow();
    }

    /// Brings back what earlier runs have left, as far as it is whole.
    fn check(&mut self, folders: Vec<PathBuf>) {
        let Some(Records { root, .. }) = &self.manifest else {
            return;
        };
        let known = Manifest::read(root);
        let known = known.unwrap_or_else(|error| {
            say(&format!("{}: {error}: no manifest", root.display()));
            Fingerprints::new()
        });
        let some = !folders.is_empty();
        let stop = &self.stop;
        match Unchecked::list(folders, known, &mut || stop.rest(Duration::ZERO)) {
            Ok(unchecked) => self.unchecked = unchecked,
            Err(error) => return self.complain(&error, "files of earlier runs stay aside"),
        }
        self.record(&[]);
        let mut looked = Instant::now();
        while self.stop.rest(Duration::ZERO) {
            if looked.elapsed() > LOOK {
                self.follow();
                self.make_room();
                looked = Instant::now();
            }
            match self.unchecked.check(&mut self.reader) {
                Some(Verdict::Whole(candidate)) => {
                    // One of the same name may have been stored, and gone again.
                    self.follow();
                    self.unchecked.restore(&candidate, &self.live);
                }
                Some(Verdict::Removed) => {}
                None => {
                    self.follow();
                    let outcome = self.unchecked.finish();
                    if some {
                        say(&format!("the cache: {outcome}"));
                    }
                    return;
                }
            }
        }
    }

    /// Takes note of what has been stored and removed since the last time.
    fn follow(&mut self) {
        let changes = match self.changes.take() {
            Ok(changes) => changes,
            Err(error) => return self.complain(&error, "left to Envoy to evict"),
        };
        let mut stored = Vec::new();
        for change in changes {
            match change {
                Change::Stored(number) => {
                    self.unchecked.known.remove(&number);
                    stored.extend(self.learn(number));
                }
                Change::Moved(number) => match self.unchecked.known.remove(&number) {
                    Some(file) => self.add(number, file),
                    None => stored.extend(self.learn(number)),
                },
                Change::Gone(number) => self.forget(number),
                Change::Lost => stored.extend(self.rescan()),
            }
        }
        self.record(&stored);
    }

    /// Takes the fingerprint of a file that is in use, where anybody will ask for it.
    fn learn(&mut self, number: u64) -> Option<(u64, Fingerprint)> {
        let file = if self.manifest.is_some() {
            // What cannot be read is not known to be whole.
            self.live.fingerprint(number, &mut self.reader).ok()??
        } else {
            let (bytes, hash) = (self.live.look_at(number)?.bytes(), 0);
            Fingerprint { bytes, hash }
        };
        self.add(number, file);
        Some((number, file))
    }

    fn add(&mut self, number: u64, file: Fingerprint) {
        self.forget(number);
        self.files.insert(number, file);
        self.usage = self.usage.with(file.bytes);
    }

    fn forget(&mut self, number: u64) {
        if let Some(file) = self.files.remove(&number) {
            self.usage = self.usage.without(file.bytes);
        }
    }

    /// Reads the folder, where it has changed faster than the system could tell. Gives the files that were not known.
    fn rescan(&mut self) -> Vec<(u64, Fingerprint)> {
        let found = match self.live.list(&mut || true) {
            Ok(found) => found,
            Err(error) => {
                self.complain(&error, "left to Envoy to evict");
                return Vec::new();
            }
        };
        let mut before = std::mem::take(&mut self.files);
        self.usage = Usage::default();
        let mut stored = Vec::new();
        for entry in found {
            match before.remove(&entry.number()) {
                Some(file) if file.bytes == entry.bytes() => self.add(entry.number(), file),
                _ => {
                    self.unchecked.known.remove(&entry.number());
                    stored.extend(self.learn(entry.number()));
                }
            }
        }
        stored
    }

    /// Writes down what has been stored.
    fn record(&mut self, stored: &[(u64, Fingerprint)]) {
        let Some(records) = &mut self.manifest else {
            return;
        };
        let (files, unchecked) = (&self.files, &self.unchecked.known);
        let most = (files.len() + unchecked.len()) as u64 * STALE_RECORDS + FEW_RECORDS;
        let written = match &mut records.manifest {
            Some(manifest) if manifest.records() <= most => {
                if stored.is_empty() {
                    return;
                }
                manifest.append(stored)
            }
            _ if records.written.is_some_and(|last| last.elapsed() < RETRY) => return,
            manifest => {
                records.written = Some(Instant::now());
                let all = unchecked.iter().chain(files);
                Manifest::write(&records.root, all).map(|new| *manifest = Some(new))
            }
        };
        if let Err(error) = written {
            records.manifest = None;
            self.complain(&error, "what is stored now may be lost at the next start");
        }
    }

    /// Removes what has not been used for longest, where there is too much.
    fn make_room(&mut self) {
        let used = self.usage.and(self.unchecked.usage());
        let Some(kept) = bound::kept(used, self.bound, self.shortage.bytes()) else {
            return;
        };
        let live = self.usage;
        self.unchecked.shrink(|left| live.and(left).is_within(kept));
        if !live.is_within(kept)
            && let Err(error) = self.evict(kept)
        {
            self.complain(&error, "left to Envoy to evict");
        }
        self.shortage.settle();
    }

    /// Removes the oldest files that are in use, until the rest is within `kept`.
    fn evict(&mut self, kept: Usage) -> io::Result<()> {
        let entries = Entries::open(&self.folder)?;
        let mut worked = Instant::now();
        let mut pause = || {
            self.follow();
            // The eviction leaves half of the time to others, unless more comes into the cache than it removes.
            let late = !self.usage.is_within(self.bound);
            let pause = worked.elapsed().min(LONGEST_PAUSE);
            let goes_on = self.stop.rest(if late { Duration::ZERO } else { pause });
            worked = Instant::now();
            goes_on
        };
        let oldest = entries::beyond(entries.list(&mut pause)?, kept);
        entries.remove_all(&oldest, &mut pause)?;
        self.follow();
        Ok(())
    }

    fn complain(&mut self, error: &io::Error, consequence: &str) {
        if !self.complained {
            self.complained = true;
            let folder = self.folder.display();
            say(&format!("{folder}: {error}: {consequence}"));
        }
    }
}
