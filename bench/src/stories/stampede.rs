// SPDX-License-Identifier: Apache-2.0
//! The stampede: many clients at one key, in the situations in which it goes wrong.

use crate::contenders::{Before, Contender, Kind, start_all};
use crate::figures::format::{count, ms, remark, whole};
use crate::figures::{Conclusions, Distribution, Figures, Rounds, Table};
use crate::machine;
use crate::machine::usage::{Bystander, Meter, Taken};
use crate::peers::nginx::Lock;
use crate::progress::Progress;
use crate::report::{Report, bars};
use sluice_tests::client::{Client, Failure, Response, request};
use sluice_tests::origin::{Origin, Reply};
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

const SIZE: usize = 10_000;
/// How long the origin takes for an answer.
const ORIGIN: Duration = Duration::from_millis(100);
/// How long clients that come again and again rest in between.
const REST: Duration = Duration::from_millis(10);

const NGINX: Kind = Kind::Nginx(Lock::On);
const KINDS: [Kind; 6] = [
    Kind::Origin,
    NGINX,
    Kind::Varnish,
    Kind::Sluice,
    Kind::Bare,
    Kind::Haproxy,
];
const CPU_REASON: &str = "Envoy by itself takes more for a request than they do (the row of the bare Envoy); with Sluice a Wasm filter is in \
     each, and on a miss a second listener.";
const MEMORY_REASON: &str = "Envoy's code and tables are larger, and each worker and the main thread have a virtual machine \
     with the filter in it.";

/// A situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    /// So many clients at once, nothing stored.
    Cold(usize),
    /// An object that is fresh for a second, under load.
    Expiring,
    /// The origin says `private`: nobody has anything of waiting.
    Uncacheable,
    /// The body comes in pieces over half a second.
    SlowLeader,
    /// The origin answers 500 throughout.
    Failing,
    /// The first client leaves before its answer.
    LeaderLeaves,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold(clients) => write!(f, "cold, {clients} clients"),
            Self::Expiring => f.write_str("expiring"),
            Self::Uncacheable => f.write_str("uncacheable"),
            Self::SlowLeader => f.write_str("slow leader"),
            Self::Failing => f.write_str("origin fails"),
            Self::LeaderLeaves => f.write_str("leader leaves"),
        }
    }
}

impl Scene {
    /// All; the last is one that not everyone survives.
    fn all(quick: bool) -> Vec<Self> {
        let crowds: &[usize] = if quick { &[100] } else { &[1, 10, 100, 1_000] };
        let cold = crowds.iter().copied().map(Self::Cold);
        let others = [
            Self::Expiring,
            Self::Uncacheable,
            Self::SlowLeader,
            Self::Failing,
            Self::LeaderLeaves,
        ];
        cold.chain(others).collect()
    }

    fn reply(self) -> Reply {
        let object = Reply::ok(SIZE).max_age(3_600).delay(ORIGIN);
        match self {
            Self::Cold(_) => object,
            Self::Expiring => Reply::ok(SIZE).max_age(1).etag("v1").delay(ORIGIN),
            Self::Uncacheable => Reply::ok(SIZE)
                .header("cache-control", "private")
                .delay(ORIGIN),
            Self::SlowLeader => {
                let pace = Duration::from_millis(50);
                Reply::ok(SIZE).max_age(3_600).pace(SIZE / 10, pace)
            }
            Self::Failing => Reply::status(500).delay(ORIGIN),
            Self::LeaderLeaves => object.delay(3 * ORIGIN),
        }
    }

    /// The status that is in order.
    const fn status(self) -> u16 {
        match self {
            Self::Failing => 500,
            _ => 200,
        }
    }
}

/// How much is measured.
struct Scale {
    rounds: usize,
    /// Clients where their number is not what is varied.
    crowd: usize,
    /// Clients that ask for one thing after the other.
    regulars: usize,
    /// How long they do where an object expires, and where the origin fails.
    expiring: Duration,
    failing: Duration,
}

