// SPDX-License-Identifier: Apache-2.0
//! The entries of Envoy's store (v1), which are files in one folder.
//!
//! `Entries` lists, reads, moves and removes them. `FolderWatch` reports entries that appear and disappear. `Usage`
//! counts their bytes and their number. All knowledge of the store's file names is in this module.

mod head;
mod key;
mod protobuf;
mod usage;
mod watch;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, StatxFlags, StatxTimestamp, Timestamps,
    UTIME_OMIT, linkat, openat, renameat_with, statx, unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::time::Timespec;

pub use head::{Head, HeadBuffer};
pub use key::{SiteId, StoredKey, UrlId};
pub use usage::Usage;
pub use watch::{Change, FolderWatch};

use crate::system::private::found;

/// The store's file names begin with this. A decimal number follows, the hash of the key. A file that is being written
/// has no name yet.
const PREFIX: &str = "cache-";
/// The number of files between two pauses.
const PACE: usize = 512;

/// The state of an entry when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The time of the last use, a read or a write, in seconds and nanoseconds since the epoch. A check does not
    /// count as a use.
    pub touched: (i64, u32),
    /// The time of the last write, in seconds since the epoch.
    pub written: i64,
    /// The number in the file's name.
    pub number: u64,
    /// The file's length.
    pub bytes: u64,
}

impl Entry {
    /// Whether the entry was read when `time` or more had passed since its last write.
    pub fn was_read_after(&self, time: Duration) -> bool {
        let seconds = self.touched.0.saturating_sub(self.written);
        u64::try_from(seconds).is_ok_and(|seconds| seconds >= time.as_secs())
    }
}

/// A folder of entries. Links that lead out of the folder are never followed.
#[derive(Debug)]
pub struct Entries {
    /// The folder's path.
    pub path: PathBuf,
    folder: OwnedFd,
}

impl Entries {
    /// Opens the folder `path`.
    ///
    /// # Errors
    /// The folder cannot be read, or is a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        let path = path.to_owned();
        Ok(Self { path, folder })
    }

    /// All entries. Calls `pause` every few hundred files; if `pause` returns `false`, the list is empty.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(&self, pause: &mut dyn FnMut() -> bool) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for (seen, file) in Dir::read_from(&self.folder)?.enumerate() {
            if seen % PACE == PACE - 1 && !pause() {
                return Ok(Vec::new());
            }
            let file = file?;
            let number = file.file_name().to_str().ok().and_then(number);
            entries.extend(number.and_then(|number| self.look_at(number)));
        }
        Ok(entries)
    }

    /// The numbers of all entries, in the order of the file system.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn numbers(&self) -> io::Result<impl Iterator<Item = io::Result<u64>>> {
        let files = Dir::read_from(&self.folder)?;
        Ok(files.filter_map(|file| match file {
            Ok(file) => file.file_name().to_str().ok().and_then(number).map(Ok),
            Err(error) => Some(Err(error.into())),
        }))
    }

    /// Removes the `entries` that have not been used since they were listed, and passes the number of each to
    /// `removed`. Calls `pause` every few hundred files, and stops when `pause` returns `false`.
    ///
    /// # Errors
    /// An entry is there and cannot be removed.
    pub fn remove_unused(
        &self,
        entries: &[Entry],
        pause: &mut dyn FnMut() -> bool,
        removed: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        for (done, entry) in entries.iter().enumerate() {
            if done % PACE == PACE - 1 && !pause() {
                return Ok(());
            }
            if self.look_at(entry.number) != Some(*entry) {
                continue;
            }
            let unlinked = unlinkat(&self.folder, name(entry.number), AtFlags::empty());
            found(unlinked.map_err(io::Error::from))?;
            removed(entry.number);
        }
        Ok(())
    }

    /// Removes an entry. A removal can fail only in a folder that Envoy does not serve; the entry then stays.
    pub fn remove(&self, number: u64) {
        let _ = unlinkat(&self.folder, name(number), AtFlags::empty());
    }

    /// Takes the readings of an entry back, unless it was read when `time` or more had passed since its last write. So
    /// Linux records the next one. Without effect on an entry that is gone.
    pub fn take_back_readings(&self, number: u64, time: Duration) {
        let Some(entry) = self.look_at(number) else {
            return;
        };
        if entry.was_read_after(time) {
            return;
        }
        let read = Timespec {
            tv_sec: entry.written,
            tv_nsec: 0,
        };
        let written = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        };
        let times = Timestamps {
            last_access: read,
            last_modification: written,
        };
        // After a failure the entry only goes earlier.
        let _ = utimensat(
            &self.folder,
            name(number),
            &times,
            AtFlags::SYMLINK_NOFOLLOW,
        );
    }

    /// Moves an entry to another folder, unless that folder has an entry of the same name. Returns whether it has
    /// moved the entry.
    pub fn move_to(&self, number: u64, other: &Self) -> bool {
        let (name, flags) = (name(number), RenameFlags::NOREPLACE);
        match renameat_with(&self.folder, &name, &other.folder, &name, flags) {
            // Some file systems do not support the flag. A link never replaces a file.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                let (from, to) = (&self.folder, &other.folder);
                let linked = linkat(from, &name, to, &name, AtFlags::empty());
                self.remove(number);
                linked.is_ok()
            }
            moved => moved.is_ok(),
        }
    }

    /// Opens an entry for reading, which does not count as a use; `None`: the entry does not exist.
    ///
    /// # Errors
    /// The entry cannot be read.
    pub fn open_without_use(&self, number: u64) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOATIME | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, name(number), flags, Mode::empty());
        found(file.map(File::from).map_err(io::Error::from))
    }

    /// The site of an entry, read from its key. The read does not count as a use. An entry without a key counts for
    /// the site without a name.
    pub fn site(&self, number: u64) -> SiteId {
        let mut head = [0; key::HEAD];
        let file = self.open_without_use(number).ok().flatten();
        let length = file.and_then(|file| file.read_at(&mut head, 0).ok());
        let head = head.get(..length.unwrap_or(0));
        head.and_then(SiteId::read).unwrap_or(SiteId::of(b""))
    }

    /// The first bytes of an entry, within which its key ends. The read does not count as a use.
    pub fn key_head(&self, number: u64) -> Option<Vec<u8>> {
        let mut head = vec![0; key::KEY_HEAD];
        let file = self.open_without_use(number).ok().flatten()?;
        let length = file.read_at(&mut head, 0).ok()?;
        head.truncate(length);
        Some(head)
    }

    /// The present state of an entry; `None`: the file does not exist, or the name belongs to something else than a
    /// file.
    pub fn look_at(&self, number: u64) -> Option<Entry> {
        let wanted = StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::ATIME | StatxFlags::MTIME;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let file = statx(&self.folder, name(number), flags, wanted).ok()?;
        let mode = u32::from(file.stx_mode);
        let time = |time: StatxTimestamp| (time.tv_sec, time.tv_nsec);
        (FileType::from_raw_mode(mode) == FileType::RegularFile).then(|| Entry {
            touched: time(file.stx_atime).max(time(file.stx_mtime)),
            written: file.stx_mtime.tv_sec,
            number,
            bytes: file.stx_size,
        })
    }
}

