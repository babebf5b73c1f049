// SPDX-License-Identifier: Apache-2.0
//! `sluice`: the edge's entry point.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use sluice::demo::Demo;
use sluice::settings::{Settings, docs};
use sluice::{cache, log, render, run};

const USAGE: &str = "\
usage: sluice             run the edge; settings come from the environment
       sluice render      print the Envoy configuration that the settings give
       sluice settings    print the settings, as Markdown tables
       sluice healthcheck ask a running edge with the same settings whether it is ready
";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments
        .iter()
        .map(|argument| argument.to_str())
        .collect::<Vec<_>>()
        .as_slice()
    {
        [] => with_settings(|settings| run::run(&settings).map(ExitCode::from)),
        [Some("render")] => with_settings(|settings| {
            let example = Demo::example_origin();
            let origin = settings.origin.as_ref().unwrap_or(&example);
            let cache_dir = settings.cache.dir.join(cache::ENTRIES);
            render::render(&settings, origin, &cache_dir).map(|config| print(&config))
        }),
        [Some("settings")] => print(&docs::tables()),
        [Some("healthcheck")] => with_settings(|settings| {
            let ready = run::HealthCheck::new(&settings).passes();
            Ok::<_, io::Error>(if ready {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }),
        [Some("help" | "--help" | "-h")] => print(USAGE),
        _ => fail(USAGE.trim_end()),
    }
}

fn with_settings<E: Display>(act: impl FnOnce(Settings) -> Result<ExitCode, E>) -> ExitCode {
    match Settings::from_env() {
        Ok(settings) => act(settings).unwrap_or_else(fail),
        Err(error) => fail(error),
    }
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn fail(error: impl Display) -> ExitCode {
    for line in error.to_string().lines() {
        log::say(line);
    }
    ExitCode::FAILURE
}
