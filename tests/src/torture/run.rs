// SPDX-License-Identifier: Apache-2.0
//! A run: an edge, its clients and its disturbances, from the beginning to the verdict.

use super::client::{Client, SLICED};
use super::files::Files;
use super::ledger::Wrong;
use super::object::{LARGEST_WHOLE, SLICE};
use super::origin::{self, Shelf};
use super::overlap::Overlaps;
use super::world::World;
use super::{damage, disturbance, feed, fetches, reloads, skew};
use crate::chance::rng::{Rng, mix};
use crate::edge::purger::Purger;
use crate::edge::store::Medium;
use crate::edge::{Builder, Edge};
use crate::machine::disk::Disk;
use crate::server::Server;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Number of clients.
const CLIENTS: usize = 32;
/// Period of looking at the edge.
const PERIOD: Duration = Duration::from_millis(50);
/// Counters of the edge that show how a run went, since the edge was last started.
const COUNTERS: [&str; 16] = [
    "wait_timeouts",
    "handovers",
    "unshared",
    "unexpected_misses",
    "host_errors",
    "fills_aborted",
    "limits_reached",
    "key_mismatches",
    "sliced_requests",
    "slices_hit",
    "slices_missed",
    "slices_collapsed",
    "slices_changed",
    "sliced_cut",
    "sliced_passed",
    "unread_fills_refused",
];
/// The room on the disk where it is filled.
const DISK: u64 = 512 << 20;
/// Texts of log lines without a fault that explains them, if the origin fails, and if it does not.
const UNEXPLAINED: [&[&str]; 2] = [
    &["Z error ", "Z critical "],
    &["Z warning ", "Z error ", "Z critical "],
];

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
}

impl Plan {
    /// Makes the run.
    ///
    /// # Panics
    /// When anything is wrong; it says what.
    pub async fn run(self) {
        println!("{}: TORTURE_SEED={}", self.medium, self.seed);
        let shelf = Arc::new(Shelf::new(self.seed, self.faults));
        let first = origin::start(&shelf, 0, fetches::Server::First);
        let second = self.dies;
        let second = second.then(|| origin::start(&shelf, 0, fetches::Server::Second));
        let has_files = self.feed || self.access || self.reloads.is_some();
        let files = has_files.then(|| Files::new(self.access, self.feed.then_some(feed::EVERY)));
        let mut world = World::new(shelf);
        world.has_second = self.dies;
        world.has_access = self.access;
        world.has_files = has_files;
        let world = Arc::new(world);
        let purger = Purger::new();
        let mut builder = purger.open(self.edge(&first, second.as_ref()));
        if let Some(files) = &files {
            builder = files.open(builder);
        }
        let mut edge = builder.start().await;
        world.fleet.started(0, &edge);
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            clients.spawn(Client::new(&world, (0, edge.address()), number).run());
        }
        self.begin(&world, purger, files, &mut clients);
        let (amid, dies) = (Arc::clone(&world), self.dies);
        let first = tokio::spawn(async move {
            match dies {
                true => disturbance::die(amid, vec![first]).await,
                false => vec![first],
            }
        });
        self.phases(&world, &mut edge).await;
        world.end();
        clients.join_all().await;
        let _first = first.await.unwrap();
        self.verdict(&world, &mut edge).await;
    }

    /// An edge of the run, in front of these origins.
    fn edge(&self, first: &Server, second: Option<&Server>) -> Builder {
        let mut builder = Builder::new()
            .env("SLUICE_ORIGIN", format!("http://{}", first.address()))
            .env("SLUICE_ACCESS_LOG", "off")
            .env("SLUICE_CACHE_MAX_OBJECT_BYTES", LARGEST_WHOLE.to_string())
            .env("SLUICE_SLICE_BYTES", SLICE.to_string())
            .medium(self.medium)
            .workers(self.workers)
            .allow_log("did not answer to a change");
        if let Some(second) = second {
            let second = format!("http://{}", second.address());
            builder = builder
                .env("SLUICE_FAILOVER_ORIGIN", second)
                .env("SLUICE_FAILOVER_TTL", "1s");
        }
        if self.fills {
            builder = builder.disk(DISK).env("SLUICE_CACHE_MAX_BYTES", "64MiB");
        }
        builder
    }

    /// Begins the disturbances that last as long as the run.
    fn begin(
        &self,
        world: &Arc<World>,
        purger: Purger,
        files: Option<Files>,
        all: &mut JoinSet<()>,
    ) {
        if self.purges {
            all.spawn(disturbance::purge(Arc::clone(world), purger));
        }
        if self.feed {
            all.spawn(feed::write(Arc::clone(world)));
        }
        if self.skews {
            all.spawn(skew::wander(Arc::clone(world)));
        }
        if let (Some(files), Some(every)) = (files, self.reloads) {
            all.spawn(reloads::reload(Arc::clone(world), files, every));
        }
    }

    /// Runs for the planned time, and kills the edge from time to time.
    async fn phases(&self, world: &Arc<World>, edge: &mut Edge) {
        let begun = Instant::now();
        let mut number = 0;
        loop {
            let left = self.lasts.saturating_sub(begun.elapsed());
            let phase = self.lives.unwrap_or(left).min(left);
            let (envoy, clock) = (edge.envoy_pid(), world.shelf.clock);
            let disk = edge.disk();
            let alive = tokio::select! {
                alive = lives(edge, phase) => alive,
                () = self.disturb(world, envoy, disk, number) => true,
            };
            world.stalls.close(clock.now());
            world.full.close(clock.now());
            if !alive {
                world
                    .ledger
                    .complain(Wrong::Crash, clock.now(), "the edge has died");
                // Failures from now on are expected.
                world.outages.begin(clock.now());
                return;
            }
            if begun.elapsed() >= self.lasts {
                return;
            }
            let quiet = world.fleet.quiet().await;
            let outage = world.outages.begin(clock.now());
            edge.crash(|cache| self.tear(world, cache, number)).await;
            world.outages.end(outage, clock.now());
            world.fleet.started(0, edge);
            drop(quiet);
            world.ledger.count("times the edge was killed");
            number += 1;
        }
    }

    /// Disturbs the edge until the future is dropped. `envoy` is the process id of its Envoy.
    async fn disturb(&self, world: &Arc<World>, envoy: u32, disk: Disk, number: u64) {
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
                disturbance::hang_up(Arc::clone(world), 0, number).await;
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
        assert!(world.ledger.counted(SLICED) > 0, "no response in slices");
        let first = world.ledger.first();
        assert!(
            first.is_none(),
            "{} with TORTURE_SEED={}, at first: {first:?}",
            self.medium,
            self.seed
        );
    }
}

/// Waits until no request waits, none is active and no fetch is under way, and prints the edge's counters.
async fn come_to_rest(edge: &Edge) {
    edge.wait_for_value("sluice_parked_now", 0).await;
    edge.wait_for_value("sluice_flights_now", 0).await;
    for listener in ["edge", "origin"] {
        let active = format!("http.{listener}.downstream_rq_active");
        edge.wait_for_value(&active, 0).await;
    }
    for (name, number) in edge.stats("sluice_").await {
        if COUNTERS.iter().any(|counter| name.ends_with(counter)) {
            println!("{name} {number}");
        }
    }
}

/// Waits for this long; false as soon as the edge has died.
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
