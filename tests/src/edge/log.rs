// SPDX-License-Identifier: Apache-2.0
//! The log of an edge.

/// Texts of lines that no edge may log, whatever clients and origins do.
const CRITICAL: [&str; 11] = [
    "panicked at",
    "Caught Segmentation fault",
    "Caught Aborted",
    "ENVOY_BUG",
    "ENVOY_NOTIFICATION",
    "assert failure",
    "[critical]",
    "Z critical ",
    "Wasm VM failed",
    "wasm trap",
    "Uncaught RuntimeError",
];

/// The lines that no edge may log, except those with one of the texts that are `allowed`.
#[must_use]
pub fn critical<'a>(log: &'a str, allowed: &[String]) -> Vec<&'a str> {
    let is_critical = |line: &&str| CRITICAL.iter().any(|text| line.contains(text));
    let is_allowed = |line: &&str| allowed.iter().any(|text| line.contains(text.as_str()));
    let critical = log.lines().filter(is_critical);
    critical.filter(|line| !is_allowed(line)).collect()
}

/// The last lines of a log.
#[must_use]
pub fn tail(log: &str, lines: usize) -> String {
    let all: Vec<_> = log.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
