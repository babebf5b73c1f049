// SPDX-License-Identifier: Apache-2.0
//! How soon the followers of one fill have their first byte, once the origin has let go of its answer.

use crate::contenders::contender::Contender;
use crate::figures::conclusions as findings;
use crate::figures::distribution::Distribution;
use crate::figures::sample::{Sample, extremes};
use crate::machine;
use crate::progress::Progress;
use crate::report;
use crate::report::table::{self, ms};
use sluice_tests::body;
use sluice_tests::client::{Client, Response, request};
use sluice_tests::gate::Gate;
use sluice_tests::matrix::Medium;
use sluice_tests::origin::{Origin, Reply};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

const CROWDS: [usize; 2] = [200, 20];
const SIZE: usize = 10_000;
const WARM: &str = "/warm";
/// Followers arrive evenly over nginx's interval: all at once they would share one phase of its timer, and its
/// figure would be luck.
const ARRIVAL: Duration = Duration::from_millis(500);
/// From the last one known to wait to the release, so that nothing else is under way then.
const SETTLE: Duration = Duration::from_millis(50);
/// What Sluice promises on an idle machine, in milliseconds.
const MEDIAN_LIMIT: f64 = 5.0;
const MAX_LIMIT: f64 = 20.0;

/// One round of one contender with one crowd.
struct Round {
    began: SystemTime,
    wake: Sample,
    warm: Sample,
    requests: usize,
}

/// All rounds of one contender with one crowd.
struct Row {
    name: String,
    sluice: bool,
    crowd: usize,
    rounds: Vec<Round>,
}

pub async fn run(quick: bool) {
    let rounds = if quick { 1 } else { 10 };
    let media: &[Medium] = if quick {
        &[Medium::Disk]
    } else {
        &[Medium::Disk, Medium::Memory]
    };
    let before = machine::load();
    let origin = Origin::start().ready().await;
    origin.on(WARM, Reply::ok(SIZE).max_age(3600));
    eprintln!("starting the contenders");
    let mut contenders = Contender::coalescing(&origin, media).await;
    let mut rows = Vec::new();
    for crowd in CROWDS {
        rows.extend(contenders.iter().map(|contender| Row {
            name: contender.name.clone(),
            sluice: contender.is_sluice(),
            crowd,
            rounds: Vec::new(),
        }));
    }
    for contender in &contenders {
        Client::connect(contender.address).await.get(WARM).await;
    }
    let mut progress = Progress::of(rounds);
    for number in 1..=rounds {
        progress.step(format_args!("round {number}"));
        for (place, crowd) in CROWDS.into_iter().enumerate() {
            for at in 0..contenders.len() {
                let target = format!("/wake/{number}/{crowd}/{at}");
                let round = measure(&mut contenders[at], &origin, crowd, &target).await;
                rows[place * contenders.len() + at].rounds.push(round);
            }
        }
    }
    drop(contenders);
    let text = tell(&rows, rounds, before);
    let stem = report::keep("wake", &text, &times(&rows), quick);
    let distributions: Vec<_> = rows.iter().flat_map(Row::distributions).collect();
    let named = distributions.iter();
    let named: Vec<_> = named.map(|(name, times)| (name.clone(), times)).collect();
    report::keep_distributions(&stem, &named);
}

async fn measure(contender: &mut Contender, origin: &Origin, crowd: usize, target: &str) -> Round {
    let mut clients = Vec::with_capacity(crowd);
    for _ in 0..crowd {
        clients.push(Client::connect(contender.address).await);
    }
    let start = Instant::now();
    let (clients, responses) = ask(clients, WARM, Duration::ZERO).join().await;
    let warm = Sample::new(responses.iter().map(|response| response.at - start));

    contender.quiet().await;
    let gate = Gate::new();
    origin.on(target, Reply::ok(SIZE).max_age(3600).hold(&gate));
    let leader = tokio::spawn(get(contender.address, target.to_owned()));
    gate.wait_reached(1).await;
    let followers = ask(clients, target, ARRIVAL);
    contender.wait_parked(origin, target, crowd).await;
    tokio::time::sleep(SETTLE).await;

    let (began, release) = (SystemTime::now(), Instant::now());
    gate.open();
    let (_, responses) = followers.join().await;
    leader.await.unwrap();
    for response in &responses {
        let right = response.status == 200 && body::check(target, &response.body).is_ok();
        assert!(right, "{} gave a follower {response}", contender.name);
    }
    Round {
        began,
        wake: Sample::new(responses.iter().map(|response| response.at - release)),
        warm,
        requests: origin.count(target),
    }
}

async fn get(address: SocketAddr, target: String) {
    Client::connect(address).await.get(&target).await;
}

/// Requests under way, with the connections that they are on.
struct Asked(JoinSet<(Client, Response)>);

/// Each client asks, evenly spread over `span`.
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

