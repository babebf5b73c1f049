// SPDX-License-Identifier: Apache-2.0
//! Readings of the feed ahead of their time, because it has lines that this edge has not applied.

use crate::workers::Millis;

/// Least time between two readings ahead of their time, in milliseconds.
const LEAST_MILLIS: Millis = 200;

/// When the next reading ahead of its time may begin. Each one that leaves lines lacking doubles the pause, until the
/// readings in the feed's interval are no rarer. So a line that the feed does not have costs few readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedHaste {
    due: Millis,
    pause: Millis,
}

impl FeedHaste {
    /// Begins a reading at `now`, unless the pause is not over, or a reading in the interval `every` comes soon enough.
    /// Returns whether it begins.
    pub fn take(&mut self, now: Millis, every: Millis) -> bool {
        let pause = self.pause.max(LEAST_MILLIS);
        let begins = now >= self.due && pause < every;
        if begins {
            self.due = now + pause;
            self.pause = pause * 2;
        }
        begins
    }

    /// Notes that no line is lacking.
    pub fn satisfy(&mut self) {
        self.pause = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Millis = 2_000;

    /// The times at which readings begin within these milliseconds, if lines are always lacking.
    fn taken(haste: &mut FeedHaste, millis: std::ops::Range<Millis>) -> Vec<Millis> {
        millis.filter(|now| haste.take(*now, EVERY)).collect()
    }

    #[test]
    fn a_line_that_never_comes_costs_four_readings() {
        let mut haste = FeedHaste::default();
        assert_eq!(taken(&mut haste, 50..60_000), [50, 250, 650, 1_450]);
    }

    #[test]
    fn lines_that_come_are_read_at_once_but_five_times_a_second_at_most() {
        let mut haste = FeedHaste::default();
        let mut begun = Vec::new();
        for now in 0..1_000 {
            if haste.take(now, EVERY) {
                begun.push(now);
                haste.satisfy();
            }
        }
        assert_eq!(begun, [0, 200, 400, 600, 800]);
        assert_eq!(taken(&mut haste, 5_000..5_001), [5_000]);
    }

    #[test]
    fn a_feed_that_is_read_as_often_needs_no_haste() {
        assert!(!FeedHaste::default().take(0, LEAST_MILLIS));
        assert!(FeedHaste::default().take(0, LEAST_MILLIS + 1));
    }
}
