// SPDX-License-Identifier: Apache-2.0
//! Hits: what an object costs that is there, how many of them there are in a second, and how long they take when the
//! server is half busy.

use crate::contenders::{Before, Contender, Kind, WORKERS, start_all};
use crate::figures::aim::{self, Aim, Goal};
use crate::figures::format::{ms, remark, whole};
use crate::figures::{Conclusions, Figures, Rounds, Table};
use crate::load::h2load::{self, Ask, Pace, Paced, Protocol};
use crate::machine;
use crate::machine::spent::Watch;
use crate::machine::usage::Bystander;
use crate::peers::nginx::Lock;
use crate::progress::Progress;
use crate::report::{Axis, Line, Picture, Report, bars, by_percentile};
use sluice_tests::origin::{Origin, Reply};
use std::fmt;
use std::time::Duration;

/// Never stored: what passes the caches.
const PRIVATE: &str = "/private.bin";
/// What the aims are about, with its files on a disk.
const OURS: Kind = Kind::Sluice;
const NGINX: Kind = Kind::Nginx(Lock::On);
/// Who is drawn.
const DRAWN: [Kind; 6] = [
    OURS,
    NGINX,
    Kind::Varnish,
    Kind::Haproxy,
    Kind::BareMemory,
    Kind::Direct,
];
/// Who is asked at half of saturation.
const HALF_BUSY: [Kind; 4] = [OURS, NGINX, Kind::Varnish, Kind::BareMemory];
/// As many connections as bring every worker to work, and a bit of waiting.
const BASE: Scene = Scene {
    bytes: 10_000,
    protocol: Protocol::Http1,
    connections: 32,
};
const STREAMS: u32 = 10;

/// How an object is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scene {
    bytes: usize,
    protocol: Protocol,
    connections: u32,
}

/// How much is measured.
struct Scale {
    kinds: Vec<Kind>,
    scenes: Vec<Scene>,
    rounds: u32,
    /// Of one contender in one scene.
    time: Duration,
    /// The same at half of saturation; its rate is filled in.
    pace: Pace,
}

struct Run {
    /// CPU time for each request, in microseconds.
    cpu: f64,
    per_second: f64,
    failed: u64,
}

/// All rounds of one contender in one scene.
struct Row {
    scene: Scene,
    kind: Kind,
    runs: Rounds<Run>,
}

/// All rounds of one contender at the rate that is half of saturation.
struct Tail {
    kind: Kind,
    rate: u32,
    runs: Rounds<Paced>,
}

/// What the story has found.
struct Found {
    rows: Vec<Row>,
    tails: Vec<Tail>,
    /// CPU time of what passes: ours, and Envoy without the filter.
    passes: [Figures; 2],
}

impl Scale {
    fn new(quick: bool) -> Self {
        let scene = |bytes, protocol, connections| Scene {
            bytes,
            protocol,
            connections,
        };
        let http2 = Protocol::Http2 { streams: STREAMS };
        let mut kinds = [&DRAWN[..], &[Kind::Bare, Kind::SluiceCold]].concat();
        if !quick {
            kinds.push(Kind::SluiceMemory);
        }
        let mut scenes = vec![BASE, scene(10_000, http2, 8)];
        if !quick {
            for bytes in [1_000, 100_000, 1_000_000] {
                scenes.extend([scene(bytes, Protocol::Http1, 32), scene(bytes, http2, 8)]);
            }
            for connections in [1, 8, 256] {
                scenes.push(scene(10_000, Protocol::Http1, connections));
            }
            scenes.extend([scene(10_000, http2, 1), scene(10_000, http2, 64)]);
        }
        let millis = Duration::from_millis;
        Self {
            kinds,
            scenes,
            rounds: if quick { 1 } else { 3 },
            time: millis(if quick { 300 } else { 700 }),
            pace: if quick {
                Pace::of_millis(200, 300)
            } else {
                Pace::of_millis(1_000, 4_000)
            },
        }
    }

    fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<_> = self.scenes.iter().map(|scene| scene.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, connections) = (self.bytes, self.connections);
        match self.protocol {
            Protocol::Http1 => write!(f, "{bytes} B, HTTP/1.1 x {connections}"),
            Protocol::Http2 { streams } => {
                write!(f, "{bytes} B, HTTP/2 x {connections} x {streams}")
            }
        }
    }
}

impl Scene {
    fn path(&self) -> String {
        format!("/o{}.bin", self.bytes)
    }
}

