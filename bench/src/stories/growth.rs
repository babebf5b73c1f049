// SPDX-License-Identifier: Apache-2.0
//! Growth: what a hit costs, and how much memory there is, by how many objects are stored, how many fills are under way
//! and how many rules the policy has. Each should be flat.

use crate::contenders::cache::{Cache, WORKERS};
use crate::figures::aim::{self, Aim, Figure, Round};
use crate::figures::conclusions::{Conclusions, Ratio};
use crate::figures::sample::{Sample, extremes};
use crate::load::h2load::{self, Ask, Protocol};
use crate::machine;
use crate::machine::spent::Watch;
use crate::machine::usage::{Bystander, Meter};
use crate::origins::objects;
use crate::progress::Progress;
use crate::report;
use crate::report::plot::{self, Curve};
use serde_json::{Value, json};
use sluice_tests::client;
use sluice_tests::edge::Edge;
use sluice_tests::gate::Gate;
use sluice_tests::http2::Http2;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::process;
use std::fmt;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const BYTES: usize = 1_000;
/// What is asked for while something else grows.
const PATH: &str = "/last/o.bin";
/// Requests under way on a connection that asks for each path once.
const STREAMS: u32 = 16;
/// As many as an edge lets a client have on a connection.
const STREAMS_HELD: usize = 100;
/// As many connections as an edge has to its origin at most: what is more waits for one.
const AT_ORIGIN: usize = 4_096;
/// How many paths h2load is given at a time.
const LIST: usize = 5_000;
/// What the process may take beyond what it is configured to hold, in MiB.
const SPARE_MIB: f64 = 64.0;
/// Requests that bring all tables and pools to their size before that.
const WARM_UP: usize = 2_000;

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growing {
    Objects,
    Once,
    InFlight,
    Rules,
}

impl fmt::Display for Growing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Objects => f.write_str("objects"),
            Self::Once => f.write_str("keys asked for once"),
            Self::InFlight => f.write_str("keys in flight"),
            Self::Rules => f.write_str("policy rules"),
        }
    }
}

/// How much is measured.
struct Scale {
    objects: &'static [usize],
    /// Different keys, each of which is asked for once.
    once: usize,
    in_flight: &'static [usize],
    rules: &'static [usize],
    rounds: usize,
    /// Of hits, for those that are asked for again and again.
    time: Duration,
    /// Requests of a round for those that are asked for by a list.
    listed: usize,
}

impl Scale {
    const fn new(quick: bool) -> Self {
        if quick {
            Self {
                objects: &[10, 1_000],
                once: 10_000,
                in_flight: &[1, 100],
                rules: &[1, 1_000],
                rounds: 1,
                time: Duration::from_millis(300),
                listed: 1_000,
            }
        } else {
            Self {
                objects: &[100, 1_000, 10_000, 100_000],
                once: 1_000_000,
                in_flight: &[1, 10, 100, 1_000, 10_000],
                rules: &[1, 10, 100, 1_000],
                rounds: 3,
                time: Duration::from_millis(1_000),
                listed: LIST,
            }
        }
    }
}

/// One round.
struct Run {
    /// CPU time for each hit, in microseconds.
    cpu: f64,
    /// What is resident, in MiB.
    memory: f64,
    foreign: f64,
}

/// All rounds of so many of what grows.
struct Row {
    growing: Growing,
    count: usize,
    runs: Vec<Run>,
    filled: Option<Filled>,
}

/// How objects came into the cache.
#[derive(Clone, Copy)]
struct Filled {
    /// CPU time for each, in microseconds.
    cpu: f64,
    /// What was resident before, in MiB.
    before: f64,
    /// What was resident when all of them were there.
    after: f64,
    /// Requests that failed among the last that were sent: nothing more is measured then.
    failed: u64,
}

/// What the story has found.
struct Found {
    rows: Vec<Row>,
    /// From the start of the process to the first byte of an object, in seconds.
    starts: Vec<Round>,
}