impl Scale {
    const fn new(quick: bool) -> Self {
        if quick {
            return Self {
                rounds: 1,
                crowd: 20,
                regulars: 10,
                // An object that is fresh for a second expires once.
                expiring: Duration::from_millis(1_500),
                failing: Duration::from_millis(500),
            };
        }
        Self {
            rounds: 3,
            crowd: 50,
            regulars: 20,
            expiring: Duration::from_secs(3),
            failing: Duration::from_secs(10),
        }
    }
}

/// One scene with one contender.
struct Run {
    /// Requests that the origin got.
    fetches: usize,
    /// Requests that clients sent.
    requests: usize,
    /// Requests that were not answered as they should be.
    failed: usize,
    /// From asking to the end of the answer.
    times: Distribution,
    /// What the server took; nothing where it has died, and of the origin itself.
    taken: Option<Taken>,
}

struct Row {
    scene: Scene,
    kind: Kind,
    runs: Rounds<Run>,
}

pub async fn run(quick: bool) -> Report {
    let scale = Scale::new(quick);
    let before = machine::load();
    let scenes = Scene::all(quick);
    let kinds = &KINDS[..if quick { 5 } else { 6 }];
    let of_scene = |&scene: &Scene| {
        kinds.iter().map(move |&kind| Row {
            scene,
            kind,
            runs: Rounds::default(),
        })
    };
    let mut rows: Vec<_> = scenes.iter().flat_map(of_scene).collect();
    let progress = Progress::of(scale.rounds * scenes.len());
    for round in 1..=scale.rounds {
        let origin = Origin::start().ready().await;
        // NB: anew in each round, as not everyone survives the last scene.
        let contenders = start_all(kinds, Before::Origin(&origin)).await;
        for &scene in &scenes {
            progress.step(format_args!("{scene}, round {round}"));
            for (contender, at) in contenders.iter().zip(0..) {
                let name = scene.to_string().replace([' ', ','], "-");
                let target = format!("/{round}/{at}/{name}");
                origin.on(&target, scene.reply());
                let run = play(scene, contender, &origin, &target, &scale).await;
                let row = rows
                    .iter_mut()
                    .find(|row| row.scene == scene && row.kind == contender.kind);
                row.expect("a row").runs.add(run);
            }
        }
    }
    rows.retain(|row| !row.runs.is_empty());
    report(&rows, &scale, before)
}

async fn play(
    scene: Scene,
    contender: &Contender,
    origin: &Origin,
    target: &str,
    scale: &Scale,
) -> (Run, f64) {
    let (bystander, began) = (Bystander::start(), SystemTime::now());
    let meter = Meter::start(&contender.pids);
    let address = contender.address;
    let answers = match scene {
        Scene::Cold(clients) => at_once(address, target, clients).await,
        Scene::Uncacheable | Scene::SlowLeader => at_once(address, target, scale.crowd).await,
        Scene::Expiring => again_and_again(address, target, scale.regulars, scale.expiring).await,
        Scene::Failing => again_and_again(address, target, scale.regulars, scale.failing).await,
        Scene::LeaderLeaves => after_a_leader(address, origin, target, scale.crowd).await,
    };
    let right = |answer: &Answer| match &answer.response {
        Ok(response) => response.status == scene.status(),
        Err(_) => false,
    };
    let taken = meter.taken();
    let times: Vec<_> = answers
        .iter()
        .filter(|answer| right(answer))
        .map(|answer| answer.took)
        .collect();
    let run = Run {
        fetches: origin.count(target),
        requests: answers.len(),
        failed: answers.iter().filter(|answer| !right(answer)).count(),
        times: Distribution::since(began, times),
        taken,
    };
    (run, bystander.foreign())
}

/// What a client got, and how long it took.
struct Answer {
    response: Result<Response, Failure>,
    took: Duration,
}

