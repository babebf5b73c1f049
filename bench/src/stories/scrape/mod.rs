// SPDX-License-Identifier: Apache-2.0
//! The scrape: a constant rate of hits with and without scrapes by the real Prometheus.

mod meanwhile;
mod rendering;

use crate::contenders::{Contender, Kind as Server, WORKERS};
use crate::figures::format::{count, ms, whole};
use crate::figures::{Conclusions, Figures, Rounds, Table};
use crate::load::k6::{self, Load, Outcome};
use crate::machine;
use crate::machine::usage::{Bystander, Meter, Taken};
use crate::peers::nginx::{self, Caching};
use crate::progress::Progress;
use crate::report::{Report, bars};
use rendering::Rendering;
use sluice_tests::client::{self};
use sluice_tests::edge::Edge;
use sluice_tests::edge::direct::Direct;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::prometheus::Prometheus;
use std::cell::Cell;
use std::fmt;
use tokio::sync::oneshot;

const SIZE: usize = 10_000;
const OBJECTS: u32 = 100;
/// Clusters without requests, whose statistics make more than 100,000 series.
const SPARE_CLUSTERS: u32 = 650;
/// The number of series for nginx.
const SERIES: u32 = 120_000;
const PROXY_REASON: &str =
    "A hit of nginx is cheaper than one of an Envoy with a Wasm filter, and Envoy is larger.";
const SERIES_REASON: &str = "Envoy keeps each cluster with all its statistics for every worker, where nginx has only lines \
     of text in a dictionary.";
/// Server that is scraped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Sluice with default settings.
    Few,
    /// With all of Envoy's statistics.
    All,
    /// Sluice with more than 100,000 of them.
    Many,
    /// Sluice with that many, and a policy that is changed again and again, when a scrape begins if there are any.
    Changed,
    /// nginx, with as many rendered in Lua.
    Nginx,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Few => "Sluice, default settings",
            Self::All => "Sluice, STATS=all",
            Self::Many => "Sluice, STATS=all and 650 clusters",
            Self::Changed => "Sluice, STATS=all and 650 clusters, changed",
            Self::Nginx => "nginx, Lua",
        })
    }
}

/// Scale of the measurement.
struct Scale {
    rate: u32,
    seconds: u32,
    rounds: u32,
    /// Seconds from one scrape to the next.
    every: u32,
}

struct Run {
    outcome: Outcome,
    /// Number of series, and milliseconds of the longest scrape.
    scrape: Option<(f64, f64)>,
    /// Size of a scrape in bytes.
    bytes: usize,
    /// The longest time of a health check, in milliseconds.
    health: f64,
    /// The longest time from the change of a policy to a response by it, in milliseconds.
    change: Option<f64>,
    /// CPU time and memory of the server, with the scrapes.
    taken: Taken,
}

struct Row {
    kind: Kind,
    scraped: bool,
    runs: Rounds<Run>,
}

