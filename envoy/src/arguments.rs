// SPDX-License-Identifier: Apache-2.0
//! The arguments of `sluice`.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{
    Args, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
};

use sluice::control::commands::{
    Explain, Purge, ShowFlights, ShowLog, ShowOrigins, ShowPurges, ShowUsage, Top,
};

use sluice::seal::Seal;
use sluice::sign::Sign;
use sluice::warm::Warm;

use crate::completions::CompletedShell;
use crate::manual::Supplement;
use crate::version::ProgramVersion;

static VERSION: LazyLock<String> = LazyLock::new(|| ProgramVersion::of_this_build().to_string());

/// The arguments.
#[derive(Debug, Parser)]
#[command(
    name = "sluice",
    about = "A caching edge for S3 buckets and HTTP origins. `sluice settings` lists its environment variables.",
    long_about = None,
    version = VERSION.as_str(),
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
    /// Print all settings with their defaults and meanings
    Settings {
        /// The form of the list
        #[arg(long, value_enum, default_value_t = ListFormat::Markdown)]
        format: ListFormat,
    },
    /// Check settings, sites, policies and certificates, and report problems
    Check(Check),
    /// Ask a running edge with the same settings, or at a URL, whether it is ready
    Healthcheck {
        /// The URL, such as http://edge:8080/healthz; the settings are not read then
        url: Option<String>,
    },
    /// Copy the filter's Wasm module to a file, for use in other proxies
    Module {
        /// The file; an existing file is replaced
        file: PathBuf,
    },
    /// Print the JSON Schema of a file of sites or of a policy
    Schema {
        /// The document
        document: Document,
    },
    /// Print the version, the commit and the version of Envoy
    Version {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show the size of a running edge's cache by site, by prefix or by media type
    Du(ShowUsage),
    /// Ask a running edge why a URL is stored or not, and what a GET would get now
    Explain(Explain),
    /// Show the objects that a running edge fetches now, and the requests that wait for them
    Flights(ShowFlights),
    /// Show the requests that a running edge answers, with results, times and reasons
    Log(ShowLog),
    /// Show the origins of a running edge: requests, times, errors and the last error
    Origins(ShowOrigins),
    /// Purge URLs, prefixes, surrogate keys, sites or everything in a running edge
    Purge(Purge),
    /// Show the last purges of a running edge: time, caller, subject, and the workers that have applied each
    Purges(ShowPurges),
    /// Seal a key of signed URLs for the policy of a gateway in the mesh
    Seal(Seal),
    /// Sign a URL of a site with signed URLs, or make a cookie for all URLs below it
    Sign(Sign),
    /// Show the sites and the URLs of a running edge with the most requests, misses, bytes or time of the origin
    Top(Top),
    /// Request URLs of an edge as a client would, so that the edge stores their responses
    Warm(Warm),
    /// Print the manual page of sluice, or write the pages of all commands to a folder
    Man {
        /// The folder, such as /usr/local/share/man/man1
        folder: Option<PathBuf>,
    },
    /// Print a script that completes these arguments in a shell
    Completions {
        /// The shell
        shell: CompletedShell,
    },
}

/// The form of the list of settings.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ListFormat {
    /// Two Markdown tables
    Markdown,
    /// A commented file for --env-file of container engines and EnvironmentFile= of systemd
    Env,
    /// An array of objects with name, type, default and meaning
    Json,
}

/// Options of `sluice check`.
#[derive(Args, Debug)]
pub struct Check {
    /// Also ask each bucket, to check credentials, region, permissions and clock
    #[arg(long)]
    pub online: bool,
    /// Print the findings on standard output, as a JSON array
    #[arg(long)]
    pub json: bool,
}

/// A document that has a JSON Schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Document {
    /// The file that SLUICE_SITES names
    Sites,
    /// The file that SLUICE_POLICY names
    Policy,
}

