// SPDX-License-Identifier: Apache-2.0
//! CPU time of a hit, or with `MISSES=1` of a miss, for one change of the edge at a time.
//!
//! All variants run at the same time and take turns for a second each. The ratios are to the first one, round by
//! round. They hold on a machine that is not idle, unlike the microseconds.

use crate::contenders::WORKERS;
use crate::contenders::variants::{self, BYTES};
use crate::figures::{Figures, Rounds, Table};
use crate::load::h2load::{self, Ask, Protocol};
use crate::machine::usage::Bystander;
use crate::machine::{self, usage};
use crate::peers::Peer;
use crate::progress::Progress;
use crate::report::{Report, bars};
use crate::stories::scope;
use std::time::Duration;
use tokio::task::JoinSet;

const CONNECTIONS: u32 = 8;
/// Requests of a turn on each connection, each for an object that was not requested before.
const MISSES: u32 = 60;

/// A running variant.
struct Running {
    name: String,
    peer: Peer,
    missed: u32,
    /// CPU time for each response, in microseconds.
    costs: Rounds<f64>,
}

pub async fn run(quick: bool) -> Option<Report> {
    let variants = variants::wanted();
    if !h2load::is_there() {
        return None;
    }
    let rounds = scope::rounds(if quick { 1 } else { 15 }) as usize;
    let before = machine::load();
    let origin = variants::origin();
    let mut all = Vec::new();
    for variant in variants {
        all.push(Running {
            peer: variant.start(&origin, WORKERS, |_| None).await,
            name: variant.name,
            missed: 0,
            costs: Rounds::default(),
        });
    }
    for running in &mut all {
        let _ = running.measure().await;
    }
    let progress = Progress::of(rounds * all.len());
    for round in 1..=rounds {
        for running in &mut all {
            progress.step(format_args!("{}, round {round}", running.name));
            let bystander = Bystander::start();
            let cost = running.measure().await;
            running.costs.add((cost, bystander.foreign()));
        }
    }
    Some(report(&all, before))
}

impl Running {
    /// Sends requests, and returns the CPU time of a response, in microseconds.
    async fn measure(&mut self) -> f64 {
        let taken = || usage::cpu_time(&[self.peer.pid()]);
        let before = taken();
        let ask = Ask {
            address: self.peer.address,
            tls: false,
            protocol: Protocol::Http1,
            path: "/object",
        };
        let answered = if variants::misses() {
            self.missed += MISSES;
            miss(ask, self.missed - MISSES..self.missed).await
        } else {
            h2load::saturate(&ask, CONNECTIONS, Duration::from_secs(1))
                .await
                .answered
        };
        #[allow(clippy::cast_precision_loss)]
        let answered = answered as f64;
        (taken() - before).as_secs_f64() * 1e6 / answered
    }
}

/// Requests these objects on each connection, which no other connection requests; returns the number of responses.
async fn miss(ask: Ask<'static>, numbers: std::ops::Range<u32>) -> u64 {
    let mut asking = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let paths = numbers
            .clone()
            .map(|number| format!("/object/{connection}/{number}"));
        let paths: Vec<_> = paths.collect();
        asking.spawn(async move { h2load::each_once(&ask, &paths).await.answered });
    }
    asking.join_all().await.into_iter().sum()
}

fn report(all: &[Running], before: f64) -> Report {
    let what = if variants::misses() { "miss" } else { "hit" };
    let costs = |running: &Running| running.costs.of(|cost| *cost);
    let first = costs(&all[0]);
    let cells = |running: &Running| {
        let ratios: Figures = costs(running).with(&first, |own, first| own / first);
        let (cost, ratio) = (costs(running).median(), ratios.median());
        let range = ratios.range(|ratio| format!("{ratio:.2}"));
        vec![
            running.name.clone(),
            format!("{cost:.1}"),
            format!("{ratio:.2}"),
            range,
        ]
    };
    let cost = |running: &Running| (variants::server(&running.name), costs(running).median());
    Report {
        title: format!("CPU time of a {what}, one change at a time"),
        about: format!(
            "{BYTES} bytes, {CONNECTIONS} connections, {} rounds of a second, in turn, {WORKERS} workers\n{}",
            first.len(),
            machine::described(
                before,
                all.iter().flat_map(|running| running.costs.foreign())
            ),
        ),
        tables: vec![Table::new(
            "variant | us CPU | ratio | by round",
            all.iter().map(cells),
        )],
        pictures: vec![(
            "cpu".to_owned(),
            bars(format!("CPU time of a {what}"), "us", all.iter().map(cost)),
        )],
        ..Report::default()
    }
}
