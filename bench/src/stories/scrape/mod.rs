// SPDX-License-Identifier: Apache-2.0
//! The scrape: a constant rate of hits with and without scrapes by the real Prometheus.

mod meanwhile;
mod rendering;
mod spare;

use crate::contenders::{Contender, Kind as Server, WORKERS};
use crate::figures::format::{count, ms, whole};
use crate::figures::{self, Conclusions, Figures, Table, in_turn};
use crate::load::k6::{self, Load, Outcome};
use crate::machine;
use crate::machine::usage::{Meter, Taken};
use crate::peers::nginx::{self, Caching};
use crate::report::Report;
use rendering::Rendering;
use sluice_tests::client;
use sluice_tests::edge::Edge;
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

/// A server that is scraped, or not.
#[derive(Clone, Copy)]
struct Case {
    kind: Kind,
    scraped: bool,
}

type Row = figures::Row<Case, Run>;

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scraped = if self.scraped { ", scraped" } else { "" };
        write!(f, "{}{scraped}", self.kind)
    }
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
    let origin = Origin::start().ready().await;
    origin.on("*", Reply::ok(SIZE).max_age(86_400));
    let rows = in_turn(cases(quick), scale.rounds, async |case, round| {
        let server = start(case.kind, &origin).await?;
        Some(measure(case, &server, &scale, round).await)
    });
    let rows = rows.await;
    let rendered = rendering::measure(&origin, SPARE_CLUSTERS, scale.rounds, quick).await;
    report(&rows, &rendered, &scale)
}

/// The servers to measure, and whether each is scraped.
fn cases(quick: bool) -> Vec<Case> {
    let kinds = [Kind::Few, Kind::All, Kind::Many, Kind::Changed, Kind::Nginx];
    let cases = kinds
        .into_iter()
        .flat_map(|kind| [false, true].map(|scraped| Case { kind, scraped }));
    let is_quick = |case: &Case| match case.kind {
        Kind::Few => true,
        Kind::Changed | Kind::Nginx => case.scraped,
        Kind::All | Kind::Many => false,
    };
    cases.filter(|case| !quick || is_quick(case)).collect()
}

async fn start(kind: Kind, origin: &Origin) -> Option<Contender> {
    let many = || {
        let edge = Edge::http(origin).metrics().env("SLUICE_STATS", "all");
        edge.more_configuration(spare::configuration(SPARE_CLUSTERS, false))
    };
    let edge = Edge::http(origin).metrics();
    let edge = match kind {
        Kind::Few => edge,
        Kind::All => edge.env("SLUICE_STATS", "all"),
        Kind::Many => many(),
        Kind::Changed => many().policy("origin: {kind: http}"),
        Kind::Nginx => {
            let nginx = nginx::start_with_metrics(origin.address(), SERIES).await?;
            return Some(Contender::peer(Server::Nginx(Caching::Lock), nginx));
        }
    };
    Some(Contender::sluice(Server::Sluice, edge).await)
}

async fn measure(case: Case, server: &Contender, scale: &Scale, round: u32) -> (Run, f64) {
    for object in 0..OBJECTS {
        let _ = client::get(server.address, &format!("/o{object}.bin")).await;
    }
    let metrics = server.edge().map_or(server.address, Edge::metrics);
    let bytes = client::get(metrics, "/stats/prometheus").await.body.len();
    let prometheus = if case.scraped {
        let prometheus = Prometheus::scraping_every(metrics, scale.every).await;
        prometheus.wait_for("up", |up| up > 0.0).await;
        Some(prometheus)
    } else {
        None
    };
    let meter = Meter::start(&server.pids);
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
            Some(edge) if case.kind == Kind::Changed => {
                Some(meanwhile::change(edge, case.scraped, &over).await)
            }
            _ => None,
        }
    };
    let (outcome, change) = tokio::join!(asking, changing);
    let taken = meter.taken().expect("a server that runs");
    let foreign = meter.foreign();
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
    fn figures(&self, figure: impl Fn(&Run) -> f64) -> (String, Figures) {
        (self.case.to_string(), self.runs.of(figure))
    }

    fn cells(&self) -> Vec<String> {
        let median = |figure: &dyn Fn(&Run) -> f64| self.runs.of(figure).median();
        let of_all = |figure: &dyn Fn(&Run) -> Option<f64>| self.runs.of_all(figure).median();
        let sent = |percentile: f64| ms(median(&|run| run.outcome.sent.percentile(percentile)));
        let mut cells = vec![
            self.case.to_string(),
            whole(median(&|run| count(run.bytes) / 1e3)),
        ];
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

fn report(rows: &[Row], rendered: &[Rendering], scale: &Scale) -> Report {
    let mut times = Row::distributions(rows, ", from sending", |run| &run.outcome.sent);
    times.extend(Row::distributions(rows, ", from due", |run| {
        &run.outcome.due
    }));
    Report {
        title: "The scrape".to_owned(),
        about: format!(
            "hits of {SIZE} bytes, {} a second for {} s, scraped every {} s, {} rounds, in turn, {WORKERS} workers\n{}",
            scale.rate,
            scale.seconds,
            scale.every,
            scale.rounds,
            machine::described(Row::foreign(rows)),
        ),
        tables: vec![
            rendering::table(rendered),
            Table::new(COLUMNS, rows.iter().map(Row::cells)),
        ],
        findings: findings(rows, rendered),
        distributions: times,
        ..Report::default()
    }
}

fn findings(rows: &[Row], rendered: &[Rendering]) -> Conclusions {
    let mut findings = Conclusions::default();
    let scraped = |kind| {
        let mut rows = rows.iter();
        rows.find(|row| row.case.kind == kind && row.case.scraped)
    };
    for quiet in rows.iter().filter(|row| !row.case.scraped) {
        let kind = quiet.case.kind;
        let Some(scraped) = scraped(kind) else {
            continue;
        };
        findings.compare(
            "longest time",
            quiet.figures(Run::longest),
            scraped.figures(Run::longest),
        );
        if kind == Kind::Changed {
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