pub async fn run(quick: bool) -> Option<Report> {
    if !h2load::is_there() {
        return None;
    }
    let scale = Scale::new(quick);
    let before = machine::load();
    let origin = Origin::start().ready().await;
    for bytes in scale.sizes() {
        let path = format!("/o{bytes}.bin");
        origin.on(&path, Reply::ok(bytes).max_age(86_400));
    }
    let private = Reply::ok(BASE.bytes).header("cache-control", "private, no-store");
    origin.on(PRIVATE, private);
    eprintln!("starting the servers");
    let servers = start_all(&scale.kinds, Before::Origin(&origin)).await;
    let rows = hits(&scale, &servers, &origin).await;
    let tails = tails(&scale, &servers, &rows).await;
    origin.forget_requests();
    let passes = passes(&scale, &servers).await;
    drop(servers);
    let found = Found {
        rows,
        tails,
        passes,
    };
    Some(report(&found, &scale, before))
}

async fn hits(scale: &Scale, servers: &[Contender], origin: &Origin) -> Vec<Row> {
    let mut rows = Vec::new();
    for &scene in &scale.scenes {
        for server in servers {
            let kind = server.kind;
            if kind == Kind::Direct || warm(server, scene, origin).await {
                rows.push(Row {
                    scene,
                    kind,
                    runs: Rounds::default(),
                });
            } else {
                eprintln!(
                    "not measured: {kind} stores nothing of {} bytes",
                    scene.bytes
                );
            }
        }
    }
    let progress = Progress::of(rows.len() * scale.rounds as usize);
    for round in 1..=scale.rounds {
        for row in &mut rows {
            progress.step(format_args!("{}, {}, round {round}", row.kind, row.scene));
            let path = row.scene.path();
            let asked = origin.count(&path);
            row.runs
                .add(measure(of(servers, row.kind), row.scene, &path, scale.time).await);
            let asked = origin.count(&path) - asked;
            assert_eq!(
                asked, 0,
                "of {} no hits were measured: {}",
                row.kind, row.scene
            );
        }
    }
    rows
}

/// The one of this kind.
fn of(servers: &[Contender], kind: Kind) -> &Contender {
    let mut servers = servers.iter();
    servers.find(|server| server.kind == kind).unwrap()
}

/// Asks on so many connections that each worker has some, and by the protocol of the scene: HAProxy's keys differ. Whether
/// the origin is not asked any more then.
async fn warm(server: &Contender, scene: Scene, origin: &Origin) -> bool {
    let path = scene.path();
    let ask = ask(server, scene.protocol, &path);
    h2load::each_once(&ask, std::slice::from_ref(&path)).await;
    h2load::saturate(&ask, 64, Duration::from_millis(60)).await;
    let asked = origin.count(&path);
    h2load::saturate(&ask, 8, Duration::from_millis(20)).await;
    origin.count(&path) == asked
}

fn ask<'a>(server: &Contender, protocol: Protocol, path: &'a str) -> Ask<'a> {
    let address = match protocol {
        Protocol::Http1 => server.address,
        Protocol::Http2 { .. } => server.second,
    };
    Ask {
        address,
        tls: false,
        protocol,
        path,
    }
}

async fn measure(server: &Contender, scene: Scene, path: &str, time: Duration) -> (Run, f64) {
    let watch = Watch::start(&server.pids);
    let ask = ask(server, scene.protocol, path);
    let found = h2load::saturate(&ask, scene.connections, time).await;
    let spent = watch.spent(found.answered);
    let run = Run {
        cpu: spent.server,
        per_second: found.per_second,
        failed: found.failed,
    };
    (run, spent.foreign)
}

/// At half of what the slowest of those reaches that the aims are about.
async fn tails(scale: &Scale, servers: &[Contender], rows: &[Row]) -> Vec<Tail> {
    let half_busy = rows
        .iter()
        .filter(|row| row.scene == BASE && HALF_BUSY.contains(&row.kind));
    let saturation = half_busy.map(|row| row.runs.of(|run| run.per_second).median());
    let (least, _) = saturation.collect::<Figures>().extremes();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rate = (least / 200.0) as u32 * 100;
    let servers = servers
        .iter()
        .filter(|server| HALF_BUSY.contains(&server.kind));
    let tail = |server: &Contender| Tail {
        kind: server.kind,
        rate,
        runs: Rounds::default(),
    };
    let mut tails: Vec<_> = servers.clone().map(tail).collect();
    let progress = Progress::of(tails.len() * scale.rounds as usize);
    for round in 1..=scale.rounds {
        for (tail, server) in tails.iter_mut().zip(servers.clone()) {
            progress.step(format_args!(
                "{}, {rate} a second, round {round}",
                tail.kind
            ));
            let bystander = Bystander::start();
            let path = BASE.path();
            let pace = Pace { rate, ..scale.pace };
            let paced = h2load::pace(&ask(server, BASE.protocol, &path), pace).await;
            tail.runs.add((paced, bystander.foreign()));
        }
    }
    tails
}

