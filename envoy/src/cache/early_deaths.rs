// SPDX-License-Identifier: Apache-2.0
//! Gives up a cache that kills Envoy at its start.
//!
//! Works around a behaviour of Envoy: the v1 store crashes on a file that is not whole
//! (`control_bare_envoy_dies_of_a_file_that_is_cut_short`). [`crate::cache::recovery`] finds damaged files, but it
//! cannot find an undamaged file that crashes Envoy. Such a file would crash the edge again after each restart. So
//! the entry point counts, across its own restarts, how often in a row a signal has ended Envoy within a minute of
//! its start. After two such deaths the next start keeps no entries.
//!
//! If Envoy survives every file, that control test fails. Then delete this file, its notice in
//! [`crate::cache::folder`], and `deaths` in [`crate::cache::keeper`] and [`crate::run`].

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use crate::system::private;

/// Name of the file in the cache's folder.
const FILE: &str = "early-deaths";
/// Number of early deaths in a row after which the cache is given up.
const TOO_MANY: u32 = 2;
/// A death within this time of the start is early.
pub const EARLY: Duration = Duration::from_secs(60);

/// The count for one cache. If the count cannot be written, no cache is given up.
#[derive(Clone, Debug)]
pub struct EarlyDeaths {
    path: PathBuf,
}

impl EarlyDeaths {
    /// The count in `folder`.
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            path: folder.join(FILE),
        }
    }

    /// Whether the cache should be given up. If so, the count starts again from zero.
    pub fn are_too_many(&self) -> bool {
        let too_many = self.count() >= TOO_MANY;
        if too_many {
            self.forget();
        }
        too_many
    }

    /// Counts an end of Envoy that the edge has not asked for, after Envoy had `lived` for this time. Only an end
    /// by a signal counts, because an Envoy that refuses its configuration exits.
    pub fn note_end(&self, status: ExitStatus, lived: Duration) {
        if lived >= EARLY {
            self.forget();
        } else if status.signal().is_some() {
            // If the count cannot be written, the cache is given up one death later.
            let _ = private::write(&self.path, &format!("{}\n", self.count() + 1));
        }
    }

    /// Resets the count: Envoy has lived for long enough, or was told to end.
    pub fn forget(&self) {
        let _ = fs::remove_file(&self.path);
    }

    fn count(&self) -> u32 {
        let text: io::Result<String> = fs::read_to_string(&self.path);
        text.ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const SECOND: Duration = Duration::from_secs(1);

    fn segfault() -> ExitStatus {
        ExitStatus::from_raw(11)
    }

    #[test]
    fn two_early_deaths_in_a_row_are_too_many_and_then_none() {
        let dir = TempDir::new().unwrap();
        let deaths = || EarlyDeaths::in_folder(dir.path());
        assert!(!deaths().are_too_many());
        deaths().note_end(segfault(), SECOND);
        assert!(!deaths().are_too_many());
        deaths().note_end(segfault(), 59 * SECOND);
        assert!(deaths().are_too_many());
        assert!(!deaths().are_too_many());
    }

    #[test]
    fn a_minute_of_life_or_a_stop_in_order_is_a_new_beginning() {
        let dir = TempDir::new().unwrap();
        let deaths = EarlyDeaths::in_folder(dir.path());
        let long_lived = |deaths: &EarlyDeaths| deaths.note_end(segfault(), EARLY);
        for peace in [long_lived, EarlyDeaths::forget] {
            deaths.note_end(segfault(), SECOND);
            peace(&deaths);
            deaths.note_end(segfault(), SECOND);
            assert!(!deaths.are_too_many());
            deaths.forget();
        }
    }

    #[test]
    fn an_envoy_that_refuses_its_configuration_is_no_reason_to_give_the_cache_up() {
        let dir = TempDir::new().unwrap();
        let deaths = EarlyDeaths::in_folder(dir.path());
        for _ in 0..3 {
            deaths.note_end(ExitStatus::from_raw(1 << 8), SECOND);
        }
        assert!(!deaths.are_too_many());
    }

    #[test]
    fn a_count_that_cannot_be_read_is_none() {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join(FILE), "many").unwrap();
        assert!(!EarlyDeaths::in_folder(dir.path()).are_too_many());
    }
}
