// SPDX-License-Identifier: Apache-2.0
//! Keeps a part of the cache's file system free: the cache must neither fill it nor depend on a full one.
//!
//! Works around a behaviour of Envoy: its cache does not report that it could not write a response, so followers
//! would wait for the entry in vain (`control_unwatched_followers_wait_in_vain_on_a_full_disk`). So a thread
//! measures the free space. Below the reserve it sets Envoy's runtime value `sluice.no_room`, and the filter stores
//! nothing until there is more space. Below 1.25 times the reserve it asks the keeper to give space back. Therefore
//! a cache that alone fills the disk evicts before storing pauses.
//!
//! If Envoy reports a failed write, that control test fails. Then delete the runtime value here, in Envoy's
//! configuration and in the filter. The reserve and [`Shortage`] stay, because other programs on the same disk need
//! the space.

mod room;
mod shortage;
mod space;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
pub use shortage::Shortage;
pub use space::Space;

use super::folder::io_error;
use crate::log::say;
use crate::net::admin::Admin;
use crate::settings::{Settings, Size};
use crate::system::joining_thread::{JoiningThread, StopToken};
use room::Room;

/// The time between two measurements.
const PAUSE: Duration = Duration::from_millis(250);

/// The watch over the free space of a cache's file system.
pub struct FreeSpace {
    admin: Admin,
    folder: PathBuf,
    shortage: Shortage,
    /// The state that Envoy was told last.
    room: Room,
}

impl FreeSpace {
    /// A watch over the file system of `folder`, the cache's entries, which publishes its `shortage`. `None`: the
    /// edge has no filter to tell, the reserve is 0, or the file system has no limit.
    ///
    /// # Errors
    /// The file system cannot be asked, or the reserve is more than half of it.
    pub fn new(
        settings: &Settings,
        folder: &Path,
        shortage: Shortage,
    ) -> anyhow::Result<Option<Self>> {
        if !settings.filter {
            return Ok(None);
        }
        let Space { total, .. } = Space::of(folder).map_err(io_error(folder))?;
        let reserve = settings.cache.reserve.of(total);
        if reserve == 0 || total == 0 {
            return Ok(None);
        }
        ensure!(
            reserve <= total / 2,
            "SLUICE_CACHE_RESERVE={}: expected at most {}, half of the file system of {}",
            settings.cache.reserve,
            Size(total / 2),
            folder.display()
        );
        Ok(Some(Self {
            admin: Admin::new(settings.admin_socket()),
            folder: folder.to_owned(),
            shortage,
            room: Room {
                reserve,
                is_left: true,
            },
        }))
    }

    /// Starts to watch. The watch ends when the thread is dropped.
    ///
    /// # Errors
    /// The process can start no more threads.
    pub fn watch(self) -> io::Result<JoiningThread> {
        JoiningThread::start("free_space", move |stop| self.run(&stop))
    }

    fn run(mut self, stop: &StopToken) {
        let mut pause = Duration::ZERO;
        while stop.wait(pause) {
            pause = PAUSE;
            // If the file system cannot be asked now, it is asked again after the pause.
            if let Ok(space) = Space::of(&self.folder) {
                self.act(space.free);
            }
        }
    }

    /// Publishes the shortage. Tells Envoy and the user when the room ends, and when there is room again.
    fn act(&mut self, free: u64) {
        self.shortage.publish(self.room.shortage(free));
        let is_left = self.room.is_left_with(free);
        if is_left == self.room.is_left || !self.admin.set_room(is_left) {
            return;
        }
        self.room.is_left = is_left;
        let folder = self.folder.display();
        let [free, reserve] = [free, self.room.reserve].map(|bytes| bytes >> 20);
        say(&if is_left {
            format!("{folder}: {free} MiB are free: responses are stored again")
        } else {
            format!(
                "{folder}: {free} MiB are free, less than SLUICE_CACHE_RESERVE, {reserve} MiB: nothing is stored until there \
                 is more"
            )
        });
    }
}
