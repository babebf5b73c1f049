// SPDX-License-Identifier: Apache-2.0
//! The scrape: a constant rate of hits while the real Prometheus scrapes, and while nobody does.

mod rendering;

use crate::figures::conclusions::{Conclusions, Ratio};
use crate::figures::distribution::Distribution;
use crate::figures::sample::{Sample, extremes};
use crate::load::k6::{self, Load, Outcome};
use crate::machine;
use crate::machine::usage::{Bystander, Meter};
use crate::peers::nginx;
use crate::peers::peer::Peer;
use crate::progress::Progress;
use crate::report;
use crate::report::table;
use rendering::Rendering;
use serde_json::{Value, json};
use sluice_tests::client::{self, Client, request};
use sluice_tests::direct::Direct;
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::prometheus::Prometheus;
use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

const SIZE: usize = 10_000;
const OBJECTS: u32 = 100;
const WORKERS: usize = 2;
/// Clusters that nobody asks, whose statistics make more than 100,000 series.
const SPARE_CLUSTERS: u32 = 650;
/// As many for nginx.
const SERIES: u32 = 120_000;
const PROXY_REASON: &str =
    "A hit of nginx is cheaper than one of an Envoy with a Wasm filter in it, and Envoy is larger.";
const SERIES_REASON: &str = "Envoy keeps each cluster with all its statistics for every worker, where nginx has only lines \
     of text in a dictionary.";
/// How often a client looks whether the server says that it is well.
const LOOK: Duration = Duration::from_millis(20);
/// From when a change has come into force to the next.
const CHANGED: Duration = Duration::from_millis(500);

/// What is scraped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Sluice as it comes.
    Few,
    /// With all of Envoy's statistics.
    All,
    /// With more than 100,000 of them.
    Many,
    /// The same, and its policy is changed again and again, when a scrape begins if there are any.
    Changed,
    /// nginx, with as many rendered in Lua.
    Nginx,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Few => "Sluice, as it comes",
            Self::All => "Sluice, STATS=all",
            Self::Many => "Sluice, STATS=all and 650 clusters",
            Self::Changed => "Sluice, STATS=all and 650 clusters, changed",
            Self::Nginx => "nginx, Lua",
        })
    }
}

/// One that runs.
struct Server {
    address: SocketAddr,
    metrics: SocketAddr,
    pid: u32,
    running: Running,
}

/// Ends with it.
enum Running {
    Sluice(Box<Edge>),
    Nginx { _nginx: Peer },
}

/// How much is measured.
struct Scale {
    rate: u32,
    seconds: u32,
    rounds: u32,
    /// Seconds from one scrape to the next.
    every: u32,
}

struct Run {
    outcome: Outcome,
    /// Series, and milliseconds that the longest scrape took.
    scrape: Option<(f64, f64)>,
    /// Bytes of a scrape.
    bytes: usize,
    /// The longest time that the server took to say that it is well, in milliseconds.
    health: f64,
    /// The longest time from the change of a policy to an answer by it, in milliseconds.
    change: Option<f64>,
    /// CPU time for each request, in microseconds, scrapes included.
    cpu: f64,
    /// The most memory, in MiB.
    memory: f64,
    /// The part of the machine that others took.
    foreign: f64,
}

struct Row {
    kind: Kind,
    scraped: bool,
    runs: Vec<Run>,
}

pub async fn run(quick: bool) {
    let scale = if quick {
        Scale {
            rate: 300,
            seconds: 2,
            rounds: 1,
            every: 1,
        }
    } else {
        Scale {
            rate: 1_000,
            seconds: 15,
            rounds: 3,
            every: 5,
        }
    };
    let before = machine::load();
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(SIZE).max_age(86_400));
    let mut rows: Vec<_> = measured(quick)
        .into_iter()
        .map(|(kind, scraped)| Row {
            kind,
            scraped,
            runs: Vec::new(),
        })
        .collect();
    let mut progress = Progress::of(rows.len() * scale.rounds as usize);
    for round in 1..=scale.rounds {
        for row in &mut rows {
            progress.step(format_args!("{}, round {round}", row.name()));
            if let Some(server) = start(row.kind, &origin).await {
                let run = measure(row.kind, server, row.scraped, &scale, round).await;
                row.runs.push(run);
            }
        }
    }
    rows.retain(|row| !row.runs.is_empty());
    let rendered = rendering::measure(&origin, SPARE_CLUSTERS, scale.rounds, quick).await;
    let text = tell(&rows, &rendered, &scale, before);
    let stem = report::keep_data("scrape", &text, data(&rows, &rendered, quick));
    let named = rows.iter().flat_map(Row::distributions);
    report::keep_distributions(&stem, &named.collect::<Vec<_>>());
}

