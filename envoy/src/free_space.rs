// SPDX-License-Identifier: Apache-2.0
//! Keeps a part of the cache's file system free, so that the cache is never what fills it, and never finds it full.
//!
//! Envoy's cache does not say that it could not write a response, so followers would wait for it in vain. So this
//! thread looks at the free space. Below the reserve it tells Envoy, by a runtime value, that the store has no room, and
//! the filter has nothing stored until there is more. A quarter above the reserve the cache is asked to give back what is
//! lacking, and is so before it has to pause, where it is the cache itself that grows.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::admin::Admin;
use crate::joining_thread::{JoiningThread, StopToken};
use crate::run::{RunError, say};
use crate::settings::Settings;
use crate::shortage::Shortage;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// What a file system has, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All that it holds; 0 for a tmpfs without a limit.
    pub total: u64,
    /// What the edge could still write.
    pub free: u64,
}

impl Space {
    /// That of the file system of `path`.
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn of(path: &Path) -> io::Result<Self> {
        let status = rustix::fs::statvfs(path)?;
        let bytes = |blocks: u64| blocks.saturating_mul(status.f_frsize);
        Ok(Self {
            total: bytes(status.f_blocks),
            free: bytes(status.f_bavail),
        })
    }
}

/// The watch over the free space of a cache's file system.
pub struct FreeSpace {
    admin: Admin,
    folder: PathBuf,
    shortage: Shortage,
    room: Room,
    /// What Envoy takes for true: whether there is room.
    told: bool,
}

impl FreeSpace {
    /// That of the file system of `folder`, the cache's entries, which publishes what it lacks; `None` where `settings`
    /// want no store with files, no filter that could be told, or no reserve, or where the file system has no limit.
    ///
    /// # Errors
    /// The file system cannot be asked, or the reserve is more than half of it.
    pub fn of(
        settings: &Settings,
        folder: &Path,
        shortage: Shortage,
    ) -> Result<Option<Self>, RunError> {
        if !settings.filter {
            return Ok(None);
        }
        let space = Space::of(folder);
        let Space { total, .. } = space.map_err(|error| RunError::Io(folder.to_owned(), error))?;
        let reserve = settings.cache.reserve.of(total);
        if reserve == 0 || total == 0 {
            return Ok(None);
        }
        let most = total / 2;
        if reserve > most {
            return Err(RunError::Reserve {
                reserve: settings.cache.reserve,
                path: folder.to_owned(),
                most,
            });
        }
        Ok(Some(Self {
            admin: Admin::new(settings.admin_port),
            folder: folder.to_owned(),
            shortage,
            room: Room::new(reserve),
            told: true,
        }))
    }

    /// Watches it until the thread is dropped.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn watch(self) -> io::Result<JoiningThread> {
        JoiningThread::start("free_space", move |stop| self.run(&stop))
    }

    fn run(mut self, stop: &StopToken) {
        let mut pause = Duration::ZERO;
        while stop.rest(pause) {
            pause = PAUSE;
            // A file system that cannot be asked now is asked again.
            if let Ok(space) = Space::of(&self.folder) {
                self.look(space.free);
            }
        }
    }

    fn look(&mut self, free: u64) {
        self.shortage.publish(self.room.lacks(free));
        let room = self.room.look(free);
        if room != self.told && self.admin.say_room(room) {
            self.told = room;
            say(&self.news(room, free));
        }
    }

    fn news(&self, room: bool, free: u64) -> String {
        let folder = self.folder.display();
        let [free, reserve] = [free, self.room.reserve].map(|bytes| bytes >> 20);
        if room {
            format!("{folder}: {free} MiB are free: responses are stored again")
        } else {
            format!(
                "{folder}: {free} MiB are free, less than CACHE_RESERVE, {reserve} MiB: nothing is stored until there \
                 is more"
            )
        }
    }
}

/// Whether there is room, by the free space.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Below this there is none.
    reserve: u64,
    /// Whether there was, at the last look.
    left: bool,
}

impl Room {
    const fn new(reserve: u64) -> Self {
        Self {
            reserve,
            left: true,
        }
    }

    /// Whether there is room where so much is `free`. There is none until [`Room::wanted`] is free again, so that storing
    /// does not begin and end with each response.
    const fn look(&mut self, free: u64) -> bool {
        let least = if self.left {
            self.reserve
        } else {
            self.wanted()
        };
        self.left = free >= least;
        self.left
    }

    /// What the cache should give back.
    const fn lacks(self, free: u64) -> u64 {
        self.wanted().saturating_sub(free)
    }

    /// The free space from which on nothing is lacking.
    const fn wanted(self) -> u64 {
        self.reserve.saturating_add(self.reserve / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storing_pauses_below_the_reserve_and_goes_on_a_quarter_above() {
        let mut room = Room::new(100);
        for (free, left) in [
            (1_000, true),
            (100, true),
            (99, false),
            (100, false),
            (124, false),
            (125, true),
            (100, true),
            (0, false),
        ] {
            assert_eq!(room.look(free), left, "{free}");
        }
    }

    #[test]
    fn the_cache_is_asked_for_room_before_storing_pauses() {
        let room = Room::new(100);
        assert_eq!(room.lacks(200), 0);
        assert_eq!(room.lacks(125), 0);
        assert_eq!(room.lacks(110), 15);
        assert_eq!(room.lacks(0), 125);
    }

    #[test]
    fn a_file_system_has_no_more_free_than_it_holds() {
        let space = Space::of(Path::new("/")).unwrap();
        assert!(space.total > 0 && space.free <= space.total, "{space:?}");
    }
}
