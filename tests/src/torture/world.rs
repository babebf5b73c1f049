// SPDX-License-Identifier: Apache-2.0
//! The state of a run.

use super::departures::Departures;
use super::ledger::Ledger;
use super::origin::Shelf;
use super::purges::Purges;
use super::spans::Spans;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state that the clients, the disturbances and the judge share.
pub struct World {
    /// The origin's objects.
    pub shelf: Arc<Shelf>,
    /// The purges so far.
    pub purges: Purges,
    /// Times at which clients have left.
    pub departures: Departures,
    /// Times at which a worker stood still.
    pub stalls: Spans,
    /// Times at which the disk was full.
    pub full: Spans,
    /// Times at which the edge was down.
    pub outages: Spans,
    /// Times at which the first of two origins was down.
    pub deaths: Spans,
    /// Whether a second origin has the same objects.
    pub has_second: bool,
    /// Counts and complaints.
    pub ledger: Ledger,
    over: AtomicBool,
}

impl World {
    /// A world before its run.
    #[must_use]
    pub fn new(shelf: Arc<Shelf>) -> Self {
        Self {
            shelf,
            purges: Purges::default(),
            departures: Departures::default(),
            stalls: Spans::default(),
            full: Spans::default(),
            outages: Spans::default(),
            deaths: Spans::default(),
            has_second: false,
            ledger: Ledger::default(),
            over: AtomicBool::new(false),
        }
    }

    /// Stops clients and disturbances from starting anything more.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether the run is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}