/// Who is measured, and whether it is scraped.
fn measured(quick: bool) -> Vec<(Kind, bool)> {
    if quick {
        return vec![
            (Kind::Few, false),
            (Kind::Few, true),
            (Kind::Changed, true),
            (Kind::Nginx, true),
        ];
    }
    let kinds = [Kind::Few, Kind::All, Kind::Many, Kind::Changed, Kind::Nginx];
    kinds
        .into_iter()
        .flat_map(|kind| [(kind, false), (kind, true)])
        .collect()
}

async fn start(kind: Kind, origin: &Origin) -> Option<Server> {
    if kind == Kind::Nginx {
        let nginx = nginx::start_with_metrics(origin.address(), WORKERS, SERIES).await?;
        return Some(Server {
            address: nginx.address,
            metrics: nginx.address,
            pid: nginx.pid(),
            running: Running::Nginx { _nginx: nginx },
        });
    }
    let edge = Edge::http(origin).workers(WORKERS).env("ACCESS_LOG", "off");
    let edge = match kind {
        Kind::Few | Kind::Nginx => edge,
        Kind::All => edge.env("STATS", "all"),
        Kind::Many => edge.env("STATS", "all").direct(many()),
        Kind::Changed => edge.env("STATS", "all").direct(Direct {
            listener_file: true,
            ..many()
        }),
    };
    let edge = edge.start().await;
    Some(Server {
        address: edge.address(),
        metrics: edge.admin(),
        pid: edge.envoy_pid(),
        running: Running::Sluice(Box::new(edge)),
    })
}

fn many() -> Direct {
    Direct {
        spare_clusters: SPARE_CLUSTERS,
        ..Direct::default()
    }
}

async fn measure(kind: Kind, server: Server, scraped: bool, scale: &Scale, round: u32) -> Run {
    for object in 0..OBJECTS {
        let _ = client::get(server.address, &format!("/o{object}.bin")).await;
    }
    let bytes = client::get(server.metrics, "/stats/prometheus")
        .await
        .body
        .len();
    let prometheus = if scraped {
        let prometheus = Prometheus::scraping_every(server.metrics, scale.every).await;
        prometheus.wait_for("up", |up| up > 0.0).await;
        Some(prometheus)
    } else {
        None
    };
    let (bystander, meter) = (Bystander::start(), Meter::start(&[server.pid]));
    let (stop, stopped) = oneshot::channel();
    let looking = tokio::spawn(look(server.address, stopped));
    let load = Load {
        rate: scale.rate,
        seconds: scale.seconds,
        objects: OBJECTS,
        seed: round,
    };
    let base = format!("http://{}", server.address);
    let over = Cell::new(false);
    let asking = async {
        let outcome = k6::run(&base, load).await;
        over.set(true);
        outcome
    };
    let changing = async {
        match &server.running {
            Running::Sluice(edge) if kind == Kind::Changed => {
                Some(change(edge, scraped, &over).await)
            }
            _ => None,
        }
    };
    let (outcome, change) = tokio::join!(asking, changing);
    let taken = meter.taken().expect("a server that runs");
    let foreign = bystander.foreign();
    let _ = stop.send(());
    let health = looking.await.unwrap();
    let scrape = match &prometheus {
        Some(prometheus) => Some((
            first(prometheus, "scrape_samples_scraped").await,
            first(prometheus, "max_over_time(scrape_duration_seconds[10m])").await * 1e3,
        )),
        None => None,
    };
    Run {
        cpu: taken.cpu_us(outcome.requests()),
        memory: taken.peak_mib,
        outcome,
        scrape,
        bytes,
        health,
        change,
        foreign,
    }
}

