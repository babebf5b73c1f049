// SPDX-License-Identifier: Apache-2.0
//! CPU time of a hit, or with `MISSES=1` of a miss, for one change of the edge at a time.
//!
//! All variants run at the same time and take turns for a second each. The ratios are to the first one, round by
//! round. They hold on a machine that is not idle, unlike the microseconds.

use crate::contenders::WORKERS;
use crate::contenders::variants::{self, BYTES, Variant};
use crate::figures::{Figures, Row, Table, in_turn};
use crate::load::h2load::{self, Ask, Protocol};
use crate::machine;
use crate::machine::usage::Meter;
use crate::peers::Peer;
use crate::report::Report;
use crate::stories::scope;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinSet;

const CONNECTIONS: u32 = 8;
/// Requests of a turn on each connection, each for an object that was not requested before.
const MISSES: u32 = 60;

pub async fn run(quick: bool) -> Option<Report> {
    let variants = variants::wanted();
    if !h2load::is_there() {
        return None;
    }
    let rounds = scope::rounds(if quick { 1 } else { 15 });
    let origin = variants::origin();
    let mut all = Vec::new();
    for variant in &variants {
        let peer = variant.start(&origin, WORKERS, |_| None).await;
        let _ = measure(variant, &peer, 0).await;
        all.push((variant, peer));
    }
    let rows = in_turn(
        all.iter().map(|(variant, _)| variant.name.as_str()),
        rounds,
        async |name, round| {
            let (variant, peer) = all.iter().find(|(other, _)| other.name == name)?;
            Some(measure(variant, peer, round).await)
        },
    );
    Some(report(&rows.await))
}

/// Sends requests, and returns the CPU time of a response, in microseconds.
async fn measure(variant: &Variant, peer: &Peer, round: u32) -> (f64, f64) {
    let meter = Meter::start(&[peer.pid()]);
    let target = variant.target("/object", peer.address);
    let ask = Ask {
        address: peer.address,
        tls: false,
        protocol: Protocol::Http1,
        path: &target,
    };
    let answered = if variants::misses() {
        miss(variant, peer.address, round * MISSES..(round + 1) * MISSES).await
    } else {
        h2load::saturate(&ask, CONNECTIONS, Duration::from_secs(1))
            .await
            .answered
    };
    let taken = meter.taken().expect("a server that runs");
    (taken.cpu_us(answered), meter.foreign())
}

/// Requests these objects on each connection, which no other connection requests; returns the number of responses.
async fn miss(variant: &Variant, address: SocketAddr, numbers: std::ops::Range<u32>) -> u64 {
    let ask = Ask {
        address,
        tls: false,
        protocol: Protocol::Http1,
        path: "/object",
    };
    let mut asking = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let paths = numbers
            .clone()
            .map(|number| variant.target(&format!("/object/{connection}/{number}"), address));
        let paths: Vec<_> = paths.collect();
        asking.spawn(async move { h2load::each_once(&ask, &paths).await.answered });
    }
    asking.join_all().await.into_iter().sum()
}

fn report(rows: &[Row<&str, f64>]) -> Report {
    let what = if variants::misses() { "miss" } else { "hit" };
    let costs = |row: &Row<&str, f64>| row.runs.of(|cost| *cost);
    let first = costs(&rows[0]);
    let cells = |row: &Row<&str, f64>| {
        let ratios: Figures = costs(row).with(&first, |own, first| own / first);
        let (cost, ratio) = (costs(row).median(), ratios.median());
        let range = ratios.range(|ratio| format!("{ratio:.2}"));
        vec![
            row.case.to_owned(),
            format!("{cost:.1}"),
            format!("{ratio:.2}"),
            range,
        ]
    };
    let columns = "variant | us CPU | ratio | by round";
    Report {
        title: format!("CPU time of a {what}, one change at a time"),
        about: format!(
            "{BYTES} bytes, {CONNECTIONS} connections, {} rounds of a second, in turn, {WORKERS} workers\n{}",
            first.len(),
            machine::described(Row::foreign(rows)),
        ),
        tables: vec![Table::new(columns, rows.iter().map(cells))],
        ..Report::default()
    }
}
