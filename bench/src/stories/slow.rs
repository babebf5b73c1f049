// SPDX-License-Identifier: Apache-2.0
//! Staying alive on a slow origin: what each step of caching makes of an application that renders eight pages a second.

use crate::figures::conclusions::{Conclusions, Ratio};
use crate::figures::distribution::{Distribution, PERCENTILES};
use crate::figures::sample::{Sample, extremes};
use crate::machine;
use crate::machine::usage::{Bystander, Meter, Taken};
use crate::origins::application::{Application, PAGE, RENDERING, VALIDATED};
use crate::origins::feed;
use crate::peers::nginx;
use crate::progress::Progress;
use crate::report;
use crate::report::plot::{self, Curve};
use crate::report::table;
use serde_json::{Value, json};
use sluice_tests::client::{Client, request};
use sluice_tests::edge::{Builder, Edge};
use std::any::Any;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

const WORKERS: usize = 2;
/// Clients on kept-alive connections, each of which asks again when it has its answer.
const CLIENTS: usize = 16;

/// What a step says to the server.
#[derive(Clone, Copy, Debug)]
enum Settings {
    /// Lines of a location.
    Nginx(&'static str),
    /// A policy.
    Sluice(&'static str),
}

/// A step of the ladder of one server; each has what those before it have.
#[derive(Clone, Copy, Debug)]
struct Rung {
    name: &'static str,
    /// What is asked for: from the step with validators on, the page that has one.
    path: &'static str,
    settings: Settings,
}

const NO_CACHE: &str = "no cache";
const STORED: &str = "stored for 1 s";
const STALE: &str = "+ stale while revalidating";

macro_rules! settings {
    ($kind:ident, $file:literal) => {
        Settings::$kind(include_str!(concat!("../../peers/slow-origin/", $file)))
    };
}

const RUNGS: [Rung; 11] = [
    Rung {
        name: NO_CACHE,
        path: PAGE,
        settings: settings!(Sluice, "sluice-no-cache.yaml"),
    },
    Rung {
        name: NO_CACHE,
        path: PAGE,
        settings: settings!(Nginx, "nginx-no-cache.conf"),
    },
    Rung {
        name: STORED,
        path: PAGE,
        settings: settings!(Sluice, "sluice-micro-cache.yaml"),
    },
    Rung {
        name: STORED,
        path: PAGE,
        settings: settings!(Nginx, "nginx-micro-cache.conf"),
    },
    Rung {
        name: "+ compressed each time",
        path: PAGE,
        settings: settings!(Nginx, "nginx-compressed-each.conf"),
    },
    Rung {
        name: "+ compressed once",
        path: PAGE,
        settings: settings!(Sluice, "sluice-compressed-once.yaml"),
    },
    Rung {
        name: "+ compressed once",
        path: PAGE,
        settings: settings!(Nginx, "nginx-compressed-once.conf"),
    },
    Rung {
        name: "+ revalidated",
        path: VALIDATED,
        // Sluice revalidates what has a validator without being told to.
        settings: settings!(Sluice, "sluice-compressed-once.yaml"),
    },
    Rung {
        name: "+ revalidated",
        path: VALIDATED,
        settings: settings!(Nginx, "nginx-revalidated.conf"),
    },
    Rung {
        name: STALE,
        path: VALIDATED,
        settings: settings!(Sluice, "sluice-stale-while-revalidate.yaml"),
    },
    Rung {
        name: STALE,
        path: VALIDATED,
        settings: settings!(Nginx, "nginx-stale-while-revalidate.conf"),
    },
];

/// One that runs.
struct Server {
    address: SocketAddr,
    pid: u32,
    // Ends with it.
    _running: Box<dyn Any>,
}

/// What one round has shown of one step.
struct Run {
    per_second: f64,
    times: Distribution,
    /// Of an answer, compressed or not.
    bytes: usize,
    /// Pages that the application has rendered, and how often it has said that nothing has changed.
    origin: (usize, usize),
    taken: Taken,
    foreign: f64,
}

struct Row {
    rung: Rung,
    runs: Vec<Run>,
}

pub async fn run(quick: bool) {
    let (rounds, span) = if quick {
        // What nginx stores for a second lasts up to two.
        (1, Duration::from_millis(2_200))
    } else {
        (3, Duration::from_secs(6))
    };
    let before = machine::load();
    let application = Application::start();
    let mut rows: Vec<_> = RUNGS
        .iter()
        .filter(|rung| !quick || [NO_CACHE, STORED, STALE].contains(&rung.name))
        .map(|&rung| Row {
            rung,
            runs: Vec::new(),
        })
        .collect();
    let mut progress = Progress::of(rounds * rows.len());
    for round in 1..=rounds {
        for row in &mut rows {
            progress.step(format_args!(
                "{}, {}, round {round}",
                row.server(),
                row.rung.name
            ));
            if let Some(server) = start(row.rung.settings, application.address()).await {
                row.runs
                    .push(measure(&server, row.rung, &application, span).await);
            }
        }
    }
    rows.retain(|row| !row.runs.is_empty());
    let text = tell(&rows, rounds, span, before);
    let stem = report::keep_data("slow", &text, data(&rows, quick));
    let named = rows.iter().flat_map(Row::distributions);
    report::keep_distributions(&stem, &named.collect::<Vec<_>>());
}

async fn start(settings: Settings, origin: SocketAddr) -> Option<Server> {
    match settings {
        Settings::Nginx(location) => {
            let nginx = nginx::start_ladder(origin, WORKERS, location).await?;
            Some(Server {
                address: nginx.address,
                pid: nginx.pid(),
                _running: Box::new(nginx),
            })
        }
        Settings::Sluice(policy) => {
            let edge = Builder::new().env("ORIGIN", format!("http://{origin}"));
            let edge = edge
                .workers(WORKERS)
                .env("ACCESS_LOG", "off")
                .policy(policy);
            let edge: Edge = edge.start().await;
            Some(Server {
                address: edge.address(),
                pid: edge.envoy_pid(),
                _running: Box::new(edge),
            })
        }
    }
}

async fn measure(server: &Server, rung: Rung, application: &Application, span: Duration) -> Run {
    let ask = request("GET", rung.path, &[("accept-encoding", "gzip")]);
    // The first answer of all, and the connections, are not part of it.
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Client::connect(server.address).await);
    }
    let first = clients[0].exchange(&ask).await;
    assert_eq!(first.status, 200, "{first}");
    let _ = application.take_counts();
    let (bystander, meter) = (Bystander::start(), Meter::start(&[server.pid]));
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
    Run {
        per_second,
        times,
        bytes,
        origin: application.take_counts(),
        taken,
        foreign: bystander.foreign(),
    }
}

