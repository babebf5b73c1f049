// SPDX-License-Identifier: Apache-2.0
//! `sluice`: the edge's entry point.

mod arguments;
mod module;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use clap_complete::{Shell, generate};
use sluice::cache::EarlierRuns;
use sluice::check::Finding;
use sluice::demo::Demo;
use sluice::render::Run;
use sluice::settings::{self, Settings, docs};
use sluice::{cache, check, log, render, run, sites};

use arguments::{Action, Arguments, Document};

/// The JSON Schema of the policy.
const POLICY_SCHEMA: &str = include_str!("../../filter/core/policy.schema.json");

fn main() -> ExitCode {
    act(&Arguments::parse()).unwrap_or_else(|error| {
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
        Some(Action::Settings) => Ok(print(&docs::tables())),
        Some(Action::Check(arguments)) => {
            let findings = check::check(arguments.online);
            for finding in &findings {
                log::say(&finding.to_string());
            }
            let failed = findings.iter().any(Finding::is_problem);
            Ok(ExitCode::from(u8::from(failed)))
        }
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
        Some(Action::Completions { shell }) => Ok(print(&completions((*shell).into()))),
    }
}

fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "sluice", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
