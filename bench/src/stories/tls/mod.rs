// SPDX-License-Identifier: Apache-2.0
//! TLS 1.3 at constant rates: how long hits take, up to the rate at which the first contender is saturated.

mod capacity;

use crate::contenders::cache::{Cache, Kind, WORKERS};
use crate::figures::aim::Round;
use crate::figures::conclusions::{Conclusions, Ratio};
use crate::figures::distribution::PERCENTILES;
use crate::figures::sample::{Sample, extremes};
use crate::load::h2load::{self, Ask, Pace, Paced, Protocol};
use crate::machine;
use crate::machine::spent::{Spent, Watch};
use crate::progress::Progress;
use crate::report;
use crate::report::table;
use capacity::Capacity;
use serde_json::{Value, json};
use sluice_tests::matrix::{Medium, Store};
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::tls::Certificate;
use std::time::Duration;

const BYTES: usize = 10_000;
const PATH: &str = "/o10000.bin";
const OURS: Kind = Kind::Sluice(Medium::Disk);
const KINDS: [Kind; 5] = [
    OURS,
    Kind::Bare(Store::V1_DISK),
    Kind::Direct,
    Kind::Nginx,
    Kind::Haproxy,
];

/// How much is measured.
struct Scale {
    /// Parts of its saturation with which it is tried whether each contender keeps up.
    steps: &'static [f64],
    /// Parts of the least rate that a contender sustains.
    parts: &'static [f64],
    rounds: u32,
    /// Of asking as fast as it goes.
    time: Duration,
    /// Of trying a rate.
    trial: Pace,
    /// Of one contender at one rate; which is filled in.
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
    runs: Vec<Run>,
}

/// What the story has found.
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

pub async fn run(quick: bool) {
    if !h2load::is_there() {
        return;
    }
    let scale = Scale::new(quick);
    let before = machine::load();
    let origin = Origin::start().ready().await;
    origin.on(PATH, Reply::ok(BYTES).max_age(86_400));
    let certificate = Certificate::new();
    let mut caches = Vec::new();
    for kind in KINDS {
        if let Some(cache) = kind.start_with_tls(&origin, &certificate, BYTES).await {
            caches.push((kind, cache));
        }
    }
    let mut capacities = capacity::saturate(&caches, ask, scale.rounds, scale.time).await;
    let trials = (scale.steps, scale.rounds, scale.trial);
    capacity::climb(&mut capacities, &caches, ask, trials).await;
    let sustained = capacities.iter().map(|one| f64::from(one.sustained()));
    let (least, _) = extremes(sustained);
    let mut rows = Vec::new();
    let runs = scale.parts.len() * caches.len() * scale.rounds as usize;
    let mut progress = Progress::of(runs);
    for part in scale.parts {
        let rate = capacity::hundreds(least, *part);
        rows.extend(at(rate, &scale, &caches, &mut progress).await);
    }
    keep(&Found { capacities, rows }, &scale, quick, before);
}

fn keep(found: &Found, scale: &Scale, quick: bool, before: f64) {
    let text = tell(found, scale, before);
    let stem = report::keep_data("tls", &text, data(found, quick));
    let named = found.rows.iter().flat_map(|row| {
        let runs = row.runs.iter().zip(1..);
        runs.map(move |(run, round)| {
            let name = format!("{}, {} a second, round {round}", row.kind, row.rate);
            (name, &run.paced.times)
        })
    });
    report::keep_distributions(&stem, &named.collect::<Vec<_>>());
}

fn ask(cache: &Cache) -> Ask<'static> {
    Ask {
        address: cache.second,
        tls: true,
        protocol: Protocol::Http1,
        path: PATH,
    }
}

async fn at(
    rate: u32,
    scale: &Scale,
    caches: &[(Kind, Cache)],
    progress: &mut Progress,
) -> Vec<Row> {
    let row = |(kind, _): &(Kind, Cache)| Row {
        kind: *kind,
        rate,
        runs: Vec::new(),
    };
    let mut rows: Vec<_> = caches.iter().map(row).collect();
    for round in 1..=scale.rounds {
        for (row, (_, cache)) in rows.iter_mut().zip(caches) {
            progress.step(format_args!("{}, {rate} a second, round {round}", row.kind));
            row.runs
                .push(measure(cache, Pace { rate, ..scale.pace }).await);
        }
    }
    rows
}

async fn measure(cache: &Cache, pace: Pace) -> Run {
    let watch = Watch::start(cache.pid);
    let paced = h2load::pace(&ask(cache), pace).await;
    let agreed = paced.tls.as_deref().unwrap_or("no TLS");
    assert!(
        agreed.starts_with("TLSv1.3, TLS_AES_128_GCM_SHA256"),
        "{agreed}"
    );
    Run {
        spent: watch.spent(paced.sent),
        paced,
    }
}

/// The percentiles that so many times have something to say of, and the longest.
fn carried(count: u64) -> Vec<f64> {
    #[allow(clippy::cast_precision_loss)]
    let beyond = |percentile: f64| count as f64 * (1.0 - percentile / 100.0);
    let says = |&percentile: &f64| percentile >= 100.0 || beyond(percentile) >= 1.0;
    PERCENTILES.into_iter().filter(says).collect()
}

