// SPDX-License-Identifier: Apache-2.0
//! Which worker works: how connections and CPU time spread over the workers, and what that does to times, by how
//! workers come to connections.

use crate::contenders::{Contender, Kind as Server, WORKERS};
use crate::figures::format::{ms, whole};
use crate::figures::{Conclusions, Distribution, Figures, Rounds, Table};
use crate::machine;
use crate::machine::usage::{self, Bystander, Meter, Taken};
use crate::origins::feed::feed;
use crate::peers::nginx::{self, Lock};
use crate::progress::Progress;
use crate::report::{Report, bars, by_percentile};
use sluice_tests::client::{Client, Response, request};
use sluice_tests::direct::Direct;
use sluice_tests::edge::Edge;
use sluice_tests::origin::{Origin, Reply};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};
use tokio::task::JoinSet;
use tokio::time::Instant;

const CONNECTIONS: u32 = 200;
/// How long a run is.
const SECONDS: u32 = 4;
const QUICK_SECONDS: u32 = 2;
/// One of either kind, kept alive and not.
const QUICK_LOADS: [Load; 2] = [Load::ALL[0], Load::ALL[3]];
const HIT: &str = "/hit";
const HIT_BYTES: usize = 10_000;
const COMPRESSING: &str = "origin: {kind: http}\ncompression: {enabled: true, codings: [gzip]}\n";

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Sluice as it comes: each worker has an accept queue, into which the kernel puts connections by their hash.
    Sluice,
    /// Each worker hands connections on to the one that has fewest.
    Balanced,
    /// nginx as it comes: all workers accept from one queue.
    Nginx,
    /// With an accept queue for each worker.
    NginxReuseport,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sluice => "Sluice",
            Self::Balanced => "Sluice, exact_balance",
            Self::Nginx => "nginx",
            Self::NginxReuseport => "nginx, reuseport",
        })
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    /// Text that nobody has asked for, to be compressed; else one stored object.
    heavy: bool,
    /// On connections that stay; else each request on one of its own.
    kept: bool,
}

impl Load {
    const ALL: [Self; 4] = [
        Self {
            heavy: false,
            kept: true,
        },
        Self {
            heavy: false,
            kept: false,
        },
        Self {
            heavy: true,
            kept: true,
        },
        Self {
            heavy: true,
            kept: false,
        },
    ];

