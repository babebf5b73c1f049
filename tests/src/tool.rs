// SPDX-License-Identifier: Apache-2.0
//! What the Makefile has built for the tests.

use crate::edge::repository;
use std::path::PathBuf;

/// The file `name` in the folder that `variable` says.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn tool(variable: &str, name: &str) -> PathBuf {
    let tool = folder(variable).join(name);
    assert!(tool.is_file(), "no {}: {BY_MAKE}", tool.display());
    tool
}

/// The folder that `variable` says.
///
/// # Panics
/// When it is not set.
#[must_use]
pub fn folder(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    folder.unwrap_or_else(|| panic!("{variable} is not set: {BY_MAKE}"))
}

/// A file that the Makefile has made: the one that `variable` names, else `place` in the repository; `what` it is, and
/// the `target` that makes it, are for who has none.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn built(what: &str, variable: &str, place: &str, target: &str) -> PathBuf {
    let usual = || repository().join(place);
    let file = std::env::var_os(variable).map_or_else(usual, PathBuf::from);
    assert!(
        file.is_file(),
        "no {what} at {}: run `make {target}`, or set {variable}",
        file.display()
    );
    file
}

const BY_MAKE: &str = "run these tests by `make test-mesh` or `make test-image`";
