// SPDX-License-Identifier: Apache-2.0
//! Which worker works: how connections and CPU time spread over the workers, and the effect on times, by the ways in
//! which workers get connections.

mod load;
mod report;

use crate::contenders::{Contender, Kind as Server};
use crate::figures::{self, Distribution, in_turn};
use crate::machine::usage::{self, Meter, Taken};
use crate::origins::feed::feed;
use crate::peers::nginx::{self, Caching};
use crate::report::Report;
use load::{Answers, Load, ask, exchange};
use report::report;
use sluice_tests::client::Client;
use sluice_tests::edge::Edge;
use sluice_tests::edge::direct::Direct;
use sluice_tests::origin::{Origin, Reply};
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

const CONNECTIONS: u32 = 200;
/// Length of a run.
const SECONDS: u32 = 4;
const QUICK_SECONDS: u32 = 2;
/// One load of either kind, kept alive and not.
const QUICK_LOADS: [Load; 2] = [Load::ALL[0], Load::ALL[3]];
const HIT: &str = "/hit";
const HIT_BYTES: usize = 10_000;
const COMPRESSING: &str = "origin: {kind: http}\ncompression: {enabled: true, codings: [gzip]}\n";

/// Server under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Sluice with default settings: each worker has an accept queue, into which the kernel puts connections by their
    /// hash.
    Sluice,
    /// Sluice whose workers pass connections to the worker that has fewest.
    Balanced,
    /// nginx with its defaults: all workers accept from one queue.
    Nginx,
    /// nginx with an accept queue for each worker.
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

struct Run {
    /// Times from when a request was due to the end of its response.
    times: Distribution,
    /// For each worker: connections, and its part of the CPU time.
    connections: Vec<u64>,
    cpu: Vec<Duration>,
    taken: Taken,
}

/// A server under a load.
#[derive(Clone, Copy)]
struct Case {
    kind: Kind,
    load: Load,
}

type Row = figures::Row<Case, Run>;

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.load, self.kind)
    }
}

pub async fn run(quick: bool) -> Report {
    let (rounds, seconds, loads) = if quick {
        (1, QUICK_SECONDS, &QUICK_LOADS[..])
    } else {
        (3, SECONDS, &Load::ALL[..])
    };
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
    let cases = loads
        .iter()
        .flat_map(|&load| kinds.map(|kind| Case { kind, load }));
    let rows = in_turn(cases, rounds, async |case, _| {
        let server = start(case.kind, &origin).await?;
        Some(measure(&server, case.load, seconds).await)
    });
    report(&rows.await, rounds, seconds)
}

async fn start(kind: Kind, origin: &Origin) -> Option<Contender> {
    let server = match kind {
        Kind::Nginx | Kind::NginxReuseport => {
            let own_queues = kind == Kind::NginxReuseport;
            let nginx = nginx::start_workers(origin.address(), own_queues).await?;
            Contender::peer(Server::Nginx(Caching::Lock), nginx)
        }
        Kind::Sluice | Kind::Balanced => {
            let direct = Direct {
                exact_balance: kind == Kind::Balanced,
                ..Direct::default()
            };
            // NB: all statistics, because the few exclude those of each worker.
            let edge = Edge::http(origin).env("SLUICE_STATS", "all");
            let edge = edge.policy(COMPRESSING).direct(direct);
            Contender::sluice(Server::Sluice, edge).await
        }
    };
    let mut client = Client::connect(server.address).await;
    let hit = Load::ALL[0];
    let _ = exchange(&mut client, hit, 0).await;
    Some(server)
}

/// CPU time of each worker so far, by its thread or process.
fn cpu(server: &Contender) -> BTreeMap<u32, Duration> {
    match server.edge() {
        Some(edge) => usage::threads(edge.envoy_pid(), "wrk:worker_"),
        None => usage::children(server.pids[0]),
    }
}

/// Number of connections of each worker of an Envoy.
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
    let meter = Meter::start(&server.pids);
    let (began, cpu_before) = (SystemTime::now(), cpu(server));
    let answers = ask(server.address, load, seconds).await;
    let after = cpu(server);
    let taken = meter.taken().expect("a server that runs");
    let foreign = meter.foreign();
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

/// Number of connections of each worker of nginx, from its responses.
fn by_worker(answers: &[Answers]) -> Vec<u64> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for worker in answers.iter().filter_map(|answer| answer.worker.as_deref()) {
        *counts.entry(worker).or_default() += 1;
    }
    counts.into_values().collect()
}

/// The busiest worker's part of all, in percent.
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
