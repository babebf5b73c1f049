// SPDX-License-Identifier: Apache-2.0
//! Where results go: to the terminal, and into the ignored folder.

use sluice_tests::edge::repository;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Prints the text and keeps it with the measured times beside it.
///
/// # Panics
/// When the folder cannot be written.
pub fn keep(story: &str, text: &str, times: &str) {
    println!("{text}");
    let folder: PathBuf = repository().join(".sluice/bench");
    std::fs::create_dir_all(&folder).unwrap();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let file = |ending| folder.join(format!("{story}-{now}.{ending}"));
    std::fs::write(file("txt"), format!("{text}\n")).unwrap();
    std::fs::write(file("csv"), times).unwrap();
    println!("\nEach measured time: .sluice/bench/{story}-{now}.csv");
}
