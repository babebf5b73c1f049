// SPDX-License-Identifier: Apache-2.0
//! The table of RFC 9111 names tests that exist.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The names of all tests below `folder`: functions after an attribute `test`, or within `proptest!`.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(path).unwrap();
            let attributed = text.split("test]\n").skip(1);
            let names = attributed.filter_map(|after| after.split_once("fn ")?.1.split_once('('));
            found.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
}

#[test]
fn every_test_of_the_table_exists() {
    let filter = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut known = BTreeSet::new();
    for folder in ["filter/core/src", "filter/core/tests", "tests/tests/e2e"] {
        tests(&filter.parent().unwrap().join(folder), &mut known);
    }
    let table = fs::read_to_string(filter.join("RFC9111.md")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let mut named = 0;
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").collect();
        assert_eq!(cells.len(), 4, "{row}");
        for name in cells.last().unwrap().split('`').skip(1).step_by(2) {
            assert!(known.contains(name), "no test {name}, but a row: {row}");
            named += 1;
        }
    }
    assert!(named > 40, "{named} tests named");
}