impl Row {
    const fn server(&self) -> &'static str {
        match self.rung.settings {
            Settings::Nginx(_) => "nginx",
            Settings::Sluice(_) => "Sluice",
        }
    }

    /// A figure of each round, beside what others took of the machine.
    fn rounds(&self, figure: impl Fn(&Run) -> f64) -> Vec<(f64, f64)> {
        let runs = self.runs.iter();
        runs.map(|run| (figure(run), run.foreign)).collect()
    }

    fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        Sample::of(self.runs.iter().map(figure)).median()
    }

    fn distributions(&self) -> Vec<(String, &Distribution)> {
        let (server, rung) = (self.server(), self.rung.name);
        let rounds = self.runs.iter().zip(1..);
        let named =
            rounds.map(|(run, round)| (format!("{server}, {rung}, round {round}"), &run.times));
        named.collect()
    }

    fn cells(&self) -> Vec<String> {
        let (least, most) = extremes(self.runs.iter().map(|run| run.times.percentile(100.0)));
        vec![
            self.rung.name.to_owned(),
            self.server().to_owned(),
            format!("{:.1}", self.median(|run| run.per_second)),
            table::ms(self.median(|run| run.times.average())),
            table::ms(self.median(|run| run.times.percentile(50.0))),
            table::ms(self.median(|run| run.times.percentile(90.0))),
            table::ms(self.median(|run| run.times.percentile(99.0))),
            table::ms(self.median(|run| run.times.percentile(100.0))),
            format!("{}-{}", table::ms(least), table::ms(most)),
            table::range(self.runs.iter().map(|run| run.bytes)),
            table::range(self.runs.iter().map(|run| run.origin.0)),
            table::range(self.runs.iter().map(|run| run.origin.1)),
            format!(
                "{:.0}",
                self.median(|run| run.taken.cpu_us(run.times.count()))
            ),
            format!("{:.0}", self.median(|run| run.taken.peak_mib)),
        ]
    }
}

const COLUMNS: [&str; 14] = [
    "ms",
    "",
    "req/s",
    "avg",
    "p50",
    "p90",
    "p99",
    "max",
    "max by round",
    "bytes",
    "rendered",
    "304",
    "us CPU",
    "MiB",
];

