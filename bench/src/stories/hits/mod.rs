// SPDX-License-Identifier: Apache-2.0
//! Hits: the cost of a stored object, the hits a second, and how long they take when the server is half busy.

mod report;

use crate::contenders::{Before, Contender, Kind, Rated, start_all};
use crate::figures::{self, Figures, in_turn};
use crate::load::h2load::{self, Ask, Pace, Paced, Protocol};
use crate::machine::usage::Meter;
use crate::peers::nginx::Caching;
use crate::report::Report;
use report::report;
use sluice_tests::origin::{Origin, Reply};
use std::fmt;
use std::time::Duration;

/// An object that is never stored, to measure requests that pass the caches.
const PRIVATE: &str = "/private.bin";
/// The contender of the aims, with its files on a disk.
const OURS: Kind = Kind::Sluice;
const NGINX: Kind = Kind::Nginx(Caching::Lock);
/// The contenders whose hits are compared.
const COMPARED: [Kind; 6] = [
    OURS,
    NGINX,
    Kind::Varnish,
    Kind::Haproxy,
    Kind::BareMemory,
    Kind::Direct,
];
/// The contenders at half of saturation.
const HALF_BUSY: [Kind; 4] = [OURS, NGINX, Kind::Varnish, Kind::BareMemory];
/// Enough connections to keep every worker busy, with some waiting.
const BASE: Scene = Scene {
    bytes: 10_000,
    protocol: Protocol::Http1,
    connections: 32,
};
const STREAMS: u32 = 10;

/// Object and connections of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scene {
    bytes: usize,
    protocol: Protocol,
    connections: u32,
}

/// Scale of the measurement.
struct Scale {
    kinds: Vec<Kind>,
    scenes: Vec<Scene>,
    rounds: u32,
    /// Length of a round of one contender in one scene.
    time: Duration,
    /// Plan for half of saturation; its rate is filled in later.
    pace: Pace,
}

struct Run {
    /// CPU time for each request, in microseconds.
    cpu: f64,
    per_second: f64,
    failed: u64,
}

/// A contender with the objects and connections of requests.
#[derive(Clone, Copy)]
struct Case {
    kind: Kind,
    scene: Scene,
}

type Row = figures::Row<Case, Run>;

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.kind, self.scene)
    }
}

type Tail = figures::Row<Rated, Paced>;

/// Results of the story.
struct Found {
    rows: Vec<Row>,
    tails: Vec<Tail>,
    /// CPU time of requests that pass the caches: with Sluice, and with Envoy without the filter.
    passes: [Figures; 2],
}

impl Scale {
    fn new(quick: bool) -> Self {
        let scene = |bytes, protocol, connections| Scene {
            bytes,
            protocol,
            connections,
        };
        let http2 = Protocol::Http2 { streams: STREAMS };
        let mut kinds = [&COMPARED[..], &[Kind::Bare, Kind::SluiceCold]].concat();
        if !quick {
            kinds.push(Kind::SluiceMemory);
        }
        let mut scenes = vec![BASE, scene(10_000, http2, 8)];
        if !quick {
            for bytes in [1_000, 100_000, 1_000_000] {
                scenes.extend([scene(bytes, Protocol::Http1, 32), scene(bytes, http2, 8)]);
            }
            for connections in [1, 8, 256] {
                scenes.push(scene(10_000, Protocol::Http1, connections));
            }
            scenes.extend([scene(10_000, http2, 1), scene(10_000, http2, 64)]);
        }
        let millis = Duration::from_millis;
        Self {
            kinds,
            scenes,
            rounds: if quick { 1 } else { 3 },
            time: millis(if quick { 300 } else { 700 }),
            pace: if quick {
                Pace::of_millis(200, 300)
            } else {
                Pace::of_millis(1_000, 4_000)
            },
        }
    }

    fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<_> = self.scenes.iter().map(|scene| scene.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, connections) = (self.bytes, self.connections);
        match self.protocol {
            Protocol::Http1 => write!(f, "{bytes} B, HTTP/1.1 x {connections}"),
            Protocol::Http2 { streams } => {
                write!(f, "{bytes} B, HTTP/2 x {connections} x {streams}")
            }
        }
    }
}

impl Scene {
    fn path(&self) -> String {
        format!("/o{}.bin", self.bytes)
    }
}