    /// Requests a second.
    const fn rate(self) -> u32 {
        match (self.heavy, self.kept) {
            (true, _) => 100,
            (false, true) => 1_000,
            (false, false) => 500,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.heavy {
            "compressed misses"
        } else {
            "hits"
        };
        let how = if self.kept {
            "kept alive"
        } else {
            "a connection each"
        };
        write!(f, "{what}, {how}")
    }
}

struct Run {
    /// From when a request was due to the end of its answer.
    times: Distribution,
    /// Of each worker: connections, and what it has taken of the cores.
    connections: Vec<u64>,
    cpu: Vec<Duration>,
    taken: Taken,
}

struct Row {
    kind: Kind,
    load: Load,
    runs: Rounds<Run>,
}

pub async fn run(quick: bool) -> Report {
    let (rounds, seconds, loads) = if quick {
        (1, QUICK_SECONDS, &QUICK_LOADS[..])
    } else {
        (3, SECONDS, &Load::ALL[..])
    };
    let before = machine::load();
    let origin = Origin::start().ready().await;
    origin.on(HIT, Reply::ok(HIT_BYTES).max_age(86_400));
    let text = Reply::text(feed()).header("content-type", "application/json");
    origin.on("/heavy/*", text.max_age(86_400));
    let kinds = [
        Kind::Sluice,
        Kind::Balanced,
        Kind::Nginx,
        Kind::NginxReuseport,
    ];
    let mut rows = Vec::new();
    for &load in loads {
        rows.extend(kinds.map(|kind| Row {
            kind,
            load,
            runs: Rounds::default(),
        }));
    }
    let progress = Progress::of(rounds * rows.len());
    for round in 1..=rounds {
        for row in &mut rows {
            progress.step(format_args!("{}, {}, round {round}", row.kind, row.load));
            if let Some(server) = start(row.kind, &origin).await {
                row.runs.add(measure(&server, row.load, seconds).await);
            }
        }
    }
    rows.retain(|row| !row.runs.is_empty());
    report(&rows, rounds, seconds, before)
}

async fn start(kind: Kind, origin: &Origin) -> Option<Contender> {
    let server = match kind {
        Kind::Nginx | Kind::NginxReuseport => {
            let own_queues = kind == Kind::NginxReuseport;
            let nginx = nginx::start_workers(origin.address(), own_queues).await?;
            Contender::peer(Server::Nginx(Lock::On), nginx)
        }
        Kind::Sluice | Kind::Balanced => {
            let direct = Direct {
                exact_balance: kind == Kind::Balanced,
                ..Direct::default()
            };
            // NB: all statistics, as those of each worker are not among the few.
            let edge = Edge::http(origin).env("STATS", "all");
            let edge = edge.policy(COMPRESSING).direct(direct);
            Contender::sluice(Server::Sluice, edge).await
        }
    };
    let mut client = Client::connect(server.address).await;
    let hit = Load::ALL[0];
    let _ = exchange(&mut client, hit, 0).await;
    Some(server)
}

/// The CPU time that each worker has taken so far, by its thread or process.
fn cpu(server: &Contender) -> BTreeMap<u32, Duration> {
    match server.edge() {
        Some(edge) => usage::threads(edge.envoy_pid(), "wrk:worker_"),
        None => usage::children(server.pids[0]),
    }
}

/// The connections that each worker of an Envoy has had.
async fn connections(edge: &Edge) -> Vec<u64> {
    let name = format!("listener.127.0.0.1_{}.worker_", edge.address().port());
    let stats = edge.stats(&name).await.into_iter();
    let counts = stats.filter(|(name, _)| name.ends_with(".downstream_cx_total"));
    counts.map(|(_, count)| count).collect()
}

async fn measure(server: &Contender, load: Load, seconds: u32) -> (Run, f64) {
    let before = match server.edge() {
        Some(edge) => connections(edge).await,
        None => vec![],
    };
    let (bystander, meter) = (Bystander::start(), Meter::start(&server.pids));
    let (began, cpu_before) = (SystemTime::now(), cpu(server));
    let answers = ask(server.address, load, seconds).await;
    let after = cpu(server);
    let taken = meter.taken().expect("a server that runs");
    let foreign = bystander.foreign();
    let connections = match server.edge() {
        Some(edge) => {
            let counted = connections(edge).await.into_iter().zip(&before);
            counted.map(|(after, before)| after - before).collect()
        }
        None => by_worker(&answers),
    };
    let spent = after.iter().map(|(worker, after)| {
        after.saturating_sub(cpu_before.get(worker).copied().unwrap_or_default())
    });
    let times = answers.iter().flat_map(|answer| answer.times.clone());
    let run = Run {
        connections,
        cpu: spent.collect(),
        times: Distribution::since(began, times),
        taken,
    };
    (run, foreign)
}

/// The connections that each worker of nginx has had, as its answers say.
fn by_worker(answers: &[Answers]) -> Vec<u64> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for worker in answers.iter().filter_map(|answer| answer.worker.as_deref()) {
        *counts.entry(worker).or_default() += 1;
    }
    counts.into_values().collect()
}

/// What came on one connection.
struct Answers {
    times: Vec<Duration>,
    /// Who has answered, where the server says so.
    worker: Option<String>,
}

/// Asks at a constant rate: the n-th request is due after n periods, on the n-th connection of as many as there are, and
/// waits there only for the one before it.
async fn ask(address: SocketAddr, load: Load, seconds: u32) -> Vec<Answers> {
    let mut kept = Vec::new();
    for _ in 0..CONNECTIONS {
        kept.push(match load.kept {
            true => Some(Client::connect(address).await),
            false => None,
        });
    }
    let period = Duration::from_secs(1) / load.rate();
    let start = Instant::now() + Duration::from_millis(20);
    let each = load.rate() * seconds / CONNECTIONS;
    let mut asking = JoinSet::new();
    for (first, client) in (0..).zip(kept) {
        let dues = (0..each).map(move |turn| turn * CONNECTIONS + first);
        let dues = dues.map(move |number| (number, start + period * number));
        asking.spawn(async move {
            match client {
                Some(client) => on_one(client, load, dues).await,
                None => on_many(address, load, dues).await,
            }
        });
    }
    asking.join_all().await.into_iter().flatten().collect()
}

