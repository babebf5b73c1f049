// SPDX-License-Identifier: Apache-2.0
//! The folders that an edge writes to.

use std::path::PathBuf;
use tempfile::TempDir;

/// The folders that an edge writes to.
pub(super) struct Folders {
    /// Its policy, state and log.
    pub own: TempDir,
    /// The tmpfs of a store in memory.
    memory: Option<TempDir>,
}

impl Folders {
    pub fn new(in_memory: bool) -> Self {
        let own = TempDir::with_prefix("sluice-edge-").unwrap();
        let memory =
            in_memory.then(|| TempDir::with_prefix_in("sluice-edge-", "/dev/shm").unwrap());
        Self { own, memory }
    }

    /// `SLUICE_CACHE_DIR`.
    pub fn cache(&self) -> PathBuf {
        let memory = self.memory.as_ref().map(|dir| dir.path().to_owned());
        memory.unwrap_or_else(|| self.own.path().join("cache"))
    }

    pub fn log(&self) -> PathBuf {
        self.own.path().join("edge.log")
    }
}
