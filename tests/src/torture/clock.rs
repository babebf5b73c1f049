// SPDX-License-Identifier: Apache-2.0
//! The time of one run, which the origin, the clients and the verdict share.

use std::time::{Duration, Instant, SystemTime};

/// A moment of the run: the time since it began.
pub type Moment = Duration;

/// A clock that counts from the beginning of the run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    begun: Instant,
    date: SystemTime,
}

impl Clock {
    /// Starts a run now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            begun: Instant::now(),
            date: SystemTime::now(),
        }
    }

    /// The current moment.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.begun.elapsed()
    }

    /// The date at a moment.
    #[must_use]
    pub fn date(&self, moment: Moment) -> SystemTime {
        self.date + moment
    }
}
