// SPDX-License-Identifier: Apache-2.0
//! The cache's folder: one edge at a time uses it, and its entries have one format.
//!
//! ```text
//! DIR/lock          held by the edge that uses the folder, for as long as it lives
//! DIR/format        the version of the entries
//! DIR/purges        the journal of purges, see [`crate::cache::journal`]
//! DIR/entries       the entries, as files of Envoy's store
//! DIR/unchecked-…   entries of earlier runs, which are not served before they have been checked
//! DIR/manifest      the fingerprints of whole entries, see [`crate::cache::recovery`]
//! DIR/early-deaths  how often in a row Envoy has died early, see [`crate::cache::early_deaths`]
//! ```

mod error;
#[cfg(test)]
mod tests;
mod tmpfs;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

pub use error::CacheError;

use super::early_deaths::EarlyDeaths;
use super::journal::{EarlierRuns, Journal};
use super::recovery::Manifest;
use crate::settings::{Cache, Medium};
use crate::system::{private, random};

/// The version of the entries. To be raised with every change that makes old entries unreadable or wrong:
/// of Envoy's files, of the cache key, of the internal headers that are stored.
const FORMAT: &str = "sluice cache 5\n";
/// The subfolder with the entries.
pub const ENTRIES: &str = "entries";
/// All subfolders that any format has had for entries.
const EVER_ENTRIES: [&str; 3] = [ENTRIES, "v1", "v2"];
/// The names of folders with unchecked entries begin with this.
const UNCHECKED_PREFIX: &str = "unchecked-";

/// A folder that this process alone uses, until it is dropped.
#[derive(Debug)]
pub struct CacheFolder {
    root: PathBuf,
    entries: PathBuf,
    /// Folders of entries of earlier runs.
    unchecked: Vec<PathBuf>,
    /// Why entries of earlier runs could not be kept.
    notice: Option<String>,
    journal: Option<Journal>,
    ends_with_edge: bool,
    /// NB: the lock lasts as long as this file is open.
    _lock: File,
}

impl CacheFolder {
    /// Takes the folder that `cache` names, or makes one on the tmpfs that it names.
    ///
    /// # Errors
    /// The folder is in use, is not a cache, or cannot be read or written.
    pub fn open(cache: &Cache) -> Result<Self, CacheError> {
        match cache.medium {
            Medium::Disk => Self::open_at(&cache.dir, false),
            Medium::Memory => Self::open_at(&tmpfs::new_folder(cache)?, true),
        }
    }

    fn open_at(root: &Path, ends_with_edge: bool) -> Result<Self, CacheError> {
        let io_error = |error| CacheError::Io(root.to_owned(), error);
        private::make_folder(root).map_err(io_error)?;
        // NB: in this order. Another edge may be starting in the folder, and writes the format after other files.
        if !is_unused(root).map_err(io_error)? && read_format(root).map_err(io_error)?.is_none() {
            return Err(CacheError::Foreign(root.to_owned()));
        }
        let lock = lock(root)?;
        let format = read_format(root).map_err(io_error)?;
        let journal = Journal::read(root).map_err(io_error)?;
        let notice = notice(root, format.as_deref(), journal.is_some());
        if notice.is_some() {
            // The keeper removes entries that are in no manifest, so that the start does not wait for it.
            Manifest::remove(root).map_err(io_error)?;
        }
        set_aside(root).map_err(io_error)?;
        let unchecked = unchecked_in(root).map_err(io_error)?;
        let journal = match (journal, &notice) {
            (Some(journal), None) => journal,
            _ => Journal::create(root).map_err(io_error)?,
        };
        fs::write(root.join("format"), FORMAT).map_err(io_error)?;
        let entries = root.join(ENTRIES);
        private::make_folder(&entries).map_err(io_error)?;
        Ok(Self {
            root: root.to_owned(),
            entries,
            unchecked,
            notice,
            journal: (!ends_with_edge).then_some(journal),
            ends_with_edge,
            _lock: lock,
        })
    }

    /// The whole folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Folders of entries of earlier runs.
    pub fn unchecked(&self) -> &[PathBuf] {
        &self.unchecked
    }

    /// Whether a later run will find the entries that this run stores.
    pub fn outlives_the_edge(&self) -> bool {
        !self.ends_with_edge
    }

    /// The count of Envoy's early deaths with this cache.
    pub fn early_deaths(&self) -> EarlyDeaths {
        EarlyDeaths::in_folder(&self.root)
    }

    /// The folder for the store's entries. It is empty at the start.
    pub fn entries(&self) -> &Path {
        &self.entries
    }

    /// What the filter must know of earlier runs, without the journal's socket.
    pub fn earlier_runs(&self) -> EarlierRuns {
        let purges = self
            .journal
            .as_ref()
            .map(|journal| journal.purges().to_text());
        EarlierRuns {
            purges: Some(purges.unwrap_or_default()),
            warm: self.notice.is_none() && !self.unchecked.is_empty(),
            socket: None,
        }
    }

    /// Takes the journal out of a cache that outlives the edge. `None`: the cache ends with the edge, or the journal
    /// has been taken.
    pub fn take_journal(&mut self) -> Option<Journal> {
        self.journal.take()
    }

    /// Why entries of earlier runs could not be kept, for the user.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }
}

impl Drop for CacheFolder {
    fn drop(&mut self) {
        if self.ends_with_edge {
            // Where this fails, the next edge removes the folder.
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

fn read_format(root: &Path) -> io::Result<Option<String>> {
    match fs::read(root.join("format")) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the folder is empty, but for the lock of an edge that may be starting.
fn is_unused(root: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(root)? {
        if entry?.file_name() != "lock" {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lock(root: &Path) -> Result<File, CacheError> {
    let path = root.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(|error| CacheError::Io(path.clone(), error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(CacheError::InUse(root.to_owned())),
        Err(TryLockError::Error(error)) => Err(CacheError::Io(path, error)),
    }
}

/// Why the entries in a folder of this `format` cannot be kept, if they cannot.
fn notice(root: &Path, format: Option<&str>, has_journal: bool) -> Option<String> {
    let path = root.display();
    match format {
        None => None,
        Some(format) if format != FORMAT => {
            let (found, wanted) = (format.trim(), FORMAT.trim());
            Some(format!(
                "{path} held entries in another format ({found:?}, not {wanted:?}): starting empty"
            ))
        }
        Some(_) if !has_journal => Some(format!("{path} has no journal of purges: starting empty")),
        Some(_) if EarlyDeaths::in_folder(root).are_too_many() => Some(format!(
            "Envoy has died twice in a row within a minute of its start: the entries in {path} are set aside and \
             removed: starting empty"
        )),
        Some(_) => None,
    }
}

/// Sets all entries aside by renaming their folders, which takes no longer for many entries than for few.
fn set_aside(root: &Path) -> io::Result<()> {
    for entries in EVER_ENTRIES {
        let entries = root.join(entries);
        let mut files = match fs::read_dir(&entries) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if files.next().is_some() {
            let aside = format!("{UNCHECKED_PREFIX}{}", random::hex::<8>()?);
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
