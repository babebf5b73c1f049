// SPDX-License-Identifier: Apache-2.0
//! Reports when one of the user's files is replaced: by a rename of the file, or by a rename of a symbolic link in
//! its folder, as Kubernetes does it.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use crate::system::joining_thread::JoiningThread;

/// Time without a change before a change is reported. Files that belong together are replaced one by one.
const CALM: Duration = Duration::from_secs(1);
/// The time between two reads of the changes.
const POLL: Duration = Duration::from_millis(100);

/// A watch, which lasts until it is dropped.
#[derive(Debug)]
pub struct FileWatch {
    _thread: JoiningThread,
}

impl FileWatch {
    /// Calls `told` each time that something has been moved into the folder of one of these files, and once at the
    /// start, because a file may have been replaced before the watch began.
    ///
    /// # Errors
    /// A folder cannot be watched.
    pub fn start(files: &[PathBuf], told: impl Fn() + Send + 'static) -> io::Result<Self> {
        let folders: BTreeSet<_> = files.iter().filter_map(|file| file.parent()).collect();
        let inotify = watch(&folders)?;
        let mut changed = Some(Instant::now());
        let thread = JoiningThread::start("file-watch", move |stop| {
            while stop.wait(POLL) {
                if has_changed(&inotify) {
                    changed = Some(Instant::now());
                }
                if changed.is_some_and(|then| then.elapsed() >= CALM) {
                    changed = None;
                    told();
                }
            }
        })?;
        Ok(Self { _thread: thread })
    }
}

fn watch(folders: &BTreeSet<&Path>) -> io::Result<OwnedFd> {
    let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    for folder in folders {
        inotify::add_watch(
            &inotify,
            *folder,
            WatchFlags::MOVED_TO | WatchFlags::ONLYDIR,
        )?;
    }
    Ok(inotify)
}

/// Whether something has been moved since the last call.
fn has_changed(inotify: &OwnedFd) -> bool {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(inotify, &mut buffer);
    let mut changed = false;
    loop {
        match reader.next() {
            Ok(_) => changed = true,
            Err(Errno::INTR) => {}
            Err(_) => return changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::mpsc;
    use tempfile::TempDir;

    #[test]
    fn a_rename_and_a_swap_of_links_are_told_and_the_start_and_a_write_is_not() {
        let dir = TempDir::new().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "1").unwrap();
        let (told, changes) = mpsc::channel();
        let tell = move || told.send(()).unwrap();
        let watch = FileWatch::start(&[path("file")], tell).unwrap();
        let quiet = 3 * CALM;
        changes.recv().unwrap();
        fs::write(path("file"), "2").unwrap();
        assert!(changes.recv_timeout(quiet).is_err());
        fs::write(path("new"), "3").unwrap();
        fs::rename(path("new"), path("file")).unwrap();
        changes.recv().unwrap();
        symlink("elsewhere", path("..data_tmp")).unwrap();
        fs::rename(path("..data_tmp"), path("..data")).unwrap();
        changes.recv().unwrap();
        drop(watch);
        assert!(changes.recv_timeout(quiet).is_err());
    }
}
