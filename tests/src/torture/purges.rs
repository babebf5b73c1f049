// SPDX-License-Identifier: Apache-2.0
//! The acknowledged hard purges, which say which responses no client may receive any more.

use super::clock::Moment;
use std::sync::Mutex;

/// Scope of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One URL, by its path.
    Path(String),
    /// All URLs whose paths begin with this.
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
    /// Scope of the purge.
    pub scope: Scope,
    /// Whether no response in its scope may be served any more.
    pub hard: bool,
    /// Time of the call.
    pub begun: Moment,
    /// Time from which it is in force at an edge, for each edge: a call was answered with status 200, or a line of the
    /// feed was read.
    pub acknowledged: Vec<Option<Moment>>,
}

/// All purges of a run.
#[derive(Default)]
pub struct Purges(Mutex<Vec<Purge>>);

impl Purges {
    /// Records a purge of so many edges that is about to be made; the number names it in [`Purges::acknowledge`].
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn begin(&self, scope: Scope, hard: bool, begun: Moment, edges: usize) -> usize {
        let mut purges = self.0.lock().unwrap();
        purges.push(Purge {
            scope,
            hard,
            begun,
            acknowledged: vec![None; edges],
        });
        purges.len() - 1
    }

    /// Records that every worker of an edge has confirmed it.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn acknowledge(&self, number: usize, edge: usize, at: Moment) {
        self.0.lock().unwrap()[number].acknowledged[edge] = Some(at);
    }

    /// The moment at which the last hard purge of a path began that was in force at an edge before `asked`.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn last_before(&self, path: &str, edge: usize, asked: Moment) -> Option<Moment> {
        let purges = self.0.lock().unwrap();
        let effective = purges.iter().filter(|purge| {
            let acknowledged = purge.acknowledged[edge].is_some_and(|at| at < asked);
            purge.hard && acknowledged && purge.scope.covers(path)
        });
        effective.map(|purge| purge.begun).max()
    }

    /// Whether a purge of a path began between these moments.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn begun(&self, path: &str, from: Moment, to: Moment) -> bool {
        let purges = self.0.lock().unwrap();
        let mut covering = purges.iter().filter(|purge| purge.scope.covers(path));
        covering.any(|purge| (from..=to).contains(&purge.begun))
    }

    /// Number of purges of a path that were carried out, or began, between these moments.
    #[must_use]
    pub fn between(&self, path: &str, from: Moment, to: Moment) -> usize {
        self.within(path, from, to).len()
    }

    /// All purges of a path that were carried out, or began, between these moments.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn within(&self, path: &str, from: Moment, to: Moment) -> Vec<Purge> {
        let purges = self.0.lock().unwrap();
        let within = purges.iter().filter(|purge| {
            let is_over = |at: &Option<Moment>| at.is_some_and(|at| at < from);
            let over = purge.acknowledged.iter().all(is_over);
            purge.begun <= to && !over && purge.scope.covers(path)
        });
        within.cloned().collect()
    }
}
