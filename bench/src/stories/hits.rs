// SPDX-License-Identifier: Apache-2.0
//! Hits: what an object costs that is there, how many of them there are in a second, and how long they take when the
//! server is half busy.

use crate::contenders::cache::{Cache, Kind, WORKERS};
use crate::figures::aim::{self, Aim, Figure, Round};
use crate::figures::conclusions::{Conclusions, Ratio};
use crate::figures::distribution::{Distribution, PERCENTILES};
use crate::figures::sample::{Sample, extremes};
use crate::load::h2load::{self, Ask, Pace, Paced, Protocol};
use crate::machine;
use crate::machine::spent::Watch;
use crate::machine::usage::Bystander;
use crate::progress::Progress;
use crate::report;
use crate::report::plot::{self, Curve};
use crate::report::table;
use serde_json::{Value, json};
use sluice_tests::matrix::{Medium, Store, Version};
use sluice_tests::origin::{Origin, Reply};
use std::fmt;
use std::time::Duration;

/// Never stored: what passes the caches.
const PRIVATE: &str = "/private.bin";
/// What the aims are about: Sluice with its bounded cache on a disk.
const OURS: Kind = Kind::Sluice(Medium::Disk);
/// The same without copies of hot objects, and without the filter.
const COLD: Kind = Kind::Cold(Medium::Disk);
const BARE: Kind = Kind::Bare(Store::V1_DISK);
/// Envoy's own memory caches, the better of which is to be reached.
const MEMORY: [Kind; 2] = [Kind::BareMemory(Version::V1), Kind::BareMemory(Version::V2)];
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
    foreign: f64,
}

/// All rounds of one contender in one scene.
struct Row {
    scene: Scene,
    kind: Kind,
    runs: Vec<Run>,
}

/// All rounds of one contender at the rate that is half of saturation.
struct Tail {
    kind: Kind,
    rate: u32,
    runs: Vec<(Paced, f64)>,
}

/// What the story has found.
struct Found {
    rows: Vec<Row>,
    tails: Vec<Tail>,
    /// What passes: ours, and Envoy without the filter.
    passes: [Vec<Round>; 2],
}

