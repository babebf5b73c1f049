// SPDX-License-Identifier: Apache-2.0
//! TLS 1.3 at constant rates: how long hits take, up to the rate at which the first contender is saturated.

mod capacity;

use crate::contenders::{Before, Contender, Kind, Rated, WORKERS, start_all};
use crate::figures::format::{ms, remark, whole};
use crate::figures::{self, Conclusions, Figures, PERCENTILES, Table, in_turn};
use crate::load::h2load::{self, Ask, Pace, Paced, Protocol};
use crate::machine;
use crate::machine::usage::{Meter, Taken};
use crate::peers::nginx::Caching;
use crate::report::{Report, by_percentile};
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
    taken: Taken,
}

type Row = figures::Row<Rated, Run>;

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
    for part in scale.parts {
        let rate = capacity::hundreds(least, *part);
        let cases = servers.iter().map(|server| Rated {
            kind: server.kind,
            rate,
        });
        let of_rate = in_turn(cases, scale.rounds, async |case, _| {
            let server = servers.iter().find(|server| server.kind == case.kind)?;
            Some(measure(server, Pace { rate, ..scale.pace }).await)
        });
        rows.extend(of_rate.await);
    }
    Some(report(&Found { capacities, rows }, &scale))
}

fn ask(server: &Contender) -> Ask<'static> {
    Ask {
        address: server.second,
        tls: true,
        protocol: Protocol::Http1,
        path: PATH,
    }
}

async fn measure(server: &Contender, pace: Pace) -> (Run, f64) {
    let meter = Meter::start(&server.pids);
    let paced = h2load::pace(&ask(server), pace).await;
    let agreed = paced.tls.as_deref().unwrap_or("no TLS");
    assert!(
        agreed.starts_with("TLSv1.3, TLS_AES_128_GCM_SHA256"),
        "{agreed}"
    );
    let taken = meter.taken().expect("a server that runs");
    (Run { paced, taken }, meter.foreign())
}

/// The percentiles for which there are enough times, and the longest time.
fn carried(count: u64) -> Vec<f64> {
    #[allow(clippy::cast_precision_loss)]
    let beyond = |percentile: f64| count as f64 * (1.0 - percentile / 100.0);
    let says = |&percentile: &f64| percentile >= 100.0 || beyond(percentile) >= 1.0;
    PERCENTILES.into_iter().filter(says).collect()
}

impl Run {
    fn cpu(&self) -> f64 {
        self.taken.cpu_us(self.paced.sent)
    }
}

const COLUMNS: &str = "ms | a second | p50 | p90 | p99 | p99.9 | p99.99 | p99.999 | max | max by round | us CPU \
    | us h2load | cores | ";

impl Row {
    fn at(&self, percentile: f64) -> (Kind, Figures) {
        (
            self.case.kind,
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
        capacity::carries(self.case.rate, self.median(|run| run.paced.per_second))
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
        let mut cells = vec![self.case.kind.to_string(), self.case.rate.to_string()];
        cells.extend([50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0].map(at));
        cells.push(self.at(100.0).1.range(ms));
        cells.push(whole(self.median(Run::cpu)));
        cells.push(whole(
            self.median(|run| run.taken.generator_us(run.paced.sent)),
        ));
        cells.push(format!("{:.2}", self.median(|run| run.taken.cores())));
        cells.push(self.remark());
        cells
    }
}

fn report(found: &Found, scale: &Scale) -> Report {
    Report {
        title: "TLS 1.3 at constant rates".to_owned(),
        about: format!(
            "hits of {BYTES} bytes, {:.1} s each, {} rounds, in turn, {WORKERS} workers\n{}",
            scale.pace.time.as_secs_f64(),
            scale.rounds,
            machine::described(Row::foreign(&found.rows)),
        ),
        tables: vec![
            capacity::table(&found.capacities),
            Table::new(COLUMNS, found.rows.iter().map(Row::cells)),
        ],
        findings: findings(found),
        pictures: pictures(found),
        distributions: Row::distributions(&found.rows, "", |run| &run.paced.times),
    }
}

/// The times for each rate.
fn pictures(found: &Found) -> Vec<(String, String)> {
    let mut rates: Vec<_> = found.rows.iter().map(|row| row.case.rate).collect();
    rates.dedup();
    let picture = |rate: u32| {
        let rows = found.rows.iter();
        let of_rate = rows.filter(|row| row.case.rate == rate && row.keeps_up());
        let title = format!("How long a hit over TLS takes, {rate} a second");
        let kind = |case: &Rated| case.kind.to_string();
        let picture = by_percentile(title, of_rate, kind, |run| &run.paced.times);
        (format!("{rate}-times"), picture)
    };
    rates.into_iter().map(picture).collect()
}

fn findings(found: &Found) -> Conclusions {
    let mut findings = Conclusions::default();
    for capacity in &found.capacities {
        capacity.compare(&mut findings);
    }
    let compared = |row: &&Row| row.case.kind != Kind::Direct && row.keeps_up();
    let rows: Vec<_> = found.rows.iter().filter(compared).collect();
    for ours in rows.iter().filter(|row| row.case.kind.is_sluice()) {
        let peers = rows
            .iter()
            .filter(|row| row.case.rate == ours.case.rate && !row.case.kind.is_sluice());
        for theirs in peers {
            for (name, percentile) in [("p50", 50.0), ("p99.9", 99.9), ("longest time", 100.0)] {
                let what = format!("{name} at {} a second", ours.case.rate);
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