fn name(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// The number in a file name, if the name has the form of Envoy's store.
fn number(file: &str) -> Option<u64> {
    let number = file.strip_prefix(PREFIX)?.parse().ok()?;
    (name(number) == file).then_some(number)
}

#[cfg(test)]
pub mod tests {
    pub use super::head::tests::file_of;
    use super::*;
    use std::fs::{self, FileTimes};
    use std::io::Read as _;
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;
    use tempfile::TempDir;

    fn entry(number: u64) -> Entry {
        Entry {
            touched: (0, 0),
            written: 0,
            number,
            bytes: 0,
        }
    }

    fn numbers(entries: &[Entry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.number).collect()
    }

    fn list(folder: &Path) -> Vec<Entry> {
        let entries = Entries::open(folder).unwrap();
        entries.list(&mut || true).unwrap()
    }

    fn remove(folder: &Path, oldest: &[Entry]) -> io::Result<()> {
        Entries::open(folder)?.remove_unused(oldest, &mut || true, &mut |_| {})
    }

    #[test]
    fn only_regular_files_with_names_of_envoys_are_entries() {
        let dir = TempDir::new().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("outside"), "x").unwrap();
        let names = [
            "cache-1",
            "cache-18446744073709551615",
            "cache-01",
            "cache-+1",
            "cache-18446744073709551616",
            "cache-",
            "cache-1.tmp",
            "buffer.a1b2",
            "purges",
        ];
        let folder = path("entries");
        fs::create_dir(&folder).unwrap();
        for name in names {
            fs::write(folder.join(name), "four").unwrap();
        }
        fs::create_dir(folder.join("cache-2")).unwrap();
        symlink(path("outside"), folder.join("cache-3")).unwrap();
        let mut found = list(&folder);
        found.sort_by_key(|entry| entry.number);
        assert_eq!(numbers(&found), [1, u64::MAX]);
        assert!(found.iter().all(|entry| entry.bytes == 4));
        let not_ours = [2, 3, 4].map(entry);
        remove(&folder, &not_ours).unwrap();
        remove(&folder, &found).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), names.len());
        assert!(path("outside").exists());
    }

    #[test]
    fn what_is_touched_or_gone_meanwhile_is_no_error_and_stays() {
        let dir = TempDir::new().unwrap();
        for number in 1..=3 {
            fs::write(dir.path().join(name(number)), "x").unwrap();
        }
        let found = list(dir.path());
        fs::remove_file(dir.path().join(name(1))).unwrap();
        fs::write(dir.path().join(name(2)), "another").unwrap();
        remove(dir.path(), &found).unwrap();
        assert_eq!(numbers(&list(dir.path())), [2]);
    }

    #[test]
    fn reading_an_entry_to_check_it_is_no_use_of_it() {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join(name(1)), "x").unwrap();
        let file = File::options().write(true).open(dir.path().join(name(1)));
        let long_ago = FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH);
        file.unwrap().set_times(long_ago).unwrap();
        let before = list(dir.path());
        let entries = Entries::open(dir.path()).unwrap();
        let mut file = entries.open_without_use(1).unwrap().unwrap();
        assert_eq!(file.read_to_end(&mut Vec::new()).unwrap(), 1);
        assert!(entries.open_without_use(2).unwrap().is_none());
        assert_eq!(list(dir.path()), before);
    }

    #[test]
    fn a_folder_that_is_a_link_or_none_is_not_worked_on() {
        let dir = TempDir::new().unwrap();
        let link = dir.path().join("link");
        symlink(dir.path(), &link).unwrap();
        assert!(Entries::open(&link).is_err());
        assert!(Entries::open(&dir.path().join("none")).is_err());
    }

    #[test]
    fn the_edge_can_end_in_the_middle_of_it() {
        let dir = TempDir::new().unwrap();
        for number in 0..1_000 {
            fs::write(dir.path().join(name(number)), "x").unwrap();
        }
        let entries = Entries::open(dir.path()).unwrap();
        assert_eq!(entries.list(&mut || false).unwrap(), []);
        let all = list(dir.path());
        entries
            .remove_unused(&all, &mut || false, &mut |_| {})
            .unwrap();
        assert_eq!(list(dir.path()).len(), 1_000 - (PACE - 1));
    }
}
