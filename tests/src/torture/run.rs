// SPDX-License-Identifier: Apache-2.0
//! One run: an edge, its clients and what disturbs them, from the beginning to the verdict.

use super::client::Client;
use super::clock::Clock;
use super::fetches::Fetches;
use super::ledger::Wrong;
use super::object::Object;
use super::origin::{self, Shelf};
use super::overlap::Overlaps;
use super::world::World;
use super::{damage, disturbance};
use crate::chance::rng::{Rng, mix};
use crate::edge::purger::Purger;
use crate::edge::store::Medium;
use crate::edge::{Builder, Edge};
use crate::machine::disk::Disk;
use crate::machine::tool::repository;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How many clients there are.
const CLIENTS: usize = 32;
/// How often the edge is looked at.
const PERIOD: Duration = Duration::from_millis(50);
/// What the edge counts that says how a run went, since it was last started.
const COUNTERS: [&str; 10] = [
    "wait_timeouts",
    "handovers",
    "unshared",
    "unexpected_misses",
    "host_errors",
    "fills_aborted",
    "limits_reached",
    "key_mismatches",
    "ranges_ahead",
    "unread_fills_refused",
];
/// How far ahead of a fill a range goes to the origin by itself: objects here are small.
const RANGE_AHEAD: &str = "65536";
/// The room on the disk where it is filled.
const DISK: u64 = 512 << 20;
/// What lines of the log have that no fault explains, if the origin fails, and if it does not.
const UNEXPLAINED: [&[&str]; 2] = [
    &["[error]", "[critical]"],
    &["[warning]", "[error]", "[critical]"],
];

/// A run that is to be made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the edge stores.
    pub medium: Medium,
    /// How many workers it has.
    pub workers: usize,
    /// How long it lasts.
    pub lasts: Duration,
    /// How long the edge lives until it is killed and started again, if ever.
    pub lives: Option<Duration>,
    /// What follows from chance follows from this.
    pub seed: u64,
    /// Whether there are purges.
    pub purges: bool,
    /// Whether workers are stopped.
    pub stalls: bool,
    /// Whether files of the cache are torn while the edge is down.
    pub tears: bool,
    /// Whether the cache's disk is filled by others, and emptied.
    pub fills: bool,
    /// Whether the entry point gets SIGHUP.
    pub hangs_up: bool,
    /// Whether the origin fails at all.
    pub faults: bool,
}

