// SPDX-License-Identifier: Apache-2.0
//! The entries of Envoy's cache, as files: which there are, and which are the oldest.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Statx, StatxFlags, linkat, openat,
    renameat_with, statx, unlinkat,
};
use rustix::io::Errno;

use super::bound::Usage;
use super::fingerprint::{Fingerprint, Reader};

/// What Envoy's names of entries begin with. A decimal number follows, the hash of the key. What is being written has no
/// name yet.
const PREFIX: &str = "cache-";
/// So many files between two pauses.
const PACE: usize = 512;

/// An entry when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// When it was last read or written, in nanoseconds since the epoch. A check leaves this as it is.
    touched: i64,
    /// What its name ends with.
    number: u64,
    bytes: u64,
}

impl Entry {
    /// What its name ends with.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Its length.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A folder of entries. Nothing outside of it is ever looked at.
#[derive(Debug)]
pub struct Entries {
    folder: OwnedFd,
}

impl Entries {
    /// Opens it.
    ///
    /// # Errors
    /// It cannot be read, or is a link.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        Ok(Self { folder })
    }

    /// All entries. Calls `pause` now and then, and ends with none when that gives `false`.
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

    /// Removes those of `oldest` that nobody has touched since. Calls `pause` now and then, and ends when that gives
    /// `false`.
    ///
    /// # Errors
    /// One is there and cannot be removed.
    pub fn remove_all(&self, oldest: &[Entry], pause: &mut dyn FnMut() -> bool) -> io::Result<()> {
        for (done, entry) in oldest.iter().enumerate() {
            if done % PACE == PACE - 1 && !pause() {
                return Ok(());
            }
            if self.look_at(entry.number) != Some(*entry) {
                continue;
            }
            match unlinkat(&self.folder, name(entry.number), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Removes an entry. One that cannot be removed stays where nobody is served it.
    pub fn remove(&self, number: u64) {
        let _ = unlinkat(&self.folder, name(number), AtFlags::empty());
    }

    /// Moves an entry to another folder, unless there is one of its name; whether it has been moved.
    pub fn move_to(&self, number: u64, other: &Self) -> bool {
        let (name, flags) = (name(number), RenameFlags::NOREPLACE);
        match renameat_with(&self.folder, &name, &other.folder, &name, flags) {
            // Some file systems have no such flag. None links over a file.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                let (from, to) = (&self.folder, &other.folder);
                let linked = linkat(from, &name, to, &name, AtFlags::empty());
                self.remove(number);
                linked.is_ok()
            }
            moved => moved.is_ok(),
        }
    }

    /// Reads an entry, which does not count as a use of it; `None`: there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn fingerprint(&self, number: u64, reader: &mut Reader) -> io::Result<Option<Fingerprint>> {
        let flags = OFlags::RDONLY | OFlags::NOATIME | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.folder, name(number), flags, Mode::empty()) {
            Ok(file) => reader.read(File::from(file)).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// `None` where there is no such file, or something else of this name.
    pub fn look_at(&self, number: u64) -> Option<Entry> {
        let wanted = StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::ATIME | StatxFlags::MTIME;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let file = statx(&self.folder, name(number), flags, wanted).ok()?;
        let mode = u32::from(file.stx_mode);
        (FileType::from_raw_mode(mode) == FileType::RegularFile).then(|| Entry {
            touched: touched(&file),
            number,
            bytes: file.stx_size,
        })
    }
}

fn touched(file: &Statx) -> i64 {
    let times = [&file.stx_atime, &file.stx_mtime];
    let nanoseconds = times.map(|time| {
        let seconds = time.tv_sec.saturating_mul(1_000_000_000);
        seconds.saturating_add(time.tv_nsec.into())
    });
    nanoseconds.into_iter().max().unwrap_or_default()
}

fn name(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// The number of an entry of this name, if it is one as Envoy writes it.
pub fn number(file: &str) -> Option<u64> {
    let number = file.strip_prefix(PREFIX)?.parse().ok()?;
    (name(number) == file).then_some(number)
}

/// The oldest of `entries`, oldest first, without which the others are within `keep`.
pub fn beyond(mut entries: Vec<Entry>, keep: Usage) -> Vec<Entry> {
    let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let mut files = entries.len() as u64;
    entries.sort_unstable();
    let gone = entries.iter().take_while(|entry| {
        let too_much = bytes > keep.bytes || files > keep.files;
        bytes -= entry.bytes;
        files -= 1;
        too_much
    });
    let gone = gone.count();
    entries.truncate(gone);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File, FileTimes};
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};
    use tempfile::TempDir;

    const ALL: Usage = Usage {
        bytes: u64::MAX,
        files: u64::MAX,
    };
    const NONE: Usage = Usage { bytes: 0, files: 0 };

    fn entry(touched: i64, number: u64, bytes: u64) -> Entry {
        Entry {
            touched,
            number,
            bytes,
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
        Entries::open(folder)?.remove_all(oldest, &mut || true)
    }

    #[test]
    fn as_many_of_the_oldest_go_as_leave_the_others_within_both_bounds() {
        let entries = || vec![entry(30, 1, 5), entry(10, 2, 70), entry(20, 3, 5)];
        let keep = |bytes, files| Usage { bytes, files };
        assert!(beyond(entries(), ALL).is_empty());
        assert!(beyond(entries(), keep(80, 3)).is_empty());
        assert_eq!(numbers(&beyond(entries(), keep(80, 2))), [2]);
        assert_eq!(numbers(&beyond(entries(), keep(79, 3))), [2]);
        assert_eq!(numbers(&beyond(entries(), keep(9, 3))), [2, 3]);
        assert_eq!(numbers(&beyond(entries(), NONE)), [2, 3, 1]);
        assert!(beyond(Vec::new(), NONE).is_empty());
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
        let not_ours = [entry(0, 2, 0), entry(0, 3, 0), entry(0, 4, 0)];
        remove(&folder, &not_ours).unwrap();
        remove(&folder, &found).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), names.len());
        assert!(path("outside").exists());
    }