/// The CPU time of a request that no cache answers, in microseconds: with the filter, and without.
async fn passes(scale: &Scale, servers: &[Contender]) -> [Figures; 2] {
    let mut passes = [Rounds::default(), Rounds::default()];
    for _ in 0..scale.rounds {
        for (rounds, kind) in passes.iter_mut().zip([OURS, Kind::Bare]) {
            rounds.add(measure(of(servers, kind), BASE, PRIVATE, scale.time).await);
        }
    }
    passes.map(|rounds| rounds.of(|run| run.cpu))
}

const COLUMNS: &str = "hits | scene | us CPU | by round | a second | by round | ";
const TAIL_COLUMNS: &str = "ms at half | a second | p50 | p90 | p99 | p99.9 | max | ";

impl Row {
    fn cells(&self) -> Vec<String> {
        let (cpu, many) = (
            self.runs.of(|run| run.cpu),
            self.runs.of(|run| run.per_second),
        );
        vec![
            self.kind.to_string(),
            self.scene.to_string(),
            format!("{:.1}", cpu.median()),
            cpu.range(whole),
            whole(many.median()),
            many.range(whole),
            remark(self.runs.sum(|run| run.failed), "failed"),
        ]
    }
}

impl Tail {
    fn at(&self, percentile: f64) -> Figures {
        self.runs.of(|paced| paced.times.percentile(percentile))
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.kind.to_string(), self.rate.to_string()];
        cells.extend(
            [50.0, 90.0, 99.0, 99.9, 100.0].map(|percentile| ms(self.at(percentile).median())),
        );
        cells.push(remark(self.runs.sum(|paced| paced.failed), "failed"));
        cells
    }
}

impl Found {
    /// A figure of a contender, round by round, for hits of 10,000 bytes.
    fn of(&self, kind: Kind, figure: fn(&Run) -> f64) -> Figures {
        let mut rows = self.rows.iter();
        let row = rows.find(|row| row.scene == BASE && row.kind == kind);
        row.map(|row| row.runs.of(figure)).unwrap_or_default()
    }

    fn tail(&self, kind: Kind, percentile: f64) -> Figures {
        let tail = self.tails.iter().find(|tail| tail.kind == kind);
        tail.map(|tail| tail.at(percentile)).unwrap_or_default()
    }

    /// What is to be reached, for hits of 10,000 bytes.
    fn goals(&self) -> Vec<Goal> {
        let memory = Kind::BareMemory;
        let ratio = |what: &str, aim, ours: (Kind, Figures), theirs: (Kind, Figures)| Goal {
            what: format!("{what}, {} / {}", ours.0, theirs.0),
            aim,
            unit: "x",
            figures: ours.1.with(&theirs.1, |our, their| our / their),
        };
        let cpu = |kind| (kind, self.of(kind, |run| run.cpu));
        let many = |kind| (kind, self.of(kind, |run| run.per_second));
        let mut goals = vec![
            ratio("CPU per hit", Aim::AtMost(0.95), cpu(OURS), cpu(memory)),
            ratio("CPU per hit", Aim::AtMost(1.5), cpu(OURS), cpu(NGINX)),
            ratio("hits a second", Aim::AtLeast(1.0), many(OURS), many(memory)),
        ];
        for (name, percentile) in [("p99 at half", 99.0), ("p99.9 at half", 99.9)] {
            let tail = |kind| (kind, self.tail(kind, percentile));
            goals.push(ratio(name, Aim::AtMost(1.0), tail(OURS), tail(memory)));
            goals.push(ratio(name, Aim::AtMost(1.2), tail(OURS), tail(NGINX)));
        }
        goals.push(ratio(
            "CPU per hit",
            Aim::AtMost(1.05),
            cpu(Kind::SluiceCold),
            cpu(Kind::Bare),
        ));
        let [ours, bare] = &self.passes;
        goals.push(Goal {
            what: "CPU of a request that passes, with the filter less without".to_owned(),
            aim: Aim::AtMost(6.0),
            unit: " us",
            figures: ours.with(bare, |our, bare| our - bare),
        });
        goals
    }

