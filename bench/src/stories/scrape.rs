// SPDX-License-Identifier: Apache-2.0
//! The scrape: a constant rate of hits while the real Prometheus scrapes, and while nobody does.

use crate::distribution::Distribution;
use crate::findings::{Conclusions, Ratio};
use crate::k6::{self, Load, Outcome};
use crate::progress::Progress;
use crate::sample::{Sample, extremes};
use crate::usage::{Bystander, Meter};
use crate::{machine, nginx, report, table};
use serde_json::{Value, json};
use sluice_tests::client::{self, Client, request};
use sluice_tests::direct::Direct;
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::prometheus::Prometheus;
use std::any::Any;
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
const PROXY_REASON: &str = "A hit of nginx is cheaper than one of Envoy's cache filter with a Wasm filter before it, and \
     Envoy is larger.";
const SERIES_REASON: &str = "Envoy keeps each cluster with all its statistics for every worker, where nginx has only lines \
     of text in a dictionary.";
/// How often a client looks whether the server says that it is well.
const LOOK: Duration = Duration::from_millis(20);

/// What is scraped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Sluice as it comes.
    Few,
    /// With all of Envoy's statistics.
    All,
    /// With more than 100,000 of them.
    Many,
    /// nginx, with as many rendered in Lua.
    Nginx,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Few => "Sluice, as it comes",
            Self::All => "Sluice, STATS=all",
            Self::Many => "Sluice, STATS=all and 650 clusters",
            Self::Nginx => "nginx, Lua",
        })
    }
}

/// One that runs.
struct Server {
    address: SocketAddr,
    metrics: SocketAddr,
    pid: u32,
    // Ends with it.
    _running: Box<dyn Any>,
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
                let run = measure(server, row.scraped, &scale, round).await;
                row.runs.push(run);
            }
        }
    }
    rows.retain(|row| !row.runs.is_empty());
    let text = tell(&rows, &scale, before);
    let stem = report::keep_data("scrape", &text, data(&rows, quick));
    let named = rows.iter().flat_map(Row::distributions);
    report::keep_distributions(&stem, &named.collect::<Vec<_>>());
}

/// Who is measured, and whether it is scraped.
fn measured(quick: bool) -> Vec<(Kind, bool)> {
    if quick {
        return vec![
            (Kind::Few, false),
            (Kind::Few, true),
            (Kind::Many, true),
            (Kind::Nginx, true),
        ];
    }
    let kinds = [Kind::Few, Kind::All, Kind::Many, Kind::Nginx];
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
            _running: Box::new(nginx),
        });
    }
    let edge = Edge::http(origin).workers(WORKERS).env("ACCESS_LOG", "off");
    let edge = match kind {
        Kind::Few | Kind::Nginx => edge,
        Kind::All => edge.env("STATS", "all"),
        Kind::Many => edge.env("STATS", "all").direct(Direct {
            spare_clusters: SPARE_CLUSTERS,
            ..Direct::default()
        }),
    };
    let edge = edge.start().await;
    Some(Server {
        address: edge.address(),
        metrics: edge.admin(),
        pid: edge.envoy_pid(),
        _running: Box::new(edge),
    })
}

async fn measure(server: Server, scraped: bool, scale: &Scale, round: u32) -> Run {
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
    let outcome = k6::run(&format!("http://{}", server.address), load).await;
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
        foreign,
    }
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
            format!("{:.0}", self.median(|run| run.cpu)),
            format!("{:.0}", self.median(|run| run.memory)),
        ]
    }
}

const COLUMNS: [&str; 12] = [
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
    "us CPU",
    "MiB",
];

fn tell(rows: &[Row], scale: &Scale, before: f64) -> String {
    let foreign = Sample::of(rows.iter().flat_map(|row| &row.runs).map(|run| run.foreign));
    let head = format!(
        "The scrape: hits of {SIZE} bytes, {} a second for {} s, scraped every {} s, {} rounds, in turn, {WORKERS} workers\n{}",
        scale.rate,
        scale.seconds,
        scale.every,
        scale.rounds,
        machine::described(before, Some(foreign.median())),
    );
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    report::text(&head, &COLUMNS, &cells, &findings(rows))
}

fn findings(rows: &[Row]) -> Vec<String> {
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
    }
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

fn data(rows: &[Row], quick: bool) -> Value {
    let run = |run: &Run| {
        json!({
            "latency": run.outcome.json(), "series": run.scrape.map(|(series, _)| series),
            "scrape_ms": run.scrape.map(|(_, ms)| ms), "bytes": run.bytes, "healthz_max_ms": run.health,
            "cpu_us_per_request": run.cpu, "peak_mib": run.memory, "foreign": run.foreign,
        })
    };
    let row = |row: &Row| {
        let runs: Vec<_> = row.runs.iter().map(run).collect();
        let rate = row.runs.first().map_or(0, |run| run.outcome.requests());
        json!({"contender": row.name(), "scraped": row.scraped, "requests": rate, "runs": runs})
    };
    let bar = |row: &Row| {
        let longest = row.median(|run| run.outcome.percentile(100.0));
        json!({"name": row.name(), "value": longest})
    };
    let bars: Vec<_> = rows.iter().map(bar).collect();
    json!({
        "quick": quick, "columns": COLUMNS, "table": rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "findings": findings(rows), "bars": [{"title": "Longest time in milliseconds", "bars": bars}],
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
