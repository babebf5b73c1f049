// SPDX-License-Identifier: Apache-2.0
//! The state of a run.

use super::clock::Moment;
use super::departures::Departures;
use super::fleet::Fleet;
use super::generations::Generations;
use super::ledger::Ledger;
use super::origin::Shelf;
use super::outages::Outages;
use super::purges::Purges;
use super::spans::Spans;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time in which each worker that does not stand still hears of a change.
const HEARD: Moment = Moment::from_millis(1_000);

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
    /// Times at which an edge was down.
    pub outages: Outages,
    /// Times at which the first of two origins was down.
    pub deaths: Spans,
    /// Times at which an edge lacked a line of the feed.
    pub lacking: Spans,
    /// Times at which an edge did not reach all of its peers.
    pub apart: Spans,
    /// Whether a second origin has the same objects.
    pub has_second: bool,
    /// The edges.
    pub fleet: Fleet,
    /// The generations of the edges' files.
    pub generations: Generations,
    /// Whether the edges have access rules.
    pub has_access: bool,
    /// Whether the edges have files, whose generation each response has.
    pub has_files: bool,
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
            outages: Outages::default(),
            lacking: Spans::default(),
            apart: Spans::default(),
            deaths: Spans::default(),
            has_second: false,
            fleet: Fleet::default(),
            generations: Generations::default(),
            has_access: false,
            has_files: false,
            ledger: Ledger::default(),
            over: AtomicBool::new(false),
        }
    }

    /// Waits until each worker has heard of what has happened so far.
    pub async fn settle(&self) {
        let clock = self.shelf.clock;
        let mut since = clock.now();
        while clock.now() < since + HEARD && !self.is_over() {
            tokio::time::sleep(Moment::from_millis(10)).await;
            let now = clock.now();
            if self.stalls.touch(since, now) {
                since = now;
            }
        }
    }

    /// Stops clients and disturbances from starting anything more.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Waits for this long, or until the run is over.
    pub async fn pause(&self, lasts: Moment) {
        let until = self.shelf.clock.now() + lasts;
        while !self.is_over() && self.shelf.clock.now() < until {
            tokio::time::sleep(Moment::from_millis(50)).await;
        }
    }

    /// Whether the run is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}
