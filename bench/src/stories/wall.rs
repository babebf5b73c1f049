// SPDX-License-Identifier: Apache-2.0
//! The 500 ms wall: random access to objects of a bucket from a cold cache, at constant arrival rates. Sometimes two
//! clients ask for one cold object at the same time. If the server polls for the first one's response, the second one
//! waits half a second.

use crate::contenders::{Before, Contender, Kind, WORKERS};
use crate::figures::format::{count, ms, remark, whole};
use crate::figures::{Conclusions, Rounds, Table};
use crate::load::k6::{self, Load, Outcome};
use crate::machine;
use crate::machine::usage::{Bystander, Meter, Taken};
use crate::peers::nginx::Caching;
use crate::progress::Progress;
use crate::report::{Report, bars, by_percentile};
use crate::stories::scope;
use sluice_tests::bucket::proxy::Proxy;
use sluice_tests::bucket::{Bucket, minio};
use std::time::Duration;

const SIZE: usize = 10_000;
/// Delay of a request to the bucket: S3 takes 100 to 200 ms for a small object, according to its documentation. A
/// bucket on the same machine answers in one, and two clients hardly ever ask for an object within that.
const DISTANCE: Duration = Duration::from_millis(100);
const NGINX: Kind = Kind::Nginx(Caching::Lock);
const GATEWAY: Kind = Kind::Nginx(Caching::Gateway);
/// Requests a second.
const RATES: [u32; 4] = [100, ALL_AT, 1_000, 2_000];
/// The rate at which all contenders are measured.
const ALL_AT: u32 = 500;
/// The contenders in the pictures of times.
const DRAWN: [Kind; 4] = [Kind::Origin, NGINX, Kind::Varnish, Kind::Sluice];
/// The contenders that are measured at one rate only; the first three are not part of a quick run.
const OTHERS: [Kind; 8] = [
    Kind::Nginx(Caching::NoLock),
    Kind::Nginx(Caching::LockTimeout),
    Kind::SluiceMemory,
    Kind::Nginx(Caching::Slices),
    GATEWAY,
    Kind::Haproxy,
    Kind::TrafficServer,
    Kind::Bare,
];

const CPU_REASON: &str = "Envoy alone takes more for a request than they do (row `bare Envoy`). \
     Sluice adds a Wasm filter to each request, and a second listener and a signature to a miss.";
const MEMORY_REASON: &str = "Envoy's code and tables are larger, and each worker and the main thread have a virtual machine \
     with the filter in it.";

/// Scale of the measurement.
struct Scale {
    objects: u32,
    seconds: u32,
    rounds: u32,
    /// The contenders at each rate.
    rates: Vec<(u32, Vec<Kind>)>,
}

impl Scale {
    fn new(quick: bool) -> Self {
        if quick {
            let kinds = [&DRAWN[..], &OTHERS[3..]].concat();
            return Self {
                objects: 300,
                seconds: 2,
                rounds: 1,
                rates: vec![(300, kinds)],
            };
        }
        let foremost = [&DRAWN[..], &[Kind::SluiceNative]].concat();
        let all = [&foremost[..], &OTHERS].concat();
        let kinds = |rate| if rate == ALL_AT { &all } else { &foremost };
        let rates = scope::rates(&RATES).into_iter();
        Self {
            objects: 10_000,
            seconds: 10,
            rounds: scope::rounds(3),
            rates: rates.map(|rate| (rate, kinds(rate).clone())).collect(),
        }
    }

    fn runs(&self) -> usize {
        let servers: usize = self.rates.iter().map(|(_, kinds)| kinds.len()).sum();
        servers * self.rounds as usize
    }
}

/// One run of one contender.
struct Run {
    outcome: Outcome,
    /// Number of requests that the bucket received, and the most for one object.
    fetches: (usize, usize),
    /// CPU time and memory of the server; `None` if it died, and for the bucket itself.
    taken: Option<Taken>,
    died: bool,
}

/// All rounds of one contender at one rate.
struct Row {
    kind: Kind,
    rate: u32,
    runs: Rounds<Run>,
}

pub async fn run(quick: bool) -> Report {
    let scale = Scale::new(quick);
    let before = machine::load();
    eprintln!("filling a bucket with {} objects", scale.objects);
    let bucket = fill(scale.objects).await;
    let mut rows = Vec::new();
    let progress = Progress::of(scale.runs());
    for &(rate, ref kinds) in &scale.rates {
        let row = |&kind: &Kind| Row {
            kind,
            rate,
            runs: Rounds::default(),
        };
        let mut of_rate: Vec<_> = kinds.iter().map(row).collect();
        for round in 1..=scale.rounds {
            for row in &mut of_rate {
                progress.step(format_args!("{}, {rate} a second, round {round}", row.kind));
                // Each contender is started again: with a cold cache, and with its own peak of memory.
                let proxy = Proxy::distant(bucket.server().address(), DISTANCE);
                if let Some(server) = row.kind.start(Before::Bucket(&bucket, &proxy)).await {
                    let load = Load {
                        rate,
                        seconds: scale.seconds,
                        objects: scale.objects,
                        seed: round,
                    };
                    row.runs.add(measure(&server, &bucket, &proxy, load).await);
                }
            }
        }
        of_rate.retain(|row| !row.runs.is_empty());
        rows.append(&mut of_rate);
    }
    report(&scale, &rows, before)
}

