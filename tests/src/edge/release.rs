// SPDX-License-Identifier: Apache-2.0
//! The releases of the edge that a test can start.

use crate::machine::tool::{entry_point, envoy, module, tool};
use std::path::PathBuf;

/// A release of the edge: an entry point, a module, and the Envoy that they are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The previous release, which `tests/tools/former` builds.
    Former,
    /// The release under test.
    Current,
}

impl Release {
    /// The `sluice` binary.
    pub(super) fn entry_point(self) -> PathBuf {
        match self {
            Self::Former => former("sluice"),
            Self::Current => entry_point().to_owned(),
        }
    }

    /// The filter's module.
    pub(super) fn module(self) -> PathBuf {
        match self {
            Self::Former => former("sluice.wasm"),
            Self::Current => module(),
        }
    }

    /// The Envoy binary.
    pub(super) fn envoy(self) -> PathBuf {
        match self {
            Self::Former => former("envoy"),
            Self::Current => envoy(),
        }
    }
}

fn former(name: &str) -> PathBuf {
    tool("SLUICE_FORMER", name)
}
