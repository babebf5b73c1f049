// SPDX-License-Identifier: Apache-2.0
//! The filter's module, copied for other proxies, such as those of an Istio mesh.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use sluice::settings::module;

/// Copies the module to `file`. The file is whole or absent, also for another process that reads it meanwhile.
///
/// # Errors
/// The module cannot be read, or the file cannot be written.
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