/// Fills a public bucket.
async fn fill(objects: u32) -> Bucket {
    let bucket = minio::shared().await.bucket().await;
    bucket.publish().await;
    let content = vec![b'x'; SIZE];
    let headers = [("cache-control", "max-age=86400")];
    for object in 0..objects {
        let key = format!("o{object}.bin");
        bucket.put(&key, &headers, &content).await;
    }
    bucket
}

async fn measure(server: &Contender, bucket: &Bucket, proxy: &Proxy, load: Load) -> (Run, f64) {
    // Sluice serves the bucket; the others forward to the host that has it.
    let below = if server.kind.is_sluice() {
        String::new()
    } else {
        format!("/{}", bucket.name())
    };
    let (bystander, meter) = (Bystander::start(), Meter::start(&server.pids));
    let outcome = k6::run(&format!("http://{}{below}", server.address), load).await;
    let taken = meter.taken();
    let run = Run {
        died: taken.is_none() && server.kind != Kind::Origin,
        fetches: fetches(proxy),
        taken,
        outcome,
    };
    (run, bystander.foreign())
}

/// Number of requests that the bucket received, and the most for one object.
fn fetches(proxy: &Proxy) -> (usize, usize) {
    let requests = proxy.requests().all().into_iter();
    let targets = requests.map(|request| request.target);
    let mut targets: Vec<_> = targets.filter(|target| target.ends_with(".bin")).collect();
    targets.sort_unstable();
    let most = targets.chunk_by(|one, other| one == other).map(<[_]>::len);
    (targets.len(), most.max().unwrap_or(0))
}

impl Run {
    /// Microseconds of CPU time for each request.
    fn cpu(&self) -> Option<f64> {
        Some(self.taken?.cpu_us(self.outcome.sent.count()))
    }

    fn memory(&self) -> Option<f64> {
        Some(self.taken?.peak_mib)
    }

    fn longest(&self) -> f64 {
        self.outcome.sent.percentile(100.0)
    }
}

const COLUMNS: &str = "ms from sending | req/s | avg | min | p50 | p90 | p95 | p99 | p99.9 | max | max by round \
    | p99 due | max due | origin | per key | us CPU | MiB | ";

impl Row {
    fn name(&self) -> String {
        match self.kind {
            Kind::Origin => "the bucket itself".to_owned(),
            kind => kind.to_string(),
        }
    }

    fn most_per_key(&self) -> usize {
        self.runs.iter().map(|run| run.fetches.1).max().unwrap_or(0)
    }

    fn cells(&self) -> Vec<String> {
        let median = |figure: &dyn Fn(&Run) -> f64| ms(self.runs.of(figure).median());
        let sent = |percentile: f64| median(&|run| run.outcome.sent.percentile(percentile));
        let due = |percentile: f64| median(&|run| run.outcome.due.percentile(percentile));
        let remarks = [
            remark(self.runs.sum(|run| run.outcome.failed), "failed"),
            remark(self.runs.sum(|run| run.outcome.dropped), "not sent"),
            remark(self.runs.sum(|run| u64::from(run.died)), "died"),
        ];
        let mut cells = vec![self.name(), self.rate.to_string()];
        cells.push(median(&|run| run.outcome.sent.average()));
        cells.extend([0.0, 50.0, 90.0, 95.0, 99.0, 99.9, 100.0].map(sent));
        cells.push(self.runs.of(Run::longest).range(ms));
        cells.extend([99.0, 100.0].map(due));
        cells.push(whole(self.runs.of(|run| count(run.fetches.0)).median()));
        cells.push(self.most_per_key().to_string());
        cells.push(whole(self.runs.of_all(Run::cpu).median()));
        cells.push(whole(self.runs.of_all(Run::memory).median()));
        let said = remarks.into_iter().filter(|remark| !remark.is_empty());
        cells.push(said.collect::<Vec<_>>().join(", "));
        cells
    }
}

