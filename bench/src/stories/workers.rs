// SPDX-License-Identifier: Apache-2.0
//! Which worker works: how connections and CPU time spread over the workers, and what that does to times, by how
//! workers come to connections.

use crate::figures::conclusions::{Conclusions, Ratio};
use crate::figures::distribution::{Distribution, PERCENTILES};
use crate::figures::sample::{Sample, extremes};
use crate::machine;
use crate::machine::usage::{self, Bystander, Meter, Taken};
use crate::origins::feed::feed;
use crate::peers::nginx;
use crate::progress::Progress;
use crate::report;
use crate::report::plot::{self, Curve};
use crate::report::table;
use serde_json::{Value, json};
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

const WORKERS: usize = 2;
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

/// One that runs.
enum Server {
    Sluice(Box<Edge>),
    Nginx(crate::peers::peer::Peer),
}

struct Run {
    /// From when a request was due to the end of its answer.
    times: Distribution,
    /// Of each worker: connections, and what it has taken of the cores.
    connections: Vec<u64>,
    cpu: Vec<Duration>,
    taken: Taken,
    foreign: f64,
}

struct Row {
    kind: Kind,
    load: Load,
    runs: Vec<Run>,
}

pub async fn run(quick: bool) {
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
            runs: Vec::new(),
        }));
    }
    let mut progress = Progress::of(rounds * rows.len());
    for round in 1..=rounds {
        for row in &mut rows {
            progress.step(format_args!("{}, {}, round {round}", row.kind, row.load));
            if let Some(server) = Server::start(row.kind, &origin).await {
                row.runs.push(measure(&server, row.load, seconds).await);
            }
        }
    }
    rows.retain(|row| !row.runs.is_empty());
    let text = tell(&rows, rounds, seconds, before);
    let stem = report::keep_data("workers", &text, data(&rows, quick));
    let named = rows.iter().flat_map(Row::distributions);
    report::keep_distributions(&stem, &named.collect::<Vec<_>>());
}

impl Server {
    async fn start(kind: Kind, origin: &Origin) -> Option<Self> {
        let server = match kind {
            Kind::Nginx | Kind::NginxReuseport => {
                let own_queues = kind == Kind::NginxReuseport;
                Self::Nginx(nginx::start_workers(origin.address(), WORKERS, own_queues).await?)
            }
            Kind::Sluice | Kind::Balanced => {
                let direct = Direct {
                    exact_balance: kind == Kind::Balanced,
                    ..Direct::default()
                };
                // NB: all statistics, as those of each worker are not among the few.
                let edge = Edge::http(origin).workers(WORKERS).env("STATS", "all");
                let edge = edge
                    .env("ACCESS_LOG", "off")
                    .policy(COMPRESSING)
                    .direct(direct);
                Self::Sluice(Box::new(edge.start().await))
            }
        };
        let mut client = Client::connect(server.address()).await;
        let hit = Load::ALL[0];
        let _ = exchange(&mut client, hit, 0).await;
        Some(server)
    }

    const fn address(&self) -> SocketAddr {
        match self {
            Self::Sluice(edge) => edge.address(),
            Self::Nginx(peer) => peer.address,
        }
    }

    fn pid(&self) -> u32 {
        match self {
            Self::Sluice(edge) => edge.envoy_pid(),
            Self::Nginx(peer) => peer.pid(),
        }
    }

    /// The CPU time that each worker has taken so far, by its thread or process.
    fn cpu(&self) -> BTreeMap<u32, Duration> {
        match self {
            Self::Sluice(edge) => usage::threads(edge.envoy_pid(), "wrk:worker_"),
            Self::Nginx(peer) => usage::children(peer.pid()),
        }
    }

    /// The connections that each worker of an Envoy has had; of nginx the clients know.
    async fn connections(&self) -> Vec<u64> {
        let Self::Sluice(edge) = self else {
            return vec![];
        };
        let name = format!("listener.127.0.0.1_{}.worker_", edge.address().port());
        let stats = edge.stats(&name).await;
        let counts = stats.into_iter();
        counts
            .filter(|(name, _)| name.ends_with(".downstream_cx_total"))
            .map(|(_, count)| count)
            .collect()
    }
}

