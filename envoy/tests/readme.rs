// SPDX-License-Identifier: Apache-2.0
//! The README has the tables of settings.
#![allow(clippy::unwrap_used)]

use sluice::settings::docs::{LOCATIONS, SETTINGS, markdown_table};

#[test]
fn readme_table_lists_every_setting() {
    let readme = include_str!("../../README.md");
    for settings in [SETTINGS, LOCATIONS] {
        let table = markdown_table(settings);
        assert!(
            readme.contains(&table),
            "README.md has to contain what `sluice settings` prints:\n{table}"
        );
    }
}
