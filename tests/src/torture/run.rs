// SPDX-License-Identifier: Apache-2.0
//! A run: its edges, its clients and its disturbances, from the beginning to the verdict.

use super::client::{Client, SLICED};
use super::files::Files;
use super::fleet::EDGES;
use super::ledger::Wrong;
use super::life::Life;
use super::object::{LARGEST_WHOLE, SLICE};
use super::origin::{self, Shelf};
use super::overlap::Overlaps;
use super::peers::{self, Peers};
use super::plan::Plan;
use super::world::World;
use super::{disturbance, feed, feed_purges, fetches, reloads};
use crate::edge::purger::Purger;
use crate::edge::{Builder, Edge};
use crate::server::Server;
use std::sync::Arc;
use tokio::task::{JoinSet, LocalSet};

/// Number of clients.
const CLIENTS: usize = 32;
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

impl Plan {
    /// Makes the run.
    ///
    /// # Panics
    /// When anything is wrong; it says what.
    pub async fn run(self) {
        println!("{}: TORTURE_SEED={}", self.medium, self.seed);
        let size = if self.peers { EDGES } else { 1 };
        let shelf = Arc::new(Shelf::new(self.seed, self.faults));
        let first = ports(&shelf, size, fetches::Server::First);
        let seconds = if self.dies { size } else { 0 };
        let second = ports(&shelf, seconds, fetches::Server::Second);
        let has_files = self.feed || self.access || self.reloads.is_some();
        let every = self.feed.then_some(feed::EVERY);
        let files = has_files.then(|| Arc::new(Files::new(self.access, every)));
        let mut world = World::new(shelf);
        world.has_second = self.dies;
        world.has_access = self.access;
        world.has_files = has_files;
        let world = Arc::new(world);
        let purgers: Vec<_> = (0..size).map(|_| Purger::new()).collect();
        let names = Peers::new(size).await;
        let builder = |number: usize| {
            let edge = names.join(number, self.edge(&first[number], second.get(number)));
            let edge = purgers[number].open(edge);
            files.iter().fold(edge, |edge, files| files.open(edge))
        };
        let edges = start(&world, &names, (0..size).map(builder)).await;
        let mut all = JoinSet::new();
        for number in 0..CLIENTS {
            let (edge, place) = &edges[number % size];
            all.spawn(Client::new(&world, (*edge, place.address()), number).run());
        }
        for (number, edge) in edges.iter().filter(|_| self.peers) {
            all.spawn(peers::watch(Arc::clone(&world), *number, edge.admin()));
        }
        self.begin(&world, purgers, files.as_ref(), &mut all);
        let (amid, dies) = (Arc::clone(&world), self.dies);
        let first = tokio::spawn(async move {
            match dies {
                true => disturbance::die(amid, first).await,
                false => first,
            }
        });
        let edges = self.live(&world, edges).await;
        world.end();
        all.join_all().await;
        let _first = first.await.unwrap();
        self.verdict(&world, &edges).await;
    }

    /// Lets the edges live for the planned time.
    async fn live(&self, world: &Arc<World>, edges: Vec<(usize, Edge)>) -> Vec<Edge> {
        let (mut lives, local) = (JoinSet::new(), LocalSet::new());
        for (number, edge) in edges {
            let life = Life {
                plan: self.clone(),
                world: Arc::clone(world),
                number,
                edge,
            };
            lives.spawn_local_on(life.run(), &local);
        }
        local.run_until(lives.join_all()).await
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
        purgers: Vec<Purger>,
        files: Option<&Arc<Files>>,
        all: &mut JoinSet<()>,
    ) {
        if self.purges {
            all.spawn(disturbance::purge(Arc::clone(world), purgers));
        }
        if self.feed {
            all.spawn(feed_purges::write(Arc::clone(world)));
        }
        if self.skews {
            all.spawn(disturbance::skew(Arc::clone(world)));
        }
        if let (Some(files), Some(every)) = (files, self.reloads) {
            let (world, files) = (Arc::clone(world), Arc::clone(files));
            all.spawn(reloads::reload(world, files, every));
        }
    }

    async fn verdict(&self, world: &World, edges: &[Edge]) {
        if world.ledger.wrongs(Wrong::Crash) == 0 {
            for edge in edges {
                come_to_rest(edge).await;
            }
        }
        let now = world.shelf.clock.now();
        let is_calm = !self.faults && !self.dies && self.reloads.is_none();
        let levels = UNEXPLAINED[usize::from(is_calm)];
        let logs: Vec<_> = edges.iter().map(Edge::log).collect();
        for line in logs.iter().flat_map(|log| log.lines()) {
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
        Overlaps::new(world, self.workers * edges.len(), &fetches).judge(&overlaps);
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

/// Starts a port of an origin for each edge.
fn ports(shelf: &Arc<Shelf>, edges: usize, server: fetches::Server) -> Vec<Server> {
    let edges = 0..edges;
    edges
        .map(|edge| origin::start(shelf, edge, server))
        .collect()
}

/// Starts the edges, one after the other, because a start in Wasm takes long on a busy machine. Returns them with their
/// numbers when each has found the others.
async fn start(
    world: &World,
    names: &Peers,
    builders: impl Iterator<Item = Builder>,
) -> Vec<(usize, Edge)> {
    let _starting = world.apart.hold(world.shelf.clock);
    let mut edges = Vec::new();
    for (number, builder) in builders.enumerate() {
        edges.push((number, builder.start().await));
    }
    for (number, edge) in &edges {
        names.wait_for(edge).await;
        world.fleet.started(*number, edge);
    }
    edges
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
