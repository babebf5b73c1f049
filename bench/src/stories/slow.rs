// SPDX-License-Identifier: Apache-2.0
//! Staying alive on a slow origin: the effect of each step of caching on an application that renders eight pages a
//! second.

use crate::contenders::{Contender, Kind, WORKERS};
use crate::figures::format::{count, ms, whole};
use crate::figures::{self, Conclusions, Distribution, Table, in_turn};
use crate::machine;
use crate::machine::usage::{Meter, Taken};
use crate::origins::application::{Application, PAGE, RENDERING, VALIDATED};
use crate::origins::feed;
use crate::peers::nginx::{self, Caching};
use crate::report::Report;
use sluice_tests::client::{Client, request};
use sluice_tests::edge::Builder;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

/// Clients on kept-alive connections, each with one request at a time.
const CLIENTS: usize = 16;

/// Configuration of a step.
#[derive(Clone, Copy, Debug)]
enum Settings {
    /// Lines of a location.
    Nginx(&'static str),
    /// A policy.
    Sluice(&'static str),
}

/// A step of one server's ladder; each includes the steps before it.
#[derive(Clone, Copy, Debug)]
struct Rung {
    name: &'static str,
    /// Path of the requests: from the step with validators on, the page that has one.
    path: &'static str,
    settings: Settings,
}

const NO_CACHE: &str = "no cache";
const STORED: &str = "stored for 1 s";
const STALE: &str = "+ stale while revalidating";
/// The steps of a quick run.
const QUICK: [&str; 3] = [NO_CACHE, STORED, STALE];

macro_rules! rung {
    ($name:expr, $path:ident, $kind:ident, $file:literal) => {
        Rung {
            name: $name,
            path: $path,
            settings: Settings::$kind(include_str!(concat!("../../peers/slow-origin/", $file))),
        }
    };
}

const RUNGS: [Rung; 11] = [
    rung!(NO_CACHE, PAGE, Sluice, "sluice-no-cache.yaml"),
    rung!(NO_CACHE, PAGE, Nginx, "nginx-no-cache.conf"),
    rung!(STORED, PAGE, Sluice, "sluice-micro-cache.yaml"),
    rung!(STORED, PAGE, Nginx, "nginx-micro-cache.conf"),
    rung!(
        "+ compressed each time",
        PAGE,
        Nginx,
        "nginx-compressed-each.conf"
    ),
    rung!(
        "+ compressed once",
        PAGE,
        Sluice,
        "sluice-compressed-once.yaml"
    ),
    rung!(
        "+ compressed once",
        PAGE,
        Nginx,
        "nginx-compressed-once.conf"
    ),
    // Sluice revalidates responses with a validator without a setting.
    rung!(
        "+ revalidated",
        VALIDATED,
        Sluice,
        "sluice-compressed-once.yaml"
    ),
    rung!("+ revalidated", VALIDATED, Nginx, "nginx-revalidated.conf"),
    rung!(
        STALE,
        VALIDATED,
        Sluice,
        "sluice-stale-while-revalidate.yaml"
    ),
    rung!(STALE, VALIDATED, Nginx, "nginx-stale-while-revalidate.conf"),
];

/// Results of one round of one step.
struct Run {
    per_second: f64,
    times: Distribution,
    /// Size of a response, compressed or not.
    bytes: usize,
    /// Number of pages that the application rendered, and of its responses with status 304.
    origin: (usize, usize),
    taken: Taken,
}

type Row = figures::Row<Rung, Run>;

impl Rung {
    const fn server(self) -> &'static str {
        match self.settings {
            Settings::Nginx(_) => "nginx",
            Settings::Sluice(_) => "Sluice",
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.server(), self.name)
    }
}

pub async fn run(quick: bool) -> Report {
    let (rounds, span) = if quick {
        // A response that nginx stores for a second lasts up to two.
        (1, Duration::from_millis(2_200))
    } else {
        (3, Duration::from_secs(6))
    };
    let application = Application::start();
    let rungs = RUNGS
        .into_iter()
        .filter(|rung| !quick || QUICK.contains(&rung.name));
    let rows = in_turn(rungs, rounds, async |rung, _| {
        let server = start(rung.settings, application.address()).await?;
        Some(measure(&server, rung, &application, span).await)
    });
    report(&rows.await, rounds, span)
}

async fn start(settings: Settings, origin: SocketAddr) -> Option<Contender> {
    match settings {
        Settings::Nginx(location) => {
            let nginx = nginx::start_ladder(origin, location).await?;
            Some(Contender::peer(Kind::Nginx(Caching::Lock), nginx))
        }
        Settings::Sluice(policy) => {
            let edge = Builder::new().env("SLUICE_ORIGIN", format!("http://{origin}"));
            Some(Contender::sluice(Kind::Sluice, edge.policy(policy)).await)
        }
    }
}

async fn measure(
    server: &Contender,
    rung: Rung,
    application: &Application,
    span: Duration,
) -> (Run, f64) {
    let ask = request("GET", rung.path, &[("accept-encoding", "gzip")]);
    // The first response and the connections are not counted.
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Client::connect(server.address).await);
    }
    let first = clients[0].exchange(&ask).await;
    assert_eq!(first.status, 200, "{first}");
    let _ = application.take_counts();
    let meter = Meter::start(&server.pids);
    let (began, start) = (SystemTime::now(), Instant::now());
    let mut asking = JoinSet::new();
    for mut client in clients {
        let ask = ask.clone();
        asking.spawn(async move {
            let (mut times, mut bytes) = (Vec::new(), 0);
            while start.elapsed() < span {
                let asked = Instant::now();
                let response = client.exchange(&ask).await;
                assert_eq!(response.status, 200, "{response}");
                times.push(asked.elapsed());
                bytes = response.body.len();
            }
            (times, bytes)
        });
    }
    let answers = asking.join_all().await;
    let elapsed = start.elapsed();
    let taken = meter.taken().expect("a server that runs");
    let bytes = answers.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let times = Distribution::since(began, answers.into_iter().flat_map(|(times, _)| times));
    #[allow(clippy::cast_precision_loss)]
    let per_second = times.count() as f64 / elapsed.as_secs_f64();
    let run = Run {
        per_second,
        times,
        bytes,
        origin: application.take_counts(),
        taken,
    };
    (run, meter.foreign())
}

