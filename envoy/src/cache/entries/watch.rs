// SPDX-License-Identifier: Apache-2.0
//! The changes in a folder of entries, as inotify reports them.
//!
//! Envoy's v1 store writes a file without a name, removes the former file, and links the new file to the name when
//! it is whole. It does the same when it stores the headers of a 304. So a name that appears always belongs to a
//! whole file.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::number;

/// Number of bytes that are read in one call: some thousand changes.
const BUFFER: usize = 64 << 10;

/// A change of an entry, by the number in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The entry has been stored.
    Stored(u64),
    /// The entry has been moved here from another folder.
    Moved(u64),
    /// The entry is gone.
    Gone(u64),
    /// The system has lost changes, because there were too many.
    Lost,
}

/// A watch over one folder.
#[derive(Debug)]
pub struct FolderWatch {
    inotify: OwnedFd,
}

impl FolderWatch {
    /// Watches `folder` from now on.
    ///
    /// # Errors
    /// The folder does not exist, or the user has no watch left (`fs.inotify.max_user_instances`).
    pub fn start(folder: &Path) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let wanted = WatchFlags::CREATE | WatchFlags::MOVE | WatchFlags::DELETE;
        inotify::add_watch(&inotify, folder, wanted | WatchFlags::ONLYDIR)?;
        Ok(Self { inotify })
    }

    /// The changes since the last call, in their order.
    ///
    /// # Errors
    /// The watch does not work any more.
    pub fn take(&self) -> io::Result<Vec<Change>> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut changes = Vec::new();
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(changes),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let events = event.events();
            if events.contains(ReadFlags::QUEUE_OVERFLOW) {
                changes.push(Change::Lost);
            }
            let name = event.file_name().and_then(|name| name.to_str().ok());
            let Some(number) = name.and_then(number) else {
                continue;
            };
            changes.push(if events.contains(ReadFlags::CREATE) {
                Change::Stored(number)
            } else if events.contains(ReadFlags::MOVED_TO) {
                Change::Moved(number)
            } else {
                Change::Gone(number)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    #[test]
    fn entries_that_come_and_go_are_told_in_this_order() {
        let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let path = |number: u64| dir.path().join(format!("cache-{number}"));
        let away = other.path().join("away");
        fs::write(path(1), "before").unwrap();
        let changes = FolderWatch::start(dir.path()).unwrap();
        assert_eq!(changes.take().unwrap(), []);
        fs::write(&away, "x").unwrap();
        fs::hard_link(&away, path(2)).unwrap();
        fs::remove_file(path(1)).unwrap();
        fs::rename(&away, path(3)).unwrap();
        fs::write(dir.path().join("something"), "else").unwrap();
        fs::rename(path(3), &away).unwrap();
        let expected = [
            Change::Stored(2),
            Change::Gone(1),
            Change::Moved(3),
            Change::Gone(3),
        ];
        assert_eq!(changes.take().unwrap(), expected);
        assert_eq!(changes.take().unwrap(), []);
    }

    #[test]
    fn a_folder_that_is_none_cannot_be_watched() {
        assert!(FolderWatch::start(Path::new("/nowhere")).is_err());
    }
}
