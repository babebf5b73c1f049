// SPDX-License-Identifier: Apache-2.0
//! The public conformance suite for HTTP caches (<https://cache-tests.fyi>): its origin, its client, and the results
//! of its tests.

use crate::edge::Builder;
use crate::machine::ports::{free_port, loopback};
use crate::machine::process::Process;
use crate::machine::tool;
use crate::{PATIENCE, eventually};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpStream;

/// Result of one test.
#[derive(Clone, Debug, Deserialize)]
pub struct Outcome {
    /// `required`, `optimal` or `check`. A check is neither right nor wrong.
    pub kind: String,
    /// `pass`, or how the test failed: a test whose dependency has not passed has not passed either.
    pub mark: String,
    /// Assertion of the test, in the suite's words.
    pub name: String,
    /// Observed behaviour, if the test has not passed.
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

/// Number of tests of a kind that have passed, and of all tests of that kind.
#[must_use]
pub fn score(outcomes: &Outcomes, kind: &str) -> (usize, usize) {
    let of_kind = outcomes.values().filter(|outcome| outcome.kind == kind);
    let passed = of_kind.clone().filter(|outcome| outcome.mark == "pass");
    (passed.count(), of_kind.count())
}

/// Source of the suite: its repository has newer tests than the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The package of npm.
    Package,
    /// A checkout of the repository.
    Repository,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Package => "the package",
            Self::Repository => "the repository",
        })
    }
}

/// Action between the requests of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// No action.
    Nothing,
    /// After each GET, the client asks for the stored object with `only-if-cached` until it is a hit once. So it
    /// becomes a hot copy of the only worker.
    Hit,
    /// Before the second request of each test, all tests of a batch wait, except those with unsafe methods.
    Pause,
}

/// The suite, with its origin running.
#[derive(Debug)]
pub struct Suite {
    /// Where its origin listens.
    pub origin: SocketAddr,
    _process: Process,
    // Declared after the process, so that it is removed later.
    folder: TempDir,
}

impl Suite {
    /// Starts the suite's origin. The suite is `SLUICE_CONFORMANCE`, a folder with the package from npm or a
    /// checkout.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start() -> Self {
        let folder = TempDir::with_prefix("sluice-conformance-").unwrap();
        let origin = loopback(free_port());
        let mut command = node("origin.mjs");
        command.arg(installed()).arg(origin.port().to_string());
        let process = Process::start(command, &folder.path().join("origin.log")).unwrap();
        eventually("the suite's origin", async || {
            TcpStream::connect(origin).await.is_ok()
        })
        .await;
        Self {
            origin,
            _process: process,
            folder,
        }
    }

    /// Cut of the suite.
    #[must_use]
    pub fn cut(&self) -> Cut {
        if installed().ends_with(PACKAGE) {
            Cut::Package
        } else {
            Cut::Repository
        }
    }

    /// Builds an edge in front of the suite's origin with default settings and two workers. It obeys `Cache-Control`
    /// of a request, because many tests send one.
    ///
    /// # Panics
    /// When the built-in policy has another form.
    pub fn edge(&self) -> Builder {
        let policy = tool::repository().join("envoy/policies/http.yaml");
        let text = std::fs::read_to_string(policy).unwrap();
        let obeying = text.replace("\nrequest:\n", "\nrequest:\n  cache_control: obey\n");
        assert_ne!(obeying, text, "the policy has no section `request`");
        Builder::new()
            .policy(&obeying)
            .env("SLUICE_ORIGIN", format!("http://{}", self.origin))
            .env("SLUICE_ACCESS_LOG", "off")
            // The suite's origin disconnects on purpose, and sends forbidden framing.
            .allow_log("no answer from the origin")
    }

    /// Runs the suite against `cache`, which is in front of its origin. A test that fails is run once more, with
    /// fewer others, because a busy machine must not make it fail. If the tests pause, they wait for `paused`.
    ///
    /// # Panics
    /// When it does not run to its end.
    pub async fn run(
        &self,
        cache: SocketAddr,
        between: Between,
        paused: impl AsyncFnMut(),
    ) -> Outcomes {
        let folder = TempDir::new_in(self.folder.path()).unwrap();
        let mut command = node("client.mjs");
        command
            .arg(installed())
            .arg(format!("http://{cache}"))
            .arg(format!("http://{}", self.origin));
        outcomes(command, folder.path(), between, paused).await
    }
}

