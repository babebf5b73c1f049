// SPDX-License-Identifier: Apache-2.0
//! TLS 1.3 at constant rates: how long hits take, up to the rate at which the first contender is saturated.

mod capacity;

use crate::contenders::{Before, Contender, Kind, WORKERS, start_all};
use crate::figures::format::{ms, remark, whole};
use crate::figures::{Conclusions, Figures, PERCENTILES, Rounds, Table};
use crate::load::h2load::{self, Ask, Pace, Paced, Protocol};
use crate::machine;
use crate::machine::spent::{Spent, Watch};
use crate::peers::nginx::Caching;
use crate::progress::Progress;
use crate::report::{Report, bars, by_percentile};
use capacity::Capacity;
use sluice_tests::edge::tls::Certificate;
use sluice_tests::origin::{Origin, Reply};
use std::time::Duration;

const BYTES: usize = 10_000;
const PATH: &str = "/o10000.bin";
const KINDS: [Kind; 5] = [
    Kind::Sluice,
    Kind::Bare,
    Kind::Direct,
    Kind::Nginx(Caching::Lock),
    Kind::Haproxy,
];

/// Scale of the measurement.
struct Scale {
    /// The parts of its saturation that are tried for each contender.
    steps: &'static [f64],
    /// Parts of the lowest rate that a contender sustains.
    parts: &'static [f64],
    rounds: u32,
    /// Length of a round under full load.
    time: Duration,
    /// Plan for the trial of a rate.
    trial: Pace,
    /// Plan for one contender at one rate, which is filled in later.
    pace: Pace,
}

struct Run {
    paced: Paced,
    /// Handshakes included.
    spent: Spent,
}

/// All rounds of one contender at one rate.
struct Row {
    kind: Kind,
    rate: u32,
    runs: Rounds<Run>,
}

/// Results of the story.
struct Found {
    capacities: Vec<Capacity>,
    rows: Vec<Row>,
}

impl Scale {
    const fn new(quick: bool) -> Self {
        if quick {
            Self {
                steps: &[0.3],
                parts: &[1.0],
                rounds: 1,
                time: Duration::from_millis(300),
                trial: Pace::of_millis(300, 300),
                pace: Pace::of_millis(300, 600),
            }
        } else {
            Self {
                steps: &[0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
                parts: &[0.25, 0.5, 1.0],
                rounds: 3,
                time: Duration::from_millis(1_000),
                trial: Pace::of_millis(1_000, 2_000),
                pace: Pace::of_millis(1_000, 4_000),
            }
        }
    }
}

pub async fn run(quick: bool) -> Option<Report> {
    if !h2load::is_there() {
        return None;
    }
    let scale = Scale::new(quick);
    let before = machine::load();
    let origin = Origin::start().ready().await;
    origin.on(PATH, Reply::ok(BYTES).max_age(86_400));
    let certificate = Certificate::new();
    let servers = start_all(&KINDS, Before::OriginWithTls(&origin, &certificate)).await;
    let mut capacities = capacity::saturate(&servers, ask, scale.rounds, scale.time).await;
    let trials = (scale.steps, scale.rounds, scale.trial);
    capacity::climb(&mut capacities, &servers, ask, trials).await;
    let sustained = capacities.iter().map(|one| f64::from(one.sustained()));
    let (least, _) = sustained.collect::<Figures>().extremes();
    let mut rows = Vec::new();
    let progress = Progress::of(scale.parts.len() * servers.len() * scale.rounds as usize);
    for part in scale.parts {
        let rate = capacity::hundreds(least, *part);
        rows.extend(at(rate, &scale, &servers, &progress).await);
    }
    Some(report(&Found { capacities, rows }, &scale, before))
}

fn ask(server: &Contender) -> Ask<'static> {
    Ask {
        address: server.second,
        tls: true,
        protocol: Protocol::Http1,
        path: PATH,
    }
}

async fn at(rate: u32, scale: &Scale, servers: &[Contender], progress: &Progress) -> Vec<Row> {
    let row = |server: &Contender| Row {
        kind: server.kind,
        rate,
        runs: Rounds::default(),
    };
    let mut rows: Vec<_> = servers.iter().map(row).collect();
    for round in 1..=scale.rounds {
        for (row, server) in rows.iter_mut().zip(servers) {
            progress.step(format_args!("{}, {rate} a second, round {round}", row.kind));
            row.runs
                .add(measure(server, Pace { rate, ..scale.pace }).await);
        }
    }
    rows
}

async fn measure(server: &Contender, pace: Pace) -> (Run, f64) {
    let watch = Watch::start(&server.pids);
    let paced = h2load::pace(&ask(server), pace).await;
    let agreed = paced.tls.as_deref().unwrap_or("no TLS");
    assert!(
        agreed.starts_with("TLSv1.3, TLS_AES_128_GCM_SHA256"),
        "{agreed}"
    );
    let spent = watch.spent(paced.sent);
    (Run { paced, spent }, spent.foreign)
}

