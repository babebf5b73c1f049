// SPDX-License-Identifier: Apache-2.0
//! The story's tables, pictures and findings.

use super::scene::Scene;
use super::{NGINX, ORIGIN, Row, Run, SIZE, Scale, UPDATING};
use crate::contenders::Kind;
use crate::figures::format::{count, ms, remark, whole};
use crate::figures::{Conclusions, Distribution, Figures, Table};
use crate::machine;
use crate::report::{Report, bars};

const CPU_REASON: &str = "Envoy alone takes more for a request than they do (row `bare Envoy`). \
     Sluice adds a Wasm filter to each request, and a second listener to a miss.";
const MEMORY_REASON: &str = "Envoy's code and tables are larger, and each worker and the main thread have a virtual machine \
     with the filter in it.";

const COLUMNS: &str = "ms |  | requests | origin | p50 | max | max by round | us CPU | MiB | ";

impl Row {
    fn figures(&self, figure: fn(&Run) -> Option<f64>) -> (Kind, Figures) {
        (self.kind, self.runs.of_all(figure))
    }

    fn failed(&self) -> u64 {
        self.runs.sum(|run| run.failed as u64)
    }

    fn cells(&self) -> Vec<String> {
        let all = Distribution::pool(self.runs.iter().map(|run| &run.times));
        let longest = self.runs.of_all(Run::longest);
        vec![
            self.scene.to_string(),
            self.kind.to_string(),
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

pub fn report(rows: &[Row], scale: &Scale, before: f64) -> Report {
    let times = rows.iter().flat_map(|row| {
        row.runs
            .distributions(&format!("{}, {}", row.scene, row.kind), |run| &run.times)
    });
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
            machine::described(before, rows.iter().flat_map(|row| row.runs.foreign())),
        ),
        tables: vec![Table::new(COLUMNS, rows.iter().map(Row::cells))],
        findings: findings(rows),
        pictures: pictures(rows),
        distributions: times.collect(),
    }
}

fn pictures(rows: &[Row]) -> Vec<(String, String)> {
    let picture = |scene: Scene, what: &str, unit: &str, figure: fn(&Run) -> Option<f64>| {
        let of_scene = rows.iter().filter(|row| row.scene == scene);
        let bar = |row: &Row| (row.kind.to_string(), row.runs.of_all(figure).median());
        let name = format!("{scene}-{unit}").replace([' ', ','], "-");
        (
            name,
            bars(format!("{scene}: {what}"), unit, of_scene.map(bar)),
        )
    };
    let mut scenes: Vec<_> = rows.iter().map(|row| row.scene).collect();
    scenes.dedup();
    let longest = scenes
        .into_iter()
        .map(|scene| picture(scene, "the longest time of a request", "ms", Run::longest));
    let mut pictures: Vec<_> = longest.collect();
    pictures.push(picture(
        Scene::Expiring,
        "CPU time for each request",
        "us",
        Run::cpu,
    ));
    pictures.push(picture(
        Scene::Cold(100),
        "memory at the most",
        "MiB",
        Run::memory,
    ));
    pictures
}

fn findings(rows: &[Row]) -> Conclusions {
    let mut findings = Conclusions::default();
    let ours = || rows.iter().filter(|row| row.kind.is_sluice());
    for ours in ours() {
        let scene = ours.scene;
        if let failed @ 1.. = ours.failed() {
            findings.say(format!("{scene}, {}: {failed} requests failed.", ours.kind));
        }
        let most = ours.runs.iter().map(|run| run.fetches).max().unwrap_or(0);
        if matches!(
            scene,
            Scene::Cold(_) | Scene::SlowLeader | Scene::Followers(_)
        ) && most != 1
        {
            findings.say(format!(
                "{scene}, {}: {most} requests to the origin, and it should be one.",
                ours.kind
            ));
        }
        let of_scene = rows.iter().filter(|row| row.scene == scene);
        for theirs in of_scene.filter(|row| compared(ours.kind).contains(&row.kind)) {
            let (what, figure) = match scene {
                Scene::Followers(_) => ("median", Run::median as fn(&Run) -> Option<f64>),
                _ => ("longest", Run::longest as _),
            };
            let what = format!("{scene}, {what} time");
            findings.compare(what, ours.figures(figure), theirs.figures(figure));
        }
    }
    for ours in ours() {
        let of_scene = rows.iter().filter(|row| row.scene == ours.scene);
        let compared = [compared(ours.kind), &[Kind::Bare]].concat();
        for theirs in of_scene.filter(|row| compared.contains(&row.kind)) {
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
    let scene = ours.scene;
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
