// SPDX-License-Identifier: Apache-2.0
//! Reports of results: on the terminal, in the ignored folder, and from there on the pages.

mod page;
mod picture;

pub use picture::{Axis, Line, Picture, by_percentile};

use crate::figures::{Conclusions, Distribution, Table, interval_log};
use crate::machine;
use crate::peers::packages;
use page::Page;
use serde_json::{Value, json};
use sluice_tests::machine::tool::repository;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The results of a story.
#[derive(Default)]
pub struct Report {
    /// Title in one line.
    pub title: String,
    /// Method and machine.
    pub about: String,
    /// The last table has the results.
    pub tables: Vec<Table>,
    /// Conclusions, a sentence each.
    pub findings: Conclusions,
    /// Pictures as SVG, each with the name of its file.
    pub pictures: Vec<(String, String)>,
    /// All measured times, by the name of the run.
    pub distributions: Vec<(String, Distribution)>,
}

impl Report {
    /// Prints the report, and writes it into `.sluice/bench` with its pictures and distributions beside it.
    ///
    /// # Panics
    /// When the folder cannot be written.
    pub fn keep(&self, story: &str, quick: bool) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let results = self.json(story, quick, now.as_secs());
        println!("{}", page::section(&results));
        let stem = format!("{story}-{}", now.as_secs());
        let write = |ending: &str, content: &[u8]| {
            std::fs::create_dir_all(folder()).unwrap();
            let file = folder().join(format!("{stem}{ending}"));
            std::fs::write(&file, content).unwrap();
            println!("{}", file.display());
        };
        write(".json", format!("{results:#}\n").as_bytes());
        if !self.distributions.is_empty() {
            write(".hlog", &interval_log(&self.distributions));
        }
        for (name, svg) in &self.pictures {
            write(&format!("-{name}.svg"), svg.as_bytes());
        }
    }

    fn json(&self, story: &str, quick: bool, ended: u64) -> Value {
        let pictures = self.pictures.iter().map(|(_, svg)| svg);
        json!({
            "story": story, "quick": quick, "ended": ended, "commit": machine::commit(), "machine": machine::hardware(),
            "packages": packages::versions(), "title": self.title, "about": self.about,
            "findings": self.findings.all(), "peer_ahead": self.findings.peer_ahead(),
            "tables": self.tables.iter().map(Table::json).collect::<Vec<_>>(),
            "pictures": pictures.collect::<Vec<_>>(),
        })
    }
}

fn folder() -> PathBuf {
    repository().join(".sluice/bench")
}

/// Writes `report.html` and `report.md` from the newest results of each of these stories that belong to one commit,
/// and prints their paths.
///
/// # Panics
/// When there are none, or a file cannot be written.
pub fn write(stories: &[&str]) {
    let folder = folder();
    let results = stories.iter().filter_map(|story| newest(&folder, story));
    let results: Vec<_> = results.collect();
    assert!(
        !results.is_empty(),
        "no results in {}: run `make bench`",
        folder.display()
    );
    let page = Page::of(results);
    for (name, page) in [("report.html", page.html()), ("report.md", page.markdown())] {
        let file = folder.join(name);
        std::fs::write(&file, page).unwrap();
        println!("{}", file.display());
    }
}

/// The newest results of a story.
fn newest(folder: &Path, story: &str) -> Option<Value> {
    let prefix = format!("{story}-");
    let entries = std::fs::read_dir(folder).ok()?;
    let files = entries.flatten().map(|entry| entry.path());
    let of_story = files.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".json"))
    });
    // The names end with the time.
    let text = std::fs::read_to_string(of_story.max()?).ok()?;
    serde_json::from_str(&text).ok()
}