/// Runs `client` to its end, with its files in `folder`. If its tests pause, they wait for `paused`.
///
/// # Panics
/// When it does not run to its end.
async fn outcomes(
    mut client: Command,
    folder: &Path,
    between: Between,
    mut paused: impl AsyncFnMut(),
) -> Outcomes {
    let [log, results, pause] = ["log", "results", "results.pause"].map(|name| folder.join(name));
    client.arg(&results).args(match between {
        Between::Nothing => None,
        Between::Hit => Some("hit"),
        Between::Pause => Some("pause"),
    });
    let mut process = Process::start(client, &log).unwrap();
    let deadline = Instant::now() + 10 * PATIENCE;
    let status = loop {
        if let Some(status) = process.exited() {
            break status;
        }
        if pause.exists() {
            paused().await;
            std::fs::remove_file(&pause).unwrap();
        }
        assert!(Instant::now() < deadline, "no end:\n{}", process.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(status.success(), "{status}: {}", process.log());
    serde_json::from_slice(&std::fs::read(results).unwrap()).unwrap()
}

/// Where npm puts it.
const PACKAGE: &str = "node_modules/http-cache-tests";

fn installed() -> PathBuf {
    let folder = tool::folder("SLUICE_CONFORMANCE");
    let package = folder.join(PACKAGE);
    if package.is_dir() { package } else { folder }
}

fn node(script: &str) -> Command {
    let mut command = Command::new(tool::tool("SLUICE_NODE", "node"));
    command.arg(
        tool::repository()
            .join("tests/tools/conformance")
            .join(script),
    );
    command
}

/// The tests that do not pass in a cut of the suite according to `bench/CONFORMANCE.md`, each with the reason.
///
/// # Panics
/// When the page does not exist.
#[must_use]
pub fn listed(cut: Cut) -> BTreeMap<String, String> {
    let page = tool::repository().join("bench/CONFORMANCE.md");
    let page = std::fs::read_to_string(page).unwrap();
    let sections = page.split("\n## ");
    let heading = format!("What does not pass: {cut}\n");
    let section = sections
        .into_iter()
        .find_map(|section| section.strip_prefix(&heading));
    let rows = section
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| {
        let (name, rest) = row.split_once("` |")?;
        let reason = rest.trim_end_matches('|').rsplit_once(" | ")?.1;
        Some((name.to_owned(), reason.trim().to_owned()))
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    /// A suite in the form of the repository with one safe test and one unsafe test after it. The safe test sends
    /// `requests` by `fetch`, and passes. The unsafe test takes two seconds.
    fn suite(requests: usize) -> TempDir {
        let folder = TempDir::with_prefix("sluice-suite-").unwrap();
        let tests = format!(
            "globalThis.fetch = async () => new Response('')
             const safe = {{ id: 'safe', name: 'safe', requests: [{{}}], sent: {requests} }}
             const unsafe = {{ id: 'unsafe', name: 'unsafe', requests: [{{ request_method: 'PUT' }}], sent: 0 }}
             export default [{{ tests: [safe, unsafe] }}]"
        );
        let client = "import { setTimeout as sleep } from 'node:timers/promises'
             export const testResults = {}
             export async function makeTest ({ id, sent }) {
               while (sent-- > 0) await fetch(`http://cache/test/${id}`)
               if (id === 'unsafe') await sleep(2_000)
               testResults[id] = true
             }";
        let files = [
            ("tests/index.mjs", tests.as_str()),
            ("test-engine/client/test.mjs", client),
            (
                "test-engine/client/config.mjs",
                "export const setBaseUrl = () => {}, setUseBrowserCache = () => {}",
            ),
            (
                "test-engine/lib/results.mjs",
                "export const determineTestResult = (suites, id, results) => [0, 0, results[id] ? 'Y' : '-']",
            ),
        ];
        for (name, text) in files {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        folder
    }

    #[test_case(2, 1; "one pause for a test with a second request")]
    #[test_case(0, 0; "no pause for a test whose requests do not wait")]
    #[tokio::test]
    async fn tests_pause_only_while_one_of_them_waits(requests: usize, expected: usize) {
        let suite = suite(requests);
        let mut client = node("client.mjs");
        client
            .arg(suite.path())
            .args(["http://cache", "http://origin"]);
        let mut pauses = 0;
        let outcomes = outcomes(client, suite.path(), Between::Pause, async || pauses += 1).await;
        assert!(outcomes.values().all(Outcome::is_right), "{outcomes:?}");
        assert_eq!((outcomes.len(), pauses), (2, expected));
    }
}