/// The command line, with the examples and the exit status of each command in its help.
pub fn command() -> Command {
    let add = |command: Command, name: &str| match Supplement::of(name) {
        Some(supplement) => command.after_help(supplement.help()),
        None => command,
    };
    let command = add(Arguments::command(), "");
    command.mut_subcommands(|subcommand| {
        let name = subcommand.get_name().to_owned();
        add(subcommand, &name)
    })
}

/// The arguments of this process. Ends the process if they are wrong or ask for help.
pub fn read() -> Arguments {
    let read = Arguments::from_arg_matches(&command().get_matches());
    read.unwrap_or_else(|error| error.exit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_well_defined() {
        command().debug_assert();
    }

    #[test]
    fn what_was_accepted_before_is_accepted() {
        for arguments in [
            &["sluice"][..],
            &["sluice", "--restart"],
            &["sluice", "render"],
            &["sluice", "settings"],
            &["sluice", "settings", "--format", "env"],
            &["sluice", "check"],
            &["sluice", "healthcheck"],
            &["sluice", "healthcheck", "http://edge:8080/healthz"],
            &["sluice", "check", "--online", "--json"],
            &["sluice", "version", "--json"],
            &["sluice", "module", "plugin.wasm"],
            &["sluice", "schema", "sites"],
            &["sluice", "completions", "fish"],
            &["sluice", "man"],
            &["sluice", "man", "pages"],
            &[
                "sluice", "top", "--once", "--sort", "misses", "--site", "shop",
            ],
            &["sluice", "flights", "--json", "--socket", "ctl.sock"],
            &["sluice", "origins"],
            &["sluice", "du", "--by", "prefix", "--depth", "2"],
            &["sluice", "du", "--site", "a", "--top", "3", "--json"],
            &["sluice", "purges", "-n", "5", "--query", "--json"],
            &[
                "sluice",
                "log",
                "-f",
                "site=shop result!=hit",
                "status>=500",
            ],
            &[
                "sluice",
                "explain",
                "https://a/b",
                "-H",
                "Accept: */*",
                "--online",
            ],
            &[
                "sluice",
                "purge",
                "--url",
                "http://a/b",
                "--key",
                "k",
                "--soft",
            ],
            &["sluice", "purge", "--all"],
            &["sluice", "purge", "--feed", "--key", "k", "--wait"],
            &["sluice", "purge", "--feed", "--init"],
            &["sluice", "sign", "https://a/b", "--expires", "1h"],
            &[
                "sluice",
                "warm",
                "-",
                "--base",
                "https://a/b/",
                "--rate",
                "5",
            ],
            &[
                "sluice",
                "warm",
                "--sitemap",
                "https://a/sitemap.xml",
                "--json",
            ],
            &["sluice", "warm", "urls.txt", "--connect", "127.0.0.1:8080"],
            &[
                "sluice",
                "warm",
                "--bucket-prefix",
                "",
                "--base",
                "https://a",
            ],
            &[
                "sluice",
                "sign",
                "https://a/b/",
                "--expires",
                "1h",
                "--prefix",
                "--cookie",
            ],
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
            &["sluice", "purge"],
            &["sluice", "purge", "--soft"],
            &["sluice", "purge", "--feed"],
            &["sluice", "purge", "--init"],
            &["sluice", "purge", "--all", "--wait"],
            &["sluice", "purge", "--all", "--feed", "--socket", "s"],
            &["sluice", "purge", "--all", "--site", "shop"],
            &["sluice", "log", "duraton>1s"],
            &["sluice", "sign", "https://a/b"],
            &["sluice", "warm"],
            &["sluice", "warm", "a", "--sitemap", "https://a/s.xml"],
            &["sluice", "warm", "a", "--rate", "0"],
            &["sluice", "warm", "--bucket-prefix", "films/"],
            &["sluice", "sign", "/b", "--expires", "1h"],
            &[
                "sluice",
                "sign",
                "https://a/b/",
                "--expires",
                "1h",
                "--cookie",
            ],
            &["sluice", "explain", "/b"],
            &["sluice", "explain", "https://a/b", "-H", "Accept"],
        ] {
            assert!(
                Arguments::try_parse_from(arguments).is_err(),
                "{arguments:?}"
            );
        }
    }
}