async fn on_one(
    mut client: Client,
    load: Load,
    dues: impl Iterator<Item = (u32, Instant)>,
) -> Vec<Answers> {
    let (mut times, mut worker) = (Vec::new(), None);
    for (number, due) in dues {
        tokio::time::sleep_until(due).await;
        let response = exchange(&mut client, load, number).await;
        times.push(due.elapsed());
        worker = response.headers.get("x-worker").map(str::to_owned);
    }
    vec![Answers { times, worker }]
}

async fn on_many(
    address: SocketAddr,
    load: Load,
    dues: impl Iterator<Item = (u32, Instant)>,
) -> Vec<Answers> {
    let mut answers = Vec::new();
    for (number, due) in dues {
        tokio::time::sleep_until(due).await;
        let mut client = Client::connect(address).await;
        let response = exchange(&mut client, load, number).await;
        answers.push(Answers {
            times: vec![due.elapsed()],
            worker: response.headers.get("x-worker").map(str::to_owned),
        });
    }
    answers
}

async fn exchange(client: &mut Client, load: Load, number: u32) -> Response {
    let (target, accepted, coding) = if load.heavy {
        (format!("/heavy/{number}"), "gzip", Some("gzip"))
    } else {
        (HIT.to_owned(), "identity", None)
    };
    let ask = request("GET", &target, &[("accept-encoding", accepted)]);
    let response = client.exchange(ask).await;
    let right = response.status == 200 && response.headers.get("content-encoding") == coding;
    assert!(right, "{target}: {response}");
    response
}

/// The part of the busiest of all, in percent.
fn busiest(parts: impl Iterator<Item = f64> + Clone) -> f64 {
    let all: f64 = parts.clone().sum();
    100.0 * parts.fold(0.0, f64::max) / all
}

impl Run {
    #[allow(clippy::cast_precision_loss)]
    fn busiest_connections(&self) -> f64 {
        busiest(self.connections.iter().map(|&count| count as f64))
    }

    fn busiest_cpu(&self) -> f64 {
        busiest(self.cpu.iter().map(Duration::as_secs_f64))
    }

    fn longest(&self) -> f64 {
        self.times.percentile(100.0)
    }

    fn cpu_us(&self) -> f64 {
        self.taken.cpu_us(self.times.count())
    }
}

const COLUMNS: &str = "ms from due |  | req/s | p50 | p90 | p99 | p99.9 | max | max by round | % connections | % CPU \
    | us CPU";

impl Row {
    fn figures(&self, figure: fn(&Run) -> f64) -> (Kind, Figures) {
        (self.kind, self.runs.of(figure))
    }

    fn cells(&self) -> Vec<String> {
        let at = |percentile: f64| {
            ms(self
                .runs
                .of(|run| run.times.percentile(percentile))
                .median())
        };
        let mut cells = vec![
            self.load.to_string(),
            self.kind.to_string(),
            self.load.rate().to_string(),
        ];
        cells.extend([50.0, 90.0, 99.0, 99.9, 100.0].map(at));
        cells.push(self.runs.of(Run::longest).range(ms));
        cells.push(self.runs.of(Run::busiest_connections).range(whole));
        cells.push(self.runs.of(Run::busiest_cpu).range(whole));
        cells.push(whole(self.runs.of(Run::cpu_us).median()));
        cells
    }

    fn name(&self) -> String {
        format!("{}, {}", self.load, self.kind)
    }
}

