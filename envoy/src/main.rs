// SPDX-License-Identifier: Apache-2.0
//! `sluice`: the edge's entry point.

mod arguments;
mod completions;
mod manual;
mod module;
mod version;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use sluice::cache::EarlierRuns;
use sluice::check::Finding;
use sluice::demo::Demo;
use sluice::render::Run;
use sluice::settings::{self, Settings, docs};
use sluice::{cache, check, log, purge_feed, render, run, sites};

use arguments::{Action, Arguments, Check, Document, ListFormat};
use version::ProgramVersion;

/// The JSON Schema of the policy.
const POLICY_SCHEMA: &str = include_str!("../../filter/core/policy.schema.json");

fn main() -> ExitCode {
    act(&arguments::read()).unwrap_or_else(|error| {
        for line in format!("{error:#}").lines() {
            log::fail(line);
        }
        ExitCode::FAILURE
    })
}

fn act(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.action.is_none() {
        log::begin(settings::log_format());
    }
    match &arguments.action {
        None if arguments.restart => Ok(run::keep_running()?.into()),
        None => Ok(run::run(&Settings::from_env()?)?.into()),
        Some(Action::Render) => Ok(print(&render()?)),
        Some(Action::Settings { format }) => match format {
            ListFormat::Markdown => Ok(print(&docs::tables())),
            ListFormat::Env => Ok(print(&docs::env_file())),
            ListFormat::Json => print_json(&docs::json()),
        },
        Some(Action::Check(arguments)) => report(arguments),
        Some(Action::Healthcheck { url: None }) => {
            let ready = run::health_check(&Settings::from_env()?);
            Ok(ExitCode::from(u8::from(!ready())))
        }
        Some(Action::Healthcheck { url: Some(url) }) => {
            run::check_health_at(url)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Action::Module { file }) => {
            module::copy(file)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Action::Schema { document }) => Ok(match document {
            Document::Sites => print(&format!("{:#}\n", sites::schema())),
            Document::Policy => print(POLICY_SCHEMA),
        }),
        Some(Action::Version { json }) => {
            let version = ProgramVersion::of_this_build();
            match json {
                true => print_json(&version),
                false => Ok(print(&format!("sluice {version}\n"))),
            }
        }
        Some(Action::Explain(explain)) => explain.run(),
        Some(Action::Du(usage)) => usage.run(),
        Some(Action::Flights(flights)) => flights.run(),
        Some(Action::Purges(purges)) => purges.run(),
        Some(Action::Log(log)) => log.run(),
        Some(Action::Origins(origins)) => origins.run(),
        Some(Action::Purge(purge)) if purge.feed => purge_feed::write(purge),
        Some(Action::Purge(purge)) => purge.run(),
        Some(Action::Seal(seal)) => seal.run(),
        Some(Action::Sign(sign)) => sign.run(),
        Some(Action::Top(top)) => top.run(),
        Some(Action::Warm(warm)) => warm.run(),
        Some(Action::Man { folder }) => write_manual(folder.as_deref()),
        Some(Action::Completions { shell }) => Ok(print(&shell.script(arguments::command()))),
    }
}

/// The Envoy configuration for the settings, as one document.
fn render() -> anyhow::Result<String> {
    let settings = Settings::from_env()?;
    let example = Demo::example_origin();
    let sites = render::sites(&settings, Some(&example))?;
    let cache_dir = settings.cache.dir.join(cache::ENTRIES);
    let earlier_runs = EarlierRuns::default();
    let run = Run {
        cache_dir: &cache_dir,
        purge_log: None,
        earlier_runs: &earlier_runs,
        sns: None,
        feed: None,
        secret: None,
    };
    render::render_whole(&settings, &sites, run)
}

/// Checks the settings, and reports the findings on standard error or, as JSON, on standard output.
fn report(arguments: &Check) -> anyhow::Result<ExitCode> {
    let findings = check::check(arguments.online);
    let reported = if arguments.json {
        print_json(&findings)?
    } else {
        for finding in &findings {
            log::say(&finding.to_string());
        }
        ExitCode::SUCCESS
    };
    let failed = findings.iter().any(Finding::is_problem);
    Ok(if failed { ExitCode::FAILURE } else { reported })
}

/// Prints the page of `sluice`, or writes all pages to `folder`.
fn write_manual(folder: Option<&Path>) -> anyhow::Result<ExitCode> {
    match folder {
        Some(folder) => {
            manual::write_pages(arguments::command(), folder)?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let pages = manual::pages(arguments::command())?;
            let first = pages.first().map(|page| page.text.as_slice());
            Ok(write(first.unwrap_or_default()))
        }
    }
}

fn print_json(value: &impl Serialize) -> anyhow::Result<ExitCode> {
    Ok(print(&(serde_json::to_string_pretty(value)? + "\n")))
}

fn print(text: &str) -> ExitCode {
    write(text.as_bytes())
}

fn write(text: &[u8]) -> ExitCode {
    match io::stdout().write_all(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