pub async fn run(quick: bool) {
    if !h2load::is_there() {
        return;
    }
    let scale = Scale::new(quick);
    let before = machine::load();
    let origin = objects::of(BYTES).await;
    let mut rows = objects(&scale, &origin).await;
    rows.push(once(&scale, &origin).await);
    rows.extend(in_flight(&scale, &origin).await);
    rows.extend(rules(&scale, &origin).await);
    let mut starts = Vec::new();
    for _ in 0..scale.rounds {
        starts.push(start(&origin).await);
    }
    let found = Found { rows, starts };
    let text = tell(&found, &scale, before);
    report::keep_data("growth", &text, data(&found, quick));
}

/// Edges that have so many objects, each of which was asked for once; then a part of them again.
async fn objects(scale: &Scale, origin: &Origin) -> Vec<Row> {
    let mut edges = Vec::new();
    let mut progress = Progress::of(scale.objects.len());
    for &count in scale.objects {
        progress.step(format_args!("{count} objects are fetched"));
        // Few of them would be hot, and cheaper than many that are not.
        let edge = Edge::http(origin).env("HOT_BYTES", "0");
        let edge = Cache::sluice(edge.env("CACHE_MAX_ENTRIES", "1000000")).await;
        let (count, filled) = fill(&edge, count).await;
        let row = Row {
            growing: Growing::Objects,
            count,
            runs: Vec::new(),
            filled: Some(filled),
        };
        edges.push((edge, row));
    }
    for round in 0..scale.rounds {
        for (edge, row) in &mut edges {
            if row.is_whole() {
                row.runs
                    .push(again(edge, row.count, scale.listed, round).await);
            }
        }
    }
    edges.into_iter().map(|(_, row)| row).collect()
}

/// An edge that is asked once for each of so many keys, many more than it keeps.
async fn once(scale: &Scale, origin: &Origin) -> Row {
    eprintln!("{} keys, each once", scale.once);
    let edge = Cache::sluice(Edge::http(origin).env("HOT_BYTES", "0")).await;
    let warm: Vec<_> = (0..WARM_UP).map(|n| format!("/warm/{n}.bin")).collect();
    assert_eq!(each_once(&edge, &warm).await, 0);
    let (count, filled) = fill(&edge, scale.once).await;
    Row {
        growing: Growing::Once,
        count,
        runs: Vec::new(),
        filled: Some(filled),
    }
}

/// Asks once for each of so many objects, until some fail; how many it has asked for.
async fn fill(edge: &Cache, count: usize) -> (usize, Filled) {
    let before = resident_mib(edge);
    let meter = Meter::start(&[edge.pid]);
    let paths: Vec<_> = (0..count).map(object).collect();
    let (mut asked, mut failed) = (0, 0);
    for paths in paths.chunks(LIST) {
        failed = each_once(edge, paths).await;
        asked += paths.len();
        if failed > 0 {
            break;
        }
    }
    let taken = meter.taken().expect("a server that runs");
    let cpu = taken.cpu_us(asked as u64);
    let filled = Filled {
        cpu,
        before,
        after: resident_mib(edge),
        failed,
    };
    (asked, filled)
}

/// Asks again for `listed` of so many objects, from all over what there is; other ones in each round.
async fn again(edge: &Cache, count: usize, listed: usize, round: usize) -> Run {
    let apart = (count / listed).max(1);
    let chosen = (0..listed).map(|n| object((n * apart + round) % count));
    let chosen: Vec<_> = chosen.collect();
    let watch = Watch::start(edge.pid);
    assert_eq!(each_once(edge, &chosen).await, 0);
    let spent = watch.spent(chosen.len() as u64);
    Run {
        cpu: spent.server,
        memory: resident_mib(edge),
        foreign: spent.foreign,
    }
}

fn object(number: usize) -> String {
    format!("/objects/{number}.bin")
}

