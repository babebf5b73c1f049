// SPDX-License-Identifier: Apache-2.0
//! A store that receives requests for more keys than it has room for.

use super::{KEYS, LIST, Run, Scale, TRICKLE, ask_at, ask_for, edge};
use crate::contenders::WORKERS;
use crate::figures::Rounds;
use crate::figures::format::{count, ms, whole};
use sluice::cache;
use sluice_tests::chance::rng::Rng;
use sluice_tests::client;
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::Origin;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The program that makes room.
#[derive(Clone, Copy)]
enum By {
    /// The entry point, before Envoy has to.
    Sluice,
    /// Envoy, started without the entry point.
    Envoy,
}

/// A full store, after requests for more keys than it has room for.
pub struct Full {
    room: usize,
    by: By,
    /// The part of the requests that were sent to the origin, 0 to 1.
    missed: f64,
    runs: Rounds<Run>,
    /// The largest number of files.
    most: usize,
    /// How often Envoy read the folder.
    reads: u64,
    /// During the phase with few new objects: CPU time of all threads except the workers, as a part of a core.
    trickle: f64,
    start: Start,
}

/// A start with a full cache, in milliseconds.
struct Start {
    empty: f64,
    full: f64,
    /// Time of the slowest of the first hits.
    slowest: f64,
}

/// A store that receives requests for more keys than it has room for.
struct Crowded {
    builder: Builder,
    edge: Edge,
    by: By,
    /// Folder of its files.
    entries: PathBuf,
    _folder: TempDir,
    /// Time of a start with an empty cache, in milliseconds.
    empty: f64,
    rng: Rng,
    runs: Rounds<Run>,
    most: usize,
    trickle: f64,
}

/// Fills two stores alike, one with the entry point and one without, requests more keys from each in turn than there
/// is room for, and starts them again with their full caches.
pub async fn fill_up(scale: &Scale, origin: &Origin, room: usize) -> Vec<Full> {
    let mut both = Vec::new();
    for by in [By::Sluice, By::Envoy] {
        both.push(Crowded::new(origin, room, by).await);
    }
    let mut fetched = Vec::new();
    for crowded in &both {
        fetched.push(crowded.edge.counter("sluice_origin_fetches").await);
    }
    let churn = scale.churn.max(room / 10);
    for _ in 0..scale.churns {
        for crowded in &mut both {
            crowded.churn(churn, room).await;
        }
    }
    let mut full = Vec::new();
    for (mut crowded, before) in both.into_iter().zip(fetched) {
        let missed = crowded.edge.counter("sluice_origin_fetches").await - before;
        crowded.trickle(scale, room).await;
        #[allow(clippy::cast_precision_loss)]
        let missed = missed as f64 / count(scale.churns * churn);
        full.push(crowded.restart(room, missed).await);
    }
    full
}

impl Crowded {
    async fn new(origin: &Origin, room: usize, by: By) -> Self {
        let folder = TempDir::with_prefix("sluice-bench-disk-").unwrap();
        let builder = edge(origin)
            .env("CACHE_DIR", folder.path().display().to_string())
            .env("CACHE_MAX_ENTRIES", room.to_string());
        let builder = match by {
            By::Sluice => builder,
            By::Envoy => builder.direct(Direct::default()),
        };
        let (edge, empty) = start(&builder).await;
        for first in (0..room).step_by(LIST) {
            ask_for(&edge, (first..room.min(first + LIST)).collect()).await;
        }
        Self {
            builder,
            edge,
            by,
            entries: folder.path().join(cache::ENTRIES),
            _folder: folder,
            empty,
            rng: Rng::new(1),
            runs: Rounds::default(),
            most: 0,
            trickle: 0.0,
        }
    }

    async fn churn(&mut self, requests: usize, room: usize) {
        let keys = (0..requests).map(|_| self.rng.below(KEYS * room)).collect();
        let (run, most) = tokio::join!(ask_for(&self.edge, keys), most_files(&self.entries));
        self.runs.add(run);
        self.most = self.most.max(most);
    }