impl Scale {
    fn new(quick: bool) -> Self {
        let scene = |bytes, protocol, connections| Scene {
            bytes,
            protocol,
            connections,
        };
        let http2 = Protocol::Http2 { streams: STREAMS };
        let mut kinds = vec![Kind::Direct, Kind::Nginx, Kind::Varnish, Kind::Haproxy];
        kinds.extend(MEMORY);
        kinds.extend([BARE, COLD, OURS]);
        if !quick {
            kinds.extend([Kind::Bare(Store::V2_DISK), Kind::Sluice(Medium::Memory)]);
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

pub async fn run(quick: bool) {
    if !h2load::is_there() {
        return;
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
    let mut caches = Vec::new();
    for &kind in &scale.kinds {
        if let Some(cache) = kind.start(&origin, &scale.sizes()).await {
            caches.push((kind, cache));
        }
    }
    let rows = hits(&scale, &caches, &origin).await;
    let tails = tails(&scale, &caches, &rows).await;
    origin.forget_requests();
    let passes = passes(&scale, &caches).await;
    drop(caches);
    let found = Found {
        rows,
        tails,
        passes,
    };
    let text = tell(&found, &scale, before);
    let stem = report::keep_data("hits", &text, data(&found, quick));
    report::keep_distributions(&stem, &found.distributions());
}

async fn hits(scale: &Scale, caches: &[(Kind, Cache)], origin: &Origin) -> Vec<Row> {
    let mut rows = Vec::new();
    for &scene in &scale.scenes {
        for (kind, cache) in caches {
            if *kind == Kind::Direct || warm(cache, scene, origin).await {
                let (kind, runs) = (*kind, Vec::new());
                rows.push(Row { scene, kind, runs });
            } else {
                eprintln!(
                    "not measured: {kind} stores nothing of {} bytes",
                    scene.bytes
                );
            }
        }
    }
    let mut progress = Progress::of(rows.len() * scale.rounds as usize);
    for round in 1..=scale.rounds {
        for row in &mut rows {
            progress.step(format_args!("{}, {}, round {round}", row.kind, row.scene));
            let (kind, cache) = caches.iter().find(|(kind, _)| *kind == row.kind).unwrap();
            let path = row.scene.path();
            let asked = origin.count(&path);
            row.runs
                .push(measure(cache, row.scene, &path, scale.time).await);
            let asked = origin.count(&path) - asked;
            assert_eq!(asked, 0, "of {kind} no hits were measured: {}", row.scene);
        }
    }
    rows
}

/// Asks on so many connections that each worker has some, and by the protocol of the scene: HAProxy's keys differ. Whether
/// the origin is not asked any more then.
async fn warm(cache: &Cache, scene: Scene, origin: &Origin) -> bool {
    let path = scene.path();
    let ask = ask(cache, scene.protocol, &path);
    h2load::each_once(&ask, std::slice::from_ref(&path)).await;
    h2load::saturate(&ask, 64, Duration::from_millis(60)).await;
    let asked = origin.count(&path);
    h2load::saturate(&ask, 8, Duration::from_millis(20)).await;
    origin.count(&path) == asked
}

fn ask<'a>(cache: &Cache, protocol: Protocol, path: &'a str) -> Ask<'a> {
    let address = match protocol {
        Protocol::Http1 => cache.address,
        Protocol::Http2 { .. } => cache.second,
    };
    Ask {
        address,
        tls: false,
        protocol,
        path,
    }
}

async fn measure(cache: &Cache, scene: Scene, path: &str, time: Duration) -> Run {
    let watch = Watch::start(cache.pid);
    let ask = ask(cache, scene.protocol, path);
    let found = h2load::saturate(&ask, scene.connections, time).await;
    let spent = watch.spent(found.answered);
    Run {
        cpu: spent.server,
        per_second: found.per_second,
        failed: found.failed,
        foreign: spent.foreign,
    }
}

/// At half of what the slowest of those reaches that the aims are about.
async fn tails(scale: &Scale, caches: &[(Kind, Cache)], rows: &[Row]) -> Vec<Tail> {
    let among = [&[OURS, Kind::Nginx, Kind::Varnish][..], &MEMORY].concat();
    let caches = || caches.iter().filter(|(kind, _)| among.contains(kind));
    let saturation = rows
        .iter()
        .filter(|row| row.scene == BASE && among.contains(&row.kind))
        .map(|row| row.median(|run| run.per_second));
    let (least, _) = extremes(saturation);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rate = (least / 200.0) as u32 * 100;
    let tail = |(kind, _): &(Kind, Cache)| Tail {
        kind: *kind,
        rate,
        runs: Vec::new(),
    };
    let mut tails: Vec<_> = caches().map(tail).collect();
    let mut progress = Progress::of(tails.len() * scale.rounds as usize);
    for round in 1..=scale.rounds {
        for (tail, (_, cache)) in tails.iter_mut().zip(caches()) {
            progress.step(format_args!(
                "{}, {rate} a second, round {round}",
                tail.kind
            ));
            let bystander = Bystander::start();
            let path = BASE.path();
            let pace = Pace { rate, ..scale.pace };
            let paced = h2load::pace(&ask(cache, BASE.protocol, &path), pace).await;
            tail.runs.push((paced, bystander.foreign()));
        }
    }
    tails
}

/// The CPU time of a request that no cache answers, in microseconds: with the filter, and without.
async fn passes(scale: &Scale, caches: &[(Kind, Cache)]) -> [Vec<Round>; 2] {
    let mut passes = [Vec::new(), Vec::new()];
    for _ in 0..scale.rounds {
        for (rounds, wanted) in passes.iter_mut().zip([OURS, BARE]) {
            let (_, cache) = caches.iter().find(|(kind, _)| *kind == wanted).unwrap();
            let run = measure(cache, BASE, PRIVATE, scale.time).await;
            rounds.push((run.cpu, run.foreign));
        }
    }
    passes
}

impl Row {
    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        Sample::of(self.runs.iter().map(figure)).median()
    }

    fn rounds(&self, figure: impl Fn(&Run) -> f64) -> Vec<Round> {
        let runs = self.runs.iter();
        runs.map(|run| (figure(run), run.foreign)).collect()
    }

    fn cells(&self) -> Vec<String> {
        let range = |figure: fn(&Run) -> f64| {
            let (least, most) = extremes(self.runs.iter().map(figure));
            format!("{least:.0}-{most:.0}")
        };
        let failed: u64 = self.runs.iter().map(|run| run.failed).sum();
        vec![
            self.kind.to_string(),
            self.scene.to_string(),
            format!("{:.1}", self.median(|run| run.cpu)),
            range(|run| run.cpu),
            format!("{:.0}", self.median(|run| run.per_second)),
            range(|run| run.per_second),
            if failed == 0 {
                String::new()
            } else {
                format!("{failed} failed")
            },
        ]
    }
}

impl Tail {
    fn rounds(&self, part: f64) -> Vec<Round> {
        let runs = self.runs.iter();
        runs.map(|(paced, foreign)| (paced.times.percentile(part), *foreign))
            .collect()
    }

