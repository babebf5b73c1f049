// SPDX-License-Identifier: Apache-2.0
//! `sluice check`: reports problems of settings, sites, policies, certificates and buckets.
//!
//! `files` needs neither an edge nor a network. `bucket` sends a request to a bucket with the credentials of its
//! site, and `bucket_answer` interprets the answer.

mod access;
mod bucket;
mod bucket_answer;
mod feed;
mod files;
mod finding;
mod listing;
mod online;
mod token_keys;

use crate::settings::{SettingProblems, Settings};
pub use finding::{Finding, Level, Place};

/// Checks the settings in the environment. Also checks the buckets, if `online` is set and no other problem was
/// found.
pub fn check(online: bool) -> Vec<Finding> {
    let settings = match Settings::from_env() {
        Ok(settings) => settings,
        Err(error) => {
            return match error.downcast_ref() {
                Some(SettingProblems(problems)) => problems.iter().map(Finding::from).collect(),
                None => vec![Finding::problem(format!("{error:#}"))],
            };
        }
    };
    let notices = settings.notices.iter().cloned();
    let mut findings: Vec<_> = notices.map(Finding::warning).collect();
    findings.extend(settings.notes.iter().cloned().map(Finding::note));
    findings.extend(files::check(&settings));
    if online && !findings.iter().any(Finding::is_problem) {
        findings.extend(online::check(&settings));
    }
    findings
}
