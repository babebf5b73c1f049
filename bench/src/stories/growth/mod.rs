// SPDX-License-Identifier: Apache-2.0
//! Growth: the cost of a hit, and the memory, by the number of stored objects, of fills under way and of policy
//! rules. Each should be flat.

mod report;

use crate::contenders::{Contender, Kind, WORKERS};
use crate::figures::Rounds;
use crate::load::h2load::{self, Ask, Protocol};
use crate::machine;
use crate::machine::spent::Watch;
use crate::machine::usage::{Bystander, Meter};
use crate::origins::objects;
use crate::progress::Progress;
use crate::report::Report;
use report::report;
use sluice_tests::client;
use sluice_tests::client::http2::Http2;
use sluice_tests::edge::{Builder, Edge};
use sluice_tests::machine::process;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const BYTES: usize = 1_000;
/// Path of the hits while another quantity grows.
const PATH: &str = "/last/o.bin";
/// Requests under way on a connection that asks for each path once.
const STREAMS: u32 = 16;
/// As many streams as an edge allows a client on a connection.
const STREAMS_HELD: usize = 100;
/// The edge's largest number of connections to its origin; further requests wait for one.
const AT_ORIGIN: usize = 4_096;
/// Number of paths in a list for h2load.
const LIST: usize = 5_000;
/// Memory that the process may take in addition to its configured bounds, in MiB.
const SPARE_MIB: f64 = 64.0;
/// Requests before that, which bring all tables and pools to their full size.
const WARM_UP: usize = 2_000;

/// The growing quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growing {
    Objects,
    Once,
    InFlight,
    Rules,
}

/// The quantities whose hits are compared.
const COMPARED: [Growing; 3] = [Growing::Objects, Growing::InFlight, Growing::Rules];

impl fmt::Display for Growing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Objects => f.write_str("objects"),
            Self::Once => f.write_str("keys asked for once"),
            Self::InFlight => f.write_str("keys in flight"),
            Self::Rules => f.write_str("policy rules"),
        }
    }
}

/// Scale of the measurement.
struct Scale {
    objects: &'static [usize],
    /// Number of keys that are requested once.
    once: usize,
    in_flight: &'static [usize],
    rules: &'static [usize],
    rounds: usize,
    /// Length of a round of hits of one object.
    time: Duration,
    /// Requests of a round of hits from a list.
    listed: usize,
}

impl Scale {
    const fn new(quick: bool) -> Self {
        if quick {
            Self {
                objects: &[10, 1_000],
                once: 10_000,
                in_flight: &[1, 100],
                rules: &[1, 1_000],
                rounds: 1,
                time: Duration::from_millis(300),
                listed: 1_000,
            }
        } else {
            Self {
                objects: &[100, 1_000, 10_000, 100_000],
                once: 1_000_000,
                in_flight: &[1, 10, 100, 1_000, 10_000],
                rules: &[1, 10, 100, 1_000],
                rounds: 3,
                time: Duration::from_millis(1_000),
                listed: LIST,
            }
        }
    }
}

/// One round.
struct Run {
    /// CPU time for each hit, in microseconds.
    cpu: f64,
    /// Resident memory, in MiB.
    memory: f64,
}

/// All rounds at one size of a growing quantity.
struct Row {
    growing: Growing,
    count: usize,
    runs: Rounds<Run>,
    filled: Option<Filled>,
}

/// Result of filling the cache.
#[derive(Clone, Copy)]
struct Filled {
    /// CPU time for each object, in microseconds.
    cpu: f64,
    /// Resident memory before, in MiB.
    before: f64,
    /// Resident memory when all objects were stored.
    after: f64,
    /// Number of failed requests among the last ones; if there are any, the measurement ends.
    failed: u64,
}

/// Results of the story.
struct Found {
    rows: Vec<Row>,
    /// Times from the start of the process to the first byte of an object, in seconds.
    starts: Rounds<f64>,
}

