// SPDX-License-Identifier: Apache-2.0
//! The story's tables, pictures and findings.

use super::{BYTES, COMPARED, Filled, Found, Growing, Row, SPARE_MIB, Scale};
use crate::contenders::WORKERS;
use crate::figures::aim::{self, Aim, Goal};
use crate::figures::format::{count, remark, whole};
use crate::figures::{Conclusions, Figures, Rounds, Table};
use crate::machine;
use crate::report::{Axis, Line, Picture, Report};

const COLUMNS: &str = "growth | number | us CPU a hit | by round | us CPU a fill | MiB | ";

impl Row {
    pub fn new(growing: Growing, count: usize) -> Self {
        Self {
            growing,
            count,
            runs: Rounds::default(),
            filled: None,
        }
    }

    pub fn filled(growing: Growing, count: usize, filled: Filled) -> Self {
        let filled = Some(filled);
        Self {
            filled,
            ..Self::new(growing, count)
        }
    }

    fn cpu(&self) -> Figures {
        self.runs.of(|run| run.cpu)
    }

    /// Resident memory, in MiB: for objects, after each had been requested once; else that of the first round. There
    /// had not been more memory before, and Envoy gives little back later.
    fn memory(&self) -> f64 {
        let first = self.runs.iter().next().map(|run| run.memory);
        let memory = self.filled.map(|filled| filled.after).or(first);
        memory.unwrap_or(f64::NAN)
    }

    fn failed(&self) -> u64 {
        self.filled.map_or(0, |filled| filled.failed)
    }

    /// Whether no request failed when the cache was filled.
    pub fn is_whole(&self) -> bool {
        self.failed() == 0
    }

    fn cells(&self) -> Vec<String> {
        let cpu = self.cpu();
        let fill = self.filled.map(|filled| whole(filled.cpu));
        let memory = if self.is_whole() {
            self.memory()
        } else {
            f64::NAN
        };
        vec![
            self.growing.to_string(),
            self.count.to_string(),
            whole(cpu.median()),
            cpu.range(whole),
            fill.unwrap_or_default(),
            whole(memory),
            remark(self.failed(), "failed"),
        ]
    }

    /// Growth of the process by keys that were requested once, with its aim.
    fn goal(&self) -> Option<Goal> {
        (self.growing == Growing::Once).then_some(())?;
        Some(Goal {
            what: format!("growth by {} {}", self.count, self.growing),
            aim: Aim::AtMost(SPARE_MIB),
            unit: " MiB",
            figures: [self.grown()?].into_iter().collect(),
        })
    }

    /// Growth of the process since it had fetched nothing, in MiB.
    fn grown(&self) -> Option<f64> {
        let filled = self.filled.filter(|_| self.is_whole())?;
        Some(self.memory() - filled.before)
    }
}

impl Found {
    /// The rows of a quantity that were measured to their end.
    fn of(&self, growing: Growing) -> impl Iterator<Item = &Row> {
        let of_it = self.rows.iter().filter(move |row| row.growing == growing);
        of_it.filter(|row| row.is_whole())
    }

    fn goals(&self) -> Vec<Goal> {
        let mut goals = vec![Goal {
            what: "start-up to the first byte of an object".to_owned(),
            aim: Aim::AtMost(1.5),
            unit: " s",
            figures: self.starts.of(|seconds| *seconds),
        }];
        goals.extend(self.rows.iter().filter_map(Row::goal));
        goals
    }

    fn findings(&self) -> Conclusions {
        let mut findings = Conclusions::default();
        for growing in COMPARED {
            if let (Some(few), Some(many)) = (self.of(growing).next(), self.of(growing).last()) {
                let what = format!("CPU time of a hit by {growing}");
                findings.compare(what, (few.count, few.cpu()), (many.count, many.cpu()));
            }
        }
        for row in self.rows.iter().filter(|row| !row.is_whole()) {
            let (growing, count, failed) = (row.growing, row.count, row.failed());
            findings.say(format!(
                "{growing}: {failed} requests failed when about {count} keys had been asked for."
            ));
        }
        findings
    }
}

pub fn report(found: &Found, scale: &Scale, before: f64) -> Report {
    Report {
        title: "Growth".to_owned(),
        about: format!(
            "hits of {BYTES} bytes, {} rounds, in turn, {WORKERS} workers\n{}",
            scale.rounds,
            machine::described(before, found.rows.iter().flat_map(|row| row.runs.foreign())),
        ),
        tables: vec![
            aim::table(&found.goals()),
            Table::new(COLUMNS, found.rows.iter().map(Row::cells)),
        ],
        findings: found.findings(),
        pictures: pictures(found),
        ..Report::default()
    }
}

fn pictures(found: &Found) -> Vec<(String, String)> {
    let picture = |name: &str, title: &str, unit: &'static str, figure: fn(&Row) -> f64| {
        let line = |growing: Growing| Line {
            name: format!("Sluice, {growing}"),
            points: found
                .of(growing)
                .map(|row| (count(row.count), figure(row)))
                .collect(),
        };
        let picture = Picture {
            title: format!("{title} by how many there are"),
            x: ("how many there are", Axis::Log),
            y: (unit, Axis::Linear),
            lines: COMPARED
                .map(line)
                .into_iter()
                .filter(|line| !line.points.is_empty())
                .collect(),
        };
        (name.to_owned(), picture.draw())
    };
    vec![
        picture("cpu", "CPU time of a hit", "us", |row| row.cpu().median()),
        picture("memory", "Resident memory", "MiB", Row::memory),
    ]
}
