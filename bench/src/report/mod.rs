// SPDX-License-Identifier: Apache-2.0
//! Where results go: to the terminal, into the ignored folder, and from there onto the pages.

pub mod html;
pub mod markdown;
pub mod plot;
pub mod table;

use crate::figures::distribution::{self, Distribution};
use serde_json::{Value, json};
use sluice_tests::edge::repository;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The text of a story: what was measured and on what, the table, and what follows from it.
pub fn text(head: &str, columns: &[&str], rows: &[Vec<String>], findings: &[String]) -> String {
    let table = table::render(columns, rows);
    let findings: String = findings
        .iter()
        .map(|finding| format!("\n- {finding}"))
        .collect();
    format!("{head}\n\n{table}\n\nFindings{findings}")
}

/// Prints the text and keeps it for the report, with the measured times beside it; gives the files' name without its
/// ending.
///
/// # Panics
/// When the folder cannot be written.
pub fn keep(story: &str, text: &str, times: &str, quick: bool) -> String {
    let stem = keep_data(story, text, json!({"quick": quick}));
    let file = repository().join(format!("{stem}.csv"));
    std::fs::write(file, times).unwrap();
    println!("Each measured time: {stem}.csv");
    stem
}

/// Prints the text and keeps it with the data that the report is made of; gives the file's name without its ending.
///
/// # Panics
/// When the folder cannot be written, or the data is no object.
pub fn keep_data(story: &str, text: &str, mut data: Value) -> String {
    println!("{text}");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let stem = format!(".sluice/bench/{story}-{now}");
    let folder = repository().join(".sluice/bench");
    std::fs::create_dir_all(folder).unwrap();
    data["story"] = story.into();
    data["text"] = text.into();
    let file = repository().join(format!("{stem}.json"));
    std::fs::write(file, format!("{data:#}\n")).unwrap();
    println!("\nResults: {stem}.json");
    stem
}

/// Keeps distributions beside the results of that name, in `HdrHistogram`'s form.
///
/// # Panics
/// When the file cannot be written.
pub fn keep_distributions(stem: &str, named: &[(String, &Distribution)]) {
    let file = repository().join(format!("{stem}.hlog"));
    std::fs::write(file, distribution::log(named)).unwrap();
    println!("Distributions: {stem}.hlog");
}

/// Writes `report.html` and `report.md` from the newest results of each story, and says where.
///
/// # Panics
/// When there are none, or a file cannot be written.
pub fn write(stories: &[&str]) {
    let folder = repository().join(".sluice/bench");
    let results: Vec<_> = stories
        .iter()
        .filter_map(|story| newest(&folder, story))
        .collect();
    assert!(
        !results.is_empty(),
        "no results in {}: run `make bench`",
        folder.display()
    );
    for (name, page) in [
        ("report.html", html::page(&results)),
        ("report.md", markdown::page(&results)),
    ] {
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
    let of_story = files.filter(|path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".json"))
    });
    // The names end in the time.
    let text = std::fs::read_to_string(of_story.max()?).ok()?;
    serde_json::from_str(&text).ok()
}
