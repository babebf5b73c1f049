// SPDX-License-Identifier: Apache-2.0
//! How often in a row Envoy has died soon after its start, over restarts of the edge: a cache may be the reason.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::private;

/// Name of the file in the cache's folder.
const FILE: &str = "early-deaths";
/// So many in a row are enough to give the cache up.
const TOO_MANY: u32 = 2;
/// Who lives for so long has not died of its start.
pub const EARLY: Duration = Duration::from_secs(60);

/// The life of one Envoy.
#[derive(Debug)]
pub struct Life {
    deaths: EarlyDeaths,
    start: Instant,
}

impl Life {
    /// Envoy has just started with the cache whose `deaths` these are.
    pub fn begin(deaths: EarlyDeaths) -> Self {
        Self {
            deaths,
            start: Instant::now(),
        }
    }

    /// It has ended by itself.
    pub fn ended(&self, status: ExitStatus) {
        self.deaths.ended(status, self.start.elapsed());
    }

    /// It has been told to end.
    pub fn ended_in_order(&self) {
        self.deaths.forget();
    }
}

/// The count for one cache. Where it cannot be kept, nothing is given up.
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

    /// Whether the cache should be given up. The count begins anew then.
    pub fn are_too_many(&self) -> bool {
        let too_many = self.count() >= TOO_MANY;
        if too_many {
            self.forget();
        }
        too_many
    }

    /// Envoy has ended by itself after it had lived for so long. One that a signal has ended counts: an Envoy that refuses
    /// its configuration exits.
    fn ended(&self, status: ExitStatus, lived: Duration) {
        if lived >= EARLY {
            self.forget();
        } else if status.signal().is_some() {
            // A count that is lost costs another such death.
            let _ = private::write(&self.path, &format!("{}\n", self.count() + 1));
        }
    }

    /// Envoy has lived for long enough, or was told to end.
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
        deaths().ended(segfault(), SECOND);
        assert!(!deaths().are_too_many());
        deaths().ended(segfault(), 59 * SECOND);
        assert!(deaths().are_too_many());
        assert!(!deaths().are_too_many());
    }

    #[test]
    fn a_minute_of_life_or_a_stop_in_order_is_a_new_beginning() {
        let dir = TempDir::new().unwrap();
        let deaths = EarlyDeaths::in_folder(dir.path());
        let long_lived = |deaths: &EarlyDeaths| deaths.ended(segfault(), EARLY);
        for peace in [long_lived, EarlyDeaths::forget] {
            deaths.ended(segfault(), SECOND);
            peace(&deaths);
            deaths.ended(segfault(), SECOND);
            assert!(!deaths.are_too_many());
            deaths.forget();
        }
    }

    #[test]
    fn an_envoy_that_refuses_its_configuration_is_no_reason_to_give_the_cache_up() {
        let dir = TempDir::new().unwrap();
        let deaths = EarlyDeaths::in_folder(dir.path());
        for _ in 0..3 {
            deaths.ended(ExitStatus::from_raw(1 << 8), SECOND);
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