    fn cells(&self) -> Vec<String> {
        let at = |part: f64| {
            let rounds = self.rounds(part).into_iter().map(|round| round.0);
            table::ms(Sample::of(rounds).median())
        };
        let failed: u64 = self.runs.iter().map(|(paced, _)| paced.failed).sum();
        let quantiles = [50.0, 90.0, 99.0, 99.9, 100.0].map(at);
        let mut cells = vec![self.kind.to_string(), self.rate.to_string()];
        cells.extend(quantiles);
        cells.push(if failed == 0 {
            String::new()
        } else {
            format!("{failed} failed")
        });
        cells
    }
}

impl Found {
    /// A figure of a contender in a scene, round by round; nothing where it was not measured.
    fn of(&self, scene: Scene, kind: Kind, figure: fn(&Run) -> f64) -> Vec<Round> {
        let mut rows = self.rows.iter();
        let row = rows.find(|row| row.scene == scene && row.kind == kind);
        row.map(|row| row.rounds(figure)).unwrap_or_default()
    }

    fn tail(&self, kind: Kind, part: f64) -> Vec<Round> {
        let tail = self.tails.iter().find(|tail| tail.kind == kind);
        tail.map(|tail| tail.rounds(part)).unwrap_or_default()
    }

    /// Each by its contender and round.
    fn distributions(&self) -> Vec<(String, &Distribution)> {
        let runs = self.tails.iter().flat_map(|tail| {
            let runs = tail.runs.iter().zip(1..);
            runs.map(move |((paced, _), round)| {
                let name = format!("{}, {} a second, round {round}", tail.kind, tail.rate);
                (name, &paced.times)
            })
        });
        runs.collect()
    }

    /// The one of Envoy's memory caches that takes less CPU time.
    fn better_memory(&self) -> Kind {
        let median =
            |kind| Sample::of(self.of(BASE, kind, |run| run.cpu).iter().map(|r| r.0)).median();
        let [one, other] = MEMORY;
        if median(one) <= median(other) {
            one
        } else {
            other
        }
    }

    /// What is to be reached, for hits of 10,000 bytes.
    fn figures(&self) -> Vec<Figure> {
        let memory = self.better_memory();
        let cpu = |kind| self.of(BASE, kind, |run| run.cpu);
        let ratio = |what: &str,
                     aim,
                     (ours, our): (Kind, &[Round]),
                     (theirs, their): (Kind, &[Round])| Figure {
            what: format!("{what}, {ours} / {theirs}"),
            aim,
            unit: "x",
            rounds: aim::ratios(our, their),
        };
        let cost = |aim, ours, theirs| {
            ratio(
                "CPU per hit",
                aim,
                (ours, &cpu(ours)),
                (theirs, &cpu(theirs)),
            )
        };
        let tail = |name: &str, part, aim, theirs| {
            let (our, their) = (self.tail(OURS, part), self.tail(theirs, part));
            ratio(name, aim, (OURS, &our), (theirs, &their))
        };
        let many = |kind| self.of(BASE, kind, |run| run.per_second);
        let mut figures = vec![
            cost(Aim::AtMost(0.95), OURS, memory),
            cost(Aim::AtMost(1.5), OURS, Kind::Nginx),
            ratio(
                "hits a second",
                Aim::AtLeast(1.0),
                (OURS, &many(OURS)),
                (memory, &many(memory)),
            ),
        ];
        for (name, part) in [("p99 at half", 99.0), ("p99.9 at half", 99.9)] {
            figures.push(tail(name, part, Aim::AtMost(1.0), memory));
            figures.push(tail(name, part, Aim::AtMost(1.2), Kind::Nginx));
        }
        figures.push(cost(Aim::AtMost(1.05), COLD, BARE));
        let [ours, bare] = &self.passes;
        figures.push(Figure {
            what: "CPU of a request that passes, with the filter less without".to_owned(),
            aim: Aim::AtMost(6.0),
            unit: " us",
            rounds: aim::differences(ours, bare),
        });
        figures
    }

