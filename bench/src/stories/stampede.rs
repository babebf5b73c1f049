// SPDX-License-Identifier: Apache-2.0
//! The stampede: many clients at one key, in the situations in which it goes wrong.

use crate::contenders::contender::Contender;
use crate::figures::conclusions::{Conclusions, Ratio};
use crate::figures::distribution::{Distribution, PERCENTILES};
use crate::figures::sample::{Sample, extremes};
use crate::machine;
use crate::machine::usage::{Bystander, Meter, Taken};
use crate::progress::Progress;
use crate::report;
use crate::report::table;
use serde_json::{Value, json};
use sluice_tests::client::{Client, Failure, Response, request};
use sluice_tests::origin::{Origin, Reply};
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

const SIZE: usize = 10_000;
/// How long the origin takes for an answer.
const ORIGIN: Duration = Duration::from_millis(100);
/// How long clients that come again and again rest in between.
const REST: Duration = Duration::from_millis(10);

/// Ours as it comes.
const FOREMOST: &str = "sluice disk";
const PEERS: [&str; 3] = ["nginx", "varnish", "bare Envoy v1-disk"];
const CPU_REASON: &str = "Envoy by itself takes more for a request than they do (the row of the bare Envoy); with Sluice a Wasm filter is in \
     each, and on a miss a second listener.";
const MEMORY_REASON: &str = "Envoy's code and tables are larger, and each worker and the main thread have a virtual machine \
     with the filter in it.";

/// A situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    /// So many clients at once, nothing stored.
    Cold(usize),
    /// An object that is fresh for a second, under load.
    Expiring,
    /// The origin says `private`: nobody has anything of waiting.
    Uncacheable,
    /// The body comes in pieces over half a second.
    SlowLeader,
    /// The origin answers 500 throughout.
    Failing,
    /// The first client leaves before its answer.
    LeaderLeaves,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold(clients) => write!(f, "cold, {clients} clients"),
            Self::Expiring => f.write_str("expiring"),
            Self::Uncacheable => f.write_str("uncacheable"),
            Self::SlowLeader => f.write_str("slow leader"),
            Self::Failing => f.write_str("origin fails"),
            Self::LeaderLeaves => f.write_str("leader leaves"),
        }
    }
}

impl Scene {
    /// All; the last is one that not everyone survives.
    fn all(quick: bool) -> Vec<Self> {
        let crowds: &[usize] = if quick { &[100] } else { &[1, 10, 100, 1_000] };
        let cold = crowds.iter().copied().map(Self::Cold);
        let others = [
            Self::Expiring,
            Self::Uncacheable,
            Self::SlowLeader,
            Self::Failing,
            Self::LeaderLeaves,
        ];
        cold.chain(others).collect()
    }

    fn reply(self) -> Reply {
        let object = Reply::ok(SIZE).max_age(3_600).delay(ORIGIN);
        match self {
            Self::Cold(_) => object,
            Self::Expiring => Reply::ok(SIZE).max_age(1).etag("v1").delay(ORIGIN),
            Self::Uncacheable => Reply::ok(SIZE)
                .header("cache-control", "private")
                .delay(ORIGIN),
            Self::SlowLeader => {
                let pace = Duration::from_millis(50);
                Reply::ok(SIZE).max_age(3_600).pace(SIZE / 10, pace)
            }
            Self::Failing => Reply::status(500).delay(ORIGIN),
            Self::LeaderLeaves => object.delay(3 * ORIGIN),
        }
    }

    /// The status that is in order.
    const fn status(self) -> u16 {
        match self {
            Self::Failing => 500,
            _ => 200,
        }
    }
}

/// How much is measured.
struct Scale {
    rounds: usize,
    /// Clients where their number is not what is varied.
    crowd: usize,
    /// Clients that ask for one thing after the other.
    regulars: usize,
    /// How long they do where an object expires, and where the origin fails.
    expiring: Duration,
    failing: Duration,
}

impl Scale {
    const fn new(quick: bool) -> Self {
        if quick {
            return Self {
                rounds: 1,
                crowd: 20,
                regulars: 10,
                // An object that is fresh for a second expires once.
                expiring: Duration::from_millis(1_500),
                failing: Duration::from_millis(500),
            };
        }
        Self {
            rounds: 3,
            crowd: 50,
            regulars: 20,
            expiring: Duration::from_secs(3),
            failing: Duration::from_secs(10),
        }
    }
}

/// One scene with one contender.
struct Run {
    /// Requests that the origin got.
    fetches: usize,
    /// Requests that clients sent.
    requests: usize,
    /// Requests that were not answered as they should be.
    failed: usize,
    /// From asking to the end of the answer, in milliseconds.
    times: Sample,
    distribution: Distribution,
    /// What the server took; `None` where it has died, and of the origin itself.
    taken: Option<Taken>,
    /// The part of the machine that others took.
    foreign: f64,
}

