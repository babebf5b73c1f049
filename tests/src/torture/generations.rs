// SPDX-License-Identifier: Apache-2.0
//! The generations of the edges' files: each reload puts the next one in force. A generation accepts the signing keys
//! with its own number and the next one, so that each key is valid in two of them.

use super::clock::Moment;
use std::ops::RangeInclusive;
use std::sync::Mutex;

/// The name of the response header with the generation.
pub const GENERATION: &str = "x-generation";

/// All generations of a run, from number 0 on.
pub struct Generations(Mutex<Vec<(Moment, Option<Moment>)>>);

impl Default for Generations {
    fn default() -> Self {
        let first = (Moment::ZERO, Some(Moment::ZERO));
        Self(Mutex::new(vec![first]))
    }
}

impl Generations {
    /// Records that the files of the next generation are about to be written, and returns its number.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn begin(&self, at: Moment) -> u64 {
        let mut all = self.0.lock().unwrap();
        all.push((at, None));
        all.len() as u64 - 1
    }

    /// Records that every worker of every edge has the last generation.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn confirm(&self, at: Moment) {
        if let Some(last) = self.0.lock().unwrap().last_mut() {
            last.1 = Some(at);
        }
    }

    /// The generations by which a request between these moments may be answered.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn possible(&self, from: Moment, to: Moment) -> RangeInclusive<u64> {
        let all = self.0.lock().unwrap();
        let confirmed =
            |(_, confirmed): &(Moment, Option<Moment>)| confirmed.is_some_and(|at| at <= from);
        let oldest = all.iter().rposition(confirmed).unwrap_or(0);
        let newest = all.iter().rposition(|(begun, _)| *begun <= to).unwrap_or(0);
        oldest as u64..=newest.max(oldest) as u64
    }
}

/// Whether a generation accepts signatures by the key of this number.
#[must_use]
pub const fn accepts(generation: u64, key: u64) -> bool {
    key == generation || key == generation + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_generations_are_possible_while_a_reload_runs() {
        let second = Moment::from_secs;
        let generations = Generations::default();
        assert_eq!(generations.possible(second(0), second(9)), 0..=0);
        assert_eq!(generations.begin(second(5)), 1);
        assert_eq!(generations.possible(second(1), second(4)), 0..=0);
        assert_eq!(generations.possible(second(1), second(9)), 0..=1);
        generations.confirm(second(7));
        assert_eq!(generations.possible(second(6), second(9)), 0..=1);
        assert_eq!(generations.possible(second(8), second(9)), 1..=1);
        assert!(accepts(1, 1) && accepts(1, 2) && !accepts(1, 0) && !accepts(1, 3));
    }
}
