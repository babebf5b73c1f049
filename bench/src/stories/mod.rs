// SPDX-License-Identifier: Apache-2.0
//! What can be measured, a file each.

mod compression;
mod wake;

/// Something that can be measured.
#[derive(Clone, Copy, Debug)]
pub enum Story {
    /// What a hit costs that is compressed.
    Compression,
    /// How soon the followers of one fill go on.
    Wake,
}

const STORIES: [(&str, Story); 2] = [("compression", Story::Compression), ("wake", Story::Wake)];

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
    /// Measures it and reports; `quick` takes less than a minute.
    pub async fn run(self, quick: bool) {
        match self {
            Self::Compression => compression::run(quick).await,
            Self::Wake => wake::run(quick).await,
        }
    }
}
