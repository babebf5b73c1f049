// SPDX-License-Identifier: Apache-2.0
//! The 500 ms wall: random access to objects of a bucket from a cold cache, at constant arrival rates. Now and then two
//! clients ask for one cold object at the same time, and who polls for the other's response waits half a second.

use crate::contenders::server::{DISTANCE, Kind, Server, WORKERS};
use crate::figures::conclusions::{Conclusions, Ratio};
use crate::figures::distribution::Distribution;
use crate::figures::sample::{Sample, extremes};
use crate::load::k6::{self, Load, Outcome};
use crate::machine;
use crate::machine::usage::Bystander;
use crate::peers::nginx::Lock;
use crate::progress::Progress;
use crate::report;
use crate::report::table;
use serde_json::{Value, json};
use sluice_tests::matrix::{Medium, Store};
use sluice_tests::minio::{Bucket, Minio};

const SIZE: usize = 10_000;

const CPU_REASON: &str = "Envoy by itself takes more for a request than they do (the row of the bare Envoy); with Sluice a Wasm filter is in \
     each, and a miss passes a second listener and is signed.";
const MEMORY_REASON: &str = "Envoy's code and tables are larger, and each worker and the main thread have a virtual machine \
     with the filter in it.";

/// How much is measured.
struct Scale {
    objects: u32,
    seconds: u32,
    rounds: u32,
    /// Who is measured at each rate.
    rates: Vec<(u32, Vec<Kind>)>,
}

impl Scale {
    const QUICK: [Kind; 6] = [
        Kind::Bucket,
        Kind::Nginx(Lock::On),
        Kind::Varnish,
        Kind::Haproxy,
        Kind::Bare(Store::V1_DISK),
        Kind::Sluice(Medium::Disk),
    ];

    /// Those that are measured at every rate.
    const FOREMOST: [Kind; 5] = [
        Kind::Bucket,
        Kind::Nginx(Lock::On),
        Kind::Nginx(Lock::Off),
        Kind::Varnish,
        Kind::Sluice(Medium::Disk),
    ];

    fn new(quick: bool) -> Self {
        if quick {
            return Self {
                objects: 300,
                seconds: 2,
                rounds: 1,
                rates: vec![(300, Self::QUICK.to_vec())],
            };
        }
        let foremost = |rate| (rate, Self::FOREMOST.to_vec());
        Self {
            objects: 10_000,
            seconds: 10,
            rounds: 3,
            rates: vec![
                foremost(100),
                (500, Self::everyone()),
                foremost(1_000),
                foremost(2_000),
            ],
        }
    }

    fn everyone() -> Vec<Kind> {
        let peers = [
            Kind::Bucket,
            Kind::Nginx(Lock::On),
            Kind::Nginx(Lock::Off),
            Kind::Nginx(Lock::Timeout),
            Kind::Varnish,
            Kind::Haproxy,
        ];
        let bare = Store::ALL.map(Kind::Bare);
        let ours = [Medium::Disk, Medium::Memory].map(Kind::Sluice);
        peers.into_iter().chain(bare).chain(ours).collect()
    }

    fn runs(&self) -> usize {
        let servers: usize = self.rates.iter().map(|(_, kinds)| kinds.len()).sum();
        servers * self.rounds as usize
    }
}

/// One run of one contender.
struct Run {
    outcome: Outcome,
    /// Requests that the bucket got, and the most for one object.
    fetches: (usize, usize),
    /// CPU time for each request, in microseconds.
    cpu: Option<f64>,
    /// The most memory, in MiB.
    memory: Option<f64>,
    /// The part of the machine that others took.
    foreign: f64,
    /// Whether it lived to its end.
    died: bool,
}

/// All rounds of one contender at one rate.
struct Row {
    kind: Kind,
    rate: u32,
    runs: Vec<Run>,
}

pub async fn run(quick: bool) {
    let scale = Scale::new(quick);
    let before = machine::load();
    eprintln!("filling a bucket with {} objects", scale.objects);
    let bucket = fill(scale.objects).await;
    let mut rows = Vec::new();
    let mut progress = Progress::of(scale.runs());
    for &(rate, ref kinds) in &scale.rates {
        let row = |&kind: &Kind| Row {
            kind,
            rate,
            runs: Vec::new(),
        };
        let mut of_rate: Vec<_> = kinds.iter().map(row).collect();
        for round in 1..=scale.rounds {
            for row in &mut of_rate {
                let kind = row.kind;
                progress.step(format_args!("{kind}, {rate} a second, round {round}"));
                if let Some(server) = row.kind.start(&bucket).await {
                    row.runs.push(measure(server, &scale, rate, round).await);
                }
            }
        }
        of_rate.retain(|row| !row.runs.is_empty());
        rows.append(&mut of_rate);
    }
    let text = tell(&scale, &rows, before);
    let stem = report::keep_data("wall", &text, data(&scale, &rows, quick));
    let named = rows.iter().flat_map(Row::distributions);
    report::keep_distributions(&stem, &named.collect::<Vec<_>>());
}

