// SPDX-License-Identifier: Apache-2.0
//! `sluice check`: tells what is wrong with settings, sites, policies, certificates and buckets.
//!
//! `files` needs neither an edge nor a network. `bucket` asks a bucket with the credentials of its site, and
//! `bucket_answer` says what the answer means.

mod bucket;
mod bucket_answer;
mod files;
mod keys;
mod online;

use std::fmt;

use crate::settings::Settings;

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Something is wrong.
    Problem(String),
    /// Something will be wrong, or could not be checked.
    Warning(String),
}

impl Finding {
    /// Whether something is wrong.
    pub const fn is_problem(&self) -> bool {
        matches!(self, Self::Problem(_))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(text) => out.write_str(text),
            Self::Warning(text) => write!(out, "warning: {text}"),
        }
    }
}

/// Checks what the environment says, and asks the buckets where it is to be `online` and nothing else is wrong.
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
    findings.extend(files::check(&settings));
    if online && !findings.iter().any(Finding::is_problem) {
        findings.extend(online::check(&settings));
    }
    findings
}
