// SPDX-License-Identifier: Apache-2.0
//! The purges that go by the feed.

use super::clock::Moment;
use super::disturbance::{milliseconds, rng, scope};
use super::ledger::Wrong;
use super::world::World;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Longest time from a line to its reading: `purge.feed.every`, and the time of a request on a busy machine.
const READ_WITHIN: Duration = Duration::from_millis(500 + 1_500);

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
