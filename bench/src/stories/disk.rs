// SPDX-License-Identifier: Apache-2.0
//! Envoy's caches on a disk, as Sluice has them: how many threads they want, a disk or a tmpfs, what eviction takes when
//! more is asked for than there is room, by Sluice's entry point and by Envoy alone, and a start with all of it there.

use crate::contenders::WORKERS;
use crate::figures::format::{count, ms, whole};
use crate::figures::{Conclusions, Figures, Rounds, Table};
use crate::load::h2load::{self, Ask, Listed, Protocol};
use crate::machine;
use crate::machine::spent::Watch;
use crate::machine::usage;
use crate::origins::objects;
use crate::progress::Progress;
use crate::report::Report;
use sluice::cache_folder;
use sluice_tests::client;
use sluice_tests::direct::Direct;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::matrix::Medium;
use sluice_tests::origin::Origin;
use sluice_tests::rng::Rng;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const BYTES: usize = 1_000;
/// Requests under way on a connection that asks for each path once.
const STREAMS: u32 = 8;
/// So many times as many keys are asked for as there is room for.
const KEYS: usize = 3;
/// How many paths h2load is given at a time.
const LIST: usize = 5_000;
/// New objects a second, on each of two connections, of a store that is full and has nothing else to do.
const TRICKLE: u32 = 100;

/// How much is measured.
struct Scale {
    media: &'static [Medium],
    threads: &'static [u32],
    /// Requests of a round for hits.
    listed: usize,
    rounds: usize,
    /// For how many objects there is room.
    rooms: &'static [usize],
    /// Rounds of requests while more is asked for than there is room for.
    churns: usize,
    /// Requests of such a round, where there is room for fewer than ten times as many, else a tenth of that.
    churn: usize,
    /// How long few come in, in seconds.
    trickle: u32,
}

impl Scale {
    const fn new(quick: bool) -> Self {
        if quick {
            Self {
                media: &[Medium::Disk],
                threads: &[1, 2],
                listed: 1_000,
                rounds: 1,
                rooms: &[300],
                churns: 1,
                churn: 1_000,
                trickle: 1,
            }
        } else {
            Self {
                media: &[Medium::Disk, Medium::Memory],
                threads: &[1, 2, 4, 16],
                listed: LIST,
                rounds: 3,
                rooms: &[1_000, 10_000, 100_000],
                churns: 3,
                churn: 4_000,
                trickle: 20,
            }
        }
    }
}

/// Requests of one round, and what they took.
struct Run {
    listed: Listed,
    /// CPU time of all threads for each request, in microseconds.
    cpu: f64,
    /// That of the threads that are no workers.
    aside: f64,
    /// Of the list.
    took: Duration,
}

/// A store with so many threads, and its rounds of hits.
struct Pool {
    medium: Medium,
    threads: u32,
    fill: Run,
    hits: Rounds<Run>,
}

/// Who makes room.
#[derive(Clone, Copy)]
enum By {
    /// The entry point, before Envoy has to.
    Sluice,
    /// Envoy, started without the entry point.
    Envoy,
}

/// A store with room for so many objects, of which more were asked for.
struct Full {
    room: usize,
    by: By,
    /// So many of the requests went to the origin, 0 to 1.
    missed: f64,
    runs: Rounds<Run>,
    /// The most files that were there.
    most: usize,
    /// How often Envoy read the folder.
    reads: u64,
    /// While few come in: of a core, all threads that are no workers.
    trickle: f64,
    start: Start,
}

/// A start with a full cache, in milliseconds.
struct Start {
    empty: f64,
    full: f64,
    /// The slowest of the first hits.
    slowest: f64,
}

struct Found {
    pools: Vec<Pool>,
    full: Vec<Full>,
}

pub async fn run(quick: bool) -> Option<Report> {
    if !h2load::is_there() {
        return None;
    }
    let scale = Scale::new(quick);
    let before = machine::load();
    let origin = objects::of(BYTES).await;
    let pools = pools(&scale, &origin).await;
    let mut full = Vec::new();
    let progress = Progress::of(scale.rooms.len());
    for &room in scale.rooms {
        progress.step(format_args!("room for {room}, of {KEYS} times as many"));
        full.extend(fill_up(&scale, &origin, room).await);
    }
    Some(report(&Found { pools, full }, &scale, before))
}

/// An edge whose hits are all of Envoy's cache.
fn edge(origin: &Origin) -> Builder {
    let edge = Edge::http(origin).workers(WORKERS);
    edge.env("HOT_BYTES", "0").env("ACCESS_LOG", "off")
}

/// Hits by the number of threads, all in turn.
async fn pools(scale: &Scale, origin: &Origin) -> Vec<Pool> {
    let mut edges = Vec::new();
    for &medium in scale.media {
        for &threads in scale.threads {
            let direct = Direct {
                cache_threads: Some(threads),
                ..Direct::default()
            };
            let edge = edge(origin).medium(medium).direct(direct);
            let edge = edge.start().await;
            let (fill, _) = ask_for(&edge, (0..scale.listed).collect()).await;
            let pool = Pool {
                medium,
                threads,
                fill,
                hits: Rounds::default(),
            };
            edges.push((edge, pool));
        }
    }
    for round in 1..=scale.rounds {
        eprintln!("hits by threads, round {round} of {}", scale.rounds);
        for (edge, pool) in &mut edges {
            pool.hits
                .add(ask_for(edge, (0..scale.listed).collect()).await);
        }
    }
    edges.into_iter().map(|(_, pool)| pool).collect()
}

