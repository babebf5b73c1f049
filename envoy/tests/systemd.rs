// SPDX-License-Identifier: Apache-2.0
//! The unit for systemd: systemd accepts it, its sandbox is tight, and its variables are settings.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use sluice::settings::docs;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Bound on the exposure in `systemd-analyze security`, from 0 to 100: below 50 the command reports "OK".
const EXPOSURE: &str = "20";

/// The first version of systemd that knows the unit's `Type=`.
const FIRST_WITH_TYPE: u32 = 253;

/// The version of this machine's systemd. `None`: there is none.
fn version_of_systemd() -> Option<u32> {
    let output = Command::new("systemd-analyze").arg("--version").output();
    let said = String::from_utf8(output.ok()?.stdout).ok()?;
    said.split_whitespace().nth(1)?.parse().ok()
}

/// The unit, with a type that this machine's systemd knows.
fn known_unit() -> String {
    let unit = read("sluice.service");
    match version_of_systemd() {
        Some(..FIRST_WITH_TYPE) => unit.replace("Type=notify-reload", "Type=notify"),
        _ => unit,
    }
}

/// Asserts that systemd accepts a unit with this text.
fn verify(text: &str) {
    let installed = TempDir::new().unwrap();
    let unit = installed.path().join("sluice.service");
    // The verification needs the program to exist.
    fs::write(&unit, text.replace("/opt/sluice/sluice", "/bin/true")).unwrap();
    analyze(&["verify".as_ref(), "--man=no".as_ref(), unit.as_ref()]);
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

/// Asserts that `systemd-analyze` succeeds without a warning about the unit. A missing program is an error only in
/// CI.
fn analyze(arguments: &[&OsStr]) {
    let output = match Command::new("systemd-analyze").args(arguments).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("left out: no systemd-analyze, which is in Debian's package systemd");
            assert!(std::env::var_os("CI").is_none());
            return;
        }
        output => output.unwrap(),
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{arguments:?}\n{said}");
    // systemd ignores lines that it does not understand, with a warning `FILE:LINE: …`.
    let mut after = said.split("sluice.service:").skip(1);
    let is_line = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    assert!(!after.any(is_line), "{said}");
}

#[test]
fn systemd_takes_the_unit() {
    verify(&known_unit());
}

#[test]
fn the_unit_confines_the_edge() {
    let installed = TempDir::new().unwrap();
    let unit = installed.path().join("sluice.service");
    fs::write(&unit, known_unit()).unwrap();
    let threshold = format!("--threshold={EXPOSURE}");
    let arguments = [
        "security",
        "--no-pager",
        "--offline=yes",
        threshold.as_str(),
    ];
    let mut arguments: Vec<_> = arguments.iter().map(OsStr::new).collect();
    arguments.push(unit.as_ref());
    analyze(&arguments);
}

#[test]
fn the_state_and_the_cache_are_in_folders_that_the_unit_makes() {
    let unit = read("sluice.service");
    for line in [
        "StateDirectory=sluice",
        "CacheDirectory=sluice",
        "StateDirectoryMode=0700",
        "CacheDirectoryMode=0700",
    ] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    let folders = "SLUICE_STATE=/var/lib/sluice SLUICE_CACHE_DIR=/var/cache/sluice";
    assert!(unit.contains(folders), "{unit}");
}

#[test]
fn the_page_of_operations_has_the_lines_for_an_older_systemd() {
    let page = include_str!("../../docs/operations.md");
    let (_, drop_in) = page.split_once("```ini\n# systemd 252\n").unwrap();
    let (drop_in, _) = drop_in.split_once("```").unwrap();
    let unit = read("sluice.service").replace("Type=notify-reload", "");
    // A drop-in is read after the unit.
    verify(&format!("{unit}{drop_in}"));
}

#[test]
fn the_unit_and_its_example_set_only_what_is_a_setting() {
    let (unit, example) = (read("sluice.service"), read("sluice.env"));
    let of_unit = unit
        .lines()
        .filter_map(|line| line.strip_prefix("Environment="));
    let of_unit = of_unit.flat_map(|assignments| assignments.split(' '));
    let of_example = example
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let names = of_unit
        .chain(of_example)
        .map(|assignment| assignment.split_once('=').unwrap().0);
    for name in names {
        let row = format!("| `{name}` |");
        assert!(docs::tables().contains(&row), "{name} is no setting");
    }
}