/// Changes the policy again and again, when a scrape begins if it is `scraped`, until it is `over`: the longest time from
/// there to an answer to a new connection that has the header of the new policy, in milliseconds.
async fn change(edge: &Edge, scraped: bool, over: &Cell<bool>) -> f64 {
    let (mut longest, mut number) = (Duration::ZERO, 0);
    while !over.get() {
        number += 1;
        let metrics = edge.admin();
        let scrape = scraped.then(|| tokio::spawn(client::get(metrics, "/stats/prometheus")));
        tokio::time::sleep(LOOK).await;
        let text = number.to_string();
        let began = Instant::now();
        edge.update_policy(&|policy| {
            policy["rules"] = json!([{"match": ["*"], "headers": {"x-change": text}}]);
        });
        while client::get(edge.address(), "/o0.bin")
            .await
            .header("x-change")
            != text
        {
            tokio::time::sleep(LOOK / 4).await;
        }
        longest = longest.max(began.elapsed());
        if let Some(scrape) = scrape {
            scrape.await.unwrap();
        }
        tokio::time::sleep(CHANGED).await;
    }
    longest.as_secs_f64() * 1e3
}

async fn first(prometheus: &Prometheus, query: &str) -> f64 {
    let values = prometheus.query(query).await;
    values.first().map_or(f64::NAN, |(_, value)| *value)
}

/// Asks on one connection whether the server is well, until it is stopped; the longest time in milliseconds.
async fn look(address: SocketAddr, mut stopped: oneshot::Receiver<()>) -> f64 {
    let mut client = Client::connect(address).await;
    let mut longest = Duration::ZERO;
    while stopped.try_recv().is_err() {
        let asked = Instant::now();
        let answer = client.exchange(request("GET", "/healthz", &[])).await;
        assert_eq!(answer.status, 200, "{answer}");
        longest = longest.max(asked.elapsed());
        tokio::time::sleep(LOOK).await;
    }
    longest.as_secs_f64() * 1e3
}

impl Row {
    fn name(&self) -> String {
        let scraped = if self.scraped { ", scraped" } else { "" };
        format!("{}{scraped}", self.kind)
    }

    /// Those of each round, with their names.
    fn distributions(&self) -> Vec<(String, &Distribution)> {
        let name = self.name();
        let rounds = self.runs.iter().zip(1..);
        let named = rounds.map(|(run, round)| run.outcome.named(&format!("{name}, round {round}")));
        named.flatten().collect()
    }

    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        Sample::of(self.runs.iter().map(figure)).median()
    }

    /// A figure of each round, beside what others took of the machine.
    fn rounds(&self, figure: impl Fn(&Run) -> f64) -> Vec<(f64, f64)> {
        let runs = self.runs.iter();
        runs.map(|run| (figure(run), run.foreign)).collect()
    }

    fn longest(&self) -> Vec<(f64, f64)> {
        self.rounds(|run| run.outcome.percentile(100.0))
    }

    fn cells(&self) -> Vec<String> {
        let percentile = |wanted: f64| table::ms(self.median(|run| run.outcome.percentile(wanted)));
        let (least, most) = extremes(self.longest().into_iter().map(|(time, _)| time));
        let scrape = |figure: fn((f64, f64)) -> f64| {
            let rounds: Option<Vec<_>> =
                self.runs.iter().map(|run| run.scrape.map(figure)).collect();
            rounds.map_or_else(String::new, |rounds| {
                format!("{:.0}", Sample::of(rounds).median())
            })
        };
        let changes: Option<Vec<_>> = self.runs.iter().map(|run| run.change).collect();
        let change = changes.map_or_else(String::new, |all| table::ms(Sample::of(all).median()));
        #[allow(clippy::cast_precision_loss)]
        let kilobytes = self.median(|run| run.bytes as f64 / 1e3);
        vec![
            self.name(),
            format!("{kilobytes:.0}"),
            scrape(|(series, _)| series),
            scrape(|(_, ms)| ms),
            percentile(50.0),
            percentile(99.0),
            percentile(99.9),
            percentile(100.0),
            format!("{}-{}", table::ms(least), table::ms(most)),
            table::ms(self.median(|run| run.health)),
            change,
            format!("{:.0}", self.median(|run| run.cpu)),
            format!("{:.0}", self.median(|run| run.memory)),
        ]
    }
}

const COLUMNS: [&str; 13] = [
    "ms",
    "kB",
    "series",
    "scrape",
    "p50",
    "p99",
    "p99.9",
    "max",
    "max by round",
    "healthz max",
    "change",
    "us CPU",
    "MiB",
];