async fn ask(client: &mut Client, target: &str) -> Answer {
    let asked = Instant::now();
    let response = client.try_exchange(request("GET", target, &[])).await;
    Answer {
        response,
        took: asked.elapsed(),
    }
}

/// Asks on a connection, if there is one.
async fn come(client: Result<Client, Failure>, target: String) -> Answer {
    match client {
        Ok(mut client) => ask(&mut client, &target).await,
        Err(failure) => Answer {
            response: Err(failure),
            took: Duration::ZERO,
        },
    }
}

async fn at_once(address: SocketAddr, target: &str, clients: usize) -> Vec<Answer> {
    let mut asking = JoinSet::new();
    let mut connected = Vec::new();
    for _ in 0..clients {
        connected.push(Client::try_connect(address).await);
    }
    for client in connected {
        asking.spawn(come(client, target.to_owned()));
    }
    asking.join_all().await
}

async fn again_and_again(
    address: SocketAddr,
    target: &str,
    clients: usize,
    span: Duration,
) -> Vec<Answer> {
    let until = Instant::now() + span;
    let mut asking = JoinSet::new();
    for _ in 0..clients {
        let target = target.to_owned();
        asking.spawn(async move {
            let mut answers = Vec::new();
            while Instant::now() < until {
                let client = Client::try_connect(address).await;
                answers.push(come(client, target.clone()).await);
                tokio::time::sleep(REST).await;
            }
            answers
        });
    }
    asking.join_all().await.into_iter().flatten().collect()
}

async fn after_a_leader(
    address: SocketAddr,
    origin: &Origin,
    target: &str,
    clients: usize,
) -> Vec<Answer> {
    let Ok(mut leader) = Client::try_connect(address).await else {
        return at_once(address, target, clients).await;
    };
    let sent = leader.send(request("GET", target, &[])).await;
    if sent.is_ok() {
        origin.wait_for_requests(target, 1).await;
    }
    let crowd = at_once(address, target, clients);
    // The others are there by then, and the answer is not.
    let leaving = async {
        tokio::time::sleep(ORIGIN).await;
        leader.reset();
    };
    tokio::join!(crowd, leaving).0
}

impl Run {
    fn longest(&self) -> Option<f64> {
        (self.times.count() > 0).then(|| self.times.percentile(100.0))
    }

    /// Microseconds of CPU time for each request.
    fn cpu(&self) -> Option<f64> {
        Some(self.taken?.cpu_us(self.requests as u64))
    }

    fn memory(&self) -> Option<f64> {
        Some(self.taken?.peak_mib)
    }
}

const COLUMNS: &str = "ms |  | requests | origin | p50 | max | max by round | us CPU | MiB | ";

impl Row {
    fn figures(&self, figure: fn(&Run) -> Option<f64>) -> (Kind, Figures) {
        (self.kind, self.runs.of_all(figure))
    }

    fn failed(&self) -> u64 {
        self.runs.sum(|run| run.failed as u64)
    }

    fn cells(&self) -> Vec<String> {
        let all = Distribution::pool(self.runs.iter().map(|run| &run.times));
        let longest = self.runs.of_all(Run::longest);
        vec![
            self.scene.to_string(),
            self.kind.to_string(),
            whole(self.runs.of(|run| count(run.requests)).median()),
            self.runs.of(|run| count(run.fetches)).range(whole),
            ms(all.percentile(50.0)),
            ms(longest.median()),
            longest.range(ms),
            whole(self.runs.of_all(Run::cpu).median()),
            whole(self.runs.of_all(Run::memory).median()),
            remark(self.failed(), "failed"),
        ]
    }
}