    #[test]
    fn what_was_read_or_written_last_stays_longest() {
        let dir = TempDir::new().unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        for number in [3, 1, 2] {
            let file = File::create(dir.path().join(name(number))).unwrap();
            let read = later + Duration::from_secs(number);
            file.set_times(FileTimes::new().set_accessed(read)).unwrap();
        }
        // Moved a moment ago, and not used since long.
        let long_ago = FileTimes::new()
            .set_accessed(SystemTime::UNIX_EPOCH)
            .set_modified(SystemTime::UNIX_EPOCH);
        let file = File::create(dir.path().join("elsewhere")).unwrap();
        file.set_times(long_ago).unwrap();
        fs::rename(dir.path().join("elsewhere"), dir.path().join(name(9))).unwrap();
        assert_eq!(numbers(&beyond(list(dir.path()), NONE)), [9, 1, 2, 3]);
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
    fn reading_an_entry_for_its_fingerprint_is_no_use_of_it() {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join(name(1)), "x").unwrap();
        let file = File::options().write(true).open(dir.path().join(name(1)));
        let long_ago = FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH);
        file.unwrap().set_times(long_ago).unwrap();
        let before = list(dir.path());
        let (entries, mut reader) = (Entries::open(dir.path()).unwrap(), Reader::new());
        let print = entries.fingerprint(1, &mut reader).unwrap();
        assert_eq!(print.map(|print| print.bytes), Some(1));
        assert_eq!(entries.fingerprint(2, &mut reader).unwrap(), None);
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
        entries.remove_all(&all, &mut || false).unwrap();
        assert_eq!(list(dir.path()).len(), 1_000 - (PACE - 1));
    }
}