    /// What a hit costs, ours and the others'.
    fn findings(&self) -> Vec<String> {
        let mut findings = Conclusions::default();
        let [one, other] = MEMORY;
        let others = [
            Kind::Direct,
            Kind::Nginx,
            Kind::Varnish,
            Kind::Haproxy,
            one,
            other,
        ];
        for (what, figure) in [
            ("CPU time of a hit", (|run| run.cpu) as fn(&Run) -> f64),
            ("time from one hit to the next at saturation", |run| {
                run.per_second.recip()
            }),
        ] {
            for theirs in others.into_iter().chain([BARE]) {
                let (our, their) = (self.of(BASE, OURS, figure), self.of(BASE, theirs, figure));
                if !their.is_empty() {
                    findings.compare(&Ratio {
                        what,
                        ours: (&OURS.to_string(), &our),
                        theirs: (&theirs.to_string(), &their),
                    });
                }
            }
        }
        findings.all()
    }
}

const COLUMNS: [&str; 7] = [
    "hits", "scene", "us CPU", "by round", "a second", "by round", "",
];
const TAIL_COLUMNS: [&str; 8] = [
    "ms at half",
    "a second",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "",
];

fn tell(found: &Found, scale: &Scale, before: f64) -> String {
    let runs = found.rows.iter().flat_map(|row| &row.runs);
    let foreign = Sample::of(runs.map(|run| run.foreign)).median();
    let head = format!(
        "Hits: {} contenders in turn, {} rounds of {} ms for each scene, {WORKERS} workers\n{}",
        scale.kinds.len(),
        scale.rounds,
        scale.time.as_millis(),
        machine::described(before, Some(foreign)),
    );
    let tails: Vec<_> = found.tails.iter().map(Tail::cells).collect();
    let rows: Vec<_> = found.rows.iter().map(Row::cells).collect();
    let head = format!(
        "{head}\n\n{}\n\n{}",
        aim::text(&found.figures()),
        table::render(&TAIL_COLUMNS, &tails)
    );
    report::text(&head, &COLUMNS, &rows, &found.findings())
}

/// Curves of a figure, a contender each, over what `at` says of a scene, for those scenes that `among` chooses.
fn curves(
    found: &Found,
    among: impl Fn(&Scene) -> bool,
    at: fn(&Scene) -> f64,
    figure: fn(&Run) -> f64,
) -> Vec<Curve> {
    let mut kinds: Vec<_> = found.rows.iter().map(|row| row.kind).collect();
    kinds.dedup();
    kinds.sort_by_key(ToString::to_string);
    kinds.dedup();
    let curve = |kind: &Kind| {
        let rows = found
            .rows
            .iter()
            .filter(|row| row.kind == *kind && among(&row.scene));
        let mut points: Vec<_> = rows
            .map(|row| (at(&row.scene), row.median(figure)))
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Curve {
            name: kind.to_string(),
            points,
        }
    };
    kinds.iter().map(curve).collect()
}

/// Those of more than one scene, which lie on lines.
#[allow(clippy::cast_precision_loss)]
fn plots(found: &Found) -> Vec<String> {
    let http1 = |scene: &Scene| scene.protocol == Protocol::Http1;
    let sizes = curves(
        found,
        |scene| http1(scene) && scene.connections == BASE.connections,
        |scene| scene.bytes as f64,
        |run| run.cpu,
    );
    let connections = curves(
        found,
        |scene| http1(scene) && scene.bytes == BASE.bytes,
        |scene| f64::from(scene.connections),
        |run| run.per_second,
    );
    let lines = |curves: &[Curve]| curves.iter().any(|curve| curve.points.len() > 1);
    let mut plots = Vec::new();
    if lines(&sizes) {
        let title = "CPU time of a hit, HTTP/1.1 on 32 connections";
        let y = ("microseconds", plot::Scale::Log);
        plots.push(plot::growth(title, "bytes", y, &sizes));
    }
    if lines(&connections) {
        let title = "Hits of 10,000 bytes a second, HTTP/1.1";
        let y = ("hits a second", plot::Scale::Linear);
        plots.push(plot::growth(title, "connections", y, &connections));
    }
    plots
}

fn data(found: &Found, quick: bool) -> Value {
    let row = |row: &Row| {
        let run = |run: &Run| {
            json!({
                "cpu_us_per_request": run.cpu, "hits_per_second": run.per_second, "failed": run.failed,
                "foreign": run.foreign,
            })
        };
        let runs: Vec<_> = row.runs.iter().map(run).collect();
        json!({"contender": row.kind.to_string(), "scene": row.scene.to_string(), "runs": runs})
    };
    let tail = |tail: &Tail| {
        let run = |(paced, foreign): &(Paced, f64)| {
            json!({
                "latency": {"percentiles": PERCENTILES, "sent": paced.times.curve()}, "requests": paced.sent,
                "failed": paced.failed, "foreign": foreign,
            })
        };
        let runs: Vec<_> = tail.runs.iter().map(run).collect();
        json!({"contender": tail.kind.to_string(), "rate": tail.rate, "runs": runs})
    };
    let tails: Vec<_> = found.tails.iter().map(Tail::cells).collect();
    json!({
        "quick": quick, "columns": COLUMNS, "table": found.rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "tables": [aim::table(&found.figures()), {"columns": TAIL_COLUMNS, "rows": tails}],
        "findings": found.findings(), "plots": plots(found),
        "rows": found.tails.iter().map(tail).collect::<Vec<_>>(),
        "hits": found.rows.iter().map(row).collect::<Vec<_>>(),
    })
}
