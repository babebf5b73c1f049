// SPDX-License-Identifier: Apache-2.0
//! Time until the followers of one fill have their first byte, after the origin has released its response.

use crate::contenders::{Before, Contender, Kind, start_all};
use crate::figures::format::{count, ms, whole};
use crate::figures::{Conclusions, Distribution, Figures, Rounds, Table};
use crate::machine;
use crate::machine::usage::Bystander;
use crate::peers::nginx::Caching;
use crate::progress::Progress;
use crate::report::{Report, bars};
use sluice_tests::client::{Client, Response, request};
use sluice_tests::http::body;
use sluice_tests::origin::{Origin, Reply};
use sluice_tests::server::gate::Gate;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

const CROWDS: [usize; 2] = [200, 20];
const SIZE: usize = 10_000;
const WARM: &str = "/warm";
/// Followers arrive evenly over nginx's interval: all at once they would share one phase of its timer, and its
/// figure would be luck.
const ARRIVAL: Duration = Duration::from_millis(500);
/// Time from the last follower known to wait to the release, so that no other work is under way then.
const SETTLE: Duration = Duration::from_millis(50);
/// Limits that Sluice promises on an idle machine, in milliseconds.
const MEDIAN_LIMIT: f64 = 5.0;
const MAX_LIMIT: f64 = 20.0;

const KINDS: [Kind; 5] = [
    Kind::Origin,
    Kind::Nginx(Caching::Lock),
    Kind::Varnish,
    Kind::Sluice,
    Kind::SluiceMemory,
];

/// One round of one contender with one crowd.
struct Run {
    wake: Distribution,
    warm: Distribution,
    requests: usize,
}

/// All rounds of one contender with one crowd.
struct Row {
    kind: Kind,
    crowd: usize,
    runs: Rounds<Run>,
}

pub async fn run(quick: bool) -> Report {
    let rounds = if quick { 1 } else { 10 };
    let before = machine::load();
    let origin = Origin::start().ready().await;
    origin.on(WARM, Reply::ok(SIZE).max_age(3600));
    eprintln!("starting the contenders");
    let kinds = &KINDS[..if quick { 4 } else { 5 }];
    let contenders = start_all(kinds, Before::Origin(&origin)).await;
    for contender in &contenders {
        Client::connect(contender.address).await.get(WARM).await;
    }
    let mut rows = Vec::new();
    for crowd in CROWDS {
        rows.extend(contenders.iter().map(|contender| Row {
            kind: contender.kind,
            crowd,
            runs: Rounds::default(),
        }));
    }
    let progress = Progress::of(rounds);
    for number in 1..=rounds {
        progress.step(format_args!("round {number}"));
        for (row, at) in rows.iter_mut().zip(0..) {
            let contender = &contenders[at % contenders.len()];
            let target = format!("/wake/{number}/{at}");
            row.runs
                .add(measure(contender, &origin, row.crowd, &target).await);
        }
    }
    drop(contenders);
    report(&rows, rounds, before)
}

async fn measure(contender: &Contender, origin: &Origin, crowd: usize, target: &str) -> (Run, f64) {
    let mut clients = Vec::with_capacity(crowd);
    for _ in 0..crowd {
        clients.push(Client::connect(contender.address).await);
    }
    let bystander = Bystander::start();
    let (began, start) = (SystemTime::now(), Instant::now());
    let (clients, responses) = ask(clients, WARM, Duration::ZERO).join().await;
    let warm = Distribution::since(began, responses.iter().map(|response| response.at - start));

    let quiet = contender.quiet().await;
    let gate = Gate::new();
    origin.on(target, Reply::ok(SIZE).max_age(3600).hold(&gate));
    let leader = tokio::spawn(get(contender.address, target.to_owned()));
    gate.wait_reached(1).await;
    let followers = ask(clients, target, ARRIVAL);
    contender.wait_parked(origin, target, crowd, quiet).await;
    tokio::time::sleep(SETTLE).await;

    let (began, release) = (SystemTime::now(), Instant::now());
    gate.open();
    let (_, responses) = followers.join().await;
    leader.await.unwrap();
    for response in &responses {
        let right = response.status == 200 && body::check(target, &response.body).is_ok();
        assert!(right, "{} gave a follower {response}", contender.kind);
    }
    let run = Run {
        wake: Distribution::since(
            began,
            responses.iter().map(|response| response.at - release),
        ),
        warm,
        requests: origin.count(target),
    };
    (run, bystander.foreign())
}

async fn get(address: SocketAddr, target: String) {
    Client::connect(address).await.get(&target).await;
}

/// Requests under way, with the connections that they are on.
struct Asked(JoinSet<(Client, Response)>);

