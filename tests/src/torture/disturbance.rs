// SPDX-License-Identifier: Apache-2.0
//! Disturbances of the edge while clients send requests: purges, workers that stand still, a full disk, and a first
//! origin that dies.

use super::ask::SITE;
use super::fleet::Reload;
use super::ledger::Wrong;
use super::purges::Scope;
use super::reloads::expect;
use super::world::World;
use crate::chance::rng::{Rng, mix};
use crate::client::Response;
use crate::edge::purger::Purger;
use crate::machine::disk::Disk;
use crate::machine::stall::Stall;
use crate::server::Server;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Random numbers for one disturbance of a run.
#[must_use]
pub fn rng(world: &World, salt: u64) -> Rng {
    Rng::new(world.shelf.seed ^ mix(salt << 32))
}

/// Number of deaths of the first origin in quick succession.
const DEATHS: u32 = 6;

/// Draws a time.
#[must_use]
pub fn milliseconds(rng: &mut Rng, least: usize, most: usize) -> Duration {
    Duration::from_millis((least + rng.below(most - least)) as u64)
}

/// Sends purges to all edges until the run is over.
pub async fn purge(world: Arc<World>, purgers: Vec<Purger>) {
    let mut rng = rng(&world, 1);
    let clock = world.shelf.clock;
    while !world.is_over() {
        tokio::time::sleep(milliseconds(&mut rng, 50, 600)).await;
        let (scope, hard) = (scope(&world, &mut rng), rng.below(2) == 0);
        let order = match &scope {
            Scope::Path(path) => json!({"url": format!("{SITE}{path}"), "soft": !hard}),
            Scope::Prefix(prefix) => json!({"prefix": format!("{SITE}{prefix}"), "soft": !hard}),
            Scope::Everything => json!({"everything": true, "soft": !hard}),
        };
        let edges = purgers.len();
        let number = world.purges.begin(scope, hard, clock.now(), edges);
        let mut confirmed = true;
        for (edge, purger) in purgers.iter().enumerate() {
            confirmed &= call(&world, edge, purger, &order).await;
        }
        if confirmed {
            let kind = if hard { "purges, hard" } else { "purges, soft" };
            world.ledger.count(kind);
            (0..edges).for_each(|edge| world.purges.acknowledge(number, edge, clock.now()));
        }
    }
}

/// Draws the scope of a purge.
#[must_use]
pub fn scope(world: &World, rng: &mut Rng) -> Scope {
    let objects = &world.shelf.objects;
    match rng.below(20) {
        0 => Scope::Everything,
        1 | 2 => Scope::Prefix(format!("/o{}/", rng.below(4))),
        _ => Scope::Path(objects[rng.below(objects.len())].path.clone()),
    }
}

/// Sends a purge to an edge. Whether every worker of the edge has confirmed it.
async fn call(world: &World, edge: usize, purger: &Purger, order: &Value) -> bool {
    let clock = world.shelf.clock;
    let begun = clock.now();
    let response = purger.try_call(order).await;
    let ended = clock.now();
    let is_dying = world.outages.of(edge).touch(begun, ended);
    let (wrong, what) = match response {
        Ok(response) if response.status == 200 => return true,
        Ok(response) if response.status == 202 && world.stalls.touch(begun, ended) => {
            let late = "purges that a worker did not answer in time";
            world.ledger.count(late);
            return false;
        }
        // The entry point may end a moment before Envoy, which then tells that the journal lacks the purge.
        Ok(Response { status: 500, .. }) | Err(_) if is_dying => {
            world.ledger.count("purges amid an outage");
            return false;
        }
        Ok(response) => (Wrong::Answer, format!("{order}: {response}")),
        Err(failure) => (Wrong::Cut, format!("{order}: {failure}")),
    };
    world.ledger.complain(wrong, ended, &what);
    false
}

/// Stops one worker after the other for some time each, until the run, or this Envoy, has ended.
pub async fn stall(world: Arc<World>, envoy: u32, workers: usize, salt: u64) {
    let (mut rng, edges) = (rng(&world, 2 + salt), world.fleet.size() as u32);
    while !world.is_over() {
        tokio::time::sleep(milliseconds(&mut rng, 1_000, 4_000) * edges).await;
        let name = format!("wrk:worker_{}", rng.below(workers));
        let most = [100, 1_000, 3_000][rng.below(3)];
        let lasts = milliseconds(&mut rng, 20, most);
        let span = world.stalls.hold(world.shelf.clock);
        let stall = Stall::of_thread(envoy, &name);
        tokio::time::sleep(lasts).await;
        drop(stall);
        drop(span);
        world.ledger.count("workers stopped");
    }
}

/// Sends SIGHUP to an edge whose files have not changed, until the run, or this edge, has ended.
pub async fn hang_up(world: Arc<World>, edge: usize, salt: u64) {
    let mut rng = rng(&world, 2_000 + salt);
    while !world.is_over() {
        tokio::time::sleep(milliseconds(&mut rng, 500, 2_000)).await;
        let quiet = world.fleet.quiet().await;
        let reload = world.fleet.hang_up(edge, &quiet).await;
        expect(&world, edge, reload, Reload::Unchanged, "hang-ups");
    }
}

/// Closes the ports of the first origin, and opens them again, until the run is over.
pub async fn die(world: Arc<World>, first: Vec<Server>) -> Vec<Server> {
    let mut rng = rng(&world, 3_000);
    for number in 1.. {
        // The edge asks the first origin again only some time after its failures.
        let rest = number % DEATHS == 0;
        let lasts = if rest { 40_000..80_000 } else { 500..4_000 };
        let lasts = milliseconds(&mut rng, lasts.start, lasts.end);
        world.pause(lasts).await;
        if world.is_over() {
            break;
        }
        let clock = world.shelf.clock;
        let span = world.deaths.begin(clock.now());
        for port in &first {
            port.set_listening(false).await;
        }
        tokio::time::sleep(milliseconds(&mut rng, 100, 4_000)).await;
        for port in &first {
            port.set_listening(true).await;
        }
        world.deaths.end(span, clock.now());
        world.ledger.count("deaths of the first origin");
    }
    first
}

/// Has the clock of the origin jump until the run is over.
pub async fn skew(world: Arc<World>) {
    let mut rng = rng(&world, 4_000);
    while !world.is_over() {
        tokio::time::sleep(milliseconds(&mut rng, 500, 4_500)).await;
        if world.shelf.skew.jump(&mut rng) {
            world.ledger.count("jumps of the origin's clock");
        }
    }
}

/// Fills the disk, and frees the room again, until the run, or this edge, has ended.
pub async fn fill(world: Arc<World>, disk: Disk, salt: u64) {
    let mut rng = rng(&world, 1_000 + salt);
    while !world.is_over() {
        tokio::time::sleep(milliseconds(&mut rng, 1_000, 3_000)).await;
        let span = world.full.hold(world.shelf.clock);
        let lasts = milliseconds(&mut rng, 500, 4_000);
        let filling = disk.fill(0);
        tokio::time::sleep(lasts).await;
        drop(filling);
        drop(span);
        world.ledger.count("times the disk was filled");
    }
}