impl Run {
    fn cpu(&self) -> f64 {
        self.taken.cpu_us(self.times.count())
    }

    fn longest(&self) -> f64 {
        self.times.percentile(100.0)
    }
}

const COLUMNS: &str = "ms |  | req/s | avg | p50 | p90 | p99 | max | max by round | bytes | rendered | 304 | us CPU \
    | MiB";

impl Row {
    fn cells(&self) -> Vec<String> {
        let median = |figure: &dyn Fn(&Run) -> f64| self.runs.of(figure).median();
        let range = |figure: fn(&Run) -> usize| self.runs.of(|run| count(figure(run))).range(whole);
        let at = |percentile: f64| ms(median(&|run| run.times.percentile(percentile)));
        let rung = self.case;
        let mut cells = vec![rung.name.to_owned(), rung.server().to_owned()];
        cells.push(format!("{:.1}", median(&|run| run.per_second)));
        cells.push(ms(median(&|run| run.times.average())));
        cells.extend([50.0, 90.0, 99.0, 100.0].map(at));
        cells.push(self.runs.of(Run::longest).range(ms));
        cells.push(range(|run| run.bytes));
        cells.push(range(|run| run.origin.0));
        cells.push(range(|run| run.origin.1));
        cells.push(whole(median(&Run::cpu)));
        cells.push(whole(median(&|run| run.taken.peak_mib)));
        cells
    }
}

fn report(rows: &[Row], rounds: u32, span: Duration) -> Report {
    Report {
        title: "Staying alive on a slow origin".to_owned(),
        about: format!(
            "a page of {} bytes that takes {} ms of CPU time, one at a time\n\
             {CLIENTS} clients that ask again when they have a response (closed loop), for {} s, {rounds} rounds, in \
             turn, {WORKERS} workers; {}",
            feed::SIZE,
            RENDERING.as_millis(),
            span.as_secs_f64(),
            machine::described(Row::foreign(rows)),
        ),
        tables: vec![Table::new(COLUMNS, rows.iter().map(Row::cells))],
        findings: findings(rows),
        distributions: Row::distributions(rows, "", |run| &run.times),
        ..Report::default()
    }
}

const TIME_REASON: &str = "A hit of nginx takes less CPU time, and the application, the server and the clients share the cores.";
const CPU_REASON: &str = "Envoy takes a stored body in pieces through its filters, one of them in Wasm; nginx sends the stored file.";

/// Compares each step of Sluice with the same step of nginx, and the ends of the ladder.
fn findings(rows: &[Row]) -> Conclusions {
    let mut findings = Conclusions::default();
    let ours = || rows.iter().filter(|row| row.case.server() == "Sluice");
    for ours in ours() {
        let name = ours.case.name;
        let same = |row: &&Row| row.case.server() == "nginx" && row.case.name == name;
        let Some(theirs) = rows.iter().find(same) else {
            continue;
        };
        let mut compare = |what: &str, reason, figure: fn(&Run) -> f64| {
            let what = format!("{name}: {what}");
            let figures = |row: &Row| (row.case.server(), row.runs.of(figure));
            findings.compare_with_reason(what, figures(ours), figures(theirs), reason);
        };
        compare("average time", TIME_REASON, |run| run.times.average());
        compare("longest time", TIME_REASON, Run::longest);
        compare("CPU time per request", CPU_REASON, Run::cpu);
    }
    let step = |name| ours().find(|row| row.case.name == name);
    if let Some((first, last)) = step(NO_CACHE).zip(step(STALE)) {
        let time = |row: &Row| (row.case.name, row.runs.of(|run| run.times.average()));
        findings.compare(
            "the whole ladder of Sluice, average time",
            time(last),
            time(first),
        );
    }
    findings
}
