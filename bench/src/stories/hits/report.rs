// SPDX-License-Identifier: Apache-2.0
//! The story's tables, pictures and findings.

use super::{BASE, COMPARED, Found, NGINX, OURS, Row, Run, Scale, Tail};
use crate::contenders::{Kind, Rated, WORKERS};
use crate::figures::aim::{self, Aim, Goal};
use crate::figures::format::{ms, remark, whole};
use crate::figures::{Conclusions, Figures, Table};
use crate::machine;
use crate::report::{Report, by_percentile};

const COLUMNS: &str = "hits | scene | us CPU | by round | a second | by round | ";
const TAIL_COLUMNS: &str = "ms at half | a second | p50 | p90 | p99 | p99.9 | max | ";

impl Row {
    fn cells(&self) -> Vec<String> {
        let (cpu, many) = (
            self.runs.of(|run| run.cpu),
            self.runs.of(|run| run.per_second),
        );
        vec![
            self.case.kind.to_string(),
            self.case.scene.to_string(),
            format!("{:.1}", cpu.median()),
            cpu.range(whole),
            whole(many.median()),
            many.range(whole),
            remark(self.runs.sum(|run| run.failed), "failed"),
        ]
    }
}

impl Tail {
    fn at(&self, percentile: f64) -> Figures {
        self.runs.of(|paced| paced.times.percentile(percentile))
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.case.kind.to_string(), self.case.rate.to_string()];
        cells.extend(
            [50.0, 90.0, 99.0, 99.9, 100.0].map(|percentile| ms(self.at(percentile).median())),
        );
        cells.push(remark(self.runs.sum(|paced| paced.failed), "failed"));
        cells
    }
}

impl Found {
    /// A figure of a contender, round by round, for hits of 10,000 bytes.
    fn of(&self, kind: Kind, figure: fn(&Run) -> f64) -> Figures {
        let mut rows = self.rows.iter();
        let row = rows.find(|row| row.case.scene == BASE && row.case.kind == kind);
        row.map(|row| row.runs.of(figure)).unwrap_or_default()
    }

    fn tail(&self, kind: Kind, percentile: f64) -> Figures {
        let tail = self.tails.iter().find(|tail| tail.case.kind == kind);
        tail.map(|tail| tail.at(percentile)).unwrap_or_default()
    }

    /// The aims, for hits of 10,000 bytes.
    fn goals(&self) -> Vec<Goal> {
        let memory = Kind::BareMemory;
        let ratio = |what: &str, aim, ours: (Kind, Figures), theirs: (Kind, Figures)| Goal {
            what: format!("{what}, {} / {}", ours.0, theirs.0),
            aim,
            unit: "x",
            figures: ours.1.with(&theirs.1, |our, their| our / their),
        };
        let cpu = |kind| (kind, self.of(kind, |run| run.cpu));
        let many = |kind| (kind, self.of(kind, |run| run.per_second));
        let mut goals = vec![
            ratio("CPU per hit", Aim::AtMost(0.95), cpu(OURS), cpu(memory)),
            ratio("CPU per hit", Aim::AtMost(1.5), cpu(OURS), cpu(NGINX)),
            ratio("hits a second", Aim::AtLeast(1.0), many(OURS), many(memory)),
        ];
        for (name, percentile) in [("p99 at half", 99.0), ("p99.9 at half", 99.9)] {
            let tail = |kind| (kind, self.tail(kind, percentile));
            goals.push(ratio(name, Aim::AtMost(1.0), tail(OURS), tail(memory)));
            goals.push(ratio(name, Aim::AtMost(1.2), tail(OURS), tail(NGINX)));
        }
        goals.push(ratio(
            "CPU per hit",
            Aim::AtMost(1.05),
            cpu(Kind::SluiceCold),
            cpu(Kind::Bare),
        ));
        let [ours, bare] = &self.passes;
        goals.push(Goal {
            what: "CPU of an uncacheable request, with the filter less without".to_owned(),
            aim: Aim::AtMost(6.0),
            unit: " us",
            figures: ours.with(bare, |our, bare| our - bare),
        });
        goals
    }

    /// CPU time of a hit, of Sluice and of the others.
    fn findings(&self) -> Conclusions {
        let mut findings = Conclusions::default();
        for (what, figure) in [
            ("CPU time of a hit", (|run| run.cpu) as fn(&Run) -> f64),
            ("time from one hit to the next at saturation", |run| {
                run.per_second.recip()
            }),
        ] {
            let peers = COMPARED
                .into_iter()
                .chain([Kind::Bare])
                .filter(|kind| *kind != OURS);
            for theirs in peers {
                findings.compare(
                    what,
                    (OURS, self.of(OURS, figure)),
                    (theirs, self.of(theirs, figure)),
                );
            }
        }
        findings
    }
}

pub fn report(found: &Found, scale: &Scale) -> Report {
    Report {
        title: "Hits".to_owned(),
        about: format!(
            "{} contenders in turn, {} rounds of {} ms for each scene, {WORKERS} workers\n{}",
            scale.kinds.len(),
            scale.rounds,
            scale.time.as_millis(),
            machine::described(Row::foreign(&found.rows)),
        ),
        tables: vec![
            aim::table(&found.goals()),
            Table::new(TAIL_COLUMNS, found.tails.iter().map(Tail::cells)),
            Table::new(COLUMNS, found.rows.iter().map(Row::cells)),
        ],
        findings: found.findings(),
        pictures: vec![("times".to_owned(), picture(found))],
        distributions: Tail::distributions(&found.tails, "", |paced| &paced.times),
    }
}

fn picture(found: &Found) -> String {
    let rate = found.tails.first().map_or(0, |tail| tail.case.rate);
    let title = format!("How long a hit takes, {rate} a second: half of what all of them carry");
    let kind = |half: &Rated| half.kind.to_string();
    by_percentile(title, &found.tails, kind, |paced| &paced.times)
}