pub async fn run(quick: bool) -> Option<Report> {
    if !h2load::is_there() {
        return None;
    }
    let scale = Scale::new(quick);
    let before = machine::load();
    let origin = objects::of(BYTES).await;
    let mut rows = objects(&scale, &origin).await;
    rows.push(once(&scale, &origin).await);
    rows.extend(in_flight(&scale, &origin).await);
    rows.extend(rules(&scale, &origin).await);
    let mut starts = Rounds::default();
    for _ in 0..scale.rounds {
        starts.add(start(&origin).await);
    }
    Some(report(&Found { rows, starts }, &scale, before))
}

async fn sluice(edge: Builder) -> Contender {
    Contender::sluice(Kind::Sluice, edge).await
}

/// Edges with different numbers of objects that were requested once each; then a part of the objects again.
async fn objects(scale: &Scale, origin: &Origin) -> Vec<Row> {
    let mut edges = Vec::new();
    let progress = Progress::of(scale.objects.len());
    for &count in scale.objects {
        progress.step(format_args!("{count} objects are fetched"));
        // Few of the objects would be hot, and their hits cheaper than the others.
        let edge = Edge::http(origin).env("HOT_BYTES", "0");
        let edge = sluice(edge.env("CACHE_MAX_ENTRIES", "1000000")).await;
        let (count, filled) = fill(&edge, count).await;
        let row = Row::filled(Growing::Objects, count, filled);
        edges.push((edge, row));
    }
    for round in 0..scale.rounds {
        for (edge, row) in &mut edges {
            if row.is_whole() {
                row.runs
                    .add(again(edge, row.count, scale.listed, round).await);
            }
        }
    }
    edges.into_iter().map(|(_, row)| row).collect()
}

/// An edge that receives one request for each of many more keys than it keeps.
async fn once(scale: &Scale, origin: &Origin) -> Row {
    eprintln!("{} keys, each once", scale.once);
    let edge = sluice(Edge::http(origin).env("HOT_BYTES", "0")).await;
    let warm: Vec<_> = (0..WARM_UP).map(|n| format!("/warm/{n}.bin")).collect();
    assert_eq!(each_once(&edge, &warm).await, 0);
    let (count, filled) = fill(&edge, scale.once).await;
    Row::filled(Growing::Once, count, filled)
}

/// Requests each of `count` objects once, until some fail; returns the number of requests.
async fn fill(edge: &Contender, count: usize) -> (usize, Filled) {
    let before = resident_mib(edge);
    let meter = Meter::start(&edge.pids);
    let paths: Vec<_> = (0..count).map(object).collect();
    let (mut asked, mut failed) = (0, 0);
    for paths in paths.chunks(LIST) {
        failed = each_once(edge, paths).await;
        asked += paths.len();
        if failed > 0 {
            break;
        }
    }
    let taken = meter.taken().expect("a server that runs");
    let cpu = taken.cpu_us(asked as u64);
    let filled = Filled {
        cpu,
        before,
        after: resident_mib(edge),
        failed,
    };
    (asked, filled)
}

/// Requests `listed` of the objects again, evenly chosen; other ones in each round.
async fn again(edge: &Contender, count: usize, listed: usize, round: usize) -> (Run, f64) {
    let apart = (count / listed).max(1);
    let chosen = (0..listed).map(|n| object((n * apart + round) % count));
    let chosen: Vec<_> = chosen.collect();
    let watch = Watch::start(&edge.pids);
    assert_eq!(each_once(edge, &chosen).await, 0);
    let spent = watch.spent(chosen.len() as u64);
    let memory = resident_mib(edge);
    (
        Run {
            cpu: spent.server,
            memory,
        },
        spent.foreign,
    )
}

fn object(number: usize) -> String {
    format!("/objects/{number}.bin")
}

/// Requests these paths on a connection for each worker; returns the number of failures.
async fn each_once(edge: &Contender, paths: &[String]) -> u64 {
    let ask = ask(edge, Protocol::Http2 { streams: STREAMS });
    let (one, other) = paths.split_at(paths.len() / WORKERS);
    let (one, other) = tokio::join!(h2load::each_once(&ask, one), h2load::each_once(&ask, other));
    paths.len() as u64 - one.answered - other.answered
}

fn ask(edge: &Contender, protocol: Protocol) -> Ask<'static> {
    Ask {
        address: edge.address,
        tls: false,
        protocol,
        path: PATH,
    }
}

