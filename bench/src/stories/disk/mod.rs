// SPDX-License-Identifier: Apache-2.0
//! Envoy's caches on a disk with Sluice's settings: the number of threads, a disk or a tmpfs, eviction when more is
//! requested than there is room for, by Sluice's entry point and by Envoy alone, and a start with a full cache.

mod room;

use crate::contenders::WORKERS;
use crate::figures::format::{ms, whole};
use crate::figures::{Conclusions, Figures, Rounds, Table};
use crate::load::h2load::{self, Ask, Listed, Protocol};
use crate::machine;
use crate::machine::spent::Watch;
use crate::machine::usage;
use crate::origins::objects;
use crate::progress::Progress;
use crate::report::Report;
use room::{FULL, Full, fill_up};
use sluice_tests::edge::direct::Direct;
use sluice_tests::edge::store::Medium;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::origin::Origin;
use std::time::{Duration, Instant};

const BYTES: usize = 1_000;
/// Requests under way on a connection that asks for each path once.
const STREAMS: u32 = 8;
/// Number of keys as a multiple of the room.
const KEYS: usize = 3;
/// Number of paths in a list for h2load.
const LIST: usize = 5_000;
/// New objects a second, on each of two connections, for a full store without other requests.
const TRICKLE: u32 = 100;

/// Scale of the measurement.
struct Scale {
    media: &'static [Medium],
    threads: &'static [u32],
    /// Requests of a round for hits.
    listed: usize,
    rounds: usize,
    /// The sizes of the stores, in objects.
    rooms: &'static [usize],
    /// Rounds of requests for more keys than there is room for.
    churns: usize,
    /// Requests of such a round, if there is room for fewer than ten times as many, else a tenth of the room.
    churn: usize,
    /// Length of the phase with few new objects, in seconds.
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

/// The requests of one round, and their cost.
struct Run {
    listed: Listed,
    /// CPU time of all threads for each request, in microseconds.
    cpu: f64,
    /// CPU time of all threads except the workers.
    aside: f64,
    /// Time for the whole list.
    took: Duration,
}

/// A store with this many threads, and its rounds of hits.
struct Pool {
    medium: Medium,
    threads: u32,
    fill: Run,
    hits: Rounds<Run>,
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

/// An edge whose hits are all hits of Envoy's cache.
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

/// Requests these keys, on a connection for each worker.
async fn ask_for(edge: &Edge, keys: Vec<usize>) -> (Run, f64) {
    ask_at(edge, keys, None).await
}

/// Requests these keys, on a connection for each worker, at this rate on each if there is one.
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

fn findings(found: &Found, scale: &Scale) -> Conclusions {
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
    findings
}