fn tell(rows: &[Row], rendered: &[Rendering], scale: &Scale, before: f64) -> String {
    let foreign = Sample::of(rows.iter().flat_map(|row| &row.runs).map(|run| run.foreign));
    let head = format!(
        "The scrape: hits of {SIZE} bytes, {} a second for {} s, scraped every {} s, {} rounds, in turn, {WORKERS} workers\n{}",
        scale.rate,
        scale.seconds,
        scale.every,
        scale.rounds,
        machine::described(before, Some(foreign.median())),
    );
    let renderings: Vec<_> = rendered.iter().map(Rendering::cells).collect();
    let renderings = table::render(&rendering::COLUMNS, &renderings);
    let head = format!("{head}\n\n{renderings}");
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    report::text(&head, &COLUMNS, &cells, &findings(rows, rendered))
}

fn findings(rows: &[Row], rendered: &[Rendering]) -> Vec<String> {
    let mut findings = Conclusions::default();
    for quiet in rows.iter().filter(|row| !row.scraped) {
        let of_kind = |row: &&Row| row.kind == quiet.kind && row.scraped;
        let Some(scraped) = rows.iter().find(of_kind) else {
            continue;
        };
        findings.compare(&Ratio {
            what: "longest time",
            ours: (&quiet.name(), &quiet.longest()),
            theirs: (&scraped.name(), &scraped.longest()),
        });
        if quiet.kind == Kind::Changed {
            let change = |run: &Run| run.change.unwrap_or(f64::NAN);
            findings.compare(&Ratio {
                what: "time until a new policy is in force",
                ours: (&quiet.name(), &quiet.rounds(change)),
                theirs: (&scraped.name(), &scraped.rounds(change)),
            });
        }
    }
    rendering::compare(&mut findings, rendered);
    let scraped = |kind| rows.iter().find(|row| row.kind == kind && row.scraped);
    let nginx = scraped(Kind::Nginx);
    for (ours, reason) in [
        (scraped(Kind::Few), PROXY_REASON),
        (scraped(Kind::Many), SERIES_REASON),
    ] {
        if let Some((ours, nginx)) = ours.zip(nginx) {
            usage_findings(&mut findings, ours, nginx, reason);
        }
    }
    findings.all()
}

/// What ours takes of the machine while it is scraped, beside nginx.
fn usage_findings(findings: &mut Conclusions, ours: &Row, nginx: &Row, reason: &str) {
    let mut compare = |what, figure: fn(&Run) -> f64| {
        let figures = Ratio {
            what,
            ours: (&ours.name(), &ours.rounds(figure)),
            theirs: (&nginx.name(), &nginx.rounds(figure)),
        };
        findings.compare_with_reason(&figures, reason);
    };
    compare("CPU time per request, scrapes included", |run| run.cpu);
    compare("peak memory", |run| run.memory);
}

fn data(rows: &[Row], rendered: &[Rendering], quick: bool) -> Value {
    let run = |run: &Run| {
        json!({
            "latency": run.outcome.json(), "series": run.scrape.map(|(series, _)| series),
            "scrape_ms": run.scrape.map(|(_, ms)| ms), "bytes": run.bytes, "healthz_max_ms": run.health,
            "change_max_ms": run.change,
            "cpu_us_per_request": run.cpu, "peak_mib": run.memory, "foreign": run.foreign,
        })
    };
    let row = |row: &Row| {
        let runs: Vec<_> = row.runs.iter().map(run).collect();
        let rate = row.runs.first().map_or(0, |run| run.outcome.requests());
        json!({"contender": row.name(), "scraped": row.scraped, "requests": rate, "runs": runs})
    };
    let bars = |title: &str, figure: fn(&Run) -> f64| {
        let bar = |row: &Row| json!({"name": row.name(), "value": row.median(figure)});
        json!({"title": title, "bars": rows.iter().map(bar).collect::<Vec<_>>()})
    };
    json!({
        "quick": quick, "columns": COLUMNS, "table": rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "findings": findings(rows, rendered), "bars": [
            bars("Longest time in milliseconds", |run| run.outcome.percentile(100.0)),
            bars("CPU time per request in microseconds, scrapes included", |run| run.cpu),
            bars("Peak memory in MiB", |run| run.memory),
        ],
        "tables": [{
            "columns": rendering::COLUMNS, "rows": rendered.iter().map(Rendering::cells).collect::<Vec<_>>(),
        }],
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
