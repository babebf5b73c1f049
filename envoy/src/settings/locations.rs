// SPDX-License-Identifier: Apache-2.0
//! The files and folders that the edge consists of and writes to.

use std::path::PathBuf;

use super::environment::Environment;

/// Where the edge finds its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locations {
    /// The Envoy binary.
    pub envoy: PathBuf,
    /// The Wasm module.
    pub wasm: PathBuf,
    /// The MinIO binary of the demo.
    pub minio: Option<PathBuf>,
    /// The folder that the edge writes to.
    pub state: PathBuf,
}

impl Locations {
    /// Reads `SLUICE_…`.
    pub fn read(env: &mut Environment<'_>) -> Option<Self> {
        let beside = || Some(std::env::current_exe().ok()?.with_file_name("sluice.wasm"));
        let wasm = env.set("SLUICE_WASM").map(PathBuf::from).or_else(beside);
        Some(Self {
            envoy: env.text("SLUICE_ENVOY")?.into(),
            wasm: std::path::absolute(wasm?).ok()?,
            minio: env.set("SLUICE_MINIO").map(PathBuf::from),
            state: std::path::absolute(env.text("SLUICE_STATE")?).ok()?,
        })
    }
}
