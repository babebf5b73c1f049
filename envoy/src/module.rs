// SPDX-License-Identifier: Apache-2.0
//! The filter's module for proxies beside the edge, those of an Istio mesh for example.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use sluice::settings::module;

/// Copies the module to `file`, which is whole or not there, also when another process reads it meanwhile.
///
/// # Errors
/// The module cannot be read, or the file not be written.
pub fn copy(file: &Path) -> anyhow::Result<()> {
    let module = module()?;
    let part = file.with_extension("part");
    fs::copy(&module, &part)
        .and_then(|_| fs::rename(&part, file))
        .with_context(|| {
            format!(
                "{} cannot be copied to {}",
                module.display(),
                file.display()
            )
        })
}