fn tell(rows: &[Row], rounds: usize, span: Duration, before: f64) -> String {
    let foreign = Sample::of(rows.iter().flat_map(|row| &row.runs).map(|run| run.foreign));
    let head = format!(
        "Staying alive on a slow origin: a page of {} bytes that takes {} ms of CPU time, one at a time\n\
         {CLIENTS} clients, each of which asks again when it has its answer (closed loop), for {} s, {rounds} rounds, in \
         turn, {WORKERS} workers; {}",
        feed::SIZE,
        RENDERING.as_millis(),
        span.as_secs_f64(),
        machine::described(before, Some(foreign.median())),
    );
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    report::text(&head, &COLUMNS, &cells, &findings(rows))
}

const TIME_REASON: &str = "A hit of nginx takes less CPU time, and the application, the server and the clients share the cores.";
const CPU_REASON: &str = "Envoy takes a stored body in pieces through its filters, of which one is in Wasm; nginx sends the stored file.";

/// Each step of Sluice beside the same of nginx, and the whole ladder.
fn findings(rows: &[Row]) -> Vec<String> {
    let mut findings = Conclusions::default();
    let ours = || rows.iter().filter(|row| row.server() == "Sluice");
    for ours in ours() {
        let same = |row: &&Row| row.server() == "nginx" && row.rung.name == ours.rung.name;
        let Some(theirs) = rows.iter().find(same) else {
            continue;
        };
        let mut compare = |what: &str, reason, figure: fn(&Run) -> f64| {
            let figures = Ratio {
                what: &format!("{}: {what}", ours.rung.name),
                ours: (ours.server(), &ours.rounds(figure)),
                theirs: (theirs.server(), &theirs.rounds(figure)),
            };
            findings.compare_with_reason(&figures, reason);
        };
        compare("average time", TIME_REASON, |run| run.times.average());
        compare("longest time", TIME_REASON, |run| {
            run.times.percentile(100.0)
        });
        compare("CPU time per request", CPU_REASON, |run| {
            run.taken.cpu_us(run.times.count())
        });
    }
    let step = |name| ours().find(|row| row.rung.name == name);
    if let Some((first, last)) = step(NO_CACHE).zip(step(STALE)) {
        let time = |run: &Run| run.times.average();
        findings.compare(&Ratio {
            what: "the whole ladder of Sluice, average time",
            ours: (STALE, &last.rounds(time)),
            theirs: (NO_CACHE, &first.rounds(time)),
        });
    }
    findings.all()
}

/// The distributions of each server's steps.
fn plots(rows: &[Row]) -> Vec<String> {
    let plot = |server: &str| {
        let of_server = rows.iter().filter(|row| row.server() == server);
        let curve = |row: &Row| Curve {
            name: row.rung.name.to_owned(),
            points: Distribution::pool(row.runs.iter().map(|run| &run.times)).points(),
        };
        let curves: Vec<_> = of_server.map(curve).collect();
        plot::percentiles(
            &format!("{server}: time per request by percentile"),
            &curves,
        )
    };
    let servers = ["Sluice", "nginx"].into_iter();
    let measured = |server: &&str| rows.iter().any(|row| row.server() == *server);
    servers.filter(measured).map(plot).collect()
}

fn data(rows: &[Row], quick: bool) -> Value {
    let run = |run: &Run| {
        json!({
            "requests_per_second": run.per_second, "bytes": run.bytes, "rendered": run.origin.0,
            "not_modified": run.origin.1, "cpu_us_per_request": run.taken.cpu_us(run.times.count()),
            "peak_mib": run.taken.peak_mib, "foreign": run.foreign,
            "latency": {"average": run.times.average(), "percentiles": PERCENTILES, "sent": run.times.curve()},
        })
    };
    let row = |row: &Row| {
        let runs: Vec<_> = row.runs.iter().map(run).collect();
        json!({"contender": format!("{}, {}", row.server(), row.rung.name), "runs": runs})
    };
    let bars = |title: &str, figure: fn(&Run) -> f64| {
        let bar = |row: &Row| {
            let name = format!("{}, {}", row.rung.name, row.server());
            json!({"name": name, "value": row.median(figure)})
        };
        json!({"title": title, "bars": rows.iter().map(bar).collect::<Vec<_>>()})
    };
    json!({
        "quick": quick, "columns": COLUMNS, "table": rows.iter().map(Row::cells).collect::<Vec<_>>(),
        "findings": findings(rows), "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "plots": plots(rows),
        "bars": [
            bars("Requests a second", |run| run.per_second),
            bars("Longest time in milliseconds", |run| run.times.percentile(100.0)),
        ],
    })
}
