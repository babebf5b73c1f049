// SPDX-License-Identifier: Apache-2.0
//! The tables of `bench/CONFORMANCE.md`.

use crate::conformance::Results;
use crate::conformance::cache::Cache;
use sluice_tests::conformance::{Cut, Outcomes, listed, score};
use sluice_tests::http::http_date;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::SystemTime;

/// The tables, with the reasons from the page.
pub fn of(results: &Results, cut: Cut) -> String {
    let (now, scores) = (http_date(SystemTime::now()), scores(results));
    let mut page = format!("## Scores: {cut}\n\n{now}\n\n{scores}");
    if let Some(sluice) = results.get(&Cache::Sluice) {
        let variants = variants(results, sluice);
        let failures = failures(results, sluice, cut);
        let _ = write!(
            page,
            "\n## Sluice in other ways: {cut}\n\n{variants}\n## What does not pass: {cut}\n\n{failures}"
        );
    }
    page
}

fn scores(results: &Results) -> String {
    let all = |kind| {
        let mut totals = results.values().map(|outcomes| score(outcomes, kind).1);
        totals.next().unwrap_or_default()
    };
    let mut table = format!(
        "| cache | version | required, of {} | optimal, of {} |\n|---|---|---|---|\n",
        all("required"),
        all("optimal")
    );
    for (cache, outcomes) in results {
        let [required, optimal] = ["required", "optimal"].map(|kind| score(outcomes, kind).0);
        let (title, version) = (cache.title(), cache.version());
        let _ = writeln!(table, "| {title} | {version} | {required} | {optimal} |");
    }
    table
}

/// Each test that Sluice does not pass, with the peers that pass it.
fn failures(results: &Results, sluice: &Outcomes, cut: Cut) -> String {
    let cuts = [Cut::Package, Cut::Repository, cut];
    let reasons: BTreeMap<_, _> = cuts.into_iter().flat_map(listed).collect();
    let mut table = "| test | kind | passes on | why |\n|---|---|---|---|\n".to_owned();
    for (name, outcome) in sluice.iter().filter(|(_, outcome)| !outcome.is_right()) {
        let passes =
            |outcomes: &Outcomes| outcomes.get(name).is_some_and(|other| other.mark == "pass");
        let peers = results.iter().filter(|(cache, _)| cache.is_peer());
        let peers: Vec<_> = peers
            .filter(|(_, outcomes)| passes(outcomes))
            .map(|(cache, _)| cache.title())
            .collect();
        let kind = &outcome.kind;
        let seen = format!("({}) {}", outcome.mark, outcome.detail.replace('|', "\\|"));
        let why = reasons.get(name).unwrap_or(&seen);
        let _ = writeln!(
            table,
            "| `{name}` | {kind} | {} | {why} |",
            peers.join(", ")
        );
    }
    table
}

/// Each test with another result in a variant of Sluice.
fn variants(results: &Results, sluice: &Outcomes) -> String {
    let mut table =
        "| test | kind | way | result | default settings |\n|---|---|---|---|---|\n".to_owned();
    for (cache, outcomes) in results.iter().filter(|(cache, _)| cache.is_variant()) {
        for (name, outcome) in outcomes {
            let Some(usual) = sluice.get(name).filter(|usual| usual.mark != outcome.mark) else {
                continue;
            };
            let told = [outcome, usual].map(|outcome| {
                let detail = outcome.detail.replace('|', "\\|");
                format!("{} {detail}", outcome.mark).trim().to_owned()
            });
            let (kind, title) = (&outcome.kind, cache.title());
            let _ = writeln!(
                table,
                "| `{name}` | {kind} | {title} | {} |",
                told.join(" | ")
            );
        }
    }
    table
}

/// Rows that the page has to lose, and tests without a reason in it.
pub fn news(results: &Results, cut: Cut) -> String {
    let Some(sluice) = results.get(&Cache::Sluice) else {
        return String::new();
    };
    let listed: BTreeSet<_> = listed(cut).into_keys().collect();
    let failed = sluice.iter().filter(|(_, outcome)| !outcome.is_right());
    let failed: BTreeSet<_> = failed.map(|(name, _)| name.clone()).collect();
    let names = |names: Vec<&String>| match names.is_empty() {
        true => "none".to_owned(),
        false => names
            .into_iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    format!(
        "bench/CONFORMANCE.md lists these of {cut}, and they pass: {}\nIt does not list these, and they do not pass: {}",
        names(listed.difference(&failed).collect()),
        names(failed.difference(&listed).collect())
    )
}
