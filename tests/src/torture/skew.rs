// SPDX-License-Identifier: Apache-2.0
//! The clock of the origin, which is wrong by hours from time to time.

use super::clock::Moment;
use super::world::World;
use crate::chance::rng::{Rng, mix};
use std::sync::Arc;
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
}

/// Has the clock of the origin jump until the run is over.
pub async fn wander(world: Arc<World>) {
    let mut rng = Rng::new(world.shelf.seed ^ mix(4_000 << 32));
    while !world.is_over() {
        let lasts = Moment::from_millis(500 + rng.below(4_000) as u64);
        tokio::time::sleep(lasts).await;
        let skew = SKEWS[rng.below(SKEWS.len())];
        let before = world.shelf.skew.0.swap(skew, Ordering::Relaxed);
        if before != skew {
            world.ledger.count("jumps of the origin's clock");
        }
    }
}
