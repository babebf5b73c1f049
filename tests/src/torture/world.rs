// SPDX-License-Identifier: Apache-2.0
//! All that a run knows.

use super::departures::Departures;
use super::ledger::Ledger;
use super::origin::Shelf;
use super::purges::Purges;
use super::spans::Spans;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the clients, the disturbances and the judge share.
pub struct World {
    /// What the origin has.
    pub shelf: Arc<Shelf>,
    /// What was purged.
    pub purges: Purges,
    /// When clients have left.
    pub departures: Departures,
    /// When a worker stood still.
    pub stalls: Spans,
    /// When the disk was full.
    pub full: Spans,
    /// When the edge was down.
    pub outages: Spans,
    /// What was seen.
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
            ledger: Ledger::default(),
            over: AtomicBool::new(false),
        }
    }

    /// Nobody begins anything new from now on.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether the run is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}