/// On a connection for each worker; how many failed.
async fn each_once(edge: &Cache, paths: &[String]) -> u64 {
    let ask = ask(edge, Protocol::Http2 { streams: STREAMS });
    let (one, other) = paths.split_at(paths.len() / WORKERS);
    let (one, other) = tokio::join!(h2load::each_once(&ask, one), h2load::each_once(&ask, other));
    paths.len() as u64 - one.answered - other.answered
}

fn ask(edge: &Cache, protocol: Protocol) -> Ask<'static> {
    Ask {
        address: edge.address,
        tls: false,
        protocol,
        path: PATH,
    }
}

fn resident_mib(edge: &Cache) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let kib = process::resident_kib(edge.pid).expect("a server that runs") as f64;
    kib / 1024.0
}

/// Hits of one object.
async fn hits(edge: &Cache, time: Duration) -> Run {
    let watch = Watch::start(edge.pid);
    let found = h2load::saturate(&ask(edge, Protocol::Http1), 32, time).await;
    assert_eq!(found.failed, 0);
    let spent = watch.spent(found.answered);
    Run {
        cpu: spent.server,
        memory: resident_mib(edge),
        foreign: spent.foreign,
    }
}

/// Hits while the origin holds its answers to so many requests for other keys.
async fn in_flight(scale: &Scale, origin: &Origin) -> Vec<Row> {
    let edge = Edge::http(origin).env("CACHE_MAX_OPEN_KEYS", "4194304");
    let edge = Cache::sluice(edge).await;
    hits(&edge, scale.time / 4).await;
    let row = |&count: &usize| Row {
        growing: Growing::InFlight,
        count,
        runs: Vec::new(),
        filled: None,
    };
    let mut rows: Vec<_> = scale.in_flight.iter().map(row).collect();
    let mut progress = Progress::of(rows.len() * scale.rounds);
    for round in 1..=scale.rounds {
        for row in &mut rows {
            let count = row.count;
            progress.step(format_args!("{count} keys in flight, round {round}"));
            let gate = Gate::new();
            let below = format!("/held/{count}/{round}/");
            let held = Reply::ok(BYTES).max_age(86_400).hold(&gate);
            origin.on(&format!("{below}*"), held);
            let mut flight = fly(&edge, &below, count).await;
            gate.wait_reached(count.min(AT_ORIGIN)).await;
            row.runs.push(hits(&edge, scale.time).await);
            gate.open();
            while let Some(status) = flight.join_next().await {
                assert_eq!(status.unwrap(), 200);
            }
        }
    }
    rows
}

/// Sends so many requests for different keys; their statuses come.
async fn fly(edge: &Cache, below: &str, count: usize) -> JoinSet<u16> {
    let mut flight = JoinSet::new();
    for first in (0..count).step_by(STREAMS_HELD) {
        let connection = Http2::connect(edge.address).await;
        let paths = first..count.min(first + STREAMS_HELD);
        let paths: Vec<_> = paths.map(|number| format!("{below}{number}")).collect();
        let connection = std::sync::Arc::new(connection);
        for path in paths {
            let connection = std::sync::Arc::clone(&connection);
            flight.spawn(async move { connection.get(&path).await.unwrap().0 });
        }
    }
    flight
}

/// Hits of what the last of so many rules is for.
async fn rules(scale: &Scale, origin: &Origin) -> Vec<Row> {
    let mut edges = Vec::new();
    for &count in scale.rules {
        let edge = Cache::sluice(Edge::http(origin).policy(&policy(count))).await;
        hits(&edge, scale.time / 4).await;
        let row = Row {
            growing: Growing::Rules,
            count,
            runs: Vec::new(),
            filled: None,
        };
        edges.push((edge, row));
    }
    for round in 1..=scale.rounds {
        eprintln!("rules, round {round} of {}", scale.rounds);
        for (edge, row) in &mut edges {
            row.runs.push(hits(edge, scale.time).await);
        }
    }
    edges.into_iter().map(|(_, row)| row).collect()
}

