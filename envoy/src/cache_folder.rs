// SPDX-License-Identifier: Apache-2.0
//! The cache's folder: one edge at a time, one format.
//!
//! ```text
//! DIR/lock          held by the edge that uses the folder, for as long as it lives
//! DIR/format        the version of what the folder holds
//! DIR/purges        what of the entries has been purged, see [`crate::journal`]
//! DIR/entries       the entries, as Envoy's store keeps them
//! DIR/unchecked-…   entries of earlier runs, which nobody is served before they have been checked
//! DIR/manifest      what entries look like when they are whole, see [`crate::keeper`]
//! DIR/early-deaths  how often Envoy has died of its start, see [`crate::early_deaths`]
//! ```

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FsWord;

use crate::early_deaths::EarlyDeaths;
use crate::journal::{Journal, Past};
use crate::keeper::Manifest;
use crate::private;
use crate::random;
use crate::settings::{Cache, Medium};
use crate::size::Size;

/// What the entries look like. To be raised with every change that makes old entries unreadable or wrong:
/// of Envoy's files, of the cache key, of the internal headers that are stored.
pub const FORMAT: &str = "sluice cache 5\n";
/// The subfolder with the entries.
pub const ENTRIES: &str = "entries";
/// All subfolders that any format has had for entries.
const EVER_ENTRIES: [&str; 3] = [ENTRIES, "v1", "v2"];

const TMPFS_MAGIC: FsWord = 0x0102_1994;
const MEMORY_PREFIX: &str = "sluice-";
/// What the names of folders begin with whose entries have not been checked.
const UNCHECKED_PREFIX: &str = "unchecked-";

/// Why a folder cannot be used.
#[derive(Debug)]
pub enum CacheFolderError {
    /// A file operation failed.
    Io(PathBuf, io::Error),
    /// Another edge holds the lock.
    InUse(PathBuf),
    /// It holds something that is not a cache of ours.
    Foreign(PathBuf),
    /// `CACHE=memory` and a folder that is not in memory.
    NotTmpfs(PathBuf),
    /// `CACHE=memory` and a tmpfs that is too small.
    TooSmall {
        /// The tmpfs.
        path: PathBuf,
        /// What it holds in all.
        holds: u64,
        /// What the cache may take.
        wanted: u64,
    },
}

impl fmt::Display for CacheFolderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(out, "CACHE_DIR: {}: {error}", path.display()),
            Self::InUse(path) => write!(
                out,
                "CACHE_DIR={}: another edge is using this folder; each edge needs one of its own",
                path.display()
            ),
            Self::Foreign(path) => write!(
                out,
                "CACHE_DIR={}: expected an empty folder or a cache of Sluice's, but there are other files in it",
                path.display()
            ),
            Self::NotTmpfs(path) => {
                write!(
                    out,
                    "CACHE_DIR={}: expected a folder on a tmpfs, as CACHE=memory",
                    path.display()
                )
            }
            Self::TooSmall {
                path,
                holds,
                wanted,
            } => write!(
                out,
                "CACHE_MAX_BYTES={}: expected at most {}, which is what {} holds, as CACHE=memory \
                 (in a container: --shm-size)",
                Size(*wanted),
                Size(*holds),
                path.display()
            ),
        }
    }
}

impl std::error::Error for CacheFolderError {}

/// A folder that this process alone uses, until it is dropped.
#[derive(Debug)]
pub struct CacheFolder {
    root: PathBuf,
    entries: PathBuf,
    /// What earlier runs have left.
    unchecked: Vec<PathBuf>,
    /// What there is to say about entries that could not be kept.
    notice: Option<String>,
    journal: Option<Journal>,
    ends_with_edge: bool,
    /// NB: the lock lasts as long as this is open.
    _lock: File,
}

impl CacheFolder {
    /// Takes the folder that `cache` asks for.
    pub fn open(cache: &Cache) -> Result<Self, CacheFolderError> {
        match cache.medium {
            Medium::Disk => Self::open_at(&cache.dir, false),
            Medium::Memory => {
                check_tmpfs(&cache.dir, cache.max_bytes)?;
                remove_orphans(&cache.dir);
                let name = format!(
                    "{MEMORY_PREFIX}{}",
                    random::hex::<8>()
                        .map_err(|error| CacheFolderError::Io(cache.dir.clone(), error))?
                );
                Self::open_at(&cache.dir.join(name), true)
            }
        }
    }