/// A store that more is asked of than it has room for.
struct Crowded {
    builder: Builder,
    edge: Edge,
    by: By,
    /// Where its files are.
    entries: PathBuf,
    _folder: TempDir,
    /// To start it, in milliseconds.
    empty: f64,
    rng: Rng,
    runs: Rounds<Run>,
    most: usize,
    trickle: f64,
}

/// Fills two stores alike, one of which has the entry point, asks each in turn for more than there is room for, and starts
/// them again with what is there then.
async fn fill_up(scale: &Scale, origin: &Origin, room: usize) -> Vec<Full> {
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
            entries: folder.path().join(cache_folder::ENTRIES),
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

    /// Asks for new objects, few a second.
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

/// Starts it; the milliseconds until an object has come through it.
async fn start(builder: &Builder) -> (Edge, f64) {
    let began = Instant::now();
    let edge = builder.clone().start().await;
    let answer = client::get(edge.address(), "/first").await;
    assert_eq!(answer.status, 200, "{answer}");
    (edge, began.elapsed().as_secs_f64() * 1e3)
}

/// Looks ten times in a second how many there are, until nobody has asked for anything for one.
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

/// Asks for these, on a connection for each worker.
async fn ask_for(edge: &Edge, keys: Vec<usize>) -> (Run, f64) {
    ask_at(edge, keys, None).await
}

/// The same, so many a second on each where there is a rate.
async fn ask_at(edge: &Edge, keys: Vec<usize>, rate: Option<u32>) -> (Run, f64) {
    let paths: Vec<_> = keys.iter().map(|key| format!("/objects/{key}")).collect();
    let ask = Ask {
        address: edge.address(),
        tls: false,
        protocol: Protocol::Http2 { streams: STREAMS },
        path: "",
    };
    let pid = edge.envoy_pid();
    let (watch, began) = (Watch::start(&[edge.pid()]), Instant::now());
    let workers = || usage::threads(pid, "wrk:").into_values().sum::<Duration>();
    let worked = workers();
    let (one, other) = paths.split_at(paths.len() / WORKERS);
    let (one, other) = tokio::join!(
        h2load::listed(&ask, one, rate),
        h2load::listed(&ask, other, rate)
    );
    let took = began.elapsed();
    let listed = one.with(other);
    let alive = usage::alive(pid);
    assert_eq!(
        listed.answered,
        paths.len() as u64,
        "Envoy runs: {alive}, {:?}",
        listed.others
    );
    let spent = watch.spent(listed.answered);
    #[allow(clippy::cast_precision_loss)]
    let worked = (workers() - worked).as_secs_f64() * 1e6 / listed.answered as f64;
    let run = Run {
        cpu: spent.server,
        aside: (spent.server - worked).max(0.0),
        listed,
        took,
    };
    (run, spent.foreign)
}

impl Run {
    #[allow(clippy::cast_precision_loss)]
    fn per_second(&self) -> f64 {
        self.listed.answered as f64 / self.took.as_secs_f64()
    }
}

const POOLS: &str = "hits | threads | us CPU a hit | by round | a second | p99 ms | us CPU a fill";

impl Pool {
    fn cpu(&self) -> (String, Figures) {
        let name = format!("{} thread(s)", self.threads);
        (name, self.hits.of(|run| run.cpu))
    }

    fn cells(&self) -> Vec<String> {
        let (_, cpu) = self.cpu();
        vec![
            self.medium.to_string(),
            self.threads.to_string(),
            whole(cpu.median()),
            cpu.range(whole),
            whole(self.hits.of(Run::per_second).median()),
            ms(self
                .hits
                .of(|run| run.listed.times.percentile(99.0))
                .median()),
            whole(self.fill.cpu),
        ]
    }
}

impl fmt::Display for By {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Sluice => "Sluice",
            Self::Envoy => "Envoy alone",
        })
    }
}

const FULL: &str = "asked for three times what there is room for | room is made by | most files | missed | us CPU \
    | off workers | a second | p50 ms | p99 | max | Envoy reads | 200 new a second: cores \
    | ms to start, empty, full | then slowest";

impl Full {
    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        self.runs.of(figure).median()
    }

    fn cells(&self) -> Vec<String> {
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

    fn finding(&self) -> String {
        let (room, by) = (self.room, self.by);
        let over = (count(self.most) / count(room) - 1.0).max(0.0) * 100.0;
        format!(
            "room for {room}, which {by} makes: there were up to {over:.0} % more files while others came, and \
             threads that are no workers, of which one evicts, took {:.0} of {:.0} us of CPU time for each request, and {:.2} \
             of a core at 200 new objects a second.",
            self.median(|run| run.aside),
            self.median(|run| run.cpu),
            self.trickle
        )
    }
}

fn report(found: &Found, scale: &Scale, before: f64) -> Report {
    Report {
        title: "Caches on a disk".to_owned(),
        about: format!(
            "{BYTES} bytes, {} rounds, in turn, {WORKERS} workers\n{}",
            scale.rounds,
            machine::described(
                before,
                found.pools.iter().flat_map(|pool| pool.hits.foreign())
            ),
        ),
        tables: vec![
            Table::new(POOLS, found.pools.iter().map(Pool::cells)),
            Table::new(FULL, found.full.iter().map(Full::cells)),
        ],
        findings: findings(found, scale),
        ..Report::default()
    }
}

fn findings(found: &Found, scale: &Scale) -> Vec<String> {
    let mut findings = Conclusions::default();
    for &medium in scale.media {
        let of_medium = || found.pools.iter().filter(|pool| pool.medium == medium);
        if let (Some(few), Some(many)) = (of_medium().next(), of_medium().next_back()) {
            findings.compare(
                format!("CPU time of a hit, {medium}"),
                few.cpu(),
                many.cpu(),
            );
        }
    }
    for full in &found.full {
        findings.say(full.finding());
    }
    findings.all()
}