async fn measure(server: &Server, load: Load, seconds: u32) -> Run {
    let before = server.connections().await;
    let (bystander, meter) = (Bystander::start(), Meter::start(&[server.pid()]));
    let (began, cpu) = (SystemTime::now(), server.cpu());
    let answers = ask(server.address(), load, seconds).await;
    let after = server.cpu();
    let taken = meter.taken().expect("a server that runs");
    let foreign = bystander.foreign();
    let mut by_pid: BTreeMap<String, u64> = BTreeMap::new();
    for worker in answers.iter().filter_map(|answer| answer.worker.clone()) {
        *by_pid.entry(worker).or_default() += 1;
    }
    let counted = server.connections().await;
    let connections = match server {
        Server::Nginx(_) => by_pid.into_values().collect(),
        Server::Sluice(_) => {
            let counted = counted.iter().zip(&before);
            counted.map(|(after, before)| after - before).collect()
        }
    };
    let spent = after
        .iter()
        .map(|(worker, after)| after.saturating_sub(cpu.get(worker).copied().unwrap_or_default()));
    Run {
        connections,
        cpu: spent.collect(),
        times: Distribution::since(
            began,
            answers.iter().flat_map(|answer| answer.times.clone()),
        ),
        taken,
        foreign,
    }
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
#[allow(clippy::cast_precision_loss)]
fn busiest(parts: &[f64]) -> f64 {
    let all: f64 = parts.iter().sum();
    100.0 * parts.iter().copied().fold(0.0, f64::max) / all
}

impl Run {
    #[allow(clippy::cast_precision_loss)]
    fn busiest_connections(&self) -> f64 {
        let counts: Vec<_> = self.connections.iter().map(|&count| count as f64).collect();
        busiest(&counts)
    }

    fn busiest_cpu(&self) -> f64 {
        busiest(
            &self
                .cpu
                .iter()
                .map(Duration::as_secs_f64)
                .collect::<Vec<_>>(),
        )
    }
}

impl Row {
    fn name(&self) -> String {
        format!("{}, {}", self.load, self.kind)
    }

    /// A figure of each round, beside what others took of the machine.
    fn rounds(&self, figure: impl Fn(&Run) -> f64) -> Vec<(f64, f64)> {
        let runs = self.runs.iter();
        runs.map(|run| (figure(run), run.foreign)).collect()
    }

    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        Sample::of(self.runs.iter().map(figure)).median()
    }

    /// The smallest and the largest of the rounds.
    fn spread(&self, figure: impl Fn(&Run) -> f64) -> String {
        let (least, most) = extremes(self.runs.iter().map(figure));
        format!("{least:.0}-{most:.0}")
    }

    fn distributions(&self) -> Vec<(String, &Distribution)> {
        let rounds = self.runs.iter().zip(1..);
        let named =
            rounds.map(|(run, round)| (format!("{}, round {round}", self.name()), &run.times));
        named.collect()
    }

    fn cells(&self) -> Vec<String> {
        let percentile = |wanted| table::ms(self.median(|run| run.times.percentile(wanted)));
        let (least, most) = extremes(self.runs.iter().map(|run| run.times.percentile(100.0)));
        vec![
            self.load.to_string(),
            self.kind.to_string(),
            self.load.rate().to_string(),
            percentile(50.0),
            percentile(90.0),
            percentile(99.0),
            percentile(99.9),
            percentile(100.0),
            format!("{}-{}", table::ms(least), table::ms(most)),
            self.spread(Run::busiest_connections),
            self.spread(Run::busiest_cpu),
            format!(
                "{:.0}",
                self.median(|run| run.taken.cpu_us(run.times.count()))
            ),
        ]
    }
}

const COLUMNS: [&str; 12] = [
    "ms from due",
    "",
    "req/s",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "max by round",
    "% connections",
    "% CPU",
    "us CPU",
];

