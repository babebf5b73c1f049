// SPDX-License-Identifier: Apache-2.0
//! `sluice`: the edge's entry point.

mod arguments;
mod manual;
mod module;
mod version;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap_complete::{Shell, generate};
use serde::Serialize;
use sluice::cache::EarlierRuns;
use sluice::check::Finding;
use sluice::demo::Demo;
use sluice::render::Run;
use sluice::settings::{Settings, docs};
use sluice::{cache, check, log, render, run, sites};

use arguments::{Action, Arguments, Check, Document, ListFormat};
use version::ProgramVersion;

/// The JSON Schema of the policy.
const POLICY_SCHEMA: &str = include_str!("../../filter/core/policy.schema.json");

fn main() -> ExitCode {
    act(&arguments::read()).unwrap_or_else(|error| {
        for line in format!("{error:#}").lines() {
            log::say(line);
        }
        ExitCode::FAILURE
    })
}

fn act(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.action {
        None if arguments.restart => Ok(run::keep_running()?.into()),
        None => Ok(run::run(&Settings::from_env()?)?.into()),
        Some(Action::Render) => {
            let settings = Settings::from_env()?;
            let example = Demo::example_origin();
            let sites = render::sites(&settings, Some(&example))?;
            let cache_dir = settings.cache.dir.join(cache::ENTRIES);
            let earlier_runs = EarlierRuns::default();
            let run = Run {
                cache_dir: &cache_dir,
                earlier_runs: &earlier_runs,
                sns: None,
            };
            Ok(print(&render::render_whole(&settings, &sites, run)?))
        }
        Some(Action::Settings { format }) => Ok(match format {
            ListFormat::Markdown => print(&docs::tables()),
            ListFormat::Env => print(&docs::env_file()),
            ListFormat::Json => return print_json(&docs::json()),
        }),
        Some(Action::Check(arguments)) => report(arguments),
        Some(Action::Healthcheck) => {
            let ready = run::health_check(&Settings::from_env()?);
            Ok(ExitCode::from(u8::from(!ready())))
        }
        Some(Action::Module { file }) => {
            module::copy(file)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Action::Schema { document }) => Ok(match document {
            Document::Sites => print(&format!("{:#}\n", sites::schema())),
            Document::Policy => print(POLICY_SCHEMA),
        }),
        Some(Action::Version { json: false }) => Ok(print(&format!(
            "sluice {}\n",
            ProgramVersion::of_this_build()
        ))),
        Some(Action::Version { json: true }) => print_json(&ProgramVersion::of_this_build()),
        Some(Action::Man { folder: None }) => {
            let pages = manual::pages(arguments::command())?;
            Ok(pages
                .first()
                .map_or(ExitCode::FAILURE, |page| write(&page.text)))
        }
        Some(Action::Man {
            folder: Some(folder),
        }) => {
            manual::write_pages(arguments::command(), folder)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Action::Completions { shell }) => Ok(print(&completions((*shell).into()))),
    }
}

/// Checks the settings, and reports the findings on standard error or, as JSON, on standard output.
fn report(arguments: &Check) -> anyhow::Result<ExitCode> {
    let findings = check::check(arguments.online);
    if arguments.json {
        print_json(&findings)?;
    } else {
        for finding in &findings {
            log::say(&finding.to_string());
        }
    }
    let failed = findings.iter().any(Finding::is_problem);
    Ok(ExitCode::from(u8::from(failed)))
}

fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut arguments::command(), "sluice", &mut script);
    String::from_utf8_lossy(&script).into_owned()
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