struct Row {
    scene: Scene,
    name: String,
    sluice: bool,
    runs: Vec<Run>,
}

pub async fn run(quick: bool) {
    let scale = Scale::new(quick);
    let before = machine::load();
    let scenes = Scene::all(quick);
    let mut rows: Vec<Row> = Vec::new();
    let mut progress = Progress::of(scale.rounds * scenes.len());
    for round in 1..=scale.rounds {
        let origin = Origin::start().ready().await;
        // NB: anew in each round, as not everyone survives the last scene.
        let contenders = if quick {
            Contender::foremost(&origin).await
        } else {
            Contender::everyone(&origin).await
        };
        for &scene in &scenes {
            progress.step(format_args!("{scene}, round {round}"));
            for (at, contender) in contenders.iter().enumerate() {
                let target = format!(
                    "/{round}/{at}/{}",
                    scene.to_string().replace([' ', ','], "-")
                );
                origin.on(&target, scene.reply());
                let run = play(scene, contender, &origin, &target, &scale).await;
                let row = rows
                    .iter_mut()
                    .find(|row| row.scene == scene && row.name == contender.name);
                match row {
                    Some(row) => row.runs.push(run),
                    None => rows.push(Row {
                        scene,
                        name: contender.name.clone(),
                        sluice: contender.is_sluice(),
                        runs: vec![run],
                    }),
                }
            }
        }
    }
    let text = tell(&rows, &scale, before);
    let stem = report::keep_data("stampede", &text, data(&rows, quick));
    let named = rows.iter().flat_map(Row::distributions);
    report::keep_distributions(&stem, &named.collect::<Vec<_>>());
}

async fn play(
    scene: Scene,
    contender: &Contender,
    origin: &Origin,
    target: &str,
    scale: &Scale,
) -> Run {
    let (bystander, began) = (Bystander::start(), SystemTime::now());
    let meter = Meter::start(&contender.pids());
    let address = contender.address;
    let answers = match scene {
        Scene::Cold(clients) => at_once(address, target, clients).await,
        Scene::Uncacheable | Scene::SlowLeader => at_once(address, target, scale.crowd).await,
        Scene::Expiring => again_and_again(address, target, scale.regulars, scale.expiring).await,
        Scene::Failing => again_and_again(address, target, scale.regulars, scale.failing).await,
        Scene::LeaderLeaves => after_a_leader(address, origin, target, scale.crowd).await,
    };
    let right = |answer: &Answer| match &answer.response {
        Ok(response) => response.status == scene.status(),
        Err(_) => false,
    };
    let taken = meter.taken();
    let times: Vec<_> = answers
        .iter()
        .filter(|answer| right(answer))
        .map(|answer| answer.took)
        .collect();
    Run {
        fetches: origin.count(target),
        requests: answers.len(),
        failed: answers.iter().filter(|answer| !right(answer)).count(),
        distribution: Distribution::since(began, times.iter().copied()),
        times: Sample::new(times),
        taken,
        foreign: bystander.foreign(),
    }
}

/// What a client got, and how long it took.
struct Answer {
    response: Result<Response, Failure>,
    took: Duration,
}

async fn ask(client: &mut Client, target: &str) -> Answer {
    let asked = Instant::now();
    let response = client.try_exchange(request("GET", target, &[])).await;
    Answer {
        response,
        took: asked.elapsed(),
    }
}

/// Opens a connection and asks.
async fn come(address: SocketAddr, target: String) -> Answer {
    match Client::try_connect(address).await {
        Ok(mut client) => ask(&mut client, &target).await,
        Err(failure) => Answer {
            response: Err(failure),
            took: Duration::ZERO,
        },
    }
}

async fn at_once(address: SocketAddr, target: &str, clients: usize) -> Vec<Answer> {
    let mut asking = JoinSet::new();
    let mut connected = Vec::new();
    for _ in 0..clients {
        connected.push(Client::try_connect(address).await);
    }
    for client in connected {
        let target = target.to_owned();
        asking.spawn(async move {
            match client {
                Ok(mut client) => ask(&mut client, &target).await,
                Err(failure) => Answer {
                    response: Err(failure),
                    took: Duration::ZERO,
                },
            }
        });
    }
    asking.join_all().await
}

async fn again_and_again(
    address: SocketAddr,
    target: &str,
    clients: usize,
    span: Duration,
) -> Vec<Answer> {
    let until = Instant::now() + span;
    let mut asking = JoinSet::new();
    for _ in 0..clients {
        let target = target.to_owned();
        asking.spawn(async move {
            let mut answers = Vec::new();
            while Instant::now() < until {
                answers.push(come(address, target.clone()).await);
                tokio::time::sleep(REST).await;
            }
            answers
        });
    }
    asking.join_all().await.into_iter().flatten().collect()
}