fn report(rows: &[Row], rounds: usize, seconds: u32, before: f64) -> Report {
    let times = rows
        .iter()
        .flat_map(|row| row.runs.distributions(&row.name(), |run| &run.times));
    Report {
        title: "Which worker works".to_owned(),
        about: format!(
            "{CONNECTIONS} connections at constant arrival rates for {seconds} s, {rounds} rounds, in turn, {WORKERS} \
             workers; the busiest worker's part of connections and CPU time, in percent\n{}",
            machine::described(before, rows.iter().flat_map(|row| row.runs.foreign())),
        ),
        tables: vec![Table::new(COLUMNS, rows.iter().map(Row::cells))],
        findings: findings(rows),
        pictures: pictures(rows),
        distributions: times.collect(),
    }
}

/// For each load, the times and how uneven the work is.
fn pictures(rows: &[Row]) -> Vec<(String, String)> {
    let mut loads: Vec<_> = rows.iter().map(|row| row.load).collect();
    loads.dedup();
    let of_load = |load: Load| {
        let of_load = || rows.iter().filter(move |row| row.load == load);
        let line = |row: &'_ Row| row.kind.to_string();
        let times =
            of_load().map(|row| (line(row), row.runs.iter().map(|run| &run.times).collect()));
        let title = format!(
            "{load}, {} a second: from when a request is due to its answer",
            load.rate()
        );
        let name = load.to_string().replace([' ', ','], "-");
        let busiest = of_load().map(|row| (line(row), row.runs.of(Run::busiest_cpu).median()));
        let title_of_busiest = format!("{load}: the busiest of two workers' part of the CPU time");
        [
            (format!("{name}-times"), by_percentile(title, times)),
            (format!("{name}-cpu"), bars(title_of_busiest, "%", busiest)),
        ]
    };
    loads.into_iter().flat_map(of_load).collect()
}

const BALANCE_REASON: &str = "Connections are put to workers by a hash, and two of those that are there may not be equally many.";
const CPU_REASON: &str =
    "Envoy takes more for a connection and for a request, and a Wasm filter is in it.";

/// Sluice as it comes beside the other way, and beside nginx.
fn findings(rows: &[Row]) -> Vec<String> {
    let mut findings = Conclusions::default();
    let of = |kind, load| rows.iter().find(|row| row.kind == kind && row.load == load);
    for load in Load::ALL {
        // Who gets a connection is no matter of how busy the machine is.
        if let Some((ours, other)) = of(Kind::Sluice, load).zip(of(Kind::Balanced, load)) {
            let busiest = |row: &Row| row.runs.of(Run::busiest_connections).range(whole);
            let (ours, other) = (busiest(ours), busiest(other));
            findings.say(format!(
                "{load}: the busiest worker has {ours} % of the connections with Sluice as it comes, {other} % with \
                 exact_balance."
            ));
        }
    }
    let pairs = [
        (Kind::Sluice, Kind::Balanced, BALANCE_REASON),
        (Kind::NginxReuseport, Kind::Nginx, ""),
        (Kind::Sluice, Kind::NginxReuseport, CPU_REASON),
    ];
    for load in Load::ALL {
        for (ours, theirs, reason) in pairs {
            let Some((ours, theirs)) = of(ours, load).zip(of(theirs, load)) else {
                continue;
            };
            let mut compare = |what: &str, figure: fn(&Run) -> f64| {
                let what = format!("{load}: {what}");
                findings.compare_with_reason(
                    what,
                    ours.figures(figure),
                    theirs.figures(figure),
                    reason,
                );
            };
            compare("time that 99 % do not exceed", |run| {
                run.times.percentile(99.0)
            });
            compare("longest time", Run::longest);
            compare("CPU time per request", Run::cpu_us);
        }
    }
    findings.all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_of_two_equal_workers_has_half() {
        assert!((busiest([3.0, 3.0].into_iter()) - 50.0).abs() < 1e-9);
        assert!((busiest([1.0, 3.0].into_iter()) - 75.0).abs() < 1e-9);
    }

    #[test]
    fn every_connection_has_a_request_and_as_many_as_the_others() {
        for load in Load::ALL {
            for seconds in [SECONDS, QUICK_SECONDS] {
                let requests = load.rate() * seconds;
                assert!(
                    requests >= CONNECTIONS && requests % CONNECTIONS == 0,
                    "{load}"
                );
            }
        }
    }
}
