// SPDX-License-Identifier: Apache-2.0
//! Checks the user's own format of the access log with Envoy, which alone knows its command operators.

use std::process::Command;

use anyhow::{Context as _, bail};

use crate::render::access_log_bootstrap;
use crate::settings::{AccessLogFormat, FORMAT_VARIABLE, Settings};

/// Checks that Envoy accepts the user's own format of the access log, if there is one.
///
/// # Errors
/// Envoy does not accept the format, or cannot be started.
pub fn check_access_log_format(settings: &Settings) -> anyhow::Result<()> {
    let AccessLogFormat::Own(format) = &settings.access_log.format else {
        return Ok(());
    };
    let envoy = &settings.locations.envoy;
    let bootstrap = access_log_bootstrap(&settings.access_log)?;
    let mut command = Command::new(envoy);
    command.args(["--mode", "validate", "--log-level", "critical"]);
    let output = command.args(["--config-yaml", &bootstrap]).output();
    let output = output.with_context(|| format!("SLUICE_ENVOY={}", envoy.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{FORMAT_VARIABLE}={format:?}: expected Envoy's command operators: {}",
            reason(&said)
        );
    }
    Ok(())
}

/// The reason in the output of Envoy: `[…] error initializing configuration '': REASON`.
fn reason(said: &str) -> &str {
    let lines = said.lines();
    let mut reasons = lines.filter_map(|line| line.split_once("error initializing configuration"));
    let told = reasons.find_map(|(_, told)| told.split_once(": "));
    told.map_or(said, |(_, reason)| reason).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_in_what_envoy_says() {
        let said = "[2026-11-27 11:35:58.083][24143][critical][main] [source/server/config_validation/server.cc:76] \
            error initializing configuration '': Not supported field in StreamInfo: FOO\n";
        assert_eq!(reason(said), "Not supported field in StreamInfo: FOO");
        assert_eq!(reason("killed\n"), "killed");
    }
}