/// So many rules, the last of which is for [`PATH`].
fn policy(rules: usize) -> String {
    let mut text = "origin: {kind: http}\nrules:\n".to_owned();
    for number in 1..rules {
        let _ = writeln!(text, "- {{match: [\"/rule-{number}/*.html\"], ttl: 60s}}");
    }
    text + "- {match: [\"/last/*\"], ttl: 30d}\n"
}

/// From the start of the entry point to an object, in seconds.
async fn start(origin: &Origin) -> Round {
    let (bystander, began) = (Bystander::start(), Instant::now());
    let edge = Cache::sluice(Edge::http(origin)).await;
    let answer = client::get(edge.address, PATH).await;
    let took = began.elapsed().as_secs_f64();
    assert_eq!(answer.status, 200, "{answer}");
    (took, bystander.foreign())
}

impl Row {
    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        Sample::of(self.runs.iter().map(figure)).median()
    }

    /// What was resident, in MiB: when objects were there that had been asked for once, else in the first round. Then
    /// there had not been more of it yet, and Envoy gives little back.
    fn memory(&self) -> f64 {
        let first = self.runs.first().map(|run| run.memory);
        let memory = self.filled.map(|filled| filled.after).or(first);
        memory.unwrap_or(f64::NAN)
    }

    /// Whether nothing failed when it was filled.
    fn is_whole(&self) -> bool {
        self.filled.is_none_or(|filled| filled.failed == 0)
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.growing.to_string(), self.count.to_string()];
        let fill = self.filled.map(|filled| format!("{:.0}", filled.cpu));
        let fill = fill.unwrap_or_default();
        if let Some(Filled {
            failed: failed @ 1..,
            ..
        }) = self.filled
        {
            cells.extend(["-", "-", &fill, "-"].map(str::to_owned));
            cells.push(format!("{failed} failed"));
            return cells;
        }
        let hits = if self.runs.is_empty() {
            ["-".to_owned(), "-".to_owned()]
        } else {
            let (least, most) = extremes(self.runs.iter().map(|run| run.cpu));
            let median = self.median(|run| run.cpu);
            [format!("{median:.1}"), format!("{least:.0}-{most:.0}")]
        };
        cells.extend(hits);
        cells.extend([fill, format!("{:.0}", self.memory()), String::new()]);
        cells
    }

    /// What the process has grown by for keys that were asked for once, and what it may.
    fn growth(&self) -> Option<Figure> {
        if self.growing != Growing::Once {
            return None;
        }
        Some(Figure {
            what: format!("growth by {} {}", self.count, self.growing),
            aim: Aim::AtMost(SPARE_MIB),
            unit: " MiB",
            // What others do on the machine does not change it.
            rounds: vec![(self.grown()?, 0.0)],
        })
    }

    /// How much larger the process has become since it had fetched nothing, in MiB.
    fn grown(&self) -> Option<f64> {
        let filled = self.filled.filter(|_| self.is_whole())?;
        Some(self.memory() - filled.before)
    }
}

impl Found {
    /// What grows and is compared, in the order in which it was measured.
    fn growing(&self) -> Vec<Growing> {
        let mut growing: Vec<_> = self.rows.iter().map(|row| row.growing).collect();
        growing.dedup();
        growing.retain(|growing| *growing != Growing::Once);
        growing
    }

    /// All of it that was measured to its end.
    fn of(&self, growing: Growing) -> impl Iterator<Item = &Row> {
        let of_it = self.rows.iter().filter(move |row| row.growing == growing);
        of_it.filter(|row| row.is_whole())
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = vec![Figure {
            what: "start-up to the first byte of an object".to_owned(),
            aim: Aim::AtMost(1.5),
            unit: " s",
            rounds: self.starts.clone(),
        }];
        figures.extend(self.rows.iter().filter_map(Row::growth));
        figures
    }

