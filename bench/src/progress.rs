// SPDX-License-Identifier: Apache-2.0
//! How far a story is, on standard error.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// A story that goes on in steps of about the same length.
pub struct Progress {
    began: Instant,
    steps: usize,
    done: usize,
}

impl Progress {
    /// So many steps, the first of which has not begun.
    pub fn of(steps: usize) -> Self {
        Self {
            began: Instant::now(),
            steps,
            done: 0,
        }
    }

    /// Says what begins, and how long the rest will take by what the steps before have.
    pub fn step(&mut self, what: impl Display) {
        let left = left(self.began.elapsed(), self.done, self.steps);
        let left = left.map_or_else(String::new, |left| format!(", {} left", about(left)));
        self.done += 1;
        eprintln!("{}/{}{left}: {what}", self.done, self.steps);
    }
}

/// What is left when so many of the steps took `elapsed`; nothing is known before the first has ended.
fn left(elapsed: Duration, done: usize, steps: usize) -> Option<Duration> {
    let (done, steps) = (u32::try_from(done).ok()?, u32::try_from(steps).ok()?);
    Some(elapsed.checked_div(done)? * steps.saturating_sub(done))
}

/// A duration as one says it.
pub fn about(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 90.0 {
        format!("about {seconds:.0} s")
    } else {
        format!("about {:.0} minutes", seconds / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_steps_before() {
        let ten = Duration::from_secs(10);
        assert_eq!(left(ten, 0, 4), None);
        assert_eq!(left(ten, 1, 4), Some(3 * ten));
        assert_eq!(left(ten, 4, 4), Some(Duration::ZERO));
    }

    #[test]
    fn durations_are_rounded_to_what_one_says() {
        assert_eq!(about(Duration::from_millis(24_600)), "about 25 s");
        assert_eq!(about(Duration::from_secs(170)), "about 3 minutes");
    }
}
