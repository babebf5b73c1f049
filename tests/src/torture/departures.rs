// SPDX-License-Identifier: Apache-2.0
//! When clients have left before they had their answers.

use super::clock::Moment;
use std::collections::HashMap;
use std::sync::Mutex;

/// All departures of a run, by object.
#[derive(Default)]
pub struct Departures(Mutex<HashMap<usize, Vec<Moment>>>);

impl Departures {
    /// Notes that a client has left that wanted an object.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn note(&self, object: usize, at: Moment) {
        self.0.lock().unwrap().entry(object).or_default().push(at);
    }

    /// How many have left that wanted an object, between these.
    #[must_use]
    pub fn between(&self, object: usize, from: Moment, to: Moment) -> usize {
        self.within(object, from, to).len()
    }

    /// When they did.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn within(&self, object: usize, from: Moment, to: Moment) -> Vec<Moment> {
        let all = self.0.lock().unwrap();
        let left = all.get(&object).into_iter().flatten();
        let left = left.filter(|&&at| from <= at && at <= to);
        left.copied().collect()
    }
}
