// SPDX-License-Identifier: Apache-2.0
//! Instructions of a worker for a hit, or with `MISSES=1` for a miss, for one change of the edge at a time, as
//! valgrind's callgrind counts them in Envoy.
//!
//! One connection sends one request after the other. Runs differ by a thousandth, whatever else the machine does. The
//! count excludes the kernel. `PROFILES=FOLDER` keeps callgrind's files, for `callgrind_annotate`.

use crate::contenders::variants::{self, BYTES, Variant};
use crate::figures::Table;
use crate::machine;
use crate::origins::Responder;
use crate::peers::Peer;
use crate::progress::Progress;
use crate::report::Report;
use sluice_tests::client::{Client, request};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Number of requests after which V8 has compiled the hot code completely.
const WARM: usize = 1_500;
const COUNTED: u32 = 200;
const QUICK: (usize, u32) = (150, 20);
const CALLGRIND: [&str; 5] = [
    "--quiet",
    "--tool=callgrind",
    "--instr-atstart=no",
    "--separate-threads=yes",
    // V8 writes code.
    "--smc-check=all-non-file",
];
/// Without these settings memory is copied by an instruction that counts once for each byte.
const COPIES: &str =
    "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000";

pub async fn run(quick: bool) -> Option<Report> {
    let variants = variants::wanted();
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("not measured: valgrind is not installed (Debian: apt-get install valgrind)");
        return None;
    }
    let origin = variants::origin();
    let progress = Progress::of(variants.len());
    let mut counts = Vec::new();
    for variant in variants {
        progress.step(&variant.name);
        let count = count(
            &variant,
            &origin,
            if quick { QUICK } else { (WARM, COUNTED) },
        )
        .await;
        counts.push((variant.name, count));
    }
    Some(report(&counts))
}

/// Thousands of instructions of the worker's thread for a response.
async fn count(variant: &Variant, origin: &Responder, (warm, counted): (usize, u32)) -> f64 {
    let valgrind = |folder: &Path| {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(CALLGRIND).env("GLIBC_TUNABLES", COPIES);
        valgrind.arg(format!(
            "--callgrind-out-file={}",
            folder.join("profile").display()
        ));
        Some(valgrind)
    };
    let envoy = variant.start(origin, 1, valgrind).await;
    let mut client = Client::connect(envoy.address).await;
    let mut targets = (0..).map(|number: u32| match variants::misses() {
        true => format!("/object/{number}"),
        false => "/object".to_owned(),
    });
    let host = envoy.address.to_string();
    let headers = [("host", host.as_str()), ("accept-encoding", "identity")];
    let mut ask = async |times: usize| {
        for target in targets.by_ref().take(times) {
            let target = variant.target(&target, envoy.address);
            let response = client.exchange(request("GET", &target, &headers)).await;
            assert_eq!(response.status, 200, "{response}");
        }
    };
    ask(warm).await;
    control(&envoy, "--instr=on");
    ask(10).await;
    control(&envoy, "--zero");
    ask(counted as usize).await;
    control(&envoy, "--dump");
    let profiles = profiles(envoy.folder());
    keep(&profiles, &variant.name);
    let totals = profiles.iter().map(|profile| total(profile));
    totals.fold(0.0, f64::max) / f64::from(counted) / 1e3
}

/// Sends an order to callgrind.
fn control(envoy: &Peer, order: &str) {
    let mut command = Command::new("callgrind_control");
    command.arg(order).arg(envoy.pid().to_string());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.unwrap().success(), "callgrind_control {order}");
}

/// The profiles that were written first, a file for each thread.
fn profiles(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let named = |entry: &std::fs::DirEntry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with("profile.1-")
    };
    entries.filter(named).map(|entry| entry.path()).collect()
}

/// Copies the profiles to `PROFILES`, if it is set.
fn keep(profiles: &[PathBuf], name: &str) {
    let Some(folder) = std::env::var_os("PROFILES").filter(|folder| !folder.is_empty()) else {
        return;
    };
    let folder = PathBuf::from(folder).join(name.replace('/', "-"));
    std::fs::create_dir_all(&folder).unwrap();
    for profile in profiles {
        std::fs::copy(profile, folder.join(profile.file_name().unwrap())).unwrap();
    }
}

/// The instructions of one thread.
fn total(profile: &Path) -> f64 {
    total_of(&std::fs::read_to_string(profile).unwrap())
}

fn total_of(profile: &str) -> f64 {
    let lines = profile.lines().map(|line| line.split_whitespace());
    let totals = lines.filter_map(|mut words| match words.next() {
        Some("summary:" | "totals:") => words.next()?.parse().ok(),
        _ => None,
    });
    totals.fold(0.0, f64::max)
}

fn report(counts: &[(String, f64)]) -> Report {
    let what = if variants::misses() { "miss" } else { "hit" };
    let first = counts.first().map_or(f64::NAN, |(_, count)| *count);
    let cells = |(name, count): &(String, f64)| {
        vec![
            name.clone(),
            format!("{count:.1}"),
            format!("{:.2}", count / first),
        ]
    };
    Report {
        title: format!("Instructions of a {what}, one change at a time"),
        about: format!(
            "{BYTES} bytes, one worker, one connection\n{}",
            machine::described([])
        ),
        tables: vec![Table::new(
            "variant | thousands | ratio",
            counts.iter().map(cells),
        )],
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_of_a_thread_are_its_total() {
        let profile = "events: Ir\nfn=(1) main\n1 20\nsummary: 1500\ntotals: 1500\n";
        assert!((total_of(profile) - 1_500.0).abs() < 1e-9);
        assert!(total_of("events: Ir\n").abs() < 1e-9);
    }
}
