// SPDX-License-Identifier: Apache-2.0
//! The keeper: a thread beside Envoy that knows each file of the cache.
//!
//! It follows the files that Envoy's store writes and removes. It takes their fingerprints and brings files of earlier
//! runs back, see [`crate::cache::recovery`]. It evicts files shortly before the cache reaches its bound, or when the
//! disk lacks space, see [`crate::cache::eviction`].

mod thread;

use std::io;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use super::entries::Usage;
use super::folder::CacheFolder;
use super::free_space::Shortage;
use crate::settings::Cache;
use crate::system::joining_thread::JoiningThread;
use thread::KeeperThread;

/// The keeper of a cache. Its thread ends when this is dropped.
#[derive(Debug)]
pub struct Keeper {
    /// Disconnected when the check of earlier runs' files has ended.
    checked: Receiver<()>,
    _thread: JoiningThread,
}

impl Keeper {
    /// Keeps the cache in `folder` within the bounds of `settings`, and evicts for `shortage`. Must start before Envoy,
    /// which would store files unseen, and end after it.
    ///
    /// # Errors
    /// The folder cannot be watched, or there can be no more threads.
    pub fn start(settings: &Cache, folder: &CacheFolder, shortage: Shortage) -> io::Result<Self> {
        let (checks, checked) = mpsc::channel();
        let bound = Usage {
            bytes: settings.max_bytes,
            files: settings.max_entries,
        };
        let manifest = (!folder.ends_with_edge).then(|| folder.root.clone());
        let work = KeeperThread::new(&folder.entries, manifest, bound, shortage)?;
        let (unchecked, deaths) = (folder.unchecked.clone(), folder.early_deaths());
        let thread = JoiningThread::start("keeper", move |stop| {
            work.run(&stop, unchecked, checks, &deaths);
        })?;
        Ok(Self {
            checked,
            _thread: thread,
        })
    }

    /// Waits until all files of earlier runs have been checked, but no longer than `patience`.
    pub fn wait_for_check(&self, patience: Duration) {
        // The thread sends nothing: this waits for the end of its sender.
        let _ = self.checked.recv_timeout(patience);
    }
}
