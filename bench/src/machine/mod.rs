// SPDX-License-Identifier: Apache-2.0
//! The machine of a run.

pub mod usage;

use crate::figures::Figures;
use crate::peers::packages::program;
use sluice_tests::http::http_date;
use sluice_tests::machine::tool;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

/// The load average at the start of the program.
pub static BEFORE: LazyLock<f64> = LazyLock::new(load);

/// Time and machine of a run, in two lines. `foreign` is the part of the cores that other work took in each round, if
/// that was measured.
pub fn described(foreign: impl IntoIterator<Item = f64>) -> String {
    let before = *BEFORE;
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

/// The current commit, with `-dirty` if files differ from it.
pub fn commit() -> String {
    let mut git = Command::new("git");
    git.args([
        "describe",
        "--always",
        "--dirty",
        "--exclude=*",
        "--abbrev=12",
    ]);
    let said = git.current_dir(tool::repository()).output();
    let text = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok()
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "?".to_owned())
}

/// The processor, the number of cores, and the memory.
pub fn hardware() -> String {
    let field = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let value = line.map(|line| line.trim_start_matches([' ', '\t', ':']).to_owned());
        value.unwrap_or_default()
    };
    let memory = field("/proc/meminfo", "MemTotal");
    let kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or(0);
    let processor = field("/proc/cpuinfo", "model name");
    format!(
        "{processor}, {} cores, {} GiB of memory",
        cores(),
        kib.div_ceil(1 << 20)
    )
}

/// The load average of the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.unwrap_or(f64::NAN)
}

/// Number of cores.
pub fn cores() -> u32 {
    sluice::system::Machine::cores()
}

/// The versions of the servers, in a line.
pub fn versions() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut parts = vec![format!("Linux {}", kernel.trim())];
    let said = |program: PathBuf, option| version(Command::new(program).arg(option));
    parts.push(format!("Envoy {}", said(tool::envoy(), "--version")));
    let peers = [
        ("nginx", "nginx", "-v"),
        ("HAProxy", "haproxy", "-v"),
        ("Varnish", "varnishd", "-V"),
        ("Traffic Server", "traffic_server", "--version"),
    ];
    for (name, peer, option) in peers {
        parts.extend(program(peer).map(|peer| format!("{name} {}", said(peer, option))));
    }
    parts.join(", ")
}

/// The first dotted number in the output of a program.
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
