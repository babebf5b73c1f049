// SPDX-License-Identifier: Apache-2.0
//! `sluice check`: reports problems of settings, sites, policies, certificates and buckets.
//!
//! `files` needs neither an edge nor a network. `bucket` sends a request to a bucket with the credentials of its
//! site, and `bucket_answer` interprets the answer.

mod bucket;
mod bucket_answer;
mod files;
mod keys;
mod online;

use std::fmt;

use crate::settings::Settings;

/// A result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A problem that must be fixed.
    Problem(String),
    /// A problem to come, or a check that was not possible.
    Warning(String),
    /// A setting that works, but is better written in another way.
    Note(String),
}

impl Finding {
    /// Whether this is a problem that must be fixed.
    pub const fn is_problem(&self) -> bool {
        matches!(self, Self::Problem(_))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(text) => out.write_str(text),
            Self::Warning(text) => write!(out, "warning: {text}"),
            Self::Note(text) => write!(out, "note: {text}"),
        }
    }
}

/// Checks the settings in the environment. Also checks the buckets, if `online` is set and no other problem was
/// found.
pub fn check(online: bool) -> Vec<Finding> {
    let settings = match Settings::from_env() {
        Ok(settings) => settings,
        Err(error) => {
            let problems = format!("{error:#}");
            let problems = problems.lines().map(str::to_owned);
            return problems.map(Finding::Problem).collect();
        }
    };
    let notices = settings.notices.iter().cloned();
    let mut findings: Vec<_> = notices.map(Finding::Warning).collect();
    findings.extend(settings.notes.iter().cloned().map(Finding::Note));
    findings.extend(files::check(&settings));
    if online && !findings.iter().any(Finding::is_problem) {
        findings.extend(online::check(&settings));
    }
    findings
}