    /// Requests new objects, few a second.
    async fn trickle(&mut self, scale: &Scale, room: usize) {
        let requests = (TRICKLE * scale.trickle) as usize * WORKERS;
        let keys = (KEYS * room..KEYS * room + requests).collect();
        let (run, _) = ask_at(&self.edge, keys, Some(TRICKLE)).await;
        let aside = run.aside * count(requests) / 1e6;
        self.trickle = aside / run.took.as_secs_f64();
    }

    async fn restart(mut self, room: usize, missed: f64) -> Full {
        let reads = self.edge.stats("cache.eviction_runs").await;
        self.edge.stop();
        let (edge, full) = start(&self.builder).await;
        let keys = (0..1_000.min(room)).map(|_| self.rng.below(KEYS * room));
        let (slowest, _) = ask_for(&edge, keys.collect()).await;
        edge.stop();
        Full {
            room,
            by: self.by,
            missed,
            runs: self.runs,
            most: self.most,
            reads: reads.into_values().sum(),
            trickle: self.trickle,
            start: Start {
                empty: self.empty,
                full,
                slowest: slowest.listed.times.percentile(100.0),
            },
        }
    }
}

/// Starts the edge, and returns the milliseconds until an object has been served.
pub async fn start(builder: &Builder) -> (Edge, f64) {
    let began = Instant::now();
    let edge = builder.clone().start().await;
    let answer = client::get(edge.address(), "/first").await;
    assert_eq!(answer.status, 200, "{answer}");
    (edge, began.elapsed().as_secs_f64() * 1e3)
}

/// The largest number of files, counted ten times a second, until no request has arrived for a second.
async fn most_files(folder: &Path) -> usize {
    let (mut most, mut changed, mut last) = (0, Instant::now(), 0);
    while changed.elapsed() < Duration::from_secs(1) {
        let count = std::fs::read_dir(folder).map_or(0, Iterator::count);
        most = most.max(count);
        if count != last {
            (changed, last) = (Instant::now(), count);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    most
}

impl fmt::Display for By {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Sluice => "Sluice",
            Self::Envoy => "Envoy alone",
        })
    }
}

pub const FULL: &str = "three times the room | room is made by | most files | missed | us CPU \
    | off workers | a second | p50 ms | p99 | max | Envoy reads | 200 new a second: cores \
    | ms to start, empty, full | then slowest";

impl Full {
    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        self.runs.of(figure).median()
    }

    pub fn cells(&self) -> Vec<String> {
        let at = |percentile: f64| ms(self.median(|run| run.listed.times.percentile(percentile)));
        let start = &self.start;
        let mut cells = vec![
            self.room.to_string(),
            self.by.to_string(),
            self.most.to_string(),
        ];
        cells.push(format!("{:.2}", self.missed));
        cells.push(whole(self.median(|run| run.cpu)));
        cells.push(whole(self.median(|run| run.aside)));
        cells.push(whole(self.median(Run::per_second)));
        cells.extend([50.0, 99.0, 100.0].map(at));
        cells.push(self.reads.to_string());
        cells.push(format!("{:.2}", self.trickle));
        cells.push(format!("{:.0}, {:.0}", start.empty, start.full));
        cells.push(ms(start.slowest));
        cells
    }

    pub fn finding(&self) -> String {
        let (room, by) = (self.room, self.by);
        let over = (count(self.most) / count(room) - 1.0).max(0.0) * 100.0;
        format!(
            "room for {room}, which {by} makes: there were up to {over:.0} % more files while new objects \
             were stored. Threads other than workers, including the one that evicts, took {:.0} of {:.0} us of CPU time for \
             each request, and {:.2} of a core at 200 new objects a second.",
            self.median(|run| run.aside),
            self.median(|run| run.cpu),
            self.trickle
        )
    }
}