impl Row {
    fn rounds(&self, percentile: f64) -> Vec<Round> {
        let round = |run: &Run| (run.paced.times.percentile(percentile), run.spent.foreign);
        self.runs.iter().map(round).collect()
    }

    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        Sample::of(self.runs.iter().map(figure)).median()
    }

    fn carried(&self) -> Vec<f64> {
        let counts = self.runs.iter().map(|run| run.paced.times.count());
        carried(counts.min().unwrap_or(0))
    }

    /// What is sent ever later is counted from ever later too: there is nothing to be said of times then.
    fn keeps_up(&self) -> bool {
        capacity::carries(self.rate, self.median(|run| run.paced.per_second))
    }

    /// What there is to say beside the figures.
    fn remark(&self) -> String {
        let failed: u64 = self.runs.iter().map(|run| run.paced.failed).sum();
        if failed > 0 {
            format!("{failed} failed")
        } else if self.keeps_up() {
            String::new()
        } else {
            let sent = self.median(|run| run.paced.per_second);
            format!("{sent:.0} a second were sent")
        }
    }

    fn cells(&self) -> Vec<String> {
        let carried = self.carried();
        let at = |percentile: f64| {
            if self.keeps_up() && carried.contains(&percentile) {
                table::ms(self.median(|run| run.paced.times.percentile(percentile)))
            } else {
                "-".to_owned()
            }
        };
        let (least, most) = extremes(self.rounds(100.0).into_iter().map(|round| round.0));
        let mut cells = vec![self.kind.to_string(), self.rate.to_string()];
        cells.extend([50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0].map(at));
        cells.push(format!("{}-{}", table::ms(least), table::ms(most)));
        cells.push(format!("{:.0}", self.median(|run| run.spent.server)));
        cells.push(format!("{:.0}", self.median(|run| run.spent.generator)));
        cells.push(format!("{:.2}", self.median(|run| run.spent.cores)));
        cells.push(self.remark());
        cells
    }
}

const COLUMNS: [&str; 14] = [
    "ms",
    "a second",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "p99.99",
    "p99.999",
    "max",
    "max by round",
    "us CPU",
    "us h2load",
    "cores",
    "",
];

fn tell(found: &Found, scale: &Scale, before: f64) -> String {
    let runs = found.rows.iter().flat_map(|row| &row.runs);
    let head = format!(
        "TLS 1.3 at constant rates: hits of {BYTES} bytes, {:.1} s each, {} rounds, in turn, {WORKERS} workers\n{}",
        scale.pace.time.as_secs_f64(),
        scale.rounds,
        machine::described(
            before,
            Some(Spent::median(runs.map(|run| &run.spent), |spent| spent.foreign))
        ),
    );
    let capacities: Vec<_> = found.capacities.iter().map(Capacity::cells).collect();
    let head = format!(
        "{head}\n\n{}",
        table::render(&capacity::COLUMNS, &capacities)
    );
    let cells: Vec<_> = found.rows.iter().map(Row::cells).collect();
    report::text(&head, &COLUMNS, &cells, &findings(found))
}

fn findings(found: &Found) -> Vec<String> {
    let mut findings = Conclusions::default();
    for capacity in &found.capacities {
        capacity.compare(&mut findings);
    }
    let compared = |row: &&Row| row.kind != Kind::Direct && row.keeps_up();
    let rows: Vec<_> = found.rows.iter().filter(compared).collect();
    for ours in rows.iter().filter(|row| row.kind == OURS) {
        let same_rate = rows.iter().filter(|row| row.rate == ours.rate);
        for theirs in same_rate.filter(|row| row.kind != OURS) {
            for (name, percentile) in [("p50", 50.0), ("p99.9", 99.9), ("longest time", 100.0)] {
                findings.compare(&Ratio {
                    what: &format!("{name} at {} a second", ours.rate),
                    ours: (&ours.kind.to_string(), &ours.rounds(percentile)),
                    theirs: (&theirs.kind.to_string(), &theirs.rounds(percentile)),
                });
            }
        }
    }
    findings.all()
}

fn data(found: &Found, quick: bool) -> Value {
    let row = |row: &Row| {
        let percentiles = row.carried();
        let run = |run: &Run| {
            let sent = percentiles
                .iter()
                .map(|percentile| run.paced.times.percentile(*percentile));
            json!({
                "latency": {"percentiles": percentiles, "sent": sent.collect::<Vec<_>>()},
                "requests": run.paced.sent, "failed": run.paced.failed, "per_second": run.paced.per_second,
                "cpu_us_per_request": run.spent.server, "generator_us_per_request": run.spent.generator,
                "cores": run.spent.cores, "foreign": run.spent.foreign, "tls": run.paced.tls,
            })
        };
        let runs: Vec<_> = row.runs.iter().map(run).collect();
        json!({"contender": row.kind.to_string(), "rate": row.rate, "runs": runs})
    };
    let capacities = || found.capacities.iter();
    json!({
        "quick": quick, "columns": COLUMNS, "table": found.rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "tables": [{"columns": capacity::COLUMNS, "rows": capacities().map(Capacity::cells).collect::<Vec<_>>()}],
        "findings": findings(found), "rows": found.rows.iter().map(row).collect::<Vec<_>>(),
        "capacities": capacities().map(Capacity::data).collect::<Vec<_>>(),
    })
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
