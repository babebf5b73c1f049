// SPDX-License-Identifier: Apache-2.0
//! Reloads of the edges: of wrong files, which change nothing, and then of the next generation.

use super::files::Files;
use super::fleet::Reload;
use super::ledger::Wrong;
use super::world::World;
use std::sync::Arc;
use std::time::Duration;

/// How long the edges run with wrong files beside them.
const WRONG: Duration = Duration::from_millis(500);

/// Reloads the edges in this interval, one after the other, until the run is over.
pub async fn reload(world: Arc<World>, files: Arc<Files>, every: Duration) {
    let clock = world.shelf.clock;
    let mut next = clock.now();
    while !world.is_over() {
        next += every;
        world.pause(next.saturating_sub(clock.now())).await;
        if world.is_over() {
            return;
        }
        let quiet = world.fleet.quiet().await;
        files.spoil(next.as_secs());
        for edge in 0..world.fleet.size() {
            let reload = world.fleet.hang_up(edge, &quiet).await;
            expect(
                &world,
                edge,
                reload,
                Reload::Refused,
                "reloads of wrong files",
            );
        }
        tokio::time::sleep(WRONG).await;
        let begun = clock.now();
        files.write(world.generations.begin(begun));
        for edge in 0..world.fleet.size() {
            let reload = world.fleet.hang_up(edge, &quiet).await;
            expect(&world, edge, reload, Reload::Changed, "reloads");
        }
        world
            .ledger
            .lasted("reloads of all edges", clock.now() - begun);
        drop(quiet);
        world.settle().await;
        world.generations.confirm(clock.now());
    }
}

/// Counts a reload with the expected effect, and complains of any other.
pub fn expect(world: &World, edge: usize, reload: Reload, expected: Reload, what: &'static str) {
    if reload == expected {
        world.ledger.count(what);
        return;
    }
    let told = format!("{what} of edge {edge}: {reload:?}, not {expected:?}");
    let now = world.shelf.clock.now();
    world.ledger.complain(Wrong::Reload, now, &told);
}
