// SPDX-License-Identifier: Apache-2.0
//! The cache's folder: one edge at a time uses it, and its entries have one format.
//!
//! ```text
//! DIR/lock          held by the edge that uses the folder, for as long as it lives
//! DIR/format        the version of the entries
//! DIR/secret        the secret on which the names of the entries depend
//! DIR/purges        the journal of purges, see [`crate::cache::journal`]
//! DIR/entries       the entries, as files of Envoy's store
//! DIR/unchecked-…   entries of earlier runs, which are not served before they have been checked
//! DIR/manifest      the fingerprints of whole entries, see [`crate::cache::recovery`]
//! DIR/large-urls    the URLs of objects in slices, see [`crate::cache::large_urls`]
//! DIR/early-deaths  how often in a row Envoy has died early, see [`crate::cache::early_deaths`]
//! ```

mod secret;
#[cfg(test)]
mod tests;
mod tmpfs;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};

use super::early_deaths::EarlyDeaths;
use super::journal::{EarlierRuns, Journal};
use super::large_urls::LargeUrls;
use super::purge_log::PurgeLog;
use super::recovery::Manifest;
use crate::settings::{Cache, Medium};
use crate::system::{private, random};
pub use secret::EntrySecret;

/// The version of the entries. Must be raised with every change that makes old entries unreadable or wrong: of
/// Envoy's files, of the cache key, of the internal headers that are stored, or of the records in the journal of
/// purges.
const FORMAT: &str = "sluice cache 8\n";
/// The subfolder with the entries.
pub const ENTRIES: &str = "entries";
/// All subfolders that any format has had for entries.
const EVER_ENTRIES: [&str; 3] = [ENTRIES, "v1", "v2"];
/// The names of folders with unchecked entries begin with this.
const UNCHECKED_PREFIX: &str = "unchecked-";

/// A folder that this process alone uses, until it is dropped.
#[derive(Debug)]
pub struct CacheFolder {
    /// The whole folder.
    pub root: PathBuf,
    /// The folder for the store's entries. It is empty at the start.
    pub entries: PathBuf,
    /// Folders of entries of earlier runs.
    pub unchecked: Vec<PathBuf>,
    /// The reason why entries of earlier runs could not be kept, for the user.
    pub notice: Option<String>,
    /// The secret on which the names of the entries depend.
    pub secret: EntrySecret,
    /// The journal of a cache that outlives the edge.
    pub journal: Option<Journal>,
    /// The list of the URLs of objects in slices, of a cache that outlives the edge.
    pub large_urls: Option<LargeUrls>,
    /// Whether the cache ends with the edge, so that a later run will not find its entries.
    pub ends_with_edge: bool,
    /// The log of purges.
    pub purge_log: PurgeLog,
    /// NB: the lock lasts as long as this file is open.
    _lock: File,
}

impl CacheFolder {
    /// Opens and locks the folder that `cache` names, or creates one on the tmpfs that it names.
    ///
    /// # Errors
    /// The folder is in use, is not a cache, or cannot be read or written.
    pub fn open(cache: &Cache) -> anyhow::Result<Self> {
        match cache.medium {
            Medium::Disk => Self::open_at(&cache.dir, false),
            Medium::Memory => Self::open_at(&tmpfs::new_folder(cache)?, true),
        }
    }

    fn open_at(root: &Path, ends_with_edge: bool) -> anyhow::Result<Self> {
        let failed = io_error(root);
        private::make_folder(root).map_err(&failed)?;
        // NB: in this order, because another edge may be starting in the folder. It writes the format after the
        // other files.
        let unused = is_unused(root).map_err(&failed)?;
        ensure!(
            unused || read_format(root).map_err(&failed)?.is_some(),
            "SLUICE_CACHE_DIR={}: expected an empty folder or a cache of Sluice's, but there are other files \
             in it",
            root.display()
        );
        let lock = lock(root).map_err(io_error(&root.join("lock")))?;
        let lock = lock.with_context(|| {
            let reason = "another edge is using this folder; each edge needs a separate folder";
            format!("SLUICE_CACHE_DIR={}: {reason}", root.display())
        })?;
        Self::take(root, ends_with_edge, lock).map_err(failed)
    }

