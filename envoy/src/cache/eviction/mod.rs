// SPDX-License-Identifier: Apache-2.0
//! Evicts the oldest entries, many at once, before Envoy evicts them one by one.
//!
//! Answers this behaviour of Envoy: above the bound, a thread of the v1 store reads the whole folder and evicts as many
//! objects as there are too many. When objects arrive one by one, it reads the folder for each of them. The entry point
//! knows the usage, reads the folder once shortly before the bound, and evicts a batch. The counters of Envoy's store
//! see neither these evictions nor the entries that come back after a restart. They go on to the bound, where Envoy
//! reads the folder, finds room, and counts right again.
//!
//! The control is the edge `alone` in the test `envoy_reads_the_folder_once_for_many_objects`: Envoy without the entry
//! point reads the folder for each object. When Envoy evicts in batches, that part of the test fails. Then delete this
//! folder, `Entries::remove_unused`, and `make_room` and `evict` in [`crate::cache::keeper`], unless the keeper must
//! still evict for [`crate::cache::free_space::Shortage`].

mod bound;

use std::io;

pub use bound::target;

use super::entries::{Entries, Entry, Usage};

/// Removes the oldest entries, until the others are within `target`. Calls `pause` every few hundred files, and ends
/// when that gives `false`.
///
/// # Errors
/// The folder cannot be read, or an entry cannot be removed.
pub fn evict(entries: &Entries, target: Usage, pause: &mut dyn FnMut() -> bool) -> io::Result<()> {
    let oldest = oldest_beyond(entries.list(pause)?, target);
    entries.remove_unused(&oldest, pause)
}

/// The fewest of the oldest `entries`, oldest first, without which the others are within `target`.
fn oldest_beyond(mut entries: Vec<Entry>, target: Usage) -> Vec<Entry> {
    let all = entries.iter().map(|entry| entry.bytes);
    let mut left = all.fold(Usage::default(), Usage::with);
    entries.sort_unstable();
    let gone = entries.iter().take_while(|entry| {
        let too_much = !left.is_within(target);
        left = left.without(entry.bytes);
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
    use std::path::Path;
    use std::time::{Duration, SystemTime};
    use tempfile::TempDir;

    const ALL: Usage = Usage {
        bytes: u64::MAX,
        files: u64::MAX,
    };
    const NONE: Usage = Usage { bytes: 0, files: 0 };

    fn list(folder: &Path) -> Vec<Entry> {
        let entries = Entries::open(folder).unwrap();
        entries.list(&mut || true).unwrap()
    }

    fn numbers(entries: &[Entry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn as_many_of_the_oldest_go_as_leave_the_others_within_both_bounds() {
        let dir = TempDir::new().unwrap();
        for (second, number, bytes) in [(30, 1, 5), (10, 2, 70), (20, 3, 5)] {
            let file = File::create(dir.path().join(format!("cache-{number}"))).unwrap();
            file.set_len(bytes).unwrap();
            let used = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            let times = FileTimes::new().set_accessed(used).set_modified(used);
            file.set_times(times).unwrap();
        }
        let gone = |target| numbers(&oldest_beyond(list(dir.path()), target));
        let keep = |bytes, files| Usage { bytes, files };
        assert!(gone(ALL).is_empty());
        assert!(gone(keep(80, 3)).is_empty());
        assert_eq!(gone(keep(80, 2)), [2]);
        assert_eq!(gone(keep(79, 3)), [2]);
        assert_eq!(gone(keep(9, 3)), [2, 3]);
        assert_eq!(gone(NONE), [2, 3, 1]);
        assert!(oldest_beyond(Vec::new(), NONE).is_empty());
    }

    #[test]
    fn what_was_read_or_written_last_stays_longest() {
        let dir = TempDir::new().unwrap();
        let path = |number: u64| dir.path().join(format!("cache-{number}"));
        let later = SystemTime::now() + Duration::from_secs(60);
        for number in [3, 1, 2] {
            let file = File::create(path(number)).unwrap();
            let read = later + Duration::from_secs(number);
            file.set_times(FileTimes::new().set_accessed(read)).unwrap();
        }
        // This entry has been moved a moment ago, and has not been used for long.
        let long_ago = FileTimes::new()
            .set_accessed(SystemTime::UNIX_EPOCH)
            .set_modified(SystemTime::UNIX_EPOCH);
        let file = File::create(dir.path().join("elsewhere")).unwrap();
        file.set_times(long_ago).unwrap();
        fs::rename(dir.path().join("elsewhere"), path(9)).unwrap();
        let gone = oldest_beyond(list(dir.path()), NONE);
        assert_eq!(numbers(&gone), [9, 1, 2, 3]);
    }
}
