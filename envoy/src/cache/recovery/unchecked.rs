// SPDX-License-Identifier: Apache-2.0
//! The files of earlier runs, which are set aside until they have been checked.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::fingerprint::Fingerprint;
use super::manifest::Fingerprints;
use crate::cache::entries::{Entries, Entry, Usage};

/// The files that have not been checked, and their fingerprints in the manifest.
#[derive(Debug, Default)]
pub struct UncheckedFiles {
    /// The fingerprints of files that are not in use yet.
    pub known: Fingerprints,
    /// The usage of the files that are left to check.
    pub usage: Usage,
    folders: Vec<Arc<Entries>>,
    /// The next file to check is in front.
    queue: VecDeque<UncheckedFile>,
    counts: RecoveryCounts,
}

/// A file of an earlier run.
#[derive(Debug)]
pub struct UncheckedFile {
    entry: Entry,
    folder: Arc<Entries>,
}

/// The numbers of files of earlier runs, by the result of the check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryCounts {
    /// Files that are whole and in use again.
    pub kept: u64,
    /// Files that differ from their fingerprint in the manifest.
    pub damaged: u64,
    /// Files that are not in the manifest.
    pub unknown: u64,
}

impl fmt::Display for RecoveryCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kept,
            damaged,
            unknown,
        } = self;
        let removed = damaged + unknown;
        write!(
            out,
            "{kept} files of earlier runs are whole and in use again, {removed} have been removed \
             ({damaged} damaged, {unknown} not in the manifest)"
        )
    }
}

impl UncheckedFiles {
    /// The files in `folders`. The manifest has the fingerprints `known`. The most recently used file is checked
    /// first. Ends early when `goes_on` returns `false`.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn list(
        folders: Vec<PathBuf>,
        known: Fingerprints,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<Self> {
        let mut unchecked = Self {
            known,
            ..Self::default()
        };
        let mut queue = Vec::new();
        for path in folders {
            let folder = Arc::new(Entries::open(&path)?);
            for entry in folder.list(goes_on)? {
                unchecked.usage = unchecked.usage.with(entry.bytes);
                let folder = Arc::clone(&folder);
                queue.push(UncheckedFile { entry, folder });
            }
            unchecked.folders.push(folder);
        }
        queue.sort_unstable_by_key(|file| Reverse(file.entry));
        unchecked.queue = queue.into();
        Ok(unchecked)
    }

    /// Checks the next file, and removes it if it is not whole; `None`: no file is left.
    pub fn check(&mut self) -> Option<Check> {
        let file = self.queue.pop_front()?;
        let UncheckedFile { entry, folder } = &file;
        self.usage = self.usage.without(entry.bytes);
        let known = self.known.get(&entry.number);
        // A file of another length need not be read.
        let whole = known.is_some_and(|known| {
            known.bytes == entry.bytes
                && Fingerprint::of(folder, entry.number).ok().flatten() == Some(*known)
        });
        if whole {
            return Some(Check::Whole(file));
        }
        match known {
            // NB: the fingerprint stays known, because an interrupted check may have left another file of the same
            // name.
            Some(_) => self.counts.damaged += 1,
            None => self.counts.unknown += 1,
        }
        folder.remove(entry.number);
        Some(Check::Removed)
    }

    /// Moves a file that has been checked to the files in use, unless one of the same name has been stored meanwhile.
    pub fn restore(&mut self, file: &UncheckedFile, live: &Entries) {
        let (number, folder) = (file.entry.number, &file.folder);
        if self.known.contains_key(&number) && folder.move_to(number, live) {
            self.counts.kept += 1;
        } else {
            folder.remove(number);
        }
    }

    /// Removes the least recently used files, until `fits` accepts the usage of the rest.
    pub fn shrink(&mut self, fits: impl Fn(Usage) -> bool) {
        while !fits(self.usage)
            && let Some(UncheckedFile { entry, folder }) = self.queue.pop_back()
        {
            self.usage = self.usage.without(entry.bytes);
            self.known.remove(&entry.number);
            folder.remove(entry.number);
        }
    }

    /// Removes the folders and the files that remain in them, and returns the counts of all files.
    pub fn finish(&mut self) -> RecoveryCounts {
        for folder in self.folders.drain(..) {
            let left = fs::read_dir(&folder.path).map_or(0, Iterator::count);
            self.counts.unknown += left as u64;
            // If this fails, the next start tries again.
            let _ = fs::remove_dir_all(&folder.path);
        }
        // The other files in the manifest do not exist any more.
        self.known = Fingerprints::new();
        self.counts
    }
}

/// The result of a check.
#[derive(Debug)]
pub enum Check {
    /// The file is whole, and not in use yet.
    Whole(UncheckedFile),
    /// The file has been removed.
    Removed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use tempfile::TempDir;

    fn fingerprint(bytes: &[u8]) -> Fingerprint {
        Fingerprint::read(bytes).unwrap()
    }

    struct EarlierRun {
        dir: TempDir,
        known: Fingerprints,
    }