    /// Prepares the folder `root`, which this process has locked.
    fn take(root: &Path, ends_with_edge: bool, lock: File) -> io::Result<Self> {
        let format = read_format(root)?;
        let journal = Journal::read(root)?;
        let secret = EntrySecret::read(root);
        let kept = Kept {
            journal: journal.is_some(),
            secret: secret.is_some(),
        };
        let notice = notice(root, format.as_deref(), &kept);
        if notice.is_some() {
            // The keeper removes entries that are not in a manifest, so that the start does not wait for the
            // removal.
            Manifest::remove(root)?;
            LargeUrls::remove(root)?;
        }
        set_aside(root)?;
        let unchecked = unchecked_in(root)?;
        let journal = match (journal, &notice) {
            (Some(journal), None) => journal,
            _ => Journal::create(root)?,
        };
        let secret = secret.map_or_else(|| EntrySecret::create(root), Ok)?;
        private::write(&root.join("format"), FORMAT)?;
        let entries = root.join(ENTRIES);
        private::make_folder(&entries)?;
        let purge_log = PurgeLog::open(root)?;
        let lasting = secret.store_secret().filter(|_| !ends_with_edge);
        let large_urls = lasting.map(|secret| LargeUrls::read(root, secret));
        Ok(Self {
            root: root.to_owned(),
            purge_log,
            entries,
            unchecked,
            notice,
            secret,
            journal: (!ends_with_edge).then_some(journal),
            large_urls: large_urls.transpose()?,
            ends_with_edge,
            _lock: lock,
        })
    }

    /// The count of Envoy's early deaths with this cache.
    pub fn early_deaths(&self) -> EarlyDeaths {
        EarlyDeaths::in_folder(&self.root)
    }

    /// The facts about earlier runs for the filter, without the journal's socket.
    pub fn earlier_runs(&self) -> EarlierRuns {
        let purges = self
            .journal
            .as_ref()
            .map(|journal| journal.purges.to_text());
        EarlierRuns {
            purges: Some(purges.unwrap_or_default()),
            warm: self.notice.is_none() && !self.unchecked.is_empty(),
            large_urls: self.large_urls.iter().flat_map(LargeUrls::urls).collect(),
            socket: None,
        }
    }
}

impl Drop for CacheFolder {
    fn drop(&mut self) {
        if self.ends_with_edge {
            // If this fails, the next edge removes the folder.
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// The error of a file operation in a cache's folder.
pub fn io_error(folder: &Path) -> impl Fn(io::Error) -> anyhow::Error {
    move |error| anyhow!("SLUICE_CACHE_DIR: {}: {error}", folder.display())
}

fn read_format(root: &Path) -> io::Result<Option<String>> {
    let bytes = private::found(fs::read(root.join("format")))?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Whether the folder is empty, except for the lock of an edge that may be starting.
fn is_unused(root: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(root)? {
        if entry?.file_name() != "lock" {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Locks the folder. `None`: another edge has the lock.
fn lock(root: &Path) -> io::Result<Option<File>> {
    private::lock(&root.join("lock"))
}

/// The parts that remain of an earlier run, beside its entries.
struct Kept {
    journal: bool,
    secret: bool,
}

/// The reason why the entries in a folder of this `format` cannot be kept; `None`: they can.
fn notice(root: &Path, format: Option<&str>, kept: &Kept) -> Option<String> {
    let path = root.display();
    match format {
        None => None,
        Some(format) if format != FORMAT => {
            let (found, wanted) = (format.trim(), FORMAT.trim());
            Some(format!(
                "{path} held entries in another format ({found:?}, not {wanted:?}): starting empty"
            ))
        }
        Some(_) if !kept.journal => {
            Some(format!("{path} has no journal of purges: starting empty"))
        }
        Some(_) if !kept.secret => Some(format!(
            "{path}/secret is missing, damaged, or not this user's alone (a pod with fsGroup needs \
             fsGroupChangePolicy: OnRootMismatch): there is a new one: starting empty"
        )),
        Some(_) if EarlyDeaths::in_folder(root).are_too_many() => Some(format!(
            "Envoy has died twice in a row within a minute of its start: the entries in {path} are set aside and \
             removed: starting empty"
        )),
        Some(_) => None,
    }
}

/// Sets all entries aside by renaming their folders, so that the time does not depend on their number.
fn set_aside(root: &Path) -> io::Result<()> {
    for entries in EVER_ENTRIES {
        let entries = root.join(entries);
        let files = private::found(fs::read_dir(&entries))?;
        if files.is_some_and(|mut files| files.next().is_some()) {
            let aside = format!("{UNCHECKED_PREFIX}{}", random::hex()?);
            fs::rename(&entries, root.join(aside))?;
        }
    }
    Ok(())
}

fn unchecked_in(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(UNCHECKED_PREFIX) && entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    Ok(folders)
}
