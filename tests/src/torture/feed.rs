// SPDX-License-Identifier: Apache-2.0
//! The purge feed of the origin, and the purges that go by it.

use super::clock::Moment;
use super::disturbance::{SITE, milliseconds, rng, scope};
use super::fleet::EDGES;
use super::ledger::Wrong;
use super::purges::Scope;
use super::world::World;
use sluice_core::purge::{Feed, FeedId, FeedPurge, FeedSubject};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// The path of the feed.
pub const PATH: &str = "/.sluice/purges";
/// `purge.feed.every`.
pub const EVERY: &str = "500ms";
/// Longest time from a line to its reading: [`EVERY`], and the time of a request on a busy machine.
const READ_WITHIN: Duration = Duration::from_millis(500 + 1_500);
/// Number of lines that the feed keeps. An edge that is down for a while misses fewer.
const KEPT: usize = 200;

/// The feed, and the highest number that each edge has read.
pub struct Page(Mutex<(Feed, [u64; EDGES])>);

impl Default for Page {
    fn default() -> Self {
        let id = FeedId(0x0070_2733);
        Self(Mutex::new((Feed::new(id), [0; EDGES])))
    }
}

impl Page {
    /// The text, and the number of its last line.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn text(&self) -> (String, u64) {
        let page = self.0.lock().unwrap();
        (page.0.to_string(), page.0.newest())
    }

    /// Records that an edge has read the line of this number.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn note_reading(&self, edge: usize, number: u64) {
        let read = &mut self.0.lock().unwrap().1[edge];
        *read = number.max(*read);
    }

    /// Whether an edge has read the line of this number.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn is_read(&self, edge: usize, number: u64) -> bool {
        self.0.lock().unwrap().1[edge] >= number
    }

    /// Appends a purge, and returns the number of its line.
    fn append(&self, scope: &Scope, hard: bool) -> u64 {
        let subject = match scope {
            Scope::Path(path) => FeedSubject::url(format!("{SITE}{path}")),
            Scope::Prefix(prefix) => FeedSubject::prefix(format!("{SITE}{prefix}")),
            Scope::Everything => FeedSubject::Everything { site: None },
        };
        let feed = &mut self.0.lock().unwrap().0;
        let now = i64::try_from(super::pass::now()).unwrap_or(i64::MAX);
        let number = feed.append(vec![FeedPurge { hard, subject }], now);
        let dropped = feed.lines.len().saturating_sub(KEPT);
        for line in feed.lines.drain(..dropped) {
            feed.base = line.number;
            if line.hard {
                feed.hard_base = line.number;
            }
        }
        number.expect("a line")
    }
}

/// Writes purges into the feed until the run is over, one after the other.
pub async fn write(world: Arc<World>) {
    let mut rng = rng(&world, 5_000);
    let size = world.fleet.size();
    while !world.is_over() {
        tokio::time::sleep(milliseconds(&mut rng, 300, 2_500) * size as u32).await;
        let (scope, hard) = (scope(&world, &mut rng), rng.below(3) > 0);
        let begun = world.shelf.clock.now();
        let lacking = world.lacking.hold(world.shelf.clock);
        let purge = world.purges.begin(scope.clone(), hard, begun, size);
        let line = world.shelf.feed.append(&scope, hard);
        world.ledger.count("lines of the feed");
        let mut followers = JoinSet::new();
        for edge in 0..size {
            followers.spawn(follow(Arc::clone(&world), (purge, line), edge, begun));
        }
        followers.join_all().await;
        drop(lacking);
    }
}

/// Waits until an edge has read a line and all its workers have heard of it. From then on no client of the edge may get
/// a purged response.
async fn follow(world: Arc<World>, (purge, line): (usize, u64), edge: usize, begun: Moment) {
    let clock = world.shelf.clock;
    let mut is_late = false;
    while !world.shelf.feed.is_read(edge, line) {
        if world.is_over() {
            return;
        }
        let now = clock.now();
        let since = now.saturating_sub(READ_WITHIN);
        let reasons = [
            &world.stalls,
            &world.deaths,
            &world.full,
            world.outages.of(edge),
        ];
        let has_reason = reasons.iter().any(|spans| spans.touch(since, now));
        if !is_late && !has_reason && now > begun + READ_WITHIN {
            is_late = true;
            let told =
                format!("line {line} of the feed from {begun:?} was not read by edge {edge}");
            world.ledger.complain(Wrong::Late, now, &told);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let read = clock.now();
    world
        .ledger
        .lasted("lines of the feed until read", read - begun);
    world.settle().await;
    world.purges.acknowledge(purge, edge, clock.now());
}