/// The percentiles for which there are enough times, and the longest time.
fn carried(count: u64) -> Vec<f64> {
    #[allow(clippy::cast_precision_loss)]
    let beyond = |percentile: f64| count as f64 * (1.0 - percentile / 100.0);
    let says = |&percentile: &f64| percentile >= 100.0 || beyond(percentile) >= 1.0;
    PERCENTILES.into_iter().filter(says).collect()
}

const COLUMNS: &str = "ms | a second | p50 | p90 | p99 | p99.9 | p99.99 | p99.999 | max | max by round | us CPU \
    | us h2load | cores | ";

impl Row {
    fn at(&self, percentile: f64) -> (Kind, Figures) {
        (
            self.kind,
            self.runs.of(|run| run.paced.times.percentile(percentile)),
        )
    }

    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        self.runs.of(figure).median()
    }

    fn carried(&self) -> Vec<f64> {
        let counts = self.runs.iter().map(|run| run.paced.times.count());
        carried(counts.min().unwrap_or(0))
    }

    /// Whether the requests were sent at the rate. If not, they were sent later and later, and their times say
    /// nothing.
    fn keeps_up(&self) -> bool {
        capacity::carries(self.rate, self.median(|run| run.paced.per_second))
    }

    /// Remark beside the figures.
    fn remark(&self) -> String {
        let failed: u64 = self.runs.sum(|run| run.paced.failed);
        if failed > 0 || self.keeps_up() {
            return remark(failed, "failed");
        }
        format!(
            "{:.0} a second were sent",
            self.median(|run| run.paced.per_second)
        )
    }

    fn cells(&self) -> Vec<String> {
        let carried = self.carried();
        let at = |percentile: f64| match self.keeps_up() && carried.contains(&percentile) {
            true => ms(self.at(percentile).1.median()),
            false => "-".to_owned(),
        };
        let mut cells = vec![self.kind.to_string(), self.rate.to_string()];
        cells.extend([50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0].map(at));
        cells.push(self.at(100.0).1.range(ms));
        cells.push(whole(self.median(|run| run.spent.server)));
        cells.push(whole(self.median(|run| run.spent.generator)));
        cells.push(format!("{:.2}", self.median(|run| run.spent.cores)));
        cells.push(self.remark());
        cells
    }
}

fn report(found: &Found, scale: &Scale, before: f64) -> Report {
    let times = found.rows.iter().flat_map(|row| {
        row.runs
            .distributions(&format!("{}, {} a second", row.kind, row.rate), |run| {
                &run.paced.times
            })
    });
    Report {
        title: "TLS 1.3 at constant rates".to_owned(),
        about: format!(
            "hits of {BYTES} bytes, {:.1} s each, {} rounds, in turn, {WORKERS} workers\n{}",
            scale.pace.time.as_secs_f64(),
            scale.rounds,
            machine::described(before, found.rows.iter().flat_map(|row| row.runs.foreign())),
        ),
        tables: vec![
            capacity::table(&found.capacities),
            Table::new(COLUMNS, found.rows.iter().map(Row::cells)),
        ],
        findings: findings(found),
        pictures: pictures(found),
        distributions: times.collect(),
    }
}

/// For each rate the times and the CPU time.
fn pictures(found: &Found) -> Vec<(String, String)> {
    let mut rates: Vec<_> = found.rows.iter().map(|row| row.rate).collect();
    rates.dedup();
    let of_rate = |rate: u32| {
        let of_rate = || {
            found
                .rows
                .iter()
                .filter(move |row| row.rate == rate && row.keeps_up())
        };
        let times = of_rate().map(|row| {
            (
                row.kind.to_string(),
                row.runs.iter().map(|run| &run.paced.times).collect(),
            )
        });
        let title = format!("How long a hit over TLS takes, {rate} a second");
        let cpu = of_rate().map(|row| (row.kind.to_string(), row.median(|run| run.spent.server)));
        let title_of_cpu = format!("CPU time of a hit over TLS, {rate} a second");
        [
            (format!("{rate}-times"), by_percentile(title, times)),
            (format!("{rate}-cpu"), bars(title_of_cpu, "us", cpu)),
        ]
    };
    rates.into_iter().flat_map(of_rate).collect()
}

fn findings(found: &Found) -> Conclusions {
    let mut findings = Conclusions::default();
    for capacity in &found.capacities {
        capacity.compare(&mut findings);
    }
    let compared = |row: &&Row| row.kind != Kind::Direct && row.keeps_up();
    let rows: Vec<_> = found.rows.iter().filter(compared).collect();
    for ours in rows.iter().filter(|row| row.kind.is_sluice()) {
        let peers = rows
            .iter()
            .filter(|row| row.rate == ours.rate && !row.kind.is_sluice());
        for theirs in peers {
            for (name, percentile) in [("p50", 50.0), ("p99.9", 99.9), ("longest time", 100.0)] {
                let what = format!("{name} at {} a second", ours.rate);
                findings.compare(what, ours.at(percentile), theirs.at(percentile));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_percentile_is_given_that_the_sample_does_not_carry() {
        assert_eq!(
            carried(100),
            [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 100.0]
        );
        assert_eq!(carried(0), [100.0]);
    }
}