impl Plan {
    /// Makes the run.
    ///
    /// # Panics
    /// When anything is wrong; it says what.
    pub async fn run(self) {
        println!("{}: TORTURE_SEED={}", self.medium, self.seed);
        let shelf = Arc::new(Shelf {
            clock: Clock::start(),
            seed: self.seed,
            objects: Object::all(self.faults),
            fetches: Fetches::default(),
        });
        let server = origin::start(&shelf);
        let world = Arc::new(World::new(shelf));
        let purger = Purger::new();
        let builder = Builder::new()
            .env("ORIGIN", format!("http://{}", server.address()))
            .env("ACCESS_LOG", "off")
            .policy(&policy());
        let mut builder = purger
            .open(builder)
            .medium(self.medium)
            .workers(self.workers);
        if self.fills {
            builder = builder.disk(DISK).env("CACHE_MAX_BYTES", "64MiB");
        }
        let mut edge = builder
            .allow_log("did not answer to a change")
            .start()
            .await;
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            clients.spawn(Client::new(&world, edge.address(), number).run());
        }
        if self.purges {
            clients.spawn(disturbance::purge(Arc::clone(&world), purger));
        }
        self.phases(&world, &mut edge).await;
        world.end();
        clients.join_all().await;
        self.verdict(&world, &mut edge).await;
    }

    /// Lets it run, and kills it from time to time, as long as it lives.
    async fn phases(&self, world: &Arc<World>, edge: &mut Edge) {
        let begun = Instant::now();
        let mut number = 0;
        loop {
            let left = self.lasts.saturating_sub(begun.elapsed());
            let phase = self.lives.unwrap_or(left).min(left);
            let (pids, clock) = ((edge.pid(), edge.envoy_pid()), world.shelf.clock);
            let disk = edge.disk();
            let alive = tokio::select! {
                alive = lives(edge, phase) => alive,
                () = self.disturb(world, pids, disk, number) => true,
            };
            world.stalls.close(clock.now());
            world.full.close(clock.now());
            if !alive {
                world
                    .ledger
                    .complain(Wrong::Crash, clock.now(), "the edge has died");
                // Whatever fails from now on has its reason.
                world.outages.begin(clock.now());
                return;
            }
            if begun.elapsed() >= self.lasts {
                return;
            }
            let outage = world.outages.begin(clock.now());
            edge.crash(|cache| self.tear(world, cache, number)).await;
            world.outages.end(outage, clock.now());
            world.ledger.count("times the edge was killed");
            number += 1;
        }
    }

    /// Until it is dropped. `edge` and `envoy` are the process ids of the entry point and of its Envoy.
    async fn disturb(
        &self,
        world: &Arc<World>,
        (edge, envoy): (u32, u32),
        disk: Disk,
        number: u64,
    ) {
        let stalls = async {
            if self.stalls {
                disturbance::stall(Arc::clone(world), envoy, self.workers, number).await;
            }
        };
        let fills = async {
            if self.fills {
                disturbance::fill(Arc::clone(world), disk, number).await;
            }
        };
        let hangs_up = async {
            if self.hangs_up {
                disturbance::hang_up(Arc::clone(world), edge, number).await;
            }
        };
        tokio::join!(stalls, fills, hangs_up, std::future::pending::<()>());
    }

    fn tear(&self, world: &World, cache: &Path, number: u64) {
        if self.tears {
            let mut rng = Rng::new(self.seed ^ mix(number));
            let torn = damage::tear(cache, &mut rng).expect("a cache whose files can be written");
            world.ledger.add("files torn", torn);
        }
    }

    async fn verdict(&self, world: &World, edge: &mut Edge) {
        if world.ledger.wrongs(Wrong::Crash) == 0 {
            come_to_rest(edge).await;
        }
        let now = world.shelf.clock.now();
        let levels = UNEXPLAINED[usize::from(!self.faults)];
        for line in edge.log().lines() {
            if levels.iter().any(|level| line.contains(level)) {
                world.ledger.complain(Wrong::Log, now, line);
            }
        }
        let (fetches, overlaps) = world.shelf.fetches.all();
        world.ledger.add("fetches", fetches.len() as u64);
        world.ledger.add("seconds", now.as_secs());
        for fetch in &fetches {
            if let Some((fault, _)) = fetch.fault {
                world.ledger.count(fault.name());
            }
        }
        Overlaps::new(world, self.workers, &fetches).judge(&overlaps);
        println!("{}", world.ledger);
        let first = world.ledger.first();
        assert!(
            first.is_none(),
            "{} with TORTURE_SEED={}, at first: {first:?}",
            self.medium,
            self.seed
        );
    }
}

/// The built-in policy, but for [`RANGE_AHEAD`].
fn policy() -> String {
    let text = std::fs::read_to_string(repository().join("envoy/policies/http.yaml")).unwrap();
    let policy = text.replace(
        "\ncoalesce:\n",
        &format!("\ncoalesce:\n  range_ahead: {RANGE_AHEAD}\n"),
    );
    assert_ne!(policy, text, "the policy has no section `coalesce`");
    policy
}

/// Waits until nobody waits and nothing is fetched, and says what the edge has counted.
async fn come_to_rest(edge: &Edge) {
    edge.wait_for_value("sluice_parked_now", 0).await;
    edge.wait_for_value("sluice_flights_now", 0).await;
    for (name, number) in edge.stats("sluice_").await {
        if COUNTERS.iter().any(|counter| name.ends_with(counter)) {
            println!("{name} {number}");
        }
    }
}

/// Waits for so long; false as soon as it has died.
async fn lives(edge: &mut Edge, lasts: Duration) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < lasts {
        tokio::time::sleep(PERIOD).await;
        if !edge.alive() {
            return false;
        }
    }
    true
}