fn tell(rows: &[Row], rounds: usize, seconds: u32, before: f64) -> String {
    let foreign = Sample::of(rows.iter().flat_map(|row| &row.runs).map(|run| run.foreign));
    let head = format!(
        "Which worker works: {CONNECTIONS} connections at constant arrival rates for {seconds} s, {rounds} rounds, in turn, \
         {WORKERS} workers; the busiest worker's part of connections and CPU time, in percent\n{}",
        machine::described(before, Some(foreign.median())),
    );
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    report::text(&head, &COLUMNS, &cells, &findings(rows))
}

const BALANCE_REASON: &str = "Connections are put to workers by a hash, and two of those that are there may not be equally many.";
const CPU_REASON: &str =
    "Envoy takes more for a connection and for a request, and a Wasm filter is in it.";

/// Sluice as it comes beside the other way, and beside nginx.
fn findings(rows: &[Row]) -> Vec<String> {
    let mut findings = Conclusions::default();
    // Who gets a connection is no matter of how busy the machine is.
    for row in rows.iter().filter(|row| row.kind == Kind::Balanced) {
        let same = |other: &&Row| other.kind == Kind::Sluice && other.load == row.load;
        if let Some(ours) = rows.iter().find(same) {
            findings.say(format!(
                "{}: the busiest worker has {} % of the connections with Sluice as it comes, {} % with exact_balance.",
                row.load,
                ours.spread(Run::busiest_connections),
                row.spread(Run::busiest_connections),
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
            let of = |kind| rows.iter().find(|row| row.kind == kind && row.load == load);
            let Some((ours, theirs)) = of(ours).zip(of(theirs)) else {
                continue;
            };
            let mut compare = |what: &str, figure: fn(&Run) -> f64| {
                let figures = Ratio {
                    what: &format!("{load}: {what}"),
                    ours: (&ours.kind.to_string(), &ours.rounds(figure)),
                    theirs: (&theirs.kind.to_string(), &theirs.rounds(figure)),
                };
                findings.compare_with_reason(&figures, reason);
            };
            compare("time that 99 % do not exceed", |run| {
                run.times.percentile(99.0)
            });
            compare("longest time", |run| run.times.percentile(100.0));
            compare("CPU time per request", |run| {
                run.taken.cpu_us(run.times.count())
            });
        }
    }
    findings.all()
}

fn data(rows: &[Row], quick: bool) -> Value {
    let run = |run: &Run| {
        let cpu: Vec<_> = run.cpu.iter().map(Duration::as_secs_f64).collect();
        json!({
            "connections": run.connections, "cpu_seconds": cpu, "foreign": run.foreign,
            "cpu_us_per_request": run.taken.cpu_us(run.times.count()), "peak_mib": run.taken.peak_mib,
            "latency": {"percentiles": PERCENTILES, "sent": run.times.curve()},
        })
    };
    let row = |row: &Row| {
        let runs: Vec<_> = row.runs.iter().map(run).collect();
        json!({"contender": row.name(), "runs": runs})
    };
    let mut loads: Vec<_> = rows.iter().map(|row| row.load).collect();
    loads.dedup();
    let plots = loads.into_iter().map(|load| {
        let of_load = rows.iter().filter(|row| row.load == load);
        let curve = |row: &Row| Curve {
            name: row.kind.to_string(),
            points: Distribution::pool(row.runs.iter().map(|run| &run.times)).points(),
        };
        let curves: Vec<_> = of_load.map(curve).collect();
        let rate = load.rate();
        plot::percentiles(
            &format!("{load}, {rate} a second: time from due by percentile"),
            &curves,
        )
    });
    let bars = |title: &str, figure: fn(&Run) -> f64| {
        let bar = |row: &Row| json!({"name": row.name(), "value": row.median(figure)});
        json!({"title": title, "bars": rows.iter().map(bar).collect::<Vec<_>>()})
    };
    json!({
        "quick": quick, "columns": COLUMNS, "table": rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "findings": findings(rows), "rows": rows.iter().map(row).collect::<Vec<_>>(), "plots": plots.collect::<Vec<_>>(),
        "bars": [bars("CPU time of the busiest worker in percent of all workers'", Run::busiest_cpu)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_of_two_equal_workers_has_half() {
        assert!((busiest(&[3.0, 3.0]) - 50.0).abs() < 1e-9);
        assert!((busiest(&[1.0, 3.0]) - 75.0).abs() < 1e-9);
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
