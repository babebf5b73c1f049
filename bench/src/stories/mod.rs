// SPDX-License-Identifier: Apache-2.0
//! What can be measured, a file each.

mod compression;
mod disk;
mod growth;
mod hits;
mod scrape;
mod sizing;
mod slow;
mod stampede;
mod tls;
mod wake;
mod wall;
mod workers;

use crate::progress::about;
use std::time::Duration;

/// Something that can be measured.
#[derive(Clone, Copy, Debug)]
pub enum Story {
    /// What a hit costs that is compressed.
    Compression,
    /// What Envoy's caches on a disk do with threads, with too little room and at a start.
    Disk,
    /// What a hit costs by how much there is of everything.
    Growth,
    /// What an object costs that is there.
    Hits,
    /// What a scrape of the metrics does to hits.
    Scrape,
    /// What fleets of caches hit, computed and simulated.
    Sizing,
    /// What each step of caching makes of a slow origin.
    Slow,
    /// What many clients at one key get, and the origin.
    Stampede,
    /// How long hits take over TLS 1.3 at constant rates.
    Tls,
    /// How soon the followers of one fill go on.
    Wake,
    /// How long requests take at a constant rate from a cold cache.
    Wall,
    /// Which worker works, by how workers come to connections.
    Workers,
}

/// Each with its name, and the seconds that it takes on two cores: quick, and in full.
const STORIES: [(&str, Story, [u64; 2]); 12] = [
    ("wall", Story::Wall, [22, 970]),
    ("stampede", Story::Stampede, [28, 430]),
    ("slow", Story::Slow, [26, 300]),
    ("scrape", Story::Scrape, [28, 600]),
    ("workers", Story::Workers, [24, 260]),
    ("tls", Story::Tls, [23, 540]),
    ("hits", Story::Hits, [20, 330]),
    ("growth", Story::Growth, [30, 640]),
    ("disk", Story::Disk, [26, 750]),
    ("wake", Story::Wake, [7, 130]),
    ("compression", Story::Compression, [4, 60]),
    ("sizing", Story::Sizing, [3, 15]),
];

/// The names for the command line.
pub fn names() -> Vec<&'static str> {
    STORIES.iter().map(|(name, ..)| *name).collect()
}

/// The story of that name.
pub fn find(wanted: &str) -> Option<Story> {
    STORIES
        .iter()
        .find(|(name, ..)| *name == wanted)
        .map(|(_, story, _)| *story)
}

/// How long these stories take, each and in all; names that are none are left out.
pub fn plan(wanted: &[String], quick: bool) -> String {
    let known = STORIES
        .iter()
        .filter(|(name, ..)| wanted.iter().any(|wanted| wanted == name));
    let times: Vec<_> = known
        .map(|(name, _, [short, long])| {
            (
                *name,
                Duration::from_secs(if quick { *short } else { *long }),
            )
        })
        .collect();
    let each: Vec<_> = times
        .iter()
        .map(|(name, time)| format!("{name} {}", about(*time)))
        .collect();
    let all = about(times.iter().map(|(_, time)| *time).sum());
    format!("{all} in all: {}", each.join(", "))
}

impl Story {
    /// Measures it and reports; `quick`, by a plan that shows that it works.
    pub async fn run(self, quick: bool) {
        match self {
            Self::Compression => compression::run(quick).await,
            Self::Disk => disk::run(quick).await,
            Self::Growth => growth::run(quick).await,
            Self::Hits => hits::run(quick).await,
            Self::Scrape => scrape::run(quick).await,
            Self::Sizing => sizing::run(quick),
            Self::Slow => slow::run(quick).await,
            Self::Stampede => stampede::run(quick).await,
            Self::Tls => tls::run(quick).await,
            Self::Wake => wake::run(quick).await,
            Self::Wall => wall::run(quick).await,
            Self::Workers => workers::run(quick).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_four_minutes_and_in_full_it_is_less_than_two_hours() {
        let seconds = |at: usize| STORIES.iter().map(|(_, _, times)| times[at]).sum::<u64>();
        assert!((210..270).contains(&seconds(0)), "{}", seconds(0));
        assert!(seconds(1) <= 120 * 60, "{}", seconds(1));
    }

    #[test]
    fn a_plan_names_each_story_and_all() {
        let wanted = ["sizing", "none"].map(str::to_owned);
        assert_eq!(plan(&wanted, true), "about 3 s in all: sizing about 3 s");
    }
}