/// A bucket that everyone may read.
async fn fill(objects: u32) -> Bucket {
    let bucket = Minio::shared().await.bucket().await;
    bucket.publish().await;
    let content = vec![b'x'; SIZE];
    let headers = [("cache-control", "max-age=86400")];
    for object in 0..objects {
        let key = format!("o{object}.bin");
        bucket.put(&key, &headers, &content).await;
    }
    bucket
}

async fn measure(server: Server, scale: &Scale, rate: u32, round: u32) -> Run {
    let load = Load {
        rate,
        seconds: scale.seconds,
        objects: scale.objects,
        seed: round,
    };
    let (bystander, cpu) = (Bystander::start(), server.cpu_time());
    let outcome = k6::run(&server.base, load).await;
    let died = !server.alive();
    #[allow(clippy::cast_precision_loss)]
    let per_request = |seconds: f64| seconds * 1e6 / outcome.requests() as f64;
    let taken = server.cpu_time().zip(cpu).map(|(after, before)| {
        let taken = after.saturating_sub(before);
        per_request(taken.as_secs_f64())
    });
    Run {
        fetches: server.fetches(),
        cpu: taken.filter(|_| !died),
        memory: server.peak_mib().filter(|_| !died),
        foreign: bystander.foreign(),
        outcome,
        died,
    }
}

impl Row {
    /// The median round of a figure, where all rounds have it.
    fn median(&self, figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let figures: Option<Vec<_>> = self.runs.iter().map(figure).collect();
        let mut figures = figures?;
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    }

    fn percentile(&self, percentile: f64) -> String {
        let median = self.median(|run| Some(run.outcome.percentile(percentile)));
        median.map_or_else(|| "-".to_owned(), table::ms)
    }

    /// Those of each round, with their names.
    fn distributions(&self) -> Vec<(String, &Distribution)> {
        let (kind, rate) = (self.kind, self.rate);
        let rounds = self.runs.iter().zip(1..);
        let named = rounds.map(|(run, round)| {
            run.outcome
                .named(&format!("{kind}, {rate} a second, round {round}"))
        });
        named.flatten().collect()
    }

    /// What else there is to say of it.
    fn remarks(&self) -> String {
        let sum = |count: fn(&Run) -> u64| self.runs.iter().map(count).sum::<u64>();
        let remarks = [
            (sum(|run| run.outcome.failed), "failed"),
            (sum(|run| run.outcome.dropped), "not sent"),
            (sum(|run| u64::from(run.died)), "died"),
        ];
        let remarks = remarks.iter().filter(|(count, _)| *count > 0);
        let remarks: Vec<_> = remarks
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        remarks.join(", ")
    }

    fn cells(&self) -> Vec<String> {
        let whole =
            |figure: Option<f64>| figure.map_or("-".to_owned(), |value| format!("{value:.0}"));
        let due = |wanted| {
            let median = self.median(|run| Some(run.outcome.percentile_due(wanted)));
            median.map_or_else(String::new, table::ms)
        };
        #[allow(clippy::cast_precision_loss)]
        let fetches = |run: &Run| Some(run.fetches.0 as f64);
        let most = self.runs.iter().map(|run| run.fetches.1).max();
        let (least, longest) = extremes(self.runs.iter().map(|run| run.outcome.percentile(100.0)));
        vec![
            self.kind.to_string(),
            self.rate.to_string(),
            self.median(|run| Some(run.outcome.sent.average()))
                .map_or_else(String::new, table::ms),
            self.percentile(0.0),
            self.percentile(50.0),
            self.percentile(90.0),
            self.percentile(95.0),
            self.percentile(99.0),
            self.percentile(99.9),
            self.percentile(100.0),
            format!("{}-{}", table::ms(least), table::ms(longest)),
            due(99.0),
            due(100.0),
            whole(self.median(fetches)),
            most.unwrap_or(0).to_string(),
            whole(self.median(|run| run.cpu)),
            whole(self.median(|run| run.memory)),
            self.remarks(),
        ]
    }

    /// A figure of each round, beside how much of the machine others took.
    fn samples(&self, figure: impl Fn(&Run) -> f64) -> Vec<(f64, f64)> {
        let sample = |run: &Run| (figure(run), run.foreign);
        self.runs.iter().map(sample).collect()
    }
}