fn report(scale: &Scale, rows: &[Row], before: f64) -> Report {
    let times = rows.iter().flat_map(|row| {
        let name = format!("{}, {} a second", row.name(), row.rate);
        let sent = row
            .runs
            .distributions(&format!("{name}, from sending"), |run| &run.outcome.sent);
        sent.into_iter().chain(
            row.runs
                .distributions(&format!("{name}, from due"), |run| &run.outcome.due),
        )
    });
    Report {
        title: "The 500 ms wall".to_owned(),
        about: format!(
            "{} objects of {SIZE} bytes in a bucket that is {} ms away, cold at each start, {} s at constant arrival rates, \
             {} rounds, in turn, {WORKERS} workers\n{}",
            scale.objects,
            DISTANCE.as_millis(),
            scale.seconds,
            scale.rounds,
            machine::described(before, rows.iter().flat_map(|row| row.runs.foreign())),
        ),
        tables: vec![Table::new(COLUMNS, rows.iter().map(Row::cells))],
        findings: findings(rows),
        pictures: pictures(scale, rows),
        distributions: times.collect(),
    }
}

/// Times for each rate, and CPU time and memory at the rate at which all are measured.
fn pictures(scale: &Scale, rows: &[Row]) -> Vec<(String, String)> {
    let mut pictures = Vec::new();
    for (rate, _) in &scale.rates {
        let of_rate = rows
            .iter()
            .filter(|row| row.rate == *rate && DRAWN.contains(&row.kind));
        let line = |row| {
            (
                name_of_line(row),
                row.runs.iter().map(|run| &run.outcome.sent).collect(),
            )
        };
        let title = format!(
            "How long a request takes: random objects of a bucket, {rate} requests a second"
        );
        pictures.push((rate.to_string(), by_percentile(title, of_rate.map(line))));
    }
    let Some(all) = rows.iter().find(|row| row.kind == Kind::Haproxy) else {
        return pictures;
    };
    let servers = [
        NGINX,
        GATEWAY,
        Kind::Varnish,
        Kind::Haproxy,
        Kind::TrafficServer,
        Kind::Bare,
        Kind::Sluice,
    ];
    let of_rate = rows
        .iter()
        .filter(|row| row.rate == all.rate && servers.contains(&row.kind));
    for (name, title, unit, figure) in [
        (
            "cpu",
            "CPU time for each request",
            "us",
            Run::cpu as fn(&Run) -> Option<f64>,
        ),
        ("memory", "Memory at the most", "MiB", Run::memory),
    ] {
        let title = format!("{title}, {} requests a second", all.rate);
        let bar = |row: &Row| (row.name(), row.runs.of_all(figure).median());
        pictures.push((name.to_owned(), bars(title, unit, of_rate.clone().map(bar))));
    }
    pictures
}

fn name_of_line(row: &Row) -> String {
    match row.kind {
        Kind::Origin => "the bucket".to_owned(),
        NGINX => "nginx with its lock".to_owned(),
        kind => kind.to_string(),
    }
}

/// Compares Sluice with each peer.
fn findings(rows: &[Row]) -> Conclusions {
    let mut findings = Conclusions::default();
    for ours in rows.iter().filter(|row| row.kind.is_sluice()) {
        let compared = [
            Kind::Origin,
            NGINX,
            GATEWAY,
            Kind::Varnish,
            Kind::TrafficServer,
        ];
        let of_rate = rows.iter().filter(|row| row.rate == ours.rate);
        for theirs in of_rate.filter(|row| compared.contains(&row.kind)) {
            let what = format!("longest time at {}/s", ours.rate);
            let figures = |row: &Row| (row.name(), row.runs.of(Run::longest));
            findings.compare(what, figures(ours), figures(theirs));
        }
    }
    usage_findings(&mut findings, rows);
    for row in rows
        .iter()
        .filter(|row| row.kind.is_sluice() && row.most_per_key() != 1)
    {
        let (kind, rate, most) = (row.kind, row.rate, row.most_per_key());
        findings.say(format!("{kind} asked the bucket up to {most} times for one object at {rate}/s: it should be once."));
    }
    findings
}

/// Compares the CPU time and memory of Sluice with default settings with those of the peers, at the rate at which all
/// are measured.
fn usage_findings(findings: &mut Conclusions, rows: &[Row]) {
    let Some(all) = rows.iter().find(|row| row.kind == Kind::Haproxy) else {
        return;
    };
    let rate = all.rate;
    let of = |kind| rows.iter().find(|row| row.kind == kind && row.rate == rate);
    for peer in [
        NGINX,
        GATEWAY,
        Kind::Varnish,
        Kind::Haproxy,
        Kind::TrafficServer,
        Kind::Bare,
    ] {
        let Some((ours, theirs)) = of(Kind::Sluice).zip(of(peer)) else {
            continue;
        };
        let cpu = |row: &Row| (row.name(), row.runs.of_all(Run::cpu));
        let what = format!("CPU time per request at {rate}/s");
        findings.compare_with_reason(what, cpu(ours), cpu(theirs), CPU_REASON);
        let memory = |row: &Row| (row.name(), row.runs.of_all(Run::memory));
        let what = format!("peak memory at {rate}/s");
        findings.compare_with_reason(what, memory(ours), memory(theirs), MEMORY_REASON);
    }
}