impl Row {
    /// The followers' times of each round, with their names.
    fn distributions(&self) -> Vec<(String, Distribution)> {
        let rounds = self.rounds.iter().zip(1..);
        let named = rounds.map(|(round, number)| {
            let name = format!("{}, {} followers, round {number}", self.name, self.crowd);
            let times = round.wake.times().iter();
            let times = times.map(|ms| Duration::from_secs_f64(ms / 1e3));
            (name, Distribution::since(round.began, times))
        });
        named.collect()
    }

    fn wakes(&self) -> Vec<Sample> {
        self.rounds.iter().map(|round| round.wake.clone()).collect()
    }

    fn wake(&self) -> Sample {
        Sample::pool(self.rounds.iter().map(|round| &round.wake))
    }

    fn warm(&self) -> Sample {
        Sample::pool(self.rounds.iter().map(|round| &round.warm))
    }

    /// When the first follower of a round went on, in the median round: the waking alone, before the work for the
    /// others counts.
    fn first(&self) -> f64 {
        let mut firsts: Vec<_> = self
            .rounds
            .iter()
            .map(|round| round.wake.quantile(0.0))
            .collect();
        firsts.sort_by(f64::total_cmp);
        firsts[firsts.len() / 2]
    }

    /// How many requests the origin got for a key.
    fn requests(&self) -> String {
        table::range(self.rounds.iter().map(|round| round.requests))
    }

    fn cells(&self) -> Vec<String> {
        let wake = self.wake();
        let warm = self.warm();
        let (least, most) = extremes(self.rounds.iter().map(|round| round.wake.median()));
        vec![
            self.name.clone(),
            self.crowd.to_string(),
            self.requests(),
            ms(self.first()),
            ms(wake.median()),
            ms(wake.quantile(0.9)),
            ms(wake.quantile(0.99)),
            ms(wake.max()),
            format!("{}-{}", ms(least), ms(most)),
            ms(warm.median()),
            ms(warm.max()),
        ]
    }

    /// Whether Sluice's promise was kept, round by round.
    fn promise(&self) -> String {
        let kept = |value: &dyn Fn(&Sample) -> f64, limit: f64| {
            let rounds = self.rounds.iter();
            rounds.filter(|round| value(&round.wake) <= limit).count()
        };
        let (all, wake) = (self.rounds.len(), self.wake());
        format!(
            "{}, {} followers: median {} ms (at most {MEDIAN_LIMIT} ms in {} of {all} rounds), slowest {} ms (at most {MAX_LIMIT} ms in {} of {all} rounds); as many hits at once: median {} ms, slowest {} ms",
            self.name,
            self.crowd,
            ms(wake.median()),
            kept(&Sample::median, MEDIAN_LIMIT),
            ms(wake.max()),
            kept(&Sample::max, MAX_LIMIT),
            ms(self.warm().median()),
            ms(self.warm().max()),
        )
    }
}

fn tell(rows: &[Row], rounds: usize, before: f64) -> String {
    let cores = machine::cores();
    let mut text = format!(
        "Waking the followers of one fill: {SIZE} bytes, {rounds} rounds, contenders in turn\n\
         {}\n\n",
        machine::described(before, None),
    );
    let head = [
        "ms after release",
        "followers",
        "origin/key",
        "first",
        "p50",
        "p90",
        "p99",
        "max",
        "p50 by round",
        "warm p50",
        "warm max",
    ];
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    text.push_str(&table::render(&head, &cells));
    text.push_str("\n\nFindings\n");
    // The run itself keeps about one core busy.
    if before > f64::from(cores) / 2.0 {
        let _ = writeln!(
            text,
            "- The machine was not idle at the start (load average {before:.2} on {cores} cores): the limits below are \
             for an idle one, and the slowest times are the machine's as much as the contender's."
        );
    }
    for crowd in CROWDS {
        let of_crowd: Vec<_> = rows.iter().filter(|row| row.crowd == crowd).collect();
        for ours in of_crowd.iter().filter(|row| row.sluice) {
            let _ = writeln!(text, "- {}.", ours.promise());
            for theirs in ["nginx", "varnish"] {
                let Some(theirs) = of_crowd.iter().find(|row| row.name == theirs) else {
                    continue;
                };
                let said =
                    findings::compare((&ours.name, &ours.wakes()), (&theirs.name, &theirs.wakes()));
                let _ = writeln!(text, "  {said}.");
            }
        }
    }
    text.trim_end().to_owned()
}

/// Every measured time, for those who reckon otherwise.
fn times(rows: &[Row]) -> String {
    let mut text = "contender,followers,round,measure,ms\n".to_owned();
    for row in rows {
        for (number, round) in (1..).zip(&row.rounds) {
            for (measure, sample) in [("wake", &round.wake), ("warm", &round.warm)] {
                for time in sample.times() {
                    let (name, crowd) = (&row.name, row.crowd);
                    let _ = writeln!(text, "{name},{crowd},{number},{measure},{time:.3}");
                }
            }
        }
    }
    text
}
