// SPDX-License-Identifier: Apache-2.0
//! `sluice`: the edge's entry point.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use sluice::demo::Demo;
use sluice::settings::{Settings, docs};
use sluice::{cache, log, render, run};

const USAGE: &str = "\
usage: sluice             run the edge; settings come from the environment
       sluice --restart   the same, and start it again when it has ended by a fault
       sluice render      print the Envoy configuration that the settings give
       sluice settings    print the settings, as Markdown tables
       sluice check       ask the bucket, by way of a running edge with the same settings, and tell what is wrong
       sluice healthcheck ask a running edge with the same settings whether it is ready
";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_str()).collect();
    act(&arguments).unwrap_or_else(|error| {
        for line in format!("{error:#}").lines() {
            log::say(line);
        }
        ExitCode::FAILURE
    })
}

fn act(arguments: &[Option<&str>]) -> anyhow::Result<ExitCode> {
    match arguments {
        [] => {
            let settings = Settings::from_env()?;
            ensure!(
                settings.sites.is_none(),
                "SITES: this version checks the file and serves ORIGIN only"
            );
            Ok(run::run(&settings)?.into())
        }
        [Some("--restart")] => Ok(run::keep_running()?.into()),
        [Some("render")] => {
            let settings = Settings::from_env()?;
            let example = Demo::example_origin();
            let origin = settings.origin.as_ref().unwrap_or(&example);
            let cache_dir = settings.cache.dir.join(cache::ENTRIES);
            Ok(print(&render::render(&settings, origin, &cache_dir)?))
        }
        [Some("settings")] => Ok(print(&docs::tables())),
        [Some("check")] => {
            run::check_bucket(&Settings::from_env()?)?;
            Ok(ExitCode::SUCCESS)
        }
        [Some("healthcheck")] => {
            let ready = run::health_check(&Settings::from_env()?);
            Ok(ExitCode::from(u8::from(!ready())))
        }
        [Some("help" | "--help" | "-h")] => Ok(print(USAGE)),
        _ => bail!(USAGE.trim_end()),
    }
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