    impl EarlierRun {
        /// Files of earlier runs, `cache-1` and so on, as they were when they were finished.
        fn new(files: &[&str]) -> Self {
            let dir = TempDir::new().unwrap();
            for folder in ["live", "aside"] {
                fs::create_dir(dir.path().join(folder)).unwrap();
            }
            let mut known = Fingerprints::new();
            for (number, text) in (1..).zip(files) {
                fs::write(dir.path().join(format!("aside/cache-{number}")), text).unwrap();
                known.insert(number, fingerprint(text.as_bytes()));
            }
            Self { dir, known }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn list(&self) -> UncheckedFiles {
            let folders = vec![self.path("aside")];
            UncheckedFiles::list(folders, self.known.clone(), &mut || true).unwrap()
        }

        fn check(&self) -> RecoveryCounts {
            let live = Entries::open(&self.path("live")).unwrap();
            let mut unchecked = self.list();
            while let Some(check) = unchecked.check() {
                if let Check::Whole(file) = check {
                    unchecked.restore(&file, &live);
                }
            }
            assert_eq!(unchecked.usage, Usage::default());
            let outcome = unchecked.finish();
            assert!(!self.path("aside").exists());
            outcome
        }

        fn live(&self) -> Vec<String> {
            let entries = fs::read_dir(self.path("live")).unwrap();
            let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
            let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn whole_files_are_used_again_and_damaged_ones_are_not() {
        let run = EarlierRun::new(&[
            "whole",
            "shorter",
            "longer",
            "in the middle",
            "zeros",
            "gone",
        ]);
        let damage = |number: u64, text: &str| {
            fs::write(run.path(&format!("aside/cache-{number}")), text).unwrap();
        };
        damage(2, "short");
        damage(3, "longer still");
        damage(4, "in the muddle");
        damage(5, "\0\0\0\0\0");
        fs::remove_file(run.path("aside/cache-6")).unwrap();
        let expected = RecoveryCounts {
            kept: 1,
            damaged: 4,
            unknown: 0,
        };
        assert_eq!(run.check(), expected);
        assert_eq!(run.live(), ["cache-1"]);
        assert_eq!(
            fs::read_to_string(run.path("live/cache-1")).unwrap(),
            "whole"
        );
    }

    #[test]
    fn what_the_manifest_does_not_have_is_removed() {
        let run = EarlierRun::new(&["whole"]);
        fs::write(run.path("outside"), "x").unwrap();
        fs::write(run.path("aside/cache-7"), "whole").unwrap();
        fs::write(run.path("aside/cache-01"), "whole").unwrap();
        fs::create_dir_all(run.path("aside/folder/folder")).unwrap();
        std::os::unix::fs::symlink(run.path("outside"), run.path("aside/cache-8")).unwrap();
        let outcome = run.check();
        assert_eq!((outcome.kept, outcome.unknown), (1, 4));
        assert_eq!(run.live(), ["cache-1"]);
        assert!(run.path("outside").exists());
    }

    #[test]
    fn what_has_been_stored_meanwhile_stays() {
        let run = EarlierRun::new(&["old", "old too"]);
        fs::write(run.path("live/cache-1"), "new").unwrap();
        assert_eq!(run.check().kept, 1);
        assert_eq!(fs::read_to_string(run.path("live/cache-1")).unwrap(), "new");
        assert_eq!(run.live(), ["cache-1", "cache-2"]);
    }

    #[test]
    fn what_was_used_last_comes_first_and_what_was_used_first_goes_first() {
        let run = EarlierRun::new(&["11", "22", "33"]);
        for (number, seconds) in [(1, 20), (2, 30), (3, 10)] {
            let file = fs::File::open(run.path(&format!("aside/cache-{number}"))).unwrap();
            let used = std::time::SystemTime::now() + std::time::Duration::from_secs(seconds);
            file.set_times(fs::FileTimes::new().set_accessed(used))
                .unwrap();
        }
        let mut unchecked = run.list();
        assert_eq!(unchecked.usage, Usage { bytes: 6, files: 3 });
        let Some(Check::Whole(first)) = unchecked.check() else {
            panic!("no file");
        };
        assert_eq!(first.entry.number, 2);
        unchecked.shrink(|left| left.files <= 1);
        assert!(!run.path("aside/cache-3").exists());
        let Some(Check::Whole(last)) = unchecked.check() else {
            panic!("no file");
        };
        assert_eq!(last.entry.number, 1);
        assert!(unchecked.check().is_none());
    }

    #[test]
    fn a_file_of_two_runs_is_used_as_the_later_one_has_left_it() {
        let run = EarlierRun::new(&["the later"]);
        fs::create_dir(run.path("earlier")).unwrap();
        fs::write(run.path("earlier/cache-1"), "an earlier").unwrap();
        let folders = vec![run.path("earlier"), run.path("aside")];
        let mut unchecked = UncheckedFiles::list(folders, run.known.clone(), &mut || true).unwrap();
        let live = Entries::open(&run.path("live")).unwrap();
        while let Some(check) = unchecked.check() {
            if let Check::Whole(file) = check {
                unchecked.restore(&file, &live);
            }
        }
        let text = fs::read_to_string(Path::new(&run.path("live/cache-1")));
        assert_eq!(text.unwrap(), "the later");
    }
}