pub async fn run(quick: bool) -> Option<Report> {
    if !h2load::is_there() {
        return None;
    }
    let scale = Scale::new(quick);
    let origin = Origin::start().ready().await;
    for bytes in scale.sizes() {
        let path = format!("/o{bytes}.bin");
        origin.on(&path, Reply::ok(bytes).max_age(86_400));
    }
    let private = Reply::ok(BASE.bytes).header("cache-control", "private, no-store");
    origin.on(PRIVATE, private);
    eprintln!("starting the servers");
    let servers = start_all(&scale.kinds, Before::Origin(&origin)).await;
    let rows = hits(&scale, &servers, &origin).await;
    let tails = tails(&scale, &servers, &rows).await;
    origin.forget_requests();
    let passes = passes(&scale, &servers).await;
    drop(servers);
    let found = Found {
        rows,
        tails,
        passes,
    };
    Some(report(&found, &scale))
}

async fn hits(scale: &Scale, servers: &[Contender], origin: &Origin) -> Vec<Row> {
    let mut cases = Vec::new();
    for &scene in &scale.scenes {
        for server in servers {
            let kind = server.kind;
            if kind == Kind::Direct || warm(server, scene, origin).await {
                cases.push(Case { kind, scene });
            } else {
                let bytes = scene.bytes;
                eprintln!("not measured: {kind} stores no objects of {bytes} bytes");
            }
        }
    }
    let measured = in_turn(cases, scale.rounds, async |case, _| {
        let path = case.scene.path();
        let asked = origin.count(&path);
        let run = measure(of(servers, case.kind), case.scene, &path, scale.time).await;
        assert_eq!(origin.count(&path), asked, "no hits were measured: {case}");
        Some(run)
    });
    measured.await
}

/// The contender of this kind.
fn of(servers: &[Contender], kind: Kind) -> &Contender {
    let mut servers = servers.iter();
    servers.find(|server| server.kind == kind).unwrap()
}

/// Sends requests on enough connections for each worker to have some, with the protocol of the scene, because
/// HAProxy's keys differ by it. Returns whether the origin receives no more requests after that.
async fn warm(server: &Contender, scene: Scene, origin: &Origin) -> bool {
    let path = scene.path();
    let ask = ask(server, scene.protocol, &path);
    h2load::each_once(&ask, std::slice::from_ref(&path)).await;
    h2load::saturate(&ask, 64, Duration::from_millis(60)).await;
    let asked = origin.count(&path);
    h2load::saturate(&ask, 8, Duration::from_millis(20)).await;
    origin.count(&path) == asked
}

fn ask<'a>(server: &Contender, protocol: Protocol, path: &'a str) -> Ask<'a> {
    let address = match protocol {
        Protocol::Http1 => server.address,
        Protocol::Http2 { .. } => server.second,
    };
    Ask {
        address,
        tls: false,
        protocol,
        path,
    }
}

async fn measure(server: &Contender, scene: Scene, path: &str, time: Duration) -> (Run, f64) {
    let meter = Meter::start(&server.pids);
    let ask = ask(server, scene.protocol, path);
    let found = h2load::saturate(&ask, scene.connections, time).await;
    let taken = meter.taken().expect("a server that runs");
    let run = Run {
        cpu: taken.cpu_us(found.answered),
        per_second: found.per_second,
        failed: found.failed,
    };
    (run, meter.foreign())
}

/// Measures at half of the rate of the slowest contender in the aims.
async fn tails(scale: &Scale, servers: &[Contender], rows: &[Row]) -> Vec<Tail> {
    let half_busy = rows
        .iter()
        .filter(|row| row.case.scene == BASE && HALF_BUSY.contains(&row.case.kind));
    let saturation = half_busy.map(|row| row.runs.of(|run| run.per_second).median());
    let (least, _) = saturation.collect::<Figures>().extremes();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rate = (least / 200.0) as u32 * 100;
    let half_busy = servers
        .iter()
        .filter(|server| HALF_BUSY.contains(&server.kind));
    let cases = half_busy.map(|server| Rated {
        kind: server.kind,
        rate,
    });
    let tails = in_turn(cases, scale.rounds, async |half, _| {
        let (server, path) = (of(servers, half.kind), BASE.path());
        let meter = Meter::start(&server.pids);
        let pace = Pace { rate, ..scale.pace };
        let paced = h2load::pace(&ask(server, BASE.protocol, &path), pace).await;
        Some((paced, meter.foreign()))
    });
    tails.await
}

/// CPU time of a request that is not answered by a cache, in microseconds: with the filter, and without.
async fn passes(scale: &Scale, servers: &[Contender]) -> [Figures; 2] {
    let kinds = [OURS, Kind::Bare];
    let rows = in_turn(kinds, scale.rounds, async |kind, _| {
        Some(measure(of(servers, kind), BASE, PRIVATE, scale.time).await)
    });
    let rows = rows.await;
    [&rows[0], &rows[1]].map(|row| row.runs.of(|run| run.cpu))
}