const COLUMNS: [&str; 18] = [
    "ms from sending",
    "req/s",
    "avg",
    "min",
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "max",
    "max by round",
    "p99 due",
    "max due",
    "origin",
    "per key",
    "us CPU",
    "MiB",
    "",
];

fn tell(scale: &Scale, rows: &[Row], before: f64) -> String {
    let foreign = Sample::of(rows.iter().flat_map(|row| &row.runs).map(|run| run.foreign));
    let head = format!(
        "The 500 ms wall: {} objects of {SIZE} bytes in a bucket that is {} ms away, cold at each start, {} s at constant \
         arrival rates, {} rounds, in turn, {WORKERS} workers\n{}",
        scale.objects,
        DISTANCE.as_millis(),
        scale.seconds,
        scale.rounds,
        machine::described(before, Some(foreign.median())),
    );
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    report::text(&head, &COLUMNS, &cells, &findings(rows))
}

/// What is said of ours and each peer, and what cannot be.
fn findings(rows: &[Row]) -> Vec<String> {
    let mut findings = Conclusions::default();
    for ours in rows
        .iter()
        .filter(|row| matches!(row.kind, Kind::Sluice(_)))
    {
        let of_rate = rows.iter().filter(|row| row.rate == ours.rate);
        let compared = [Kind::Bucket, Kind::Nginx(Lock::On), Kind::Varnish];
        for theirs in of_rate.filter(|row| compared.contains(&row.kind)) {
            let what = format!("longest time at {}/s", ours.rate);
            let longest = |run: &Run| run.outcome.percentile(100.0);
            findings.compare(&Ratio {
                what: &what,
                ours: (&ours.kind.to_string(), &ours.samples(longest)),
                theirs: (&theirs.kind.to_string(), &theirs.samples(longest)),
            });
        }
    }
    usage_findings(&mut findings, rows);
    for row in rows {
        let most = row.runs.iter().map(|run| run.fetches.1).max().unwrap_or(0);
        if matches!(row.kind, Kind::Sluice(_)) && most != 1 {
            let (kind, rate) = (row.kind, row.rate);
            findings.say(format!(
                "{kind} asked the bucket up to {most} times for one object at {rate}/s: it should be once."
            ));
        }
    }
    findings.all()
}

/// What ours takes of the machine as it comes, beside the peers at the rate at which all are.
fn usage_findings(findings: &mut Conclusions, rows: &[Row]) {
    let foremost = Kind::Sluice(Medium::Disk);
    let peers = [
        Kind::Nginx(Lock::On),
        Kind::Varnish,
        Kind::Haproxy,
        Kind::Bare(Store::V1_DISK),
    ];
    let Some(rate) = rows
        .iter()
        .find(|row| row.kind == Kind::Haproxy)
        .map(|row| row.rate)
    else {
        return;
    };
    let of = |kind| rows.iter().find(|row| row.kind == kind && row.rate == rate);
    for (ours, theirs) in peers
        .into_iter()
        .filter_map(|peer| of(foremost).zip(of(peer)))
    {
        let mut compare = |what: &str, reason, figure: fn(&Run) -> Option<f64>| {
            let rounds = |row: &Row| -> Option<Vec<_>> {
                let runs = row.runs.iter();
                runs.map(|run| Some((figure(run)?, run.foreign))).collect()
            };
            // Who has died has no figure.
            let Some((our_rounds, their_rounds)) = rounds(ours).zip(rounds(theirs)) else {
                return;
            };
            let figures = Ratio {
                what: &format!("{what} at {rate}/s"),
                ours: (&ours.kind.to_string(), &our_rounds),
                theirs: (&theirs.kind.to_string(), &their_rounds),
            };
            findings.compare_with_reason(&figures, reason);
        };
        compare("CPU time per request", CPU_REASON, |run| run.cpu);
        compare("peak memory", MEMORY_REASON, |run| run.memory);
    }
}

fn data(scale: &Scale, rows: &[Row], quick: bool) -> Value {
    let run = |run: &Run| {
        json!({
            "latency": run.outcome.json(), "origin_requests": run.fetches.0, "most_per_key": run.fetches.1,
            "cpu_us_per_request": run.cpu, "peak_mib": run.memory, "foreign": run.foreign, "died": run.died,
        })
    };
    let row = |row: &Row| {
        let runs: Vec<_> = row.runs.iter().map(run).collect();
        json!({"contender": row.kind.to_string(), "rate": row.rate, "runs": runs})
    };
    json!({
        "quick": quick, "objects": scale.objects, "bytes": SIZE, "seconds": scale.seconds, "workers": WORKERS,
        "columns": COLUMNS, "table": rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "findings": findings(rows), "rows": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
