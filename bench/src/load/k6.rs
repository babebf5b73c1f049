// SPDX-License-Identifier: Apache-2.0
//! k6 with a constant arrival rate, see `k6/arrivals.js`.
//!
//! k6's own summary has only percentiles, and the time when a request was due only in whole milliseconds. This module
//! reads each of k6's samples, in nanoseconds (`--out csv`, into a file, which is read when the run has ended).

use crate::figures::Distribution;
use sluice_tests::machine::process::Process;
use sluice_tests::machine::tool::built;
use sluice_tests::machine::tool::repository;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// The requests of a run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Requests a second.
    pub rate: u32,
    /// Length of the run.
    pub seconds: u32,
    /// Number of objects, `o0.bin` and so on.
    pub objects: u32,
    /// Seed for the choice of objects.
    pub seed: u32,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests that were due, but not sent because k6 had no virtual user left.
    pub dropped: u64,
    /// Requests that were not answered with status 200.
    pub failed: u64,
    /// Times from sending to the end of the response, on an open connection.
    pub sent: Distribution,
    /// Times from when the request was due. They include delays by k6 itself, by a lack of its virtual users, and by
    /// connecting.
    pub due: Distribution,
}

/// The program: `SLUICE_K6`, else where the Makefile has put it.
///
/// # Panics
/// When it is not there.
fn program() -> PathBuf {
    built("k6", "SLUICE_K6", ".sluice/bin/k6", "bench")
}

/// Runs k6 against `base`, a URL without a slash at its end.
///
/// # Panics
/// When k6 fails.
pub async fn run(base: &str, load: Load) -> Outcome {
    let folder = TempDir::with_prefix("sluice-bench-k6-").unwrap();
    let file = folder.path().join("samples.csv");
    let began = SystemTime::now();
    let mut command = Command::new(program());
    // k6's API would listen, and is not needed.
    command.args(["run", "--quiet", "--no-usage-report", "--no-summary"]);
    command.args(["--address", "", "--out"]);
    command
        .arg(format!("csv={}", file.display()))
        .arg(repository().join("bench/k6/arrivals.js"))
        .env("K6_CSV_TIME_FORMAT", "unix_nano")
        .env("BASE", base)
        .env("RATE", load.rate.to_string())
        .env("SECONDS", load.seconds.to_string())
        .env("OBJECTS", load.objects.to_string())
        .env("SEED", load.seed.to_string());
    let mut process = Process::start(command, &folder.path().join("k6.log")).unwrap();
    let ended = process.ended().await;
    assert!(ended.success(), "k6: {}", process.log());
    let samples = File::open(&file).unwrap_or_else(|_| panic!("k6: {}", process.log()));
    Samples::read(BufReader::new(samples)).outcome(began, load.rate)
}

/// The measurements of k6, in nanoseconds since the epoch.
#[derive(Default)]
struct Samples {
    sent: Vec<Duration>,
    /// Beginning and end of each iteration.
    iterations: Vec<(u64, u64)>,
    /// Times at which an iteration had no virtual user.
    dropped: Vec<u64>,
    failed: u64,
}

impl Samples {
    /// Reads lines of `metric_name,timestamp,metric_value,…`, and skips other lines.
    fn read(lines: impl BufRead) -> Self {
        let mut samples = Self::default();
        for line in lines.lines() {
            let line = line.expect("k6's samples");
            let mut fields = line.split(',');
            let (Some(metric), Some(at), Some(value)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let (Ok(at), Ok(milliseconds)) = (at.parse::<u64>(), value.parse::<f64>()) else {
                continue;
            };
            let length = || Duration::from_secs_f64(milliseconds.max(0.0) / 1e3);
            match metric {
                "http_req_duration" => samples.sent.push(length()),
                "iteration_duration" => {
                    let length = u64::try_from(length().as_nanos()).unwrap_or(u64::MAX);
                    samples.iterations.push((at.saturating_sub(length), at));
                }
                "dropped_iterations" => samples.dropped.push(at),
                "failed" => samples.failed += 1,
                _ => {}
            }
        }
        samples
    }

    fn outcome(self, began: SystemTime, rate: u32) -> Outcome {
        Outcome {
            dropped: self.dropped.len() as u64,
            failed: self.failed,
            due: Distribution::since(began, self.since_due(rate)),
            sent: Distribution::since(began, self.sent),
        }
    }

    /// Times from when each iteration was due to its end. k6 starts iterations in the order in which they are due,
    /// never too early, at multiples of a whole number of nanoseconds. So the n-th that began, or was dropped, is the
    /// n-th that was due. The most punctual one of all is taken to have no delay, which gives the start of the first
    /// period.
    fn since_due(&self, rate: u32) -> Vec<Duration> {
        let period = 1_000_000_000 / u64::from(rate.max(1));
        let begun = self
            .iterations
            .iter()
            .map(|&(began, ended)| (began, Some(ended)));
        let dropped = self.dropped.iter().map(|&at| (at, None));
        let mut events: Vec<_> = begun.chain(dropped).collect();
        events.sort_unstable();
        let offsets = || (0..).map(|number: u64| number * period);
        let starts = events
            .iter()
            .zip(offsets())
            .map(|((at, _), offset)| at.saturating_sub(offset));
        let start = starts.min().unwrap_or(0);
        let ends = events.iter().zip(offsets());
        ends.filter_map(|(&(_, ended), offset)| {
            Some(Duration::from_nanos(ended?.saturating_sub(start + offset)))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_samples_of_k6_are_read() {
        let text = "metric_name,timestamp,metric_value,extra_tags,metadata\n\
            http_reqs,1700000000000000000,1.000000,,\n\
            http_req_duration,1700000000000000000,1.500000,,\n\
            iteration_duration,1700000000000000000,2.000000,,\n\
            failed,1700000000000000000,1.000000,,\n\
            dropped_iterations,1700000000000000001,1.000000,,\n";
        let samples = Samples::read(text.as_bytes());
        let end = 1_700_000_000_000_000_000;
        assert_eq!(samples.iterations, [(end - 2 * MS, end)]);
        assert_eq!(samples.dropped, [end + 1]);
        assert_eq!(samples.sent, [Duration::from_micros(1_500)]);
        let outcome = samples.outcome(SystemTime::now(), 100);
        assert_eq!(
            (outcome.sent.count(), outcome.dropped, outcome.failed),
            (1, 1, 1)
        );
        assert!((outcome.sent.percentile(100.0) - 1.5).abs() < 0.002);
    }

    /// At 100 a second, in milliseconds.
    fn since_due(iterations: &[(u64, u64)], dropped: &[u64]) -> Vec<u64> {
        let samples = Samples {
            iterations: iterations
                .iter()
                .map(|(began, ended)| (began * MS, ended * MS))
                .collect(),
            dropped: dropped.iter().map(|at| at * MS).collect(),
            ..Samples::default()
        };
        let times = samples.since_due(100).into_iter();
        times
            .map(|time| u64::try_from(time.as_millis()).unwrap())
            .collect()
    }

    #[test]
    fn what_begins_late_is_counted_from_when_it_was_due() {
        // Due at 1000, 1010, 1020; the second begins 7 ms late. They end in another order.
        let times = since_due(&[(1_020, 1_022), (1_000, 1_003), (1_017, 1_021)], &[]);
        assert_eq!(times, [3, 11, 2]);
    }

    #[test]
    fn what_was_dropped_was_due_as_well() {
        let times = since_due(&[(1_000, 1_005), (1_020, 1_021)], &[1_010]);
        assert_eq!(times, [5, 1]);
    }
}