async fn after_a_leader(
    address: SocketAddr,
    origin: &Origin,
    target: &str,
    clients: usize,
) -> Vec<Answer> {
    let Ok(mut leader) = Client::try_connect(address).await else {
        return at_once(address, target, clients).await;
    };
    let sent = leader.send(request("GET", target, &[])).await;
    if sent.is_ok() {
        origin.wait_for_requests(target, 1).await;
    }
    let crowd = at_once(address, target, clients);
    // The others are there by then, and the answer is not.
    let leaving = async {
        tokio::time::sleep(ORIGIN).await;
        leader.reset();
    };
    tokio::join!(crowd, leaving).0
}

impl Row {
    /// The longest time of each round, beside what others took of the machine.
    fn longest(&self) -> Vec<(f64, f64)> {
        let answered = self.runs.iter().filter(|run| !run.times.times().is_empty());
        answered.map(|run| (run.times.max(), run.foreign)).collect()
    }

    /// Those of each round, with their names.
    fn distributions(&self) -> Vec<(String, &Distribution)> {
        let (scene, name) = (self.scene, &self.name);
        let rounds = self.runs.iter().zip(1..);
        let named = rounds
            .map(|(run, round)| (format!("{scene}, {name}, round {round}"), &run.distribution));
        named.collect()
    }

    /// Microseconds of CPU time for each request, a round each; empty where a round has none.
    fn cpu(&self) -> Vec<(f64, f64)> {
        let figure = |run: &Run| Some((run.taken?.cpu_us(run.requests as u64), run.foreign));
        self.runs
            .iter()
            .map(figure)
            .collect::<Option<_>>()
            .unwrap_or_default()
    }

    /// The most MiB, a round each; empty where a round has none.
    fn memory(&self) -> Vec<(f64, f64)> {
        let figure = |run: &Run| Some((run.taken?.peak_mib, run.foreign));
        self.runs
            .iter()
            .map(figure)
            .collect::<Option<_>>()
            .unwrap_or_default()
    }

    fn fetches(&self) -> String {
        table::range(self.runs.iter().map(|run| run.fetches))
    }

    fn cells(&self) -> Vec<String> {
        let longest = Sample::of(self.longest().into_iter().map(|(time, _)| time));
        let all = Sample::pool(self.runs.iter().map(|run| &run.times));
        let time = |value: f64| table::ms(value);
        let (median, max, range) = if longest.times().is_empty() {
            ("-".to_owned(), "-".to_owned(), "-".to_owned())
        } else {
            let (least, most) = extremes(longest.times().iter().copied());
            let range = format!("{}-{}", time(least), time(most));
            (time(all.median()), time(longest.median()), range)
        };
        let failed: usize = self.runs.iter().map(|run| run.failed).sum();
        let asked: usize = self.runs.iter().map(|run| run.requests).sum();
        vec![
            self.scene.to_string(),
            self.name.clone(),
            (asked / self.runs.len()).to_string(),
            self.fetches(),
            median,
            max,
            range,
            median_of(&self.cpu()),
            median_of(&self.memory()),
            if failed == 0 {
                String::new()
            } else {
                failed.to_string()
            },
        ]
    }
}

const COLUMNS: [&str; 10] = [
    "ms",
    "",
    "requests",
    "origin",
    "p50",
    "max",
    "max by round",
    "us CPU",
    "MiB",
    "failed",
];

/// The median of a figure of each round, as a whole number.
fn median_of(rounds: &[(f64, f64)]) -> String {
    if rounds.is_empty() {
        return "-".to_owned();
    }
    let figures = Sample::of(rounds.iter().map(|(figure, _)| *figure));
    format!("{:.0}", figures.median())
}

fn tell(rows: &[Row], scale: &Scale, before: f64) -> String {
    let foreign = Sample::of(rows.iter().flat_map(|row| &row.runs).map(|run| run.foreign));
    let head = format!(
        "The stampede: {SIZE} bytes, an origin that takes {} ms, {} rounds, in turn\n\
         {} clients at once where not said, or {} that come again and again, for {} s where the origin fails and {} s \
         where an object expires; {}",
        ORIGIN.as_millis(),
        scale.rounds,
        scale.crowd,
        scale.regulars,
        scale.failing.as_secs_f64(),
        scale.expiring.as_secs_f64(),
        machine::described(before, Some(foreign.median())),
    );
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    report::text(&head, &COLUMNS, &cells, &findings(rows))
}

