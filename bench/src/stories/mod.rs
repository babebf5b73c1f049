// SPDX-License-Identifier: Apache-2.0
//! What can be measured, a file each.

mod compression;
mod scrape;
mod sizing;
mod stampede;
mod wake;
mod wall;

/// Something that can be measured.
#[derive(Clone, Copy, Debug)]
pub enum Story {
    /// What a hit costs that is compressed.
    Compression,
    /// What a scrape of the metrics does to hits.
    Scrape,
    /// What fleets of caches hit, computed and simulated.
    Sizing,
    /// What many clients at one key get, and the origin.
    Stampede,
    /// How soon the followers of one fill go on.
    Wake,
    /// How long requests take at a constant rate from a cold cache.
    Wall,
}

const STORIES: [(&str, Story); 6] = [
    ("wall", Story::Wall),
    ("stampede", Story::Stampede),
    ("scrape", Story::Scrape),
    ("wake", Story::Wake),
    ("compression", Story::Compression),
    ("sizing", Story::Sizing),
];

/// The names for the command line.
pub fn names() -> Vec<&'static str> {
    STORIES.iter().map(|(name, _)| *name).collect()
}

/// The story of that name.
pub fn find(wanted: &str) -> Option<Story> {
    STORIES
        .iter()
        .find(|(name, _)| *name == wanted)
        .map(|(_, story)| *story)
}

impl Story {
    /// Measures it and reports; `quick` takes a minute or two.
    pub async fn run(self, quick: bool) {
        match self {
            Self::Compression => compression::run(quick).await,
            Self::Scrape => scrape::run(quick).await,
            Self::Sizing => sizing::run(quick),
            Self::Stampede => stampede::run(quick).await,
            Self::Wake => wake::run(quick).await,
            Self::Wall => wall::run(quick).await,
        }
    }
}
