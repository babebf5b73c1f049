// SPDX-License-Identifier: Apache-2.0
//! Scrapes of an edge with different statistics, without any load.

use super::spare;
use crate::figures::format::{count, ms, whole};
use crate::figures::{Conclusions, Rounds, Table};
use crate::machine::usage::Bystander;
use sluice_tests::client;
use sluice_tests::edge::Edge;
use sluice_tests::origin::Origin;
use std::time::Instant;

/// An edge, and all scrapes of it.
pub struct Rendering {
    name: String,
    all: bool,
    spare_clusters: u32,
    untagged: bool,
    /// Size of the last scrape.
    bytes: usize,
    /// Number of its lines that are not comments.
    series: usize,
    /// Times of the rounds' scrapes, in milliseconds.
    times: Rounds<f64>,
}

/// The scrapes as a table.
pub fn table(all: &[Rendering]) -> Table {
    Table::new(
        "a scrape alone | kB | series | ms",
        all.iter().map(Rendering::cells),
    )
}

impl Rendering {
    fn new(all: bool, spare_clusters: u32, untagged: bool) -> Self {
        let stats = if all { "STATS=all" } else { "default settings" };
        let clusters = match spare_clusters {
            0 => String::new(),
            count => format!(", {count} clusters more"),
        };
        let tags = if untagged { ", no tags" } else { "" };
        Self {
            name: format!("Sluice, {stats}{clusters}{tags}"),
            all,
            spare_clusters,
            untagged,
            bytes: 0,
            series: 0,
            times: Rounds::default(),
        }
    }

    async fn start(&self, origin: &Origin) -> Edge {
        let edge = Edge::http(origin).env("SLUICE_STATS", if self.all { "all" } else { "few" });
        edge.env("SLUICE_ACCESS_LOG", "off")
            .metrics()
            .more_configuration(spare::configuration(self.spare_clusters, self.untagged))
            .start()
            .await
    }

    async fn scrape(&mut self, edge: &Edge) {
        let (bystander, began) = (Bystander::start(), Instant::now());
        let answer = client::get(edge.metrics(), "/metrics").await;
        let took = began.elapsed().as_secs_f64() * 1e3;
        self.times.add((took, bystander.foreign()));
        self.bytes = answer.body.len();
        self.series = series(&String::from_utf8_lossy(&answer.body));
    }

    fn cells(&self) -> Vec<String> {
        let (size, time) = (
            whole(count(self.bytes) / 1e3),
            ms(self.times.of(|time| *time).median()),
        );
        vec![self.name.clone(), size, self.series.to_string(), time]
    }
}

/// Measures edges with few and with all statistics, with `spare` more clusters without requests, and with these
/// clusters and no tags taken out of names. Each is scraped once in a round, in turn. `quick` leaves out the edges
/// without these clusters.
pub async fn measure(origin: &Origin, spare: u32, rounds: u32, quick: bool) -> Vec<Rendering> {
    let mut all = Vec::new();
    let kinds = [
        (false, 0, false),
        (true, 0, false),
        (false, spare, false),
        (true, spare, false),
        (true, spare, true),
    ];
    for (stats, clusters, untagged) in kinds.into_iter().skip(if quick { 2 } else { 0 }) {
        let rendering = Rendering::new(stats, clusters, untagged);
        all.push((rendering.start(origin).await, rendering));
    }
    for _ in 0..rounds {
        for (edge, rendering) in &mut all {
            rendering.scrape(edge).await;
        }
    }
    all.into_iter().map(|(_, rendering)| rendering).collect()
}

/// Number of series in Prometheus' text format.
fn series(text: &str) -> usize {
    let lines = text.lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .count()
}

/// Effect of the matcher, and of the tags.
pub fn compare(findings: &mut Conclusions, all: &[Rendering]) {
    let many = |all_stats: bool, untagged: bool| {
        let mut many = all.iter().filter(|rendering| rendering.spare_clusters > 0);
        many.find(|rendering| rendering.all == all_stats && rendering.untagged == untagged)
    };
    let Some(tagged) = many(true, false) else {
        return;
    };
    for ours in [many(false, false), many(true, true)].into_iter().flatten() {
        let times =
            |rendering: &Rendering| (rendering.name.clone(), rendering.times.of(|time| *time));
        findings.compare("time of a scrape", times(ours), times(tagged));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_no_series() {
        assert_eq!(
            series("# TYPE a counter\na{b=\"c\"} 1\n\na{b=\"d\"} 2\n"),
            2
        );
    }
}
