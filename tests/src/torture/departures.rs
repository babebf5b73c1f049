// SPDX-License-Identifier: Apache-2.0
//! Times at which clients left before they had their responses.

use super::clock::Moment;
use std::collections::HashMap;
use std::sync::Mutex;

/// All departures of a run, by object.
#[derive(Default)]
pub struct Departures(Mutex<HashMap<usize, Vec<Moment>>>);

impl Departures {
    /// Records that a client has left that had asked for an object.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn note(&self, object: usize, at: Moment) {
        self.0.lock().unwrap().entry(object).or_default().push(at);
    }

    /// Number of clients of an object that left between these moments.
    #[must_use]
    pub fn between(&self, object: usize, from: Moment, to: Moment) -> usize {
        self.within(object, from, to).len()
    }

    /// Times at which clients of an object left between these moments.
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
