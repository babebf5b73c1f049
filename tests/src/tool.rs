// SPDX-License-Identifier: Apache-2.0
//! What the Makefile has built for the tests.

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

const BY_MAKE: &str = "run these tests by `make test-mesh` or `make test-image`";