fn findings(rows: &[Row]) -> Vec<String> {
    let mut findings = Conclusions::default();
    for ours in rows.iter().filter(|row| row.sluice) {
        let failed: usize = ours.runs.iter().map(|run| run.failed).sum();
        if failed > 0 {
            findings.say(format!(
                "{}, {}: {failed} requests failed.",
                ours.scene, ours.name
            ));
        }
        let most = ours.runs.iter().map(|run| run.fetches).max().unwrap_or(0);
        if matches!(ours.scene, Scene::Cold(_) | Scene::SlowLeader) && most != 1 {
            let (scene, name) = (ours.scene, &ours.name);
            findings.say(format!(
                "{scene}, {name}: {most} requests to the origin, and it should be one."
            ));
        }
        let of_scene = rows.iter().filter(|row| row.scene == ours.scene);
        for theirs in of_scene.filter(|row| ["nginx", "varnish"].contains(&row.name.as_str())) {
            findings.compare(&Ratio {
                what: &format!("{}, longest time", ours.scene),
                ours: (&ours.name, &ours.longest()),
                theirs: (&theirs.name, &theirs.longest()),
            });
        }
    }
    for ours in rows.iter().filter(|row| row.name == FOREMOST) {
        let of_scene = rows.iter().filter(|row| row.scene == ours.scene);
        for theirs in of_scene.filter(|row| PEERS.contains(&row.name.as_str())) {
            usage_findings(&mut findings, ours, theirs);
        }
    }
    findings.all()
}

/// What ours takes as it comes, beside one of the peers.
fn usage_findings(findings: &mut Conclusions, ours: &Row, theirs: &Row) {
    let busy = [Scene::Expiring, Scene::Uncacheable, Scene::Failing];
    if busy.contains(&ours.scene) {
        let figures = Ratio {
            what: &format!("{}, CPU time per request", ours.scene),
            ours: (&ours.name, &ours.cpu()),
            theirs: (&theirs.name, &theirs.cpu()),
        };
        findings.compare_with_reason(&figures, CPU_REASON);
    }
    // What it takes for one crowd is what it takes.
    if ours.scene == Scene::Cold(100) {
        let figures = Ratio {
            what: &format!("{}, peak memory", ours.scene),
            ours: (&ours.name, &ours.memory()),
            theirs: (&theirs.name, &theirs.memory()),
        };
        findings.compare_with_reason(&figures, MEMORY_REASON);
    }
}

fn data(rows: &[Row], quick: bool) -> Value {
    let run = |run: &Run| {
        json!({
            "requests": run.requests, "origin_requests": run.fetches, "failed": run.failed,
            "latency": {"percentiles": PERCENTILES, "sent": run.distribution.curve()},
            "cpu_us_per_request": run.taken.map(|taken| taken.cpu_us(run.requests as u64)),
            "peak_mib": run.taken.map(|taken| taken.peak_mib), "foreign": run.foreign,
        })
    };
    let row = |row: &Row| {
        let runs: Vec<_> = row.runs.iter().map(run).collect();
        json!({"scene": row.scene.to_string(), "contender": row.name, "runs": runs})
    };
    let mut scenes: Vec<_> = rows.iter().map(|row| row.scene).collect();
    scenes.dedup();
    let bars = scenes.into_iter().map(|scene| {
        let of_scene = rows.iter().filter(|row| row.scene == scene);
        let bars = of_scene.filter_map(|row| {
            let longest = Sample::of(row.longest().into_iter().map(|(time, _)| time));
            let value = (!longest.times().is_empty()).then(|| longest.median())?;
            Some(json!({"name": row.name, "value": value}))
        });
        json!({"title": format!("{scene}: longest time in milliseconds"), "bars": bars.collect::<Vec<_>>()})
    });
    let usage = |title: &str, scene, figure: fn(&Row) -> Vec<(f64, f64)>| {
        let of_scene = rows.iter().filter(|row| row.scene == scene);
        let bars = of_scene.filter_map(|row| {
            let figures = Sample::of(figure(row).into_iter().map(|(figure, _)| figure));
            let value = (!figures.times().is_empty()).then(|| figures.median())?;
            Some(json!({"name": row.name, "value": value}))
        });
        json!({"title": format!("{scene}: {title}"), "bars": bars.collect::<Vec<_>>()})
    };
    let usage = [
        usage(
            "CPU time per request in microseconds",
            Scene::Expiring,
            Row::cpu,
        ),
        usage("peak memory in MiB", Scene::Cold(100), Row::memory),
    ];
    json!({
        "quick": quick, "columns": COLUMNS, "table": rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "findings": findings(rows), "bars": bars.chain(usage).collect::<Vec<_>>(),
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
