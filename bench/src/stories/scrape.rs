// SPDX-License-Identifier: Apache-2.0
//! The scrape: a constant rate of hits while the real Prometheus scrapes, and while nobody does.

use crate::findings::{Conclusions, Ratio};
use crate::k6::{self, Load, Outcome};
use crate::sample::{Sample, extremes};
use crate::usage::{self, Bystander};
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
            seconds: 4,
            rounds: 3,
            every: 1,
        }
    } else {
        Scale {
            rate: 1_000,
            seconds: 60,
            rounds: 3,
            every: 5,
        }
    };
    let before = machine::load();
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(SIZE).max_age(86_400));
    let kinds = [Kind::Few, Kind::All, Kind::Many, Kind::Nginx];
    let row = |kind| {
        [false, true].map(|scraped| Row {
            kind,
            scraped,
            runs: Vec::new(),
        })
    };
    let mut rows: Vec<_> = kinds.into_iter().flat_map(row).collect();
    for round in 1..=scale.rounds {
        eprintln!("round {round} of {}", scale.rounds);
        for row in &mut rows {
            if let Some(server) = start(row.kind, &origin).await {
                let run = measure(server, row.scraped, &scale, round).await;
                row.runs.push(run);
            }
        }
    }
    rows.retain(|row| !row.runs.is_empty());
    let text = tell(&rows, &scale, before);
    report::keep_data("scrape", &text, data(&rows, quick));
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
    let (bystander, cpu) = (Bystander::start(), usage::cpu_time(&[server.pid]));
    let (stop, stopped) = oneshot::channel();
    let looking = tokio::spawn(look(server.address, stopped));
    let load = Load {
        rate: scale.rate,
        seconds: scale.seconds,
        objects: OBJECTS,
        seed: round,
    };
    let outcome = k6::run(&format!("http://{}", server.address), load).await;
    let taken = usage::cpu_time(&[server.pid]).saturating_sub(cpu);
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
    #[allow(clippy::cast_precision_loss)]
    let cpu = taken.as_secs_f64() * 1e6 / outcome.requests as f64;
    Run {
        outcome,
        scrape,
        bytes,
        health,
        cpu,
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

    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        Sample::of(self.runs.iter().map(figure)).median()
    }

    fn longest(&self) -> Vec<(f64, f64)> {
        let runs = self.runs.iter();
        runs.map(|run| (run.outcome.percentile(100.0), run.foreign))
            .collect()
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
        ]
    }
}

const COLUMNS: [&str; 11] = [
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
    for pair in rows.chunks(2) {
        let [quiet, scraped] = pair else { continue };
        findings.compare(&Ratio {
            what: "longest time",
            ours: (&quiet.name(), &quiet.longest()),
            theirs: (&scraped.name(), &scraped.longest()),
        });
    }
    findings.all()
}

fn data(rows: &[Row], quick: bool) -> Value {
    let run = |run: &Run| {
        json!({
            "latency": run.outcome.json(), "series": run.scrape.map(|(series, _)| series),
            "scrape_ms": run.scrape.map(|(_, ms)| ms), "bytes": run.bytes, "healthz_max_ms": run.health,
            "cpu_us_per_request": run.cpu, "foreign": run.foreign,
        })
    };
    let row = |row: &Row| {
        let runs: Vec<_> = row.runs.iter().map(run).collect();
        let rate = row.runs.first().map_or(0, |run| run.outcome.requests);
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
