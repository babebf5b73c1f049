// SPDX-License-Identifier: Apache-2.0
//! k6 with a constant arrival rate, see `k6/arrivals.js`.

use serde_json::{Value, json};
use sluice_tests::edge::repository;
use sluice_tests::process::Process;
use sluice_tests::tool::built;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The percentiles of each distribution, dense where it gets thin.
pub const PERCENTILES: [f64; 18] = [
    0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.75, 99.9, 99.95, 99.975, 99.99,
    99.995, 99.999, 100.0,
];

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Requests a second.
    pub rate: u32,
    /// For how long.
    pub seconds: u32,
    /// How many objects there are, `o0.bin` and so on.
    pub objects: u32,
    /// Which of them are asked for.
    pub seed: u32,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests that were sent.
    pub requests: u64,
    /// Requests that were due, and not sent as k6 had no virtual user left.
    pub dropped: u64,
    /// Requests that were not answered with 200.
    pub failed: u64,
    /// From sending to the end of the answer, in milliseconds, by [`PERCENTILES`].
    pub sent: Vec<f64>,
    /// The average of these.
    pub average: f64,
    /// From when the request was due, in whole milliseconds, by [`PERCENTILES`].
    pub due: Vec<f64>,
}

/// The program: `SLUICE_K6`, else where the Makefile has put it.
///
/// # Panics
/// When it is not there.
fn program() -> PathBuf {
    built("k6", "SLUICE_K6", ".sluice/bin/k6", "bench")
}

/// Runs it against `base`, a URL without a slash at its end.
///
/// # Panics
/// When k6 fails.
pub async fn run(base: &str, load: Load) -> Outcome {
    let folder = TempDir::with_prefix("sluice-bench-k6-").unwrap();
    let summary = folder.path().join("summary.json");
    let percentiles = PERCENTILES.map(|percentile| percentile.to_string());
    let mut command = Command::new(program());
    // Its API would listen, and be of no use.
    command.args(["run", "--quiet", "--no-usage-report", "--address", ""]);
    command
        .arg(repository().join("bench/k6/arrivals.js"))
        .env("BASE", base)
        .env("RATE", load.rate.to_string())
        .env("SECONDS", load.seconds.to_string())
        .env("OBJECTS", load.objects.to_string())
        .env("SEED", load.seed.to_string())
        .env("PERCENTILES", percentiles.join(","))
        .env("SUMMARY", &summary);
    let mut process = Process::start(command, &folder.path().join("k6.log")).unwrap();
    let ended = process.ended().await;
    let text = std::fs::read_to_string(&summary).unwrap_or_default();
    assert!(ended.success() && !text.is_empty(), "k6: {}", process.log());
    Outcome::of(&serde_json::from_str(&text).unwrap())
}

impl Outcome {
    fn of(metrics: &Value) -> Self {
        let count = |name: &str| metrics[name]["values"]["count"].as_u64().unwrap_or(0);
        let percentiles = |name: &str| {
            let values = &metrics[name]["values"];
            let at = |percentile: f64| {
                let value = &values[format!("p({percentile})")];
                value.as_f64().unwrap_or(f64::NAN)
            };
            PERCENTILES.map(at).to_vec()
        };
        let average = &metrics["http_req_duration"]["values"]["avg"];
        Self {
            requests: count("http_reqs"),
            dropped: count("dropped_iterations"),
            failed: count("failed"),
            sent: percentiles("http_req_duration"),
            average: average.as_f64().unwrap_or(f64::NAN),
            due: percentiles("since_due"),
        }
    }

    /// The time from sending that so many percent do not exceed.
    ///
    /// # Panics
    /// When it is none of [`PERCENTILES`].
    pub fn percentile(&self, wanted: f64) -> f64 {
        self.sent[position(wanted)]
    }

    /// The same from when they were due.
    ///
    /// # Panics
    /// When it is none of [`PERCENTILES`].
    pub fn percentile_due(&self, wanted: f64) -> f64 {
        self.due[position(wanted)]
    }

    /// For the data file.
    pub fn json(&self) -> Value {
        json!({
            "requests": self.requests, "dropped": self.dropped, "failed": self.failed,
            "average": self.average, "percentiles": PERCENTILES, "sent": self.sent, "due": self.due,
        })
    }
}

fn position(wanted: f64) -> usize {
    PERCENTILES
        .iter()
        .position(|percentile| percentile.to_bits() == wanted.to_bits())
        .expect("one of the percentiles")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_k6_is_read() {
        let metrics = json!({
            "http_reqs": {"values": {"count": 10, "rate": 5}},
            "http_req_duration": {"values": {"avg": 2.5, "p(50)": 1.5, "p(99.9)": 7.0, "p(100)": 9.0}},
            "since_due": {"values": {"avg": 3, "p(100)": 11}},
        });
        let outcome = Outcome::of(&metrics);
        assert_eq!(
            (outcome.requests, outcome.dropped, outcome.failed),
            (10, 0, 0)
        );
        assert_eq!(
            [50.0, 99.9, 100.0].map(|p| outcome.percentile(p)),
            [1.5, 7.0, 9.0]
        );
        assert!((outcome.percentile_due(100.0) - 11.0).abs() < f64::EPSILON);
    }
}
