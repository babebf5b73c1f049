// SPDX-License-Identifier: Apache-2.0
//! The 500 ms wall: random access to objects of a bucket from a cold cache, at constant arrival rates. Sometimes two
//! clients ask for one cold object at the same time. If the server polls for the first one's response, the second one
//! waits half a second.

use crate::contenders::{Before, Contender, Kind, WORKERS};
use crate::figures::format::{count, ms, remark, whole};
use crate::figures::{self, Conclusions, Table, in_turn};
use crate::load::k6::{self, Load, Outcome};
use crate::machine;
use crate::machine::usage::{Meter, Taken};
use crate::peers::nginx::Caching;
use crate::report::{Report, by_percentile};
use crate::stories::scope;
use sluice_tests::bucket::proxy::Proxy;
use sluice_tests::bucket::{Bucket, minio};
use std::fmt;
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

/// The peers whose times are compared with Sluice's.
const COMPARED: [Kind; 5] = [
    Kind::Origin,
    NGINX,
    GATEWAY,
    Kind::Varnish,
    Kind::TrafficServer,
];
/// The peers whose CPU time and memory are compared with Sluice's.
const USAGE_COMPARED: [Kind; 6] = [
    NGINX,
    GATEWAY,
    Kind::Varnish,
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

/// A contender at a rate.
#[derive(Clone, Copy)]
struct Case {
    kind: Kind,
    rate: u32,
}

type Row = figures::Row<Case, Run>;

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} a second", name(self.kind), self.rate)
    }
}

fn name(kind: Kind) -> String {
    match kind {
        Kind::Origin => "the bucket itself".to_owned(),
        kind => kind.to_string(),
    }
}

pub async fn run(quick: bool) -> Report {
    let scale = Scale::new(quick);
    eprintln!("filling a bucket with {} objects", scale.objects);
    let bucket = fill(scale.objects).await;
    let mut rows = Vec::new();
    for &(rate, ref kinds) in &scale.rates {
        let cases = kinds.iter().map(|&kind| Case { kind, rate });
        let of_rate = in_turn(cases, scale.rounds, async |case, round| {
            // Each contender is started again: with a cold cache, and with its own peak of memory.
            let proxy = Proxy::distant(bucket.server().address(), DISTANCE);
            let server = case.kind.start(Before::Bucket(&bucket, &proxy)).await?;
            let load = Load {
                rate,
                seconds: scale.seconds,
                objects: scale.objects,
                seed: round,
            };
            Some(measure(&server, &bucket, &proxy, load).await)
        });
        rows.extend(of_rate.await);
    }
    report(&scale, &rows)
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
    let meter = Meter::start(&server.pids);
    let outcome = k6::run(&format!("http://{}{below}", server.address), load).await;
    let taken = meter.taken();
    let run = Run {
        died: taken.is_none() && server.kind != Kind::Origin,
        fetches: fetches(proxy),
        taken,
        outcome,
    };
    (run, meter.foreign())
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
        let mut cells = vec![name(self.case.kind), self.case.rate.to_string()];
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

fn report(scale: &Scale, rows: &[Row]) -> Report {
    let mut times = Row::distributions(rows, ", from sending", |run| &run.outcome.sent);
    times.extend(Row::distributions(rows, ", from due", |run| {
        &run.outcome.due
    }));
    Report {
        title: "The 500 ms wall".to_owned(),
        about: format!(
            "{} objects of {SIZE} bytes in a bucket that is {} ms away, cold at each start, {} s at constant arrival rates, \
             {} rounds, in turn, {WORKERS} workers\n{}",
            scale.objects,
            DISTANCE.as_millis(),
            scale.seconds,
            scale.rounds,
            machine::described(Row::foreign(rows)),
        ),
        tables: vec![Table::new(COLUMNS, rows.iter().map(Row::cells))],
        findings: findings(rows),
        pictures: scale
            .rates
            .iter()
            .map(|(rate, _)| picture(*rate, rows))
            .collect(),
        distributions: times,
    }
}

/// The times at this rate.
fn picture(rate: u32, rows: &[Row]) -> (String, String) {
    let drawn = rows
        .iter()
        .filter(|row| row.case.rate == rate && DRAWN.contains(&row.case.kind));
    let name = |case: &Case| match case.kind {
        Kind::Origin => "the bucket".to_owned(),
        NGINX => "nginx with its lock".to_owned(),
        kind => kind.to_string(),
    };
    let title =
        format!("How long a request takes: random objects of a bucket, {rate} requests a second");
    let picture = by_percentile(title, drawn, name, |run| &run.outcome.sent);
    (rate.to_string(), picture)
}

/// Compares Sluice with each peer.
fn findings(rows: &[Row]) -> Conclusions {
    let mut findings = Conclusions::default();
    let ours = || rows.iter().filter(|row| row.case.kind.is_sluice());
    let theirs = |rate: u32, kinds: &'static [Kind]| {
        let kinds = kinds.iter();
        let row = move |kind: &Kind| {
            let mut rows = rows.iter();
            rows.find(|row| row.case.kind == *kind && row.case.rate == rate)
        };
        kinds.filter_map(row)
    };
    for ours in ours() {
        let rate = ours.case.rate;
        for theirs in theirs(rate, &COMPARED) {
            let figures = |row: &Row| (name(row.case.kind), row.runs.of(Run::longest));
            let what = format!("longest time at {rate}/s");
            findings.compare(what, figures(ours), figures(theirs));
        }
    }
    // The rate at which all are measured.
    let all = rows.iter().find(|row| row.case.kind == Kind::Haproxy);
    let at_all = |row: &&Row| all.is_some_and(|all| all.case.rate == row.case.rate);
    for ours in ours()
        .filter(at_all)
        .filter(|row| row.case.kind == Kind::Sluice)
    {
        let rate = ours.case.rate;
        for theirs in theirs(rate, &USAGE_COMPARED) {
            let mut compare = |what: &str, reason, figure: fn(&Run) -> Option<f64>| {
                let what = format!("{what} at {rate}/s");
                let figures = |row: &Row| (name(row.case.kind), row.runs.of_all(figure));
                findings.compare_with_reason(what, figures(ours), figures(theirs), reason);
            };
            compare("CPU time per request", CPU_REASON, Run::cpu);
            compare("peak memory", MEMORY_REASON, Run::memory);
        }
    }
    for row in ours().filter(|row| row.most_per_key() != 1) {
        let (kind, rate, most) = (row.case.kind, row.case.rate, row.most_per_key());
        findings.say(format!("{kind} asked the bucket up to {most} times for one object at {rate}/s: it should be once."));
    }
    findings
}
