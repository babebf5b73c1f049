// SPDX-License-Identifier: Apache-2.0
//! The story's tables, pictures and findings.

use super::load::Load;
use super::{CONNECTIONS, Case, Kind, Row, Run};
use crate::contenders::WORKERS;
use crate::figures::format::{ms, whole};
use crate::figures::{Conclusions, Figures, Table};
use crate::machine;
use crate::report::{Report, by_percentile};

const COLUMNS: &str = "ms from due |  | req/s | p50 | p90 | p99 | p99.9 | max | max by round | % connections | % CPU \
    | us CPU";

impl Row {
    fn figures(&self, figure: fn(&Run) -> f64) -> (Kind, Figures) {
        (self.case.kind, self.runs.of(figure))
    }

    fn cells(&self) -> Vec<String> {
        let at = |percentile: f64| {
            ms(self
                .runs
                .of(|run| run.times.percentile(percentile))
                .median())
        };
        let mut cells = vec![
            self.case.load.to_string(),
            self.case.kind.to_string(),
            self.case.load.rate().to_string(),
        ];
        cells.extend([50.0, 90.0, 99.0, 99.9, 100.0].map(at));
        cells.push(self.runs.of(Run::longest).range(ms));
        cells.push(self.runs.of(Run::busiest_connections).range(whole));
        cells.push(self.runs.of(Run::busiest_cpu).range(whole));
        cells.push(whole(self.runs.of(Run::cpu_us).median()));
        cells
    }
}

pub fn report(rows: &[Row], rounds: u32, seconds: u32) -> Report {
    Report {
        title: "Which worker works".to_owned(),
        about: format!(
            "{CONNECTIONS} connections at constant arrival rates for {seconds} s, {rounds} rounds, in turn, {WORKERS} \
             workers; the busiest worker's part of connections and CPU time, in percent\n{}",
            machine::described(Row::foreign(rows)),
        ),
        tables: vec![Table::new(COLUMNS, rows.iter().map(Row::cells))],
        findings: findings(rows),
        pictures: pictures(rows),
        distributions: Row::distributions(rows, "", |run| &run.times),
    }
}

/// Times for each load.
fn pictures(rows: &[Row]) -> Vec<(String, String)> {
    let mut loads: Vec<_> = rows.iter().map(|row| row.case.load).collect();
    loads.dedup();
    let picture = |load: Load| {
        let of_load = rows.iter().filter(|row| row.case.load == load);
        let title = format!(
            "{load}, {} a second: from when a request is due to its answer",
            load.rate()
        );
        let name = load.to_string().replace([' ', ','], "-");
        let kind = |case: &Case| case.kind.to_string();
        (name, by_percentile(title, of_load, kind, |run| &run.times))
    };
    loads.into_iter().map(picture).collect()
}

const BALANCE_REASON: &str =
    "A hash assigns connections to workers, so the two workers may not have equally many.";
const CPU_REASON: &str =
    "Envoy takes more for a connection and for a request, and a Wasm filter is in it.";

/// Compares Sluice with default settings with `exact_balance`, and with nginx.
fn findings(rows: &[Row]) -> Conclusions {
    let mut findings = Conclusions::default();
    let of = |kind, load| {
        rows.iter()
            .find(|row| row.case.kind == kind && row.case.load == load)
    };
    for load in Load::ALL {
        // The spread of connections does not depend on other work on the machine.
        if let Some((ours, other)) = of(Kind::Sluice, load).zip(of(Kind::Balanced, load)) {
            let busiest = |row: &Row| row.runs.of(Run::busiest_connections).range(whole);
            let (ours, other) = (busiest(ours), busiest(other));
            findings.say(format!(
                "{load}: the busiest worker has {ours} % of the connections with Sluice's default settings, \
                 {other} % with exact_balance."
            ));
        }
    }
    let pairs = [
        (Kind::Sluice, Kind::Balanced, BALANCE_REASON),
        (Kind::NginxReuseport, Kind::Nginx, ""),
        (Kind::Sluice, Kind::NginxReuseport, CPU_REASON),
    ];
    for load in Load::ALL {
        for (ours, theirs, reason) in pairs {
            let Some((ours, theirs)) = of(ours, load).zip(of(theirs, load)) else {
                continue;
            };
            let mut compare = |what: &str, figure: fn(&Run) -> f64| {
                let what = format!("{load}: {what}");
                findings.compare_with_reason(
                    what,
                    ours.figures(figure),
                    theirs.figures(figure),
                    reason,
                );
            };
            compare("time that 99 % do not exceed", |run| {
                run.times.percentile(99.0)
            });
            compare("longest time", Run::longest);
            compare("CPU time per request", Run::cpu_us);
        }
    }
    findings
}
