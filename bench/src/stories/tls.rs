// SPDX-License-Identifier: Apache-2.0
//! TLS 1.3 at constant rates: how long hits take, up to the rate at which the first contender is saturated.

use crate::aim::Round;
use crate::cache::{Cache, Kind, WORKERS};
use crate::distribution::PERCENTILES;
use crate::findings::{Conclusions, Ratio};
use crate::h2load::{self, Ask, Pace, Paced, Protocol};
use crate::progress::Progress;
use crate::sample::{Sample, extremes};
use crate::usage::{Bystander, Meter};
use crate::{machine, report, table};
use serde_json::{Value, json};
use sluice_tests::matrix::Store;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::tls::Certificate;
use std::time::Duration;

const BYTES: usize = 10_000;
const PATH: &str = "/o10000.bin";
const OURS: Kind = Kind::Sluice(Store::V2_DISK);
const KINDS: [Kind; 3] = [OURS, Kind::Nginx, Kind::Haproxy];
/// With which saturation is looked for.
const CONNECTIONS: u32 = 32;

/// How much is measured.
struct Scale {
    /// Parts of the first saturation.
    parts: &'static [f64],
    rounds: u32,
    /// Of looking for a saturation.
    time: Duration,
    /// Of one contender at one rate; which is filled in.
    pace: Pace,
}

struct Run {
    paced: Paced,
    /// CPU time for each request, in microseconds, handshakes included.
    cpu: f64,
    foreign: f64,
}

/// All rounds of one contender at one rate.
struct Row {
    kind: Kind,
    rate: u32,
    runs: Vec<Run>,
}

impl Scale {
    fn new(quick: bool) -> Self {
        let millis = Duration::from_millis;
        Self {
            parts: if quick {
                &[0.5]
            } else {
                &[0.25, 0.5, 0.75, 0.9, 1.0]
            },
            rounds: if quick { 1 } else { 3 },
            time: millis(if quick { 300 } else { 1_000 }),
            pace: if quick {
                Pace::of_millis(300, 600)
            } else {
                Pace::of_millis(1_000, 5_000)
            },
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
        if let Some(cache) = kind.start_with_tls(&origin, &certificate).await {
            caches.push((kind, cache));
        }
    }
    let saturations = saturations(&scale, &caches).await;
    let (first, _) = extremes(saturations.iter().map(|(_, rate)| *rate));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rate = |part: &f64| ((first * part / 100.0) as u32).max(1) * 100;
    let mut rows = Vec::new();
    let runs = scale.parts.len() * caches.len() * scale.rounds as usize;
    let mut progress = Progress::of(runs);
    for rate in scale.parts.iter().map(rate) {
        rows.extend(at(rate, &scale, &caches, &mut progress).await);
    }
    let text = tell(&rows, &saturations, &scale, before);
    let stem = report::keep_data("tls", &text, data(&rows, quick));
    let named = rows.iter().flat_map(|row| {
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

/// The hits a second of each, asked as fast as it goes; the median round.
async fn saturations(scale: &Scale, caches: &[(Kind, Cache)]) -> Vec<(Kind, f64)> {
    let mut rounds = vec![Vec::new(); caches.len()];
    for (_, cache) in caches {
        h2load::saturate(&ask(cache), CONNECTIONS, scale.time).await;
    }
    for _ in 0..scale.rounds {
        for (rounds, (_, cache)) in rounds.iter_mut().zip(caches) {
            let found = h2load::saturate(&ask(cache), CONNECTIONS, scale.time).await;
            rounds.push(found.per_second);
        }
    }
    let kinds = caches.iter().map(|(kind, _)| *kind);
    let medians = rounds.into_iter().map(|rounds| Sample::of(rounds).median());
    kinds.zip(medians).collect()
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
    let (bystander, meter) = (Bystander::start(), Meter::start(&[cache.pid]));
    let paced = h2load::pace(&ask(cache), pace).await;
    let taken = meter.taken().expect("a server that runs");
    let agreed = paced.tls.as_deref().unwrap_or("no TLS");
    assert!(
        agreed.starts_with("TLSv1.3, TLS_AES_128_GCM_SHA256"),
        "{agreed}"
    );
    Run {
        cpu: taken.cpu_us(paced.sent),
        foreign: bystander.foreign(),
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
        let runs = self.runs.iter();
        runs.map(|run| (run.paced.times.percentile(percentile), run.foreign))
            .collect()
    }

    fn median(&self, percentile: f64) -> f64 {
        Sample::of(self.rounds(percentile).iter().map(|round| round.0)).median()
    }

    fn carried(&self) -> Vec<f64> {
        let counts = self.runs.iter().map(|run| run.paced.times.count());
        carried(counts.min().unwrap_or(0))
    }

    fn cells(&self) -> Vec<String> {
        let carried = self.carried();
        let at = |percentile: f64| {
            if carried.contains(&percentile) {
                table::ms(self.median(percentile))
            } else {
                "-".to_owned()
            }
        };
        let (least, most) = extremes(self.rounds(100.0).into_iter().map(|round| round.0));
        let failed: u64 = self.runs.iter().map(|run| run.paced.failed).sum();
        let mut cells = vec![self.kind.to_string(), self.rate.to_string()];
        cells.extend([50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0].map(at));
        cells.push(format!("{}-{}", table::ms(least), table::ms(most)));
        let cpu = Sample::of(self.runs.iter().map(|run| run.cpu)).median();
        cells.push(format!("{cpu:.0}"));
        cells.push(if failed == 0 {
            String::new()
        } else {
            format!("{failed} failed")
        });
        cells
    }
}

const COLUMNS: [&str; 12] = [
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
    "",
];

fn tell(rows: &[Row], saturations: &[(Kind, f64)], scale: &Scale, before: f64) -> String {
    let foreign = rows.iter().flat_map(|row| &row.runs).map(|run| run.foreign);
    let saturations: Vec<_> = saturations
        .iter()
        .map(|(kind, rate)| format!("{kind} {rate:.0}"))
        .collect();
    let head = format!(
        "TLS 1.3 at constant rates: hits of {BYTES} bytes, {:.1} s each, {} rounds, in turn, {WORKERS} workers\n{}\n\
         hits a second at saturation: {}",
        scale.pace.time.as_secs_f64(),
        scale.rounds,
        machine::described(before, Some(Sample::of(foreign).median())),
        saturations.join(", "),
    );
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    report::text(&head, &COLUMNS, &cells, &findings(rows))
}

fn findings(rows: &[Row]) -> Vec<String> {
    let mut findings = Conclusions::default();
    for ours in rows.iter().filter(|row| row.kind == OURS) {
        for theirs in rows
            .iter()
            .filter(|row| row.rate == ours.rate && row.kind != OURS)
        {
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

fn data(rows: &[Row], quick: bool) -> Value {
    let row = |row: &Row| {
        let percentiles = row.carried();
        let run = |run: &Run| {
            let sent = percentiles
                .iter()
                .map(|percentile| run.paced.times.percentile(*percentile));
            json!({
                "latency": {"percentiles": percentiles, "sent": sent.collect::<Vec<_>>()},
                "requests": run.paced.sent, "failed": run.paced.failed, "cpu_us_per_request": run.cpu,
                "foreign": run.foreign, "tls": run.paced.tls,
            })
        };
        let runs: Vec<_> = row.runs.iter().map(run).collect();
        json!({"contender": row.kind.to_string(), "rate": row.rate, "runs": runs})
    };
    json!({
        "quick": quick, "columns": COLUMNS, "table": rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "findings": findings(rows), "rows": rows.iter().map(row).collect::<Vec<_>>(),
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
