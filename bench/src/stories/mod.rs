// SPDX-License-Identifier: Apache-2.0
//! The stories: measurements, a file or a folder each.

mod compression;
mod disk;
mod growth;
mod hits;
mod instructions;
mod scope;
mod scrape;
mod sizing;
mod slow;
mod stampede;
mod tls;
mod variants;
mod wake;
mod wall;
mod workers;

use indicatif::HumanDuration;
use std::time::Duration;

/// A story: a measurement.
#[derive(Clone, Copy, Debug)]
pub enum Story {
    /// CPU time of a compressed hit.
    Compression,
    /// Envoy's caches on a disk by number of threads, with too little room, and at a start.
    Disk,
    /// CPU time of a hit by the number of objects, of keys in flight and of rules.
    Growth,
    /// Cost of a stored object.
    Hits,
    /// Instructions of a hit, for one change of the edge at a time.
    Instructions,
    /// Effect of a scrape of the metrics on hits.
    Scrape,
    /// Hit ratios of fleets of caches, computed and simulated.
    Sizing,
    /// Effect of each step of caching on a slow origin.
    Slow,
    /// Many clients of one key, and the requests to the origin.
    Stampede,
    /// How long hits take over TLS 1.3 at constant rates.
    Tls,
    /// CPU time of a hit, for one change of the edge at a time.
    Variants,
    /// How soon the followers of one fill continue.
    Wake,
    /// How long requests take at a constant rate from a cold cache.
    Wall,
    /// Spread of work over the workers, by the ways in which they get connections.
    Workers,
}

/// The stories with their names, and their length in seconds on two cores: quick, and in full.
const STORIES: [(&str, Story, [u64; 2]); 14] = [
    ("wall", Story::Wall, [30, 1_260]),
    ("stampede", Story::Stampede, [34, 505]),
    ("slow", Story::Slow, [26, 300]),
    ("scrape", Story::Scrape, [30, 600]),
    ("workers", Story::Workers, [24, 260]),
    ("tls", Story::Tls, [23, 540]),
    ("hits", Story::Hits, [20, 330]),
    ("growth", Story::Growth, [30, 640]),
    ("disk", Story::Disk, [26, 750]),
    ("wake", Story::Wake, [7, 130]),
    ("compression", Story::Compression, [4, 60]),
    ("sizing", Story::Sizing, [3, 15]),
    ("variants", Story::Variants, [12, 70]),
    ("instructions", Story::Instructions, [60, 90]),
];

/// The names for the command line.
pub fn names() -> Vec<&'static str> {
    STORIES.iter().map(|(name, ..)| *name).collect()
}

/// The story of that name.
pub fn find(wanted: &str) -> Option<Story> {
    let mut stories = STORIES.iter();
    let found = stories.find(|(name, ..)| *name == wanted);
    found.map(|(_, story, _)| *story)
}

/// Length of these stories, each and in all; unknown names are left out.
pub fn plan(wanted: &[String], quick: bool) -> String {
    let known = STORIES
        .iter()
        .filter(|(name, ..)| wanted.iter().any(|wanted| wanted == name));
    let times = known.map(|(name, _, [short, long])| (name, if quick { *short } else { *long }));
    let about = |seconds| HumanDuration(Duration::from_secs(seconds));
    let each: Vec<_> = times
        .clone()
        .map(|(name, time)| format!("{name} {}", about(time)))
        .collect();
    let all = about(times.map(|(_, time)| time).sum());
    format!("about {all} in all: {}", each.join(", "))
}

impl Story {
    /// Runs the story and writes its report. `quick` selects a short plan which shows that it works.
    pub async fn run(self, quick: bool) {
        let report = match self {
            Self::Compression => Some(compression::run(quick).await),
            Self::Disk => disk::run(quick).await,
            Self::Growth => growth::run(quick).await,
            Self::Hits => hits::run(quick).await,
            Self::Instructions => instructions::run(quick).await,
            Self::Scrape => Some(scrape::run(quick).await),
            Self::Sizing => Some(sizing::run(quick)),
            Self::Slow => Some(slow::run(quick).await),
            Self::Stampede => Some(stampede::run(quick).await),
            Self::Tls => tls::run(quick).await,
            Self::Variants => variants::run(quick).await,
            Self::Wake => Some(wake::run(quick).await),
            Self::Wall => Some(wall::run(quick).await),
            Self::Workers => Some(workers::run(quick).await),
        };
        if let Some(report) = report {
            report.keep(self.name(), quick);
        }
    }

    fn name(self) -> &'static str {
        let mut stories = STORIES.iter();
        let own = stories
            .find(|(_, story, _)| std::mem::discriminant(story) == std::mem::discriminant(&self));
        own.map_or("", |(name, ..)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_five_minutes_and_in_full_it_is_less_than_two_hours() {
        let seconds = |at: usize| STORIES.iter().map(|(_, _, times)| times[at]).sum::<u64>();
        assert!((210..330).contains(&seconds(0)), "{}", seconds(0));
        assert!(seconds(1) <= 120 * 60, "{}", seconds(1));
    }

    #[test]
    fn every_story_is_found_by_its_name() {
        for name in names() {
            assert_eq!(find(name).map(Story::name), Some(name));
        }
    }

    #[test]
    fn a_plan_names_each_story_and_all() {
        let wanted = ["sizing", "none"].map(str::to_owned);
        assert_eq!(
            plan(&wanted, true),
            "about 3 seconds in all: sizing 3 seconds"
        );
    }
}
