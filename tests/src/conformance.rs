// SPDX-License-Identifier: Apache-2.0
//! The public conformance suite for HTTP caches (<https://cache-tests.fyi>): its origin, its client, and what came of
//! each of its tests.

use crate::machine::process::Process;
use crate::machine::tool;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

/// What came of one test.
#[derive(Clone, Debug, Deserialize)]
pub struct Outcome {
    /// `required`, `optimal` or `check`, of which the last is neither right nor wrong.
    pub kind: String,
    /// `pass`, or how it did not: a test whose dependency has not passed has not passed either.
    pub mark: String,
    /// What it asserts, in the suite's words.
    pub name: String,
    /// What was seen instead.
    pub detail: String,
}

impl Outcome {
    /// Whether it has passed, or is a check.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.mark == "pass" || self.kind == "check"
    }
}

/// The outcome of each test, by its name.
pub type Outcomes = BTreeMap<String, Outcome>;

/// The suite: `SLUICE_CONFORMANCE`, a folder with the package from npm or a checkout.
fn suite() -> PathBuf {
    let folder = tool::folder("SLUICE_CONFORMANCE");
    let package = folder.join("node_modules/http-cache-tests");
    if package.is_dir() { package } else { folder }
}

/// Runs the suite: its origin on the port `origin`, and its client against `cache`, which stands before it.
///
/// # Panics
/// When it does not run to its end.
pub async fn run(cache: SocketAddr, origin: u16) -> Outcomes {
    let scratch = tempfile::tempdir().unwrap();
    let (log, results) = (scratch.path().join("log"), scratch.path().join("results"));
    let mut command = Command::new(tool::tool("SLUICE_NODE", "node"));
    command
        .arg(tool::repository().join("tests/tools/conformance/run.mjs"))
        .arg(suite())
        .arg(origin.to_string())
        .arg(format!("http://{cache}"))
        .arg(&results);
    let mut process = Process::start(command, &log).unwrap();
    let status = process.ended().await;
    assert!(status.success(), "{status}: {}", process.log());
    serde_json::from_slice(&std::fs::read(results).unwrap()).unwrap()
}

/// How many tests of a kind have passed, and how many there are.
#[must_use]
pub fn score(outcomes: &Outcomes, kind: &str) -> (usize, usize) {
    let of_kind = outcomes.values().filter(|outcome| outcome.kind == kind);
    let passed = of_kind.clone().filter(|outcome| outcome.mark == "pass");
    (passed.count(), of_kind.count())
}
