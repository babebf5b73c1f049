// SPDX-License-Identifier: Apache-2.0
//! The story's tables, pictures and findings.

use super::scene::Scene;
use super::{NGINX, ORIGIN, Row, Run, SIZE, Scale, UPDATING};
use crate::contenders::Kind;
use crate::figures::format::{count, ms, remark, whole};
use crate::figures::{Conclusions, Distribution, Figures, Table};
use crate::machine;
use crate::report::Report;

const CPU_REASON: &str = "Envoy alone takes more for a request than they do (row `bare Envoy`). \
     Sluice adds a Wasm filter to each request, and a second listener to a miss.";
const MEMORY_REASON: &str = "Envoy's code and tables are larger, and each worker and the main thread have a virtual machine \
     with the filter in it.";

const COLUMNS: &str = "ms |  | requests | origin | p50 | max | max by round | us CPU | MiB | ";

impl Row {
    fn figures(&self, figure: fn(&Run) -> Option<f64>) -> (Kind, Figures) {
        (self.case.kind, self.runs.of_all(figure))
    }

    fn failed(&self) -> u64 {
        self.runs.sum(|run| run.failed as u64)
    }

    fn cells(&self) -> Vec<String> {
        let all = Distribution::pool(self.runs.iter().map(|run| &run.times));
        let longest = self.runs.of_all(Run::longest);
        vec![
            self.case.scene.to_string(),
            self.case.kind.to_string(),
            whole(self.runs.of(|run| count(run.requests)).median()),
            self.runs.of(|run| count(run.fetches)).range(whole),
            ms(all.percentile(50.0)),
            ms(longest.median()),
            longest.range(ms),
            whole(self.runs.of_all(Run::cpu).median()),
            whole(self.runs.of_all(Run::memory).median()),
            remark(self.failed(), "failed"),
        ]
    }
}

pub fn report(rows: &[Row], scale: &Scale) -> Report {
    Report {
        title: "The stampede".to_owned(),
        about: format!(
            "{SIZE} bytes, an origin that takes {} ms, {} rounds, in turn\n\
             {} clients at once unless the scene differs, or {} that ask again and again, for {} s where the origin fails and \
             {} s where an object expires; {}",
            ORIGIN.as_millis(),
            scale.rounds,
            scale.crowd,
            scale.regulars,
            scale.failing.as_secs_f64(),
            scale.expiring.as_secs_f64(),
            machine::described(Row::foreign(rows)),
        ),
        tables: vec![Table::new(COLUMNS, rows.iter().map(Row::cells))],
        findings: findings(rows),
        distributions: Row::distributions(rows, "", |run| &run.times),
        ..Report::default()
    }
}

fn findings(rows: &[Row]) -> Conclusions {
    let mut findings = Conclusions::default();
    let ours = || rows.iter().filter(|row| row.case.kind.is_sluice());
    for ours in ours() {
        let scene = ours.case.scene;
        if let failed @ 1.. = ours.failed() {
            findings.say(format!(
                "{scene}, {}: {failed} requests failed.",
                ours.case.kind
            ));
        }
        let most = ours.runs.iter().map(|run| run.fetches).max().unwrap_or(0);
        if matches!(
            scene,
            Scene::Cold(_) | Scene::SlowLeader | Scene::Followers(_)
        ) && most != 1
        {
            findings.say(format!(
                "{scene}, {}: {most} requests to the origin, and it should be one.",
                ours.case.kind
            ));
        }
        let of_scene = rows.iter().filter(|row| row.case.scene == scene);
        for theirs in of_scene.filter(|row| compared(ours.case.kind).contains(&row.case.kind)) {
            let (what, figure) = match scene {
                Scene::Followers(_) => ("median", Run::median as fn(&Run) -> Option<f64>),
                _ => ("longest", Run::longest as _),
            };
            let what = format!("{scene}, {what} time");
            findings.compare(what, ours.figures(figure), theirs.figures(figure));
        }
    }
    for ours in ours() {
        let of_scene = rows.iter().filter(|row| row.case.scene == ours.case.scene);
        let compared = [compared(ours.case.kind), &[Kind::Bare]].concat();
        for theirs in of_scene.filter(|row| compared.contains(&row.case.kind)) {
            usage_findings(&mut findings, ours, theirs);
        }
    }
    findings
}

/// The peers with the same behaviour.
const fn compared(ours: Kind) -> &'static [Kind] {
    match ours {
        Kind::SluiceStale => &[UPDATING],
        _ => &[NGINX, Kind::Varnish, Kind::TrafficServer],
    }
}

/// Compares the CPU time and memory of Sluice with default settings with those of a peer.
fn usage_findings(findings: &mut Conclusions, ours: &Row, theirs: &Row) {
    let scene = ours.case.scene;
    if [Scene::Expiring, Scene::Uncacheable, Scene::Failing].contains(&scene) {
        let what = format!("{scene}, CPU time per request");
        findings.compare_with_reason(
            what,
            ours.figures(Run::cpu),
            theirs.figures(Run::cpu),
            CPU_REASON,
        );
    }
    // The peak memory is compared for one crowd only.
    if scene == Scene::Cold(100) {
        let what = format!("{scene}, peak memory");
        findings.compare_with_reason(
            what,
            ours.figures(Run::memory),
            theirs.figures(Run::memory),
            MEMORY_REASON,
        );
    }
}
