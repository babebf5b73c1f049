// SPDX-License-Identifier: Apache-2.0
//! The releases of Istio that the tests run.

use crate::machine::tool::{repository, tool};
use std::path::PathBuf;

/// A release of Istio: its binaries, and the files from its images and charts.
#[derive(Clone, Copy, Debug)]
pub enum Release {
    /// The one that all tests run: 1.31.
    Current,
    /// The minor before it: 1.30.
    Former,
}

impl Release {
    /// Path of a binary.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn binary(self, name: &str) -> PathBuf {
        tool(self.variable(), name)
    }

    /// Text of a file.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn file(self, name: &str) -> String {
        let path = tool(self.variable(), &format!("files/{name}"));
        std::fs::read_to_string(path).unwrap()
    }

    /// Its version, which binaries that are built here do not know.
    ///
    /// # Panics
    /// When the module that pins it does not say.
    #[must_use]
    pub fn version(self) -> String {
        let folder = match self {
            Self::Current => "istio",
            Self::Former => "istio-1.30",
        };
        let path = repository().join("tests/tools").join(folder).join("go.mod");
        let pinned = std::fs::read_to_string(path).unwrap();
        let api = pinned.split("istio.io/api v").nth(1).unwrap();
        api.split_whitespace().next().unwrap().to_owned()
    }

    const fn variable(self) -> &'static str {
        match self {
            Self::Current => "SLUICE_ISTIO",
            Self::Former => "SLUICE_ISTIO_FORMER",
        }
    }
}
