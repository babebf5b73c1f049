// SPDX-License-Identifier: Apache-2.0
//! The clock of the origin, which is wrong by hours from time to time.

use crate::chance::rng::Rng;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

/// By how many seconds the clock is wrong. It is right, or nearly so, in half of the time.
const SKEWS: [i64; 10] = [0, 0, 0, -1, 2, 3_600, 40_000, -3_600, -40_000, -9_000_000];

/// The difference between the origin's clock and the true time, in seconds.
#[derive(Default)]
pub struct Skew(AtomicI64);

impl Skew {
    /// The time by the origin's clock.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        let seconds = self.0.load(Ordering::Relaxed);
        let difference = Duration::from_secs(seconds.unsigned_abs());
        match seconds < 0 {
            true => SystemTime::now() - difference,
            false => SystemTime::now() + difference,
        }
    }

    /// Sets another difference. Returns whether the clock has jumped.
    pub fn jump(&self, rng: &mut Rng) -> bool {
        let skew = SKEWS[rng.below(SKEWS.len())];
        self.0.swap(skew, Ordering::Relaxed) != skew
    }
}