fn report(rows: &[Row], scale: &Scale, before: f64) -> Report {
    let times = rows.iter().flat_map(|row| {
        row.runs
            .distributions(&format!("{}, {}", row.scene, row.kind), |run| &run.times)
    });
    Report {
        title: "The stampede".to_owned(),
        about: format!(
            "{SIZE} bytes, an origin that takes {} ms, {} rounds, in turn\n\
             {} clients at once where not said, or {} that come again and again, for {} s where the origin fails and {} s \
             where an object expires; {}",
            ORIGIN.as_millis(),
            scale.rounds,
            scale.crowd,
            scale.regulars,
            scale.failing.as_secs_f64(),
            scale.expiring.as_secs_f64(),
            machine::described(before, rows.iter().flat_map(|row| row.runs.foreign())),
        ),
        tables: vec![Table::new(COLUMNS, rows.iter().map(Row::cells))],
        findings: findings(rows),
        pictures: pictures(rows),
        distributions: times.collect(),
    }
}

fn pictures(rows: &[Row]) -> Vec<(String, String)> {
    let picture = |scene: Scene, what: &str, unit: &str, figure: fn(&Run) -> Option<f64>| {
        let of_scene = rows.iter().filter(|row| row.scene == scene);
        let bar = |row: &Row| (row.kind.to_string(), row.runs.of_all(figure).median());
        let name = format!("{scene}-{unit}").replace([' ', ','], "-");
        (
            name,
            bars(format!("{scene}: {what}"), unit, of_scene.map(bar)),
        )
    };
    let mut scenes: Vec<_> = rows.iter().map(|row| row.scene).collect();
    scenes.dedup();
    let longest = scenes
        .into_iter()
        .map(|scene| picture(scene, "the longest time of a request", "ms", Run::longest));
    let mut pictures: Vec<_> = longest.collect();
    pictures.push(picture(
        Scene::Expiring,
        "CPU time for each request",
        "us",
        Run::cpu,
    ));
    pictures.push(picture(
        Scene::Cold(100),
        "memory at the most",
        "MiB",
        Run::memory,
    ));
    pictures
}

fn findings(rows: &[Row]) -> Vec<String> {
    let mut findings = Conclusions::default();
    let ours = || rows.iter().filter(|row| row.kind.is_sluice());
    for ours in ours() {
        let scene = ours.scene;
        if let failed @ 1.. = ours.failed() {
            findings.say(format!("{scene}, {}: {failed} requests failed.", ours.kind));
        }
        let most = ours.runs.iter().map(|run| run.fetches).max().unwrap_or(0);
        if matches!(scene, Scene::Cold(_) | Scene::SlowLeader) && most != 1 {
            findings.say(format!(
                "{scene}, {}: {most} requests to the origin, and it should be one.",
                ours.kind
            ));
        }
        let of_scene = rows.iter().filter(|row| row.scene == scene);
        for theirs in of_scene.filter(|row| [NGINX, Kind::Varnish].contains(&row.kind)) {
            let what = format!("{scene}, longest time");
            findings.compare(
                what,
                ours.figures(Run::longest),
                theirs.figures(Run::longest),
            );
        }
    }
    for ours in ours() {
        let of_scene = rows.iter().filter(|row| row.scene == ours.scene);
        for theirs in of_scene.filter(|row| [NGINX, Kind::Varnish, Kind::Bare].contains(&row.kind))
        {
            usage_findings(&mut findings, ours, theirs);
        }
    }
    findings.all()
}

/// What ours takes as it comes, beside one of the peers.
fn usage_findings(findings: &mut Conclusions, ours: &Row, theirs: &Row) {
    let scene = ours.scene;
    if [Scene::Expiring, Scene::Uncacheable, Scene::Failing].contains(&scene) {
        let what = format!("{scene}, CPU time per request");
        findings.compare_with_reason(
            what,
            ours.figures(Run::cpu),
            theirs.figures(Run::cpu),
            CPU_REASON,
        );
    }
    // What it takes for one crowd is what it takes.
    if scene == Scene::Cold(100) {
        let what = format!("{scene}, peak memory");
        findings.compare_with_reason(
            what,
            ours.figures(Run::memory),
            theirs.figures(Run::memory),
            MEMORY_REASON,
        );
    }
}
