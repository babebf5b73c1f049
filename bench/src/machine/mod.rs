// SPDX-License-Identifier: Apache-2.0
//! What a run ran on.

pub mod spent;
pub mod usage;

use crate::figures::Figures;
use crate::peers::packages::program;
use sluice_tests::http::http_date;
use sluice_tests::machine::tool;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

/// When a run ended and on what, in two lines; `before` is the load average at its start, `foreign` which part of the
/// cores other work took in each round, where that was watched.
pub fn described(before: f64, foreign: impl IntoIterator<Item = f64>) -> String {
    let foreign = match foreign.into_iter().collect::<Figures>().median() * 100.0 {
        percent if percent.is_nan() => String::new(),
        percent => format!(", {percent:.0} % of the cores taken by others at the median"),
    };
    format!(
        "{}; {} cores, load average {before:.2} before and {:.2} after{foreign}\n{}",
        http_date(SystemTime::now()),
        cores(),
        load(),
        versions(),
    )
}

/// The load average of the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.unwrap_or(f64::NAN)
}

/// How many cores there are.
pub fn cores() -> u32 {
    sluice::system::Machine::cores()
}

/// The versions of what is compared, a line.
pub fn versions() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut parts = vec![format!("Linux {}", kernel.trim())];
    let said = |program: PathBuf, option| version(Command::new(program).arg(option));
    parts.push(format!("Envoy {}", said(tool::envoy(), "--version")));
    if let Some(nginx) = program("nginx") {
        parts.push(format!("nginx {}", said(nginx, "-v")));
    }
    if let Some(haproxy) = program("haproxy") {
        parts.push(format!("HAProxy {}", said(haproxy, "-v")));
    }
    if let Some(varnish) = program("varnishd") {
        parts.push(format!("Varnish {}", said(varnish, "-V")));
    }
    parts.join(", ")
}

/// The first dotted number in what a program says of itself.
pub fn version(command: &mut Command) -> String {
    let Ok(output) = command.output() else {
        return "?".to_owned();
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.split(|c: char| c != '.' && !c.is_ascii_digit())
        .find(|word| word.trim_matches('.').contains('.'))
        .unwrap_or("?")
        .to_owned()
}