    fn open_at(root: &Path, ends_with_edge: bool) -> Result<Self, CacheFolderError> {
        let io_error = |error| CacheFolderError::Io(root.to_owned(), error);
        private::make_folder(root).map_err(io_error)?;
        // NB: in this order, as another edge may be making the folder its own just now.
        if !is_unused(root).map_err(io_error)? && read_format(root).map_err(io_error)?.is_none() {
            return Err(CacheFolderError::Foreign(root.to_owned()));
        }
        let lock = lock(root)?;
        let format = read_format(root).map_err(io_error)?;
        let journal = Journal::read(root).map_err(io_error)?;
        let notice = match (format, &journal) {
            (Some(format), _) if format != FORMAT => Some(format_notice(root, &format)),
            (Some(_), None) => Some(journal_notice(root)),
            (Some(_), Some(_)) if EarlyDeaths::in_folder(root).are_too_many() => {
                Some(deaths_notice(root))
            }
            _ => None,
        };
        if notice.is_some() {
            // Entries that are in no manifest are removed, beside the start.
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

    /// Where all of it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Folders of entries of earlier runs.
    pub fn unchecked(&self) -> &[PathBuf] {
        &self.unchecked
    }

    /// Whether a later run will find what this one stores.
    pub fn outlives_the_edge(&self) -> bool {
        !self.ends_with_edge
    }

    /// How often Envoy has died of its start with this cache.
    pub fn early_deaths(&self) -> EarlyDeaths {
        EarlyDeaths::in_folder(&self.root)
    }

    /// Where the store puts its entries. It is empty at the start.
    pub fn entries(&self) -> &Path {
        &self.entries
    }

    /// What the filter has to know of the entries, but for a socket.
    pub fn past(&self) -> Past {
        let purges = self
            .journal
            .as_ref()
            .map(|journal| journal.purges().to_text());
        Past {
            purges: Some(purges.unwrap_or_default()),
            warm: self.notice.is_none() && !self.unchecked.is_empty(),
            socket: None,
        }
    }

    /// The journal of a cache that outlives the edge. To be taken once.
    pub fn take_journal(&mut self) -> Option<Journal> {
        self.journal.take()
    }

    /// What there is to say about entries that could not be kept.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }
}

impl Drop for CacheFolder {
    fn drop(&mut self) {
        if self.ends_with_edge {
            // Nothing to be done where this fails: the next edge tries again.
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

/// Whether there is nothing in it but perhaps the lock of an edge that is just starting.
fn is_unused(root: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(root)? {
        if entry?.file_name() != "lock" {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lock(root: &Path) -> Result<File, CacheFolderError> {
    let path = root.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(|error| CacheFolderError::Io(path.clone(), error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(CacheFolderError::InUse(root.to_owned())),
        Err(TryLockError::Error(error)) => Err(CacheFolderError::Io(path, error)),
    }
}

/// Puts all entries aside, which takes no longer for many than for few.
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

fn format_notice(root: &Path, format: &str) -> String {
    let (path, found, wanted) = (root.display(), format.trim(), FORMAT.trim());
    format!("{path} held entries in another format ({found:?}, not {wanted:?}): starting empty")
}

fn journal_notice(root: &Path) -> String {
    let path = root.display();
    format!("{path} has no journal of what was purged: starting empty")
}

fn deaths_notice(root: &Path) -> String {
    let path = root.display();
    format!(
        "Envoy has died twice in a row within a minute of its start: what is in {path} is set aside and removed: \
         starting empty"
    )
}

fn check_tmpfs(path: &Path, wanted: u64) -> Result<(), CacheFolderError> {
    let status = rustix::fs::statfs(path)
        .map_err(|error| CacheFolderError::Io(path.to_owned(), error.into()))?;
    if status.f_type != TMPFS_MAGIC {
        return Err(CacheFolderError::NotTmpfs(path.to_owned()));
    }
    let block = u64::try_from(status.f_bsize).unwrap_or(0);
    let holds = status.f_blocks.saturating_mul(block);
    // NB: a tmpfs without a limit says 0 blocks.
    if holds != 0 && holds < wanted {
        return Err(CacheFolderError::TooSmall {
            path: path.to_owned(),
            holds,
            wanted,
        });
    }
    Ok(())
}

/// Removes what edges left that did not come to clean up: whose lock is free.
fn remove_orphans(tmpfs: &Path) {
    let Ok(folders) = fs::read_dir(tmpfs) else {
        return;
    };
    for path in folders.flatten().map(|entry| entry.path()) {
        let ours = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(MEMORY_PREFIX));
        if ours && matches!(read_format(&path), Ok(Some(_))) && lock(&path).is_ok() {
            // Another user's: not ours to remove.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reserve::Reserve;
    use tempfile::TempDir;

    fn disk(dir: &Path) -> Cache {
        Cache {
            medium: Medium::Disk,
            dir: dir.to_owned(),
            max_bytes: 1 << 20,
            max_entries: 10,
            max_object_bytes: 1 << 10,
            reserve: Reserve::Bytes(0),
        }
    }

    fn memory(max_bytes: u64) -> Cache {
        Cache {
            medium: Medium::Memory,
            max_bytes,
            ..disk(Path::new("/dev/shm"))
        }
    }

    #[test]
    fn one_edge_at_a_time_uses_a_folder() {
        let dir = TempDir::new().unwrap();
        let cache = disk(&dir.path().join("new/cache"));
        let first = CacheFolder::open(&cache).unwrap();
        let second = CacheFolder::open(&cache).unwrap_err();
        assert!(matches!(second, CacheFolderError::InUse(_)), "{second}");
        drop(first);
        CacheFolder::open(&cache).unwrap();
    }

    fn store_something(folder: &CacheFolder) {
        fs::write(folder.entries().join("cache-1"), "entry").unwrap();
    }

    /// How many entries stand aside.
    fn aside(folder: &CacheFolder) -> usize {
        let entries = |path: &PathBuf| fs::read_dir(path).unwrap().count();
        folder.unchecked().iter().map(entries).sum()
    }

    #[test]
    fn entries_of_earlier_runs_stand_aside_at_each_start() {
        let dir = TempDir::new().unwrap();
        let cache = disk(dir.path());
        for runs in 0..3 {
            let folder = CacheFolder::open(&cache).unwrap();
            assert_eq!(fs::read_dir(folder.entries()).unwrap().count(), 0);
            assert_eq!((aside(&folder), folder.past().warm), (runs, runs > 0));
            assert_eq!(folder.notice(), None);
            store_something(&folder);
        }
    }

    #[test]
    fn entries_of_another_format_are_in_no_manifest_and_that_is_said() {
        let dir = TempDir::new().unwrap();
        let cache = disk(dir.path());
        store_something(&CacheFolder::open(&cache).unwrap());
        fs::write(dir.path().join("manifest"), "old").unwrap();
        fs::write(dir.path().join("format"), "sluice cache 0\n").unwrap();
        let folder = CacheFolder::open(&cache).unwrap();
        let notice = folder.notice().expect("a notice");
        assert!(
            notice.contains("sluice cache 0") && notice.contains(FORMAT.trim()),
            "{notice}"
        );
        assert!(!dir.path().join("manifest").exists());
        assert_eq!((aside(&folder), folder.past().warm), (1, false));
        drop(folder);
        assert_eq!(CacheFolder::open(&cache).unwrap().notice(), None);
    }

    #[test]
    fn a_cache_of_which_envoy_dies_is_given_up_and_that_is_said() {
        let dir = TempDir::new().unwrap();
        let cache = disk(dir.path());
        store_something(&CacheFolder::open(&cache).unwrap());
        fs::write(dir.path().join("manifest"), "old").unwrap();
        fs::write(dir.path().join("early-deaths"), "2\n").unwrap();
        let folder = CacheFolder::open(&cache).unwrap();
        let notice = folder.notice().expect("a notice");
        assert!(notice.contains("died twice"), "{notice}");
        assert!(!dir.path().join("manifest").exists());
        drop(folder);
        assert_eq!(CacheFolder::open(&cache).unwrap().notice(), None);
    }

    #[test]
    fn a_folder_of_somebody_elses_stays_as_it_is() {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
        let error = CacheFolder::open(&disk(dir.path())).unwrap_err();
        assert!(matches!(error, CacheFolderError::Foreign(_)), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_cache_in_memory_ends_with_its_edge() {
        let folder = CacheFolder::open(&memory(1 << 20)).unwrap();
        let entries = folder.entries().to_owned();
        assert!(entries.starts_with("/dev/shm") && entries.is_dir());
        drop(folder);
        assert!(!entries.exists() && !entries.parent().unwrap().exists());
    }

    #[test]
    fn what_a_dead_edge_left_in_memory_is_removed_and_a_living_edges_is_not() {
        let living = CacheFolder::open(&memory(1 << 20)).unwrap();
        let dead = TempDir::with_prefix_in(MEMORY_PREFIX, "/dev/shm").unwrap();
        fs::write(dead.path().join("format"), FORMAT).unwrap();
        fs::create_dir(dead.path().join(ENTRIES)).unwrap();
        let foreign = TempDir::with_prefix_in(MEMORY_PREFIX, "/dev/shm").unwrap();
        let next = CacheFolder::open(&memory(1 << 20)).unwrap();
        assert!(!dead.path().exists());
        assert!(living.entries().exists() && next.entries().exists() && foreign.path().exists());
    }

    #[test]
    fn memory_has_to_be_memory_and_large_enough() {
        let wrong = CacheFolder::open(&Cache {
            dir: "/proc".into(),
            ..memory(1)
        });
        assert!(matches!(wrong, Err(CacheFolderError::NotTmpfs(_))));
        let large = CacheFolder::open(&memory(1 << 60)).unwrap_err();
        assert!(large.to_string().starts_with("CACHE_MAX_BYTES="), "{large}");
    }
}