    /// What a hit costs, ours and the others'.
    fn findings(&self) -> Vec<String> {
        let mut findings = Conclusions::default();
        for (what, figure) in [
            ("CPU time of a hit", (|run| run.cpu) as fn(&Run) -> f64),
            ("time from one hit to the next at saturation", |run| {
                run.per_second.recip()
            }),
        ] {
            let peers = DRAWN
                .into_iter()
                .chain([Kind::Bare])
                .filter(|kind| *kind != OURS);
            for theirs in peers {
                findings.compare(
                    what,
                    (OURS, self.of(OURS, figure)),
                    (theirs, self.of(theirs, figure)),
                );
            }
        }
        findings.all()
    }
}

fn report(found: &Found, scale: &Scale, before: f64) -> Report {
    let times = found.tails.iter().flat_map(|tail| {
        tail.runs
            .distributions(&format!("{}, {} a second", tail.kind, tail.rate), |paced| {
                &paced.times
            })
    });
    Report {
        title: "Hits".to_owned(),
        about: format!(
            "{} contenders in turn, {} rounds of {} ms for each scene, {WORKERS} workers\n{}",
            scale.kinds.len(),
            scale.rounds,
            scale.time.as_millis(),
            machine::described(before, found.rows.iter().flat_map(|row| row.runs.foreign())),
        ),
        tables: vec![
            aim::table(&found.goals()),
            Table::new(TAIL_COLUMNS, found.tails.iter().map(Tail::cells)),
            Table::new(COLUMNS, found.rows.iter().map(Row::cells)),
        ],
        findings: found.findings(),
        pictures: pictures(found),
        distributions: times.collect(),
    }
}

fn pictures(found: &Found) -> Vec<(String, String)> {
    let cpu = DRAWN.map(|kind| (kind.to_string(), found.of(kind, |run| run.cpu).median()));
    let times = found.tails.iter().map(|tail| {
        (
            tail.kind.to_string(),
            tail.runs.iter().map(|paced| &paced.times).collect(),
        )
    });
    let rate = found.tails.first().map_or(0, |tail| tail.rate);
    let title = format!("How long a hit takes, {rate} a second: half of what all of them carry");
    let mut pictures = vec![
        (
            "cpu".to_owned(),
            bars("CPU time of a hit of 10,000 bytes", "us", cpu),
        ),
        ("times".to_owned(), by_percentile(title, times)),
    ];
    pictures.extend(grown(found));
    pictures
}

/// What grows with the size and with the number of connections, where more than one was measured.
#[allow(clippy::cast_precision_loss)]
fn grown(found: &Found) -> Vec<(String, String)> {
    let http1 = |row: &Row| row.scene.protocol == Protocol::Http1;
    let sizes = lines(
        found,
        |row| http1(row) && row.scene.connections == BASE.connections,
        |row| (row.scene.bytes as f64, row.runs.of(|run| run.cpu).median()),
    );
    let connections = lines(
        found,
        |row| http1(row) && row.scene.bytes == BASE.bytes,
        |row| {
            (
                f64::from(row.scene.connections),
                row.runs.of(|run| run.per_second).median(),
            )
        },
    );
    let by_size = Picture {
        title: "CPU time of a hit by its size, HTTP/1.1 on 32 connections".to_owned(),
        x: ("bytes", Axis::Log),
        y: ("us", Axis::Log),
        lines: sizes,
    };
    let by_connections = Picture {
        title: "Hits of 10,000 bytes a second by the number of connections, HTTP/1.1".to_owned(),
        x: ("connections", Axis::Log),
        y: ("a second", Axis::Linear),
        lines: connections,
    };
    let named = [("sizes", by_size), ("connections", by_connections)].into_iter();
    let grown = named.filter(|(_, picture)| picture.lines.iter().any(|line| line.points.len() > 1));
    grown
        .map(|(name, picture)| (name.to_owned(), picture.draw()))
        .collect()
}

/// A line for each contender that is drawn, through those of its rows that `among` chooses.
fn lines(
    found: &Found,
    among: impl Fn(&Row) -> bool,
    point: impl Fn(&Row) -> (f64, f64),
) -> Vec<Line> {
    let line = |kind: Kind| {
        let rows = found
            .rows
            .iter()
            .filter(|row| row.kind == kind && among(row));
        let mut points: Vec<_> = rows.map(&point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Line {
            name: kind.to_string(),
            points,
        }
    };
    let lines = DRAWN.into_iter().map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}
