// SPDX-License-Identifier: Apache-2.0
//! The plan of a run: its length, and its disturbances.

use crate::edge::store::Medium;
use std::time::Duration;

/// Plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Medium of the store.
    pub medium: Medium,
    /// Number of workers.
    pub workers: usize,
    /// How long it lasts.
    pub lasts: Duration,
    /// Time after which the edge is killed and started again, if it is.
    pub lives: Option<Duration>,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Whether purges are sent.
    pub purges: bool,
    /// Whether workers are stopped.
    pub stalls: bool,
    /// Whether files of the cache are torn while the edge is down.
    pub tears: bool,
    /// Whether another process fills the cache's disk and frees it again.
    pub fills: bool,
    /// Whether the entry point gets SIGHUP although no file has changed.
    pub hangs_up: bool,
    /// Whether the origin fails at all.
    pub faults: bool,
    /// Whether a second origin has the same objects, and the first one dies and comes back.
    pub dies: bool,
    /// Whether the clock of the origin jumps.
    pub skews: bool,
    /// Whether clients need a signature.
    pub access: bool,
    /// Time after which the edge reads its files again, which have changed, if it does.
    pub reloads: Option<Duration>,
    /// Whether purges also go by the purge feed.
    pub feed: bool,
    /// Whether three edges are one cache.
    pub peers: bool,
}