    fn findings(&self) -> Vec<String> {
        let mut findings = Conclusions::default();
        for growing in self.growing() {
            let (Some(few), Some(many)) = (self.of(growing).next(), self.of(growing).last()) else {
                continue;
            };
            let rounds = |row: &Row| {
                let runs = row.runs.iter().map(|run| (run.cpu, run.foreign));
                runs.collect::<Vec<_>>()
            };
            findings.compare(&Ratio {
                what: &format!("CPU time of a hit by {growing}"),
                ours: (&few.count.to_string(), &rounds(few)),
                theirs: (&many.count.to_string(), &rounds(many)),
            });
        }
        for row in &self.rows {
            let (growing, count) = (row.growing, row.count);
            if let Some(Filled {
                failed: failed @ 1..,
                ..
            }) = row.filled
            {
                findings.say(format!(
                    "{growing}: {failed} requests failed when about {count} keys had been asked for."
                ));
            }
        }
        findings.all()
    }
}

const COLUMNS: [&str; 7] = [
    "growth",
    "of them",
    "us CPU a hit",
    "by round",
    "us CPU a fill",
    "MiB",
    "",
];

fn tell(found: &Found, scale: &Scale, before: f64) -> String {
    let runs = found.rows.iter().flat_map(|row| &row.runs);
    let foreign = Sample::of(runs.map(|run| run.foreign)).median();
    let head = format!(
        "Growth: hits of {BYTES} bytes, {} rounds, in turn, {WORKERS} workers\n{}",
        scale.rounds,
        machine::described(before, Some(foreign)),
    );
    let head = format!("{head}\n\n{}", aim::text(&found.figures()));
    let rows: Vec<_> = found.rows.iter().map(Row::cells).collect();
    report::text(&head, &COLUMNS, &rows, &found.findings())
}

#[allow(clippy::cast_precision_loss)]
fn plots(found: &Found) -> Vec<String> {
    let curve = |growing: Growing, name: String, figure: &dyn Fn(&Row) -> Option<f64>| Curve {
        name,
        points: found
            .of(growing)
            .filter_map(|row| Some((row.count as f64, figure(row)?)))
            .collect(),
    };
    let by = |figure: fn(&Row) -> f64| {
        let of = |growing: &Growing| curve(*growing, growing.to_string(), &|row| Some(figure(row)));
        found.growing().iter().map(of).collect::<Vec<_>>()
    };
    let times = by(|row| row.median(|run| run.cpu));
    let fill = |row: &Row| row.filled.map(|filled| filled.cpu);
    let fills = curve(Growing::Objects, Growing::Objects.to_string(), &fill);
    let linear = |y| (y, plot::Scale::Linear);
    vec![
        plot::growth(
            "CPU time of a hit",
            "how many there are",
            linear("microseconds"),
            &times,
        ),
        plot::growth(
            "CPU time of a fill",
            "how many there are",
            linear("microseconds"),
            &[fills],
        ),
        plot::growth(
            "Resident memory",
            "how many there are",
            linear("MiB"),
            &by(Row::memory),
        ),
    ]
}

fn data(found: &Found, quick: bool) -> Value {
    let row = |row: &Row| {
        let run = |run: &Run| json!({"cpu_us_per_request": run.cpu, "resident_mib": run.memory, "foreign": run.foreign});
        json!({
            "growing": row.growing.to_string(), "count": row.count,
            "cpu_us_per_fill": row.filled.map(|filled| filled.cpu), "grown_mib": row.grown(),
            "runs": row.runs.iter().map(run).collect::<Vec<_>>(),
        })
    };
    json!({
        "quick": quick, "columns": COLUMNS, "table": found.rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "tables": [aim::table(&found.figures())],
        "findings": found.findings(), "plots": plots(found), "start_seconds": found.starts,
        "growth": found.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_so_many_rules_is_for_what_is_asked_for() {
        for count in [1, 10] {
            let policy = policy(count);
            assert_eq!(policy.matches("match:").count(), count);
            assert!(
                policy.ends_with("- {match: [\"/last/*\"], ttl: 30d}\n"),
                "{policy}"
            );
        }
    }
}