/// Sends a request from each client, evenly spread over `span`.
fn ask(clients: Vec<Client>, target: &str, span: Duration) -> Asked {
    let bytes = request("GET", target, &[]);
    let pause = span / u32::try_from(clients.len()).unwrap();
    let mut asked = JoinSet::new();
    for (number, mut client) in (0..).zip(clients) {
        let bytes = bytes.clone();
        asked.spawn(async move {
            tokio::time::sleep(pause * number).await;
            let response = client.exchange(bytes).await;
            (client, response)
        });
    }
    Asked(asked)
}

impl Asked {
    async fn join(self) -> (Vec<Client>, Vec<Response>) {
        self.0.join_all().await.into_iter().unzip()
    }
}

const COLUMNS: &str = "ms after release | followers | origin/key | first | p50 | p90 | p99 | max | p50 by round \
    | warm p50 | warm max";

impl Run {
    fn median(&self) -> f64 {
        self.wake.percentile(50.0)
    }

    fn longest(&self) -> f64 {
        self.wake.percentile(100.0)
    }
}

impl Row {
    fn wake(&self) -> Distribution {
        Distribution::pool(self.runs.iter().map(|run| &run.wake))
    }

    fn warm(&self) -> Distribution {
        Distribution::pool(self.runs.iter().map(|run| &run.warm))
    }

    fn medians(&self) -> (Kind, Figures) {
        (self.kind, self.runs.of(Run::median))
    }

    fn cells(&self) -> Vec<String> {
        let (wake, warm) = (self.wake(), self.warm());
        let mut cells = vec![self.kind.to_string(), self.crowd.to_string()];
        cells.push(self.runs.of(|run| count(run.requests)).range(whole));
        // The waking alone, before the work for the others counts.
        cells.push(ms(self.runs.of(|run| run.wake.percentile(0.0)).median()));
        cells.extend([50.0, 90.0, 99.0, 100.0].map(|percentile| ms(wake.percentile(percentile))));
        cells.push(self.runs.of(Run::median).range(ms));
        cells.extend([50.0, 100.0].map(|percentile| ms(warm.percentile(percentile))));
        cells
    }

    /// Whether Sluice kept the promise, round by round.
    fn promise(&self) -> String {
        let kept = |figure: fn(&Run) -> f64, limit: f64| {
            self.runs.iter().filter(|run| figure(run) <= limit).count()
        };
        let (all, wake, warm) = (self.runs.iter().count(), self.wake(), self.warm());
        format!(
            "{}, {} followers: median {} ms (at most {MEDIAN_LIMIT} ms in {} of {all} rounds), slowest {} ms (at most \
             {MAX_LIMIT} ms in {} of {all} rounds); as many hits at once: median {} ms, slowest {} ms.",
            self.kind,
            self.crowd,
            ms(wake.percentile(50.0)),
            kept(Run::median, MEDIAN_LIMIT),
            ms(wake.percentile(100.0)),
            kept(Run::longest, MAX_LIMIT),
            ms(warm.percentile(50.0)),
            ms(warm.percentile(100.0)),
        )
    }
}

fn report(rows: &[Row], rounds: usize, before: f64) -> Report {
    let times = rows.iter().flat_map(|row| {
        row.runs
            .distributions(&format!("{}, {} followers", row.kind, row.crowd), |run| {
                &run.wake
            })
    });
    let picture = |crowd: usize| {
        let of_crowd = rows.iter().filter(|row| row.crowd == crowd);
        let title = format!("From the origin's response to that of a follower, one of {crowd}");
        let bar = |row: &Row| (row.kind.to_string(), row.wake().percentile(50.0));
        (crowd.to_string(), bars(title, "ms", of_crowd.map(bar)))
    };
    Report {
        title: "Waking the followers of one fill".to_owned(),
        about: format!(
            "{SIZE} bytes, {rounds} rounds, contenders in turn\n{}",
            machine::described(before, rows.iter().flat_map(|row| row.runs.foreign())),
        ),
        tables: vec![Table::new(COLUMNS, rows.iter().map(Row::cells))],
        findings: findings(rows, before),
        pictures: CROWDS.map(picture).to_vec(),
        distributions: times.collect(),
    }
}

fn findings(rows: &[Row], before: f64) -> Conclusions {
    let mut findings = Conclusions::default();
    let cores = machine::cores();
    // The run itself keeps about one core busy.
    if before > f64::from(cores) / 2.0 {
        findings.say(format!(
            "The machine was not idle at the start (load average {before:.2} on {cores} cores): the limits below are \
             for an idle one, and the slowest times are the machine's as much as the contender's."
        ));
    }
    for ours in rows.iter().filter(|row| row.kind.is_sluice()) {
        findings.say(ours.promise());
        let of_crowd = rows.iter().filter(|row| row.crowd == ours.crowd);
        for theirs in of_crowd.filter(|row| matches!(row.kind, Kind::Nginx(_) | Kind::Varnish)) {
            let what = format!("median time to wake one of {} followers", ours.crowd);
            findings.compare(what, ours.medians(), theirs.medians());
        }
    }
    findings
}
