// SPDX-License-Identifier: Apache-2.0
//! The purge feed of the origin.

use super::ask::SITE;
use super::fleet::EDGES;
use super::purges::Scope;
use sluice_core::purge::{Feed, FeedId, FeedPurge, FeedSubject};
use std::sync::Mutex;

/// The path of the feed.
pub const PATH: &str = "/.sluice/purges";
/// `purge.feed.every`.
pub const EVERY: &str = "500ms";
/// Number of lines that the feed keeps. An edge that is down for a while misses fewer.
const KEPT: usize = 200;

/// The feed, and the highest number that each edge has read.
pub struct Page(Mutex<(Feed, [u64; EDGES])>);

impl Default for Page {
    fn default() -> Self {
        let id = FeedId(0x0070_2733);
        Self(Mutex::new((Feed::new(id), [0; EDGES])))
    }
}

impl Page {
    /// The text, and the number of its last line.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn text(&self) -> (String, u64) {
        let page = self.0.lock().unwrap();
        (page.0.to_string(), page.0.newest())
    }

    /// Records that an edge has read the line of this number.
    ///
    /// # Panics
    /// When another thread has panicked.
    pub fn note_reading(&self, edge: usize, number: u64) {
        let read = &mut self.0.lock().unwrap().1[edge];
        *read = number.max(*read);
    }

    /// Whether an edge has read the line of this number.
    ///
    /// # Panics
    /// When another thread has panicked.
    #[must_use]
    pub fn is_read(&self, edge: usize, number: u64) -> bool {
        self.0.lock().unwrap().1[edge] >= number
    }

    /// Appends a purge, and returns the number of its line.
    ///
    /// # Panics
    /// When another thread has panicked, or the feed is full.
    pub fn append(&self, scope: &Scope, hard: bool) -> u64 {
        let subject = match scope {
            Scope::Path(path) => FeedSubject::url(format!("{SITE}{path}")),
            Scope::Prefix(prefix) => FeedSubject::prefix(format!("{SITE}{prefix}")),
            Scope::Everything => FeedSubject::Everything { site: None },
        };
        let feed = &mut self.0.lock().unwrap().0;
        let now = i64::try_from(super::pass::now()).unwrap_or(i64::MAX);
        let number = feed.append(vec![FeedPurge { hard, subject }], now);
        let dropped = feed.lines.len().saturating_sub(KEPT);
        for line in feed.lines.drain(..dropped) {
            feed.base = line.number;
            if line.hard {
                feed.hard_base = line.number;
            }
        }
        number.expect("a line")
    }
}
