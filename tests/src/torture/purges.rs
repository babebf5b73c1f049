// SPDX-License-Identifier: Apache-2.0
//! Which hard purges were acknowledged, and thus what no one may see any more.

use super::clock::Moment;
use std::sync::Mutex;

/// What a purge covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One URL, by its path.
    Path(String),
    /// All URLs whose paths begin so.
    Prefix(String),
    /// All.
    Everything,
}

impl Scope {
    /// Whether it covers a path.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        match self {
            Self::Path(purged) => path == purged,
            Self::Prefix(prefix) => path.starts_with(prefix.as_str()),
            Self::Everything => true,
        }
    }
}

/// One purge.
#[derive(Clone, Debug)]
pub struct Purge {
    /// What it covers.
    pub scope: Scope,
    /// Whether nothing of it may be served any more.
    pub hard: bool,
    /// When the call was made.
    pub begun: Moment,
    /// When it was answered by a 200.
    pub acknowledged: Option<Moment>,
}

/// All purges of a run.
#[derive(Default)]
pub struct Purges(Mutex<Vec<Purge>>);

impl Purges {
    /// Notes a call that is about to be made; the number names it in [`Purges::acknowledge`].
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn begin(&self, scope: Scope, hard: bool, begun: Moment) -> usize {
        let mut purges = self.0.lock().unwrap();
        purges.push(Purge {
            scope,
            hard,
            begun,
            acknowledged: None,
        });
        purges.len() - 1
    }

    /// Notes that every worker has confirmed it.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn acknowledge(&self, number: usize, at: Moment) {
        self.0.lock().unwrap()[number].acknowledged = Some(at);
    }

    /// When the last hard purge of a path was begun that had been acknowledged before `asked`.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn last_before(&self, path: &str, asked: Moment) -> Option<Moment> {
        let purges = self.0.lock().unwrap();
        let effective = purges.iter().filter(|purge| {
            let acknowledged = purge.acknowledged.is_some_and(|at| at < asked);
            purge.hard && acknowledged && purge.scope.covers(path)
        });
        effective.map(|purge| purge.begun).max()
    }

    /// How many purges of a path were carried out, or begun, between these.
    #[must_use]
    pub fn between(&self, path: &str, from: Moment, to: Moment) -> usize {
        self.within(path, from, to).len()
    }

    /// All purges of a path that were carried out, or begun, between these.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn within(&self, path: &str, from: Moment, to: Moment) -> Vec<Purge> {
        let purges = self.0.lock().unwrap();
        let within = purges.iter().filter(|purge| {
            let over = purge.acknowledged.is_some_and(|at| at < from);
            purge.begun <= to && !over && purge.scope.covers(path)
        });
        within.cloned().collect()
    }
}