pub async fn run(quick: bool) -> Report {
    let scale = if quick {
        Scale {
            rate: 300,
            seconds: 2,
            rounds: 1,
            every: 2,
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
    let row = |(kind, scraped)| Row {
        kind,
        scraped,
        runs: Rounds::default(),
    };
    let mut rows: Vec<_> = measured(quick).into_iter().map(row).collect();
    let progress = Progress::of(rows.len() * scale.rounds as usize);
    for round in 1..=scale.rounds {
        for row in &mut rows {
            progress.step(format_args!("{}, round {round}", row.name()));
            if let Some(server) = start(row.kind, &origin).await {
                row.runs.add(measure(row, &server, &scale, round).await);
            }
        }
    }
    rows.retain(|row| !row.runs.is_empty());
    let rendered = rendering::measure(&origin, SPARE_CLUSTERS, scale.rounds, quick).await;
    report(&rows, &rendered, &scale, before)
}

/// The servers to measure, and whether each is scraped.
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

async fn start(kind: Kind, origin: &Origin) -> Option<Contender> {
    let many = Direct {
        spare_clusters: SPARE_CLUSTERS,
        ..Direct::default()
    };
    let edge = Edge::http(origin).metrics();
    let edge = match kind {
        Kind::Few => edge,
        Kind::All => edge.env("STATS", "all"),
        Kind::Many => edge.env("STATS", "all").direct(many),
        Kind::Changed => edge.env("STATS", "all").direct(Direct {
            listener_file: true,
            ..many
        }),
        Kind::Nginx => {
            let nginx = nginx::start_with_metrics(origin.address(), SERIES).await?;
            return Some(Contender::peer(Server::Nginx(Caching::Lock), nginx));
        }
    };
    Some(Contender::sluice(Server::Sluice, edge).await)
}

async fn measure(row: &Row, server: &Contender, scale: &Scale, round: u32) -> (Run, f64) {
    for object in 0..OBJECTS {
        let _ = client::get(server.address, &format!("/o{object}.bin")).await;
    }
    let metrics = server.edge().map_or(server.address, Edge::metrics);
    let bytes = client::get(metrics, "/stats/prometheus").await.body.len();
    let prometheus = if row.scraped {
        let prometheus = Prometheus::scraping_every(metrics, scale.every).await;
        prometheus.wait_for("up", |up| up > 0.0).await;
        Some(prometheus)
    } else {
        None
    };
    let (bystander, meter) = (Bystander::start(), Meter::start(&server.pids));
    let (stop, stopped) = oneshot::channel();
    let looking = tokio::spawn(meanwhile::look(server.address, stopped));
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
        match server.edge() {
            Some(edge) if row.kind == Kind::Changed => {
                Some(meanwhile::change(edge, row.scraped, &over).await)
            }
            _ => None,
        }
    };
    let (outcome, change) = tokio::join!(asking, changing);
    let taken = meter.taken().expect("a server that runs");
    let foreign = bystander.foreign();
    let _ = stop.send(());
    let run = Run {
        outcome,
        scrape: scraped(prometheus.as_ref()).await,
        bytes,
        health: looking.await.unwrap(),
        change,
        taken,
    };
    (run, foreign)
}

/// Number of series, and milliseconds of the longest scrape.
async fn scraped(prometheus: Option<&Prometheus>) -> Option<(f64, f64)> {
    let prometheus = prometheus?;
    let longest = first(prometheus, "max_over_time(scrape_duration_seconds[10m])").await;
    Some((
        first(prometheus, "scrape_samples_scraped").await,
        longest * 1e3,
    ))
}

async fn first(prometheus: &Prometheus, query: &str) -> f64 {
    let values = prometheus.query(query).await;
    values.first().map_or(f64::NAN, |(_, value)| *value)
}

impl Run {
    fn longest(&self) -> f64 {
        self.outcome.sent.percentile(100.0)
    }

    fn cpu(&self) -> f64 {
        self.taken.cpu_us(self.outcome.sent.count())
    }

    fn memory(&self) -> f64 {
        self.taken.peak_mib
    }
}

const COLUMNS: &str = "ms | kB | series | scrape | p50 | p99 | p99.9 | max | max by round | healthz max | change \
    | us CPU | MiB";

impl Row {
    fn name(&self) -> String {
        let scraped = if self.scraped { ", scraped" } else { "" };
        format!("{}{scraped}", self.kind)
    }

    fn figures(&self, figure: impl Fn(&Run) -> f64) -> (String, Figures) {
        (self.name(), self.runs.of(figure))
    }

    fn cells(&self) -> Vec<String> {
        let median = |figure: &dyn Fn(&Run) -> f64| self.runs.of(figure).median();
        let of_all = |figure: &dyn Fn(&Run) -> Option<f64>| self.runs.of_all(figure).median();
        let sent = |percentile: f64| ms(median(&|run| run.outcome.sent.percentile(percentile)));
        let mut cells = vec![self.name(), whole(median(&|run| count(run.bytes) / 1e3))];
        cells.push(whole(of_all(&|run| Some(run.scrape?.0))));
        cells.push(whole(of_all(&|run| Some(run.scrape?.1))));
        cells.extend([50.0, 99.0, 99.9, 100.0].map(sent));
        cells.push(self.runs.of(Run::longest).range(ms));
        cells.push(ms(median(&|run| run.health)));
        cells.push(ms(of_all(&|run| run.change)));
        cells.push(whole(median(&Run::cpu)));
        cells.push(whole(median(&Run::memory)));
        cells
    }
}

fn report(rows: &[Row], rendered: &[Rendering], scale: &Scale, before: f64) -> Report {
    let times = rows.iter().flat_map(|row| {
        let name = row.name();
        let sent = row
            .runs
            .distributions(&format!("{name}, from sending"), |run| &run.outcome.sent);
        sent.into_iter().chain(
            row.runs
                .distributions(&format!("{name}, from due"), |run| &run.outcome.due),
        )
    });
    let picture = |name: &str, title: &str, unit: &str, figure: fn(&Run) -> f64| {
        let scraped = rows.iter().filter(|row| row.scraped);
        let bar = |row: &Row| (row.kind.to_string(), row.runs.of(figure).median());
        (name.to_owned(), bars(title, unit, scraped.map(bar)))
    };
    Report {
        title: "The scrape".to_owned(),
        about: format!(
            "hits of {SIZE} bytes, {} a second for {} s, scraped every {} s, {} rounds, in turn, {WORKERS} workers\n{}",
            scale.rate,
            scale.seconds,
            scale.every,
            scale.rounds,
            machine::described(before, rows.iter().flat_map(|row| row.runs.foreign())),
        ),
        tables: vec![
            rendering::table(rendered),
            Table::new(COLUMNS, rows.iter().map(Row::cells)),
        ],
        findings: findings(rows, rendered),
        pictures: vec![
            picture(
                "longest",
                "The longest time of a hit while Prometheus scrapes",
                "ms",
                Run::longest,
            ),
            picture(
                "cpu",
                "CPU time for each hit, scrapes included",
                "us",
                Run::cpu,
            ),
            picture("memory", "Memory at the most", "MiB", Run::memory),
        ],
        distributions: times.collect(),
    }
}

fn findings(rows: &[Row], rendered: &[Rendering]) -> Conclusions {
    let mut findings = Conclusions::default();
    for quiet in rows.iter().filter(|row| !row.scraped) {
        let of_kind = |row: &&Row| row.kind == quiet.kind && row.scraped;
        let Some(scraped) = rows.iter().find(of_kind) else {
            continue;
        };
        findings.compare(
            "longest time",
            quiet.figures(Run::longest),
            scraped.figures(Run::longest),
        );
        if quiet.kind == Kind::Changed {
            let change = |row: &Row| row.figures(|run| run.change.unwrap_or(f64::NAN));
            findings.compare(
                "time until a new policy is in force",
                change(quiet),
                change(scraped),
            );
        }
    }
    rendering::compare(&mut findings, rendered);
    // Compares the CPU time and memory of Sluice with those of nginx, both scraped.
    let scraped = |kind| rows.iter().find(|row| row.kind == kind && row.scraped);
    for (ours, reason) in [(Kind::Few, PROXY_REASON), (Kind::Many, SERIES_REASON)] {
        let Some((ours, nginx)) = scraped(ours).zip(scraped(Kind::Nginx)) else {
            continue;
        };
        let mut compare = |what: &str, figure: fn(&Run) -> f64| {
            findings.compare_with_reason(what, ours.figures(figure), nginx.figures(figure), reason);
        };
        compare("CPU time per request, scrapes included", Run::cpu);
        compare("peak memory", Run::memory);
    }
    findings
}
