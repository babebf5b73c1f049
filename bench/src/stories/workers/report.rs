// SPDX-License-Identifier: Apache-2.0
//! The story's tables, pictures and findings.

use super::load::Load;
use super::{CONNECTIONS, Kind, Row, Run};
use crate::contenders::WORKERS;
use crate::figures::format::{ms, whole};
use crate::figures::{Conclusions, Figures, Table};
use crate::machine;
use crate::report::{Report, bars, by_percentile};

const COLUMNS: &str = "ms from due |  | req/s | p50 | p90 | p99 | p99.9 | max | max by round | % connections | % CPU \
    | us CPU";

impl Row {
    fn figures(&self, figure: fn(&Run) -> f64) -> (Kind, Figures) {
        (self.kind, self.runs.of(figure))
    }

    fn cells(&self) -> Vec<String> {
        let at = |percentile: f64| {
            ms(self
                .runs
                .of(|run| run.times.percentile(percentile))
                .median())
        };
        let mut cells = vec![
            self.load.to_string(),
            self.kind.to_string(),
            self.load.rate().to_string(),
        ];
        cells.extend([50.0, 90.0, 99.0, 99.9, 100.0].map(at));
        cells.push(self.runs.of(Run::longest).range(ms));
        cells.push(self.runs.of(Run::busiest_connections).range(whole));
        cells.push(self.runs.of(Run::busiest_cpu).range(whole));
        cells.push(whole(self.runs.of(Run::cpu_us).median()));
        cells
    }

    fn name(&self) -> String {
        format!("{}, {}", self.load, self.kind)
    }
}

pub fn report(rows: &[Row], rounds: usize, seconds: u32, before: f64) -> Report {
    let times = rows
        .iter()
        .flat_map(|row| row.runs.distributions(&row.name(), |run| &run.times));
    Report {
        title: "Which worker works".to_owned(),
        about: format!(
            "{CONNECTIONS} connections at constant arrival rates for {seconds} s, {rounds} rounds, in turn, {WORKERS} \
             workers; the busiest worker's part of connections and CPU time, in percent\n{}",
            machine::described(before, rows.iter().flat_map(|row| row.runs.foreign())),
        ),
        tables: vec![Table::new(COLUMNS, rows.iter().map(Row::cells))],
        findings: findings(rows),
        pictures: pictures(rows),
        distributions: times.collect(),
    }
}

/// Times for each load, and how uneven the work is.
fn pictures(rows: &[Row]) -> Vec<(String, String)> {
    let mut loads: Vec<_> = rows.iter().map(|row| row.load).collect();
    loads.dedup();
    let of_load = |load: Load| {
        let of_load = || rows.iter().filter(move |row| row.load == load);
        let line = |row: &'_ Row| row.kind.to_string();
        let times =
            of_load().map(|row| (line(row), row.runs.iter().map(|run| &run.times).collect()));
        let title = format!(
            "{load}, {} a second: from when a request is due to its answer",
            load.rate()
        );
        let name = load.to_string().replace([' ', ','], "-");
        let busiest = of_load().map(|row| (line(row), row.runs.of(Run::busiest_cpu).median()));
        let title_of_busiest = format!("{load}: the busiest of two workers' part of the CPU time");
        [
            (format!("{name}-times"), by_percentile(title, times)),
            (format!("{name}-cpu"), bars(title_of_busiest, "%", busiest)),
        ]
    };
    loads.into_iter().flat_map(of_load).collect()
}

const BALANCE_REASON: &str =
    "A hash assigns connections to workers, so the two workers may not have equally many.";
const CPU_REASON: &str =
    "Envoy takes more for a connection and for a request, and a Wasm filter is in it.";

/// Compares Sluice with default settings with `exact_balance`, and with nginx.
fn findings(rows: &[Row]) -> Conclusions {
    let mut findings = Conclusions::default();
    let of = |kind, load| rows.iter().find(|row| row.kind == kind && row.load == load);
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