fn resident_mib(edge: &Contender) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let kib = process::resident_kib(edge.pids[0]).expect("a server that runs") as f64;
    kib / 1024.0
}

/// Hits of one object.
async fn hits(edge: &Contender, time: Duration) -> (Run, f64) {
    let watch = Watch::start(&edge.pids);
    let found = h2load::saturate(&ask(edge, Protocol::Http1), 32, time).await;
    assert_eq!(found.failed, 0);
    let spent = watch.spent(found.answered);
    let memory = resident_mib(edge);
    (
        Run {
            cpu: spent.server,
            memory,
        },
        spent.foreign,
    )
}

/// Hits while the origin holds its responses to this many requests for other keys.
async fn in_flight(scale: &Scale, origin: &Origin) -> Vec<Row> {
    let edge = sluice(Edge::http(origin)).await;
    hits(&edge, scale.time / 4).await;
    let row = |&count: &usize| Row::new(Growing::InFlight, count);
    let mut rows: Vec<_> = scale.in_flight.iter().map(row).collect();
    let progress = Progress::of(rows.len() * scale.rounds);
    for round in 1..=scale.rounds {
        for row in &mut rows {
            let count = row.count;
            progress.step(format_args!("{count} keys in flight, round {round}"));
            let gate = Gate::new();
            let below = format!("/held/{count}/{round}/");
            let held = Reply::ok(BYTES).max_age(86_400).hold(&gate);
            origin.on(&format!("{below}*"), held);
            let mut flight = fly(&edge, &below, count).await;
            gate.wait_reached(count.min(AT_ORIGIN)).await;
            row.runs.add(hits(&edge, scale.time).await);
            gate.open();
            while let Some(status) = flight.join_next().await {
                assert_eq!(status.unwrap(), 200);
            }
        }
    }
    rows
}

/// Sends this many requests for different keys, and returns the tasks with their statuses.
async fn fly(edge: &Contender, below: &str, count: usize) -> JoinSet<u16> {
    let mut flight = JoinSet::new();
    for first in (0..count).step_by(STREAMS_HELD) {
        let connection = Arc::new(Http2::connect(edge.address).await);
        for number in first..count.min(first + STREAMS_HELD) {
            let (connection, path) = (Arc::clone(&connection), format!("{below}{number}"));
            flight.spawn(async move { connection.get(&path).await.unwrap().0 });
        }
    }
    flight
}

/// Hits of an object for which the last of this many rules matches.
async fn rules(scale: &Scale, origin: &Origin) -> Vec<Row> {
    let mut edges = Vec::new();
    for &count in scale.rules {
        let edge = sluice(Edge::http(origin).policy(&policy(count))).await;
        hits(&edge, scale.time / 4).await;
        edges.push((edge, Row::new(Growing::Rules, count)));
    }
    for round in 1..=scale.rounds {
        eprintln!("rules, round {round} of {}", scale.rounds);
        for (edge, row) in &mut edges {
            row.runs.add(hits(edge, scale.time).await);
        }
    }
    edges.into_iter().map(|(_, row)| row).collect()
}

/// A policy with this many rules; the last one matches [`PATH`].
fn policy(rules: usize) -> String {
    let mut text = "origin: {kind: http}\nrules:\n".to_owned();
    for number in 1..rules {
        let _ = writeln!(text, "- {{match: [\"/rule-{number}/*.html\"], ttl: 60s}}");
    }
    text + "- {match: [\"/last/*\"], ttl: 30d}\n"
}

/// Time from the start of the entry point to an object, in seconds.
async fn start(origin: &Origin) -> (f64, f64) {
    let (bystander, began) = (Bystander::start(), Instant::now());
    let edge = sluice(Edge::http(origin)).await;
    let answer = client::get(edge.address, PATH).await;
    let took = began.elapsed().as_secs_f64();
    assert_eq!(answer.status, 200, "{answer}");
    (took, bystander.foreign())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_so_many_rules_is_for_what_is_asked_for() {
        for count in [1, 10] {
            let policy = policy(count);
            assert_eq!(policy.matches("match:").count(), count);
            assert!(
                policy.ends_with("- {match: [\"/last/*\"], ttl: 30d}\n"),
                "{policy}"
            );
        }
    }
}
