// SPDX-License-Identifier: Apache-2.0
//! Makes room in a store that is nearly full, for many objects at a time.
//!
//! Envoy's file-system caches evict by themselves: above its bound, a thread of Envoy's reads the whole folder and removes
//! what is too much, which is one object where they come one by one, and begins again with the next one. So this
//! thread is faster: it watches the gauges of Envoy's caches, and shortly before one reaches its bound it reads the folder
//! once, and removes the objects that Envoy would remove next, as many as leave room for a while.
//!
//! Those gauges know nothing of that. They go on to the bound, where Envoy reads the folder, finds it well below, removes
//! nothing, and has true gauges again. So the folder is read twice, once here and once there, for each such batch.
//! Where this thread comes too late or not at all, Envoy keeps to the bound as it always has.

mod entries;
mod schedule;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::admin::Admin;
use crate::joining_thread::{JoiningThread, StopToken};
use crate::run::say;
use crate::settings::Settings;
use entries::Entries;
use schedule::Schedule;

/// What slow work is followed by at most, as it has let others work.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// What a store holds, or may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of all files.
    pub bytes: u64,
    /// How many there are.
    pub files: u64,
}

/// Makes room in `folder`, the entries of Envoy's cache; `None` where there can be no more threads.
pub fn start(settings: &Settings, folder: &Path) -> Option<JoiningThread> {
    let bound = Usage {
        bytes: settings.cache.max_bytes,
        files: settings.cache.max_entries,
    };
    let (admin, folder) = (Admin::new(settings.admin_port), folder.to_owned());
    let work = move |stop| {
        let mut evictor = Evictor {
            admin,
            schedule: Schedule::new(bound),
            folder,
            stop,
            complained: false,
        };
        evictor.run();
    };
    // Without it Envoy evicts as it does anyway.
    JoiningThread::start("eviction", work).ok()
}

/// What the thread has.
struct Evictor {
    admin: Admin,
    schedule: Schedule,
    folder: PathBuf,
    stop: StopToken,
    /// Whether it has been said that the folder cannot be worked on.
    complained: bool,
}

impl Evictor {
    fn run(&mut self) {
        let (mut asked, mut wait) = (Instant::now(), Duration::ZERO);
        while self.stop.rest(wait) {
            // No answer is what an Envoy that ends gives.
            let Some(caches) = self.admin.caches() else {
                wait = schedule::LONGEST_WAIT;
                continue;
            };
            let step = self.schedule.next(caches, asked.elapsed());
            asked = Instant::now();
            if let Some(keep) = step.keep {
                self.make_room(keep);
            }
            wait = step.wait;
        }
    }

    /// Removes the oldest entries until the rest is within `keep`.
    fn make_room(&mut self, keep: Usage) {
        let mut worked = Instant::now();
        // Half of the time is for those who want the folder, or the core, meanwhile.
        let mut pause = || {
            let goes_on = self.stop.rest(worked.elapsed().min(LONGEST_PAUSE));
            worked = Instant::now();
            goes_on
        };
        let made = Entries::open(&self.folder).and_then(|entries| {
            let oldest = entries::beyond(entries.list(&mut pause)?, keep);
            entries.remove(&oldest, &mut pause)
        });
        if let Err(error) = made
            && !self.complained
        {
            self.complained = true;
            let folder = self.folder.display();
            say(&format!("{folder}: {error}: left to Envoy to evict"));
        }
    }
}
